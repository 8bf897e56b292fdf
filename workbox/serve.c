/*
 * serve: reads and checks the configuration and the key, has start.c open
 * what privd must not open itself, and becomes privd.
 *
 * privd gets the descriptors of enum privd_fd and an empty environment.
 * Nothing here makes a box or hears a peer.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "become.h"
#include "cert.h"
#include "host.h"
#include "server.h"
#include "xmalloc.h"

static int	serve_main(const struct args *);

static const struct opt serve_opts[] = {
	{ "cgroup", "NAME", "cgroup of all sandboxes", 0, 0 },
	{ "listen", "ADDR:PORT", "address of the API; none: only the socket",
	    0, 1 },
	{ "socket", "PATH", "unix socket of the API; none for none; with "
	    "--state DIR/run/api.sock", 0, 0 },
	{ "token-file", "FILE", "file with the key (WORKBOX_TOKEN; "
	    WB_TOKEN_FILE ")", 0, 0 },
	{ "ready-fd", "NUMBER", "descriptor that gets a newline when ready",
	    0, 0 },
	{ "check", NULL, "check the configuration and exit", 'n', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_serve = {
	.name = "serve",
	.operands = "",
	.doc = "Run the server in the foreground",
	.opts = serve_opts,
	.flags = CMD_STATE,
	.run = serve_main
};

/* ---- what the command line says beside the file ------------------------ */

/* Whether this host has IPv6 on its loopback. */
static int
has_loopback6(void)
{
	auto_close int		fd = -1;
	struct sockaddr_in6	sa = { .sin6_family = AF_INET6,
	    .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd != -1 && bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0;
}

static int
add_addr(struct start *st, const char *s, const char *from)
{
	struct sockaddr_storage	sa;

	if (strcmp(s, "none") == 0)
		return 0;
	if (st->naddr == LISTEN_MAX)
		return fail("%s: expected at most %d addresses", from,
		    LISTEN_MAX);
	if (config_listen(s, &sa) == -1)
		return fail("%s: expected ADDRESS:PORT, [ADDRESS]:PORT or "
		    "none, not \"%s\"", from, s);
	st->addr[st->naddr++] = s;
	return 0;
}

/* Options instead of the file's words instead of the default. */
static int
set_listen(const struct args *a, const struct conf *c, struct start *st)
{
	const char	*s;
	size_t		 i = 0;
	int		 rc = 0, given = 0, none = 0;

	while (rc == 0 && (s = args_each(a, "listen", &i)) != NULL) {
		rc = add_addr(st, s, "--listen");
		none |= strcmp(s, "none") == 0;
		given++;
	}
	if (rc == 0 && none && given > 1)
		return fail("--listen: expected none alone, or addresses");
	if (given > 0)
		return rc;
	for (i = 0; rc == 0 && i < c->listen.n; i++)
		rc = add_addr(st, (const char *)c->listen.v[i].data, "listen");
	if (rc == 0 && c->listen.n == 0) {
		rc = add_addr(st, "127.0.0.1:8790", "listen");
		if (rc == 0 && has_loopback6())
			rc = add_addr(st, "[::1]:8790", "listen");
	}
	return rc;
}

static int
set_options(const struct args *a, struct conf *c, struct start *st)
{
	const char	*s;
	size_t		 i;
	int		 rc = 0;

	if ((s = args_get(a, "cgroup")) != NULL)
		rc = config_cgroup(c, s);
	if (rc == 0 && (s = args_get(a, "socket")) != NULL)
		rc = strcmp(s, "none") == 0 ?
		    str_copy(c->socket, s, sizeof c->socket) :
		    config_path(c->socket, sizeof c->socket, "socket", s);
	if (rc == 0)
		rc = set_listen(a, c, st);
	for (i = 0; rc == 0 && i < st->naddr; i++)
		if (tls_lacks(c, st->addr[i]) &&
		    !c->plain_http_beyond_loopback) {
			rc = fail("listen: " TLS_LACKS, st->addr[i]);
			note("cure: %s", TLS_CURE);
		}
	if (rc == 0 && st->naddr == 0 && strcmp(c->socket, "none") == 0)
		rc = fail("expected an address to listen on or a socket");
	return rc;
}

/* ---- what the host must have ------------------------------------------- */

static int
find_user(const char *name, uint64_t *ret_uid, uint64_t *ret_gid)
{
	const struct passwd	*pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw == NULL && errno != 0)
		return fail_errno("user %s", name);
	if (pw == NULL)
		return fail("there is no user %s: run etc/install.sh, or "
		    "useradd --system --user-group %s", name, name);
	if (pw->pw_uid == 0)
		return fail("user %s: expected another uid than 0", name);
	*ret_uid = pw->pw_uid;
	*ret_gid = pw->pw_gid;
	return 0;
}

