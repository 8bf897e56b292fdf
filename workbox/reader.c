/*
 * reader: at SIGHUP reads the configuration, the key, and the certificate of
 * TLS with its own, again for privd, which can open no file, and seals what
 * daemons and a later set of them are given.
 *
 * A child of `workbox serve' that stays beside privd and ends with it.  It
 * parses what root wrote, and hears from privd a byte, which says nothing but
 * "again": that is why it is safe when privd is hostile.  A file that is no
 * good, or a key or certificate that is none, changes nothing.
 *
 * Must never: write a file, read one that `workbox serve' would not, start a
 * process.
 */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "fds.h"
#include "host.h"
#include "log.h"
#include "server.h"
#include "xmalloc.h"

/* Of the reader: its socket, the log's or none, the root of what it reads. */
enum { FD_SOCK = 3, FD_LOG, FD_ROOT, FD_N };

static struct {
	const struct args	*args;
	struct conf		 conf;		/* as it is in force */
	struct server_conf	 server;	/* likewise */
	char			 now[512], later[512];	/* words */
} reader;

static const struct confine_limit limits[] = {
	{ RLIMIT_NOFILE, 32 },		/* the files, and what it seals */
	{ RLIMIT_CORE, 0 },		/* it has the key for a moment */
};

static void
told(const char *word, int now)
{
	char	*s = now ? reader.now : reader.later;
	size_t	 n = strlen(s);

	/* all words together are less than there is room for */
	(void)snprintf(s + n, sizeof(reader.now) - n, "%s%s",
	    n > 0 ? ", " : "", word);
}

static void
answer(int token)
{
	auto_close int	conf = conf_seal(&reader.conf);
	auto_close int	server = server_seal("server", &reader.server,
			    sizeof reader.server);
	const int	fds[READER_FDS] = { [READER_SERVER] = server,
			    [READER_CONF] = conf, [READER_TOKEN] = token };

	if (conf == -1 || server == -1)
		log_warn("reload: seal the configuration: %s", wire_error());
	else if (fds_send(FD_SOCK, "", 1, fds, READER_FDS, 0) == -1)
		log_warn("reload: answer privd");
}

static void
again(void)
{
	static struct conf	fresh;
	struct start		st = { .token_fd = -1 };

	if (serve_conf(reader.args, &fresh, &reader.conf, &st) != 0) {
		log_errorx("reload: the configuration stays as it was");
		return;
	}
	*reader.now = *reader.later = '\0';
	config_take(&reader.conf, &fresh, told);
	server_now(&reader.conf, &reader.server);
	log_init("reader", (enum log_level)reader.server.log_level, 0);
	log_info("reload: read the key%s; changed: %s",
	    tls_wanted(&reader.conf) ? " and the certificate" : "",
	    *reader.now != '\0' ? reader.now : "nothing else");
	if (*reader.later != '\0')
		log_warnx("reload: changed in the file, but only the next "
		    "start takes them up: %s", reader.later);
	answer(st.token_fd);
	fd_close(&st.token_fd);
}

static int
fence(void)
{
	const struct confine	c = {
		/*
		 * A key may be another user's; uid 0 alone opens root's.  A
		 * service may be bounded to less (workbox.service): then such
		 * a key is refused at a reload, by name.
		 */
		.caps = prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH) == 1 ?
		    UINT64_C(1) << CAP_DAC_READ_SEARCH : 0,
		.landlock = strcmp(reader.conf.landlock, "none") == 0 ? NULL :
		    confine_landlock,
		.landlock_read = FD_ROOT,
		.limits = limits,
		.nlimits = sizeof limits / sizeof limits[0],
		.last_fd = FD_ROOT,
	};

	return confine_enter(&c);
}

/* sock and the log's socket lie above FD_N. */
static void
places(int sock)
{
	int	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int	log = reader.server.log_fd;

	if (root == -1 || (root = fcntl(root, F_DUPFD_CLOEXEC, FD_N)) == -1 ||
	    (log != -1 && dup2(log, FD_LOG) == -1) ||
	    dup2(sock, FD_SOCK) == -1 || dup2(root, FD_ROOT) == -1)
		fatal("arrange descriptors");
	if (log == -1)
		(void)close(FD_LOG);
	log_adopt(log == -1 ? -1 : FD_LOG);
}

static void
to_log(const char *line)
{
	log_warnx("%s", line);
}

static __attribute__((noreturn)) void
run(int sock)
{
	char	byte;

	(void)signal(SIGHUP, SIG_IGN);	/* a terminal's are for privd, */
	(void)signal(SIGINT, SIG_IGN);	/* which ends this */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	log_init("reader", (enum log_level)reader.server.log_level, 0);
	places(sock);
	text_told(to_log);
	if (fence() == -1)
		fatalx("the reader's fence: %s", confine_error());
	while (read(FD_SOCK, &byte, 1) == 1)
		again();
	exit(0);
}

int
reader_start(const struct args *a, const struct conf *c)
{
	int	sp[2];
	pid_t	pid;

	reader.args = a;
	reader.conf = *c;
	if (pread(PRIVD_FD_SERVER, &reader.server, sizeof reader.server, 0) !=
	    sizeof reader.server || socketpair(AF_UNIX, SOCK_SEQPACKET |
	    SOCK_CLOEXEC, 0, sp) == -1 || (pid = fork()) == -1)
		return fail_errno("start the reader of the configuration");
	if (pid == 0)
		run(sp[1]);
	fd_close(&sp[1]);
	if (dup2(sp[0], PRIVD_FD_READER) == -1)
		return fail_errno("start the reader of the configuration");
	fd_close(&sp[0]);
	return 0;
}