static int
find_users(struct conf *c, struct start *st)
{
	const struct {
		const char	*name;
		uint64_t	*uid, *gid;
	} user[] = {
		{ "_workbox-netd", &c->uid_netd, &c->gid_netd },
		{ "_workbox-stored", &c->uid_stored, &c->gid_stored },
		{ "_workbox-apid", &c->uid_apid, &c->gid_apid },
		{ "_workbox-proxyd", &c->uid_proxyd, &c->gid_proxyd },
	};
	const struct group	*gr;
	size_t			 i, j;
	int			 rc;

	for (i = 0; i < sizeof user / sizeof user[0]; i++) {
		if ((rc = find_user(user[i].name, user[i].uid,
		    user[i].gid)) != 0)
			return rc;
		for (j = 0; j < i; j++)
			if (*user[i].uid == *user[j].uid)
				return fail("users %s and %s: expected a uid "
				    "for each", user[j].name, user[i].name);
	}
	/* Without the group the socket is root's alone. */
	gr = getgrnam("workbox");
	st->gid_socket = gr != NULL ? gr->gr_gid : 0;
	return 0;
}

/* ---- the key ----------------------------------------------------------- */

/* What apid alone gets: the key, a line, then what TLS wants, if it does. */
static int
seal_token(const struct conf *c, const char *token, size_t len, int *ret_fd)
{
	auto_close int	fd = -1;
	struct cert	cert = { .ctx = NULL };
	struct finding	f;
	char		*pem = NULL;
	size_t		pem_len = 0;
	int		ok;

	if (tls_wanted(c)) {
		if (tls_take(c, &cert, &f) == -1)
			return fail("%s", f.detail);
		pem = cert_pem(cert.ctx, &pem_len);
		SSL_CTX_free(cert.ctx);
	}
	fd = memfd_create("token", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ok = fd != -1 && write(fd, token, len) == (ssize_t)len &&
	    write(fd, "\n", 1) == 1 &&
	    (pem_len == 0 || write(fd, pem, pem_len) == (ssize_t)pem_len) &&
	    fcntl(fd, F_ADD_SEALS, SERVER_SEALS) == 0;
	if (pem != NULL)
		explicit_bzero(pem, pem_len);
	free(pem);
	if (!ok)
		return fail_errno("keep the key");
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* A key that every user of this host can read is no key. */
static void
warn_readable(const char *file)
{
	struct stat	st;

	if (stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & (S_IROTH | S_IWOTH)) != 0)
		note("%s: others than its owner can read or write the key: "
		    "chmod 600 %s", file, file);
}

size_t
token_trim(char *s, size_t len)
{
	while (len > 0 && strchr("\r\n \t", s[len - 1]) != NULL)
		s[--len] = '\0';
	return len;
}

int
token_ok(const char *s, size_t len)
{
	size_t	i;

	for (i = 0; i < len; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f)
			return 0;
	return len >= TOKEN_MIN && len <= TOKEN_MAX;
}

static int
read_token(const struct args *a, const struct conf *c, int *ret_fd)
{
	const char	*file = args_get(a, "token-file"), *from, *env;
	char		*token;
	size_t		 len;
	int		 rc;

	env = file == NULL ? getenv("WORKBOX_TOKEN") : NULL;
	if (env != NULL && *env != '\0') {
		from = "WORKBOX_TOKEN";
		token = xstrdup(env);
		len = strlen(token);
	} else {
		from = file != NULL ? file : WB_TOKEN_FILE;
		if ((token = text_file(from, 4096, &len)) == NULL)
			return fail_errno(file != NULL ? "--token-file %s" :
			    "key: WORKBOX_TOKEN is not set and %s", from);
		warn_readable(from);
		len = token_trim(token, len);
	}
	if (!token_ok(token, len))
		rc = fail("%s: expected a key of %d to %d printable "
		    "characters, as from openssl rand -hex 24", from,
		    TOKEN_MIN, TOKEN_MAX);
	else
		rc = seal_token(c, token, len, ret_fd);
	explicit_bzero(token, len);
	free(token);
	return rc;
}

/* ---- becoming privd ---------------------------------------------------- */

/* Before anything is opened: the number is the caller's. */
static int
set_ready(const struct args *a, struct start *st)
{
	const char	*s = args_get(a, "ready-fd");
	uint64_t	 fd;

	st->ready_fd = -1;
	if (s == NULL)
		return 0;
	if (text_u64(s, 1, 1024, &fd) == -1 || fcntl((int)fd, F_GETFD) == -1)
		return fail("--ready-fd: expected the number of an open "
		    "descriptor, not \"%s\"", s);
	st->ready_fd = (int)fd;
	return 0;
}

/*
 * -n: what serve would refuse before it opens anything.  The default key
 * may be missing or root's: whoever checks a file need not have it.
 */
static int
check_only(const struct args *a, const struct conf *c)
{
	const char	*env = getenv("WORKBOX_TOKEN");
	auto_close int	 fd = -1;
	int		 rc;

	if ((rc = doctor_serve(a, c, "programs")) != 0)
		return rc;
	if (tls_wanted(c) && access(c->tls_key, R_OK) == -1 && errno ==
	    EACCES) {
		note("tls-key was not checked: %s: %s", c->tls_key,
		    strerror(errno));
		return 0;
	}
	if ((rc = doctor_serve(a, c, "tls")) != 0)
		return rc;
	if (args_get(a, "token-file") == NULL && (env == NULL ||
	    *env == '\0') && access(WB_TOKEN_FILE, R_OK) == -1) {
		note("the key was not checked: %s: %s", WB_TOKEN_FILE,
		    strerror(errno));
		return 0;
	}
	return read_token(a, c, &fd);
}

static int
become(const struct args *a, const struct conf *c, struct start *st)
{
	auto_free char	*privd = xasprintf("%s/privd", c->libexec_dir);
	auto_free char	*maker = xasprintf("%s/maker", c->libexec_dir);
	size_t		 i;
	int		 rc;

	if (strcmp(c->landlock, "none") == 0)
		note("privd's fence is without Landlock, as the "
		    "configuration says");
	if ((rc = start(c, st)) != 0 || (rc = reader_start(a, c)) != 0)
		return rc;
	/* where the log is not here, nor is this */
	for (i = 0; i < st->naddr && strcmp(c->log, "stderr") == 0; i++)
		note("%s://%s", tls_wanted(c) ? "https" : "http", st->addr[i]);
	return fail_errno("%s", become_privd(privd, maker,
	    strcmp(c->landlock, "none") != 0));
}

int
serve_conf(const struct args *a, struct conf *c, const struct conf *tls,
    struct start *st)
{
	int	rc;

	if ((rc = config_load(a, c)) != 0 || (rc = set_options(a, c, st)) != 0)
		return rc;
	return read_token(a, tls, &st->token_fd);
}

static int
serve_main(const struct args *a)
{
	static struct conf	c;
	static struct start	st;
	int			rc;

	if ((rc = set_ready(a, &st)) != 0 ||
	    (rc = passed_take(st.ready_fd)) != 0 ||
	    (rc = config_load(a, &c)) != 0 ||
	    (rc = set_options(a, &c, &st)) != 0 ||
	    (rc = passed_agree(&st, c.socket)) != 0)
		return rc;
	if (args_get(a, "check") != NULL)
		return check_only(a, &c);
	if (geteuid() != 0)
		return fail("expected to be run as root");
	if ((rc = doctor_serve(a, &c, NULL)) != 0 ||
	    (rc = read_token(a, &c, &st.token_fd)) != 0 ||
	    (rc = find_users(&c, &st)) != 0)
		return rc;
	return become(a, &c, &st);
}
