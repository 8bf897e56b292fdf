/*
 * config: workbox.conf(5), by libconfuse, into struct conf.
 *
 * Tables expand from common/conf.def.  Every fault names the file, the line
 * and the word, and says what was expected.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <confuse.h>

#include "host.h"
#include "prefix.h"
#include "xmalloc.h"


enum kind { K_STR, K_U64, K_BOOL, K_LIST };

struct word {
	const char		*name;
	enum kind		 kind;
	size_t			 off;		/* in struct conf */
	uint64_t		 lo, hi;	/* value; bytes of a string */
	uint64_t		 dflt;
	const char		*dflt_str;
	enum wire_charset	 cs;
	size_t			 count;
};

static const struct word words[] = {
#define C_STR(w, f, max, cs, d, doc) \
	{ w, K_STR, offsetof(struct conf, f), 0, max, 0, d, cs, 0 },
#define C_U64(w, f, lo, hi, d, doc) \
	{ w, K_U64, offsetof(struct conf, f), lo, hi, d, NULL, CS_BYTES, 0 },
#define C_BOOL(w, f, d, doc) \
	{ w, K_BOOL, offsetof(struct conf, f), 0, 1, d, NULL, CS_BYTES, 0 },
#define C_LIST(w, f, n, bytes, cs, doc) \
	{ w, K_LIST, offsetof(struct conf, f), 0, bytes, 0, NULL, cs, n },
#include "conf.def"
};
#define NWORDS	(sizeof words / sizeof words[0])

/* libconfuse's callbacks carry no pointer of ours. */
static struct {
	const char	*name;		/* borrowed: of the file */
	struct conf	*conf;		/* borrowed: filled */
	char		*why;		/* borrowed; CONFIG_WHY bytes */
	int		 seen[NWORDS];
} parse;

static void *
field(struct conf *c, const struct word *w)
{
	return (char *)c + w->off;
}

static void
set_defaults(struct conf *c)
{
	size_t	i;

	memset(c, 0, sizeof *c);
	for (i = 0; i < NWORDS; i++)
		if (words[i].kind == K_STR)
			(void)str_copy(field(c, &words[i]),
			    words[i].dflt_str, words[i].hi + 1);
		else if (words[i].kind != K_LIST)
			*(uint64_t *)field(c, &words[i]) = words[i].dflt;
}

/* ---- values ------------------------------------------------------------ */

static int
one_of(const char *s, const char *a, const char *b)
{
	return strcmp(s, a) == 0 || strcmp(s, b) == 0;
}

/* Parts of letters, digits and .:@_- with single slashes between. */
static int
cgroup_ok(const char *s)
{
	size_t	n;

	for (;; s += n + 1) {
		n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
		    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:@_-");
		if (n == 0 || (n <= 2 && strspn(s, ".") >= n))
			return 0;
		if (s[n] == '\0')
			return 1;
		if (s[n] != '/')
			return 0;
	}
}

static int
address_ok(const char *s)
{
	struct in6_addr	a;	/* room for either */

	return inet_pton(AF_INET, s, &a) == 1 ||
	    inet_pton(AF_INET6, s, &a) == 1;
}

/* A name or an address, an IPv6 one in brackets; no path, no user. */
static int
proxy_ok(const char *s)
{
	static const char	 name[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char		*host = s + 7, *colon = strrchr(s, ':');
	struct in6_addr		 a;
	char			 v6[INET6_ADDRSTRLEN];
	uint64_t		 port;
	size_t			 n;

	if (strncmp(s, "http://", 7) != 0 || colon < host ||
	    text_u64(colon + 1, 1, 65535, &port) == -1)
		return 0;
	n = (size_t)(colon - host);
	if (*host != '[')
		return n > 0 && n <= 253 && strspn(host, name) == n;
	if (n < 4 || n - 2 >= sizeof v6 || host[n - 1] != ']')
		return 0;
	memcpy(v6, host + 1, n - 2);
	v6[n - 2] = '\0';
	return inet_pton(AF_INET6, v6, &a) == 1;
}

/* What a string must be beyond its charset, or NULL when it is. */
static const char *
str_expects(const char *name, const char *s)
{
	if (strcmp(name, "cgroup") == 0)
		return cgroup_ok(s) ? NULL :
		    "a name, or names with slashes between";
	if (strcmp(name, "log") == 0)
		return one_of(s, "stderr", "syslog") ? NULL :
		    "stderr or syslog";
	if (strcmp(name, "log-level") == 0)
		return one_of(s, "error", "warning") ||
		    one_of(s, "info", "debug") ? NULL :
		    "error, warning, info or debug";
	if (strcmp(name, "netfilter") == 0 || strcmp(name, "landlock") == 0)
		return one_of(s, "required", "none") ? NULL :
		    "required or none";
	if (strcmp(name, "default-network") == 0)
		return one_of(s, "egress", "none") ? NULL : "egress or none";
	if (strcmp(name, "egress-dns") == 0)
		return strcmp(s, "host") == 0 || address_ok(s) ? NULL :
		    "host, or the address of a resolver";
	if (strcmp(name, "upstream-proxy") == 0)
		return strcmp(s, "none") == 0 || proxy_ok(s) ? NULL :
		    "none, or http://HOST:PORT";
	if (strcmp(s, "none") == 0 && (strcmp(name, "socket") == 0 ||
	    one_of(name, "tls-certificate", "tls-key")))
		return NULL;
	return *s == '/' ? NULL : "an absolute path";
}

static int
host_ok(const char *s)
{
	size_t	n = strspn(s, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:[]-");

	return n > 0 && s[n] == '\0';
}

int
config_listen(const char *s, struct sockaddr_storage *ret)
{
	struct sockaddr_in	 in4 = { .sin_family = AF_INET };
	struct sockaddr_in6	 in6 = { .sin6_family = AF_INET6 };
	char			 addr[INET6_ADDRSTRLEN + 2];
	const char		*colon = strrchr(s, ':');
	size_t			 n = colon == NULL ? 0 : (size_t)(colon - s);
	uint64_t		 port;

	if (n == 0 || n >= sizeof addr ||
	    text_u64(colon + 1, 1, 65535, &port) == -1)
		return -1;
	memcpy(addr, s, n);
	addr[n] = '\0';
	in4.sin_port = in6.sin6_port = htons((uint16_t)port);
	if (addr[0] == '[' && addr[n - 1] == ']') {
		addr[n - 1] = '\0';
		if (inet_pton(AF_INET6, addr + 1, &in6.sin6_addr) != 1)
			return -1;
		memcpy(ret, &in6, sizeof in6);
	} else {
		if (inet_pton(AF_INET, addr, &in4.sin_addr) != 1)
			return -1;
		memcpy(ret, &in4, sizeof in4);
	}
	return 0;
}

/* The prefix as it is meant, to the last bit. */
static const char *
prefix_expects(const char *s, struct prefix *ret)
{
	if (prefix_parse(s, ret) == 0)
		return NULL;
	return errno == EDOM ?
	    "ADDRESS/BITS without bits of an address beyond BITS" :
	    "ADDRESS or ADDRESS/BITS";
}

static const char *
seal_expects(const char *name, const char *s)
{
	static char	 why[128];
	struct prefix	 p;
	const char	*expects = prefix_expects(s, &p), *never;

	if (expects != NULL)
		return expects;
	if (strcmp(name, "deny") == 0)
		return prefix_mapped(&p) ?
		    "the IPv4 ADDRESS or ADDRESS/BITS itself" : NULL;
	if ((never = prefix_never(&p)) == NULL)
		return NULL;
	(void)snprintf(why, sizeof why, "a prefix that leaves %s sealed",
	    never);
	return why;
}

static const char *
item_expects(const char *name, const char *s)
{
	struct sockaddr_storage	addr;
	struct prefix		p;

	if (strcmp(name, "listen") == 0)
		return strcmp(s, "none") == 0 ||
		    config_listen(s, &addr) == 0 ? NULL :
		    "ADDRESS:PORT, [ADDRESS]:PORT or none";
	if (one_of(name, "deny", "except"))
		return seal_expects(name, s);
	if (strcmp(name, "trusted-proxy") == 0)
		return prefix_expects(s, &p);
	return host_ok(s) ? NULL : "a host name";
}

/* ---- libconfuse's callbacks -------------------------------------------- */

static void
on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	int	n;

	if (*parse.why != '\0')
		return;		/* the first one tells most */
	n = snprintf(parse.why, CONFIG_WHY, "%s:%d: ", parse.name,
	    cfg != NULL && cfg->line > 0 ? cfg->line : 1);
	if (n > 0 && n < CONFIG_WHY)
		(void)vsnprintf(parse.why + n, (size_t)(CONFIG_WHY - n), fmt,
		    ap);
}

static int
bool_value(const char *s, uint64_t *ret)
{
	if (strcmp(s, "yes") != 0 && strcmp(s, "no") != 0)
		return -1;
	*ret = strcmp(s, "yes") == 0;
	return 0;
}

static int
u64_value(const struct word *w, const char *s, uint64_t *ret)
{
	unsigned long long	 v;
	char			*end;

	if (strncmp(s, "0x", 2) != 0)
		return text_bytes(s, w->lo, w->hi, ret);
	errno = 0;
	v = strtoull(s, &end, 16);
	if (errno != 0 || *end != '\0' || end == s + 2 || v < w->lo ||
	    v > w->hi)
		return -1;
	*ret = v;
	return 0;
}

/* Takes one value of a word that is no list. */
static int
set_value(cfg_t *cfg, const struct word *w, const char *s)
{
	const char	*expects;
	void		*p = field(parse.conf, w);

	switch (w->kind) {
	case K_U64:
		if (u64_value(w, s, p) == 0)
			return 0;
		cfg_error(cfg, "%s: expected a number from %llu to %llu, not "
		    "\"%s\"", w->name, (unsigned long long)w->lo,
		    (unsigned long long)w->hi, s);
		return -1;
	case K_BOOL:
		if (bool_value(s, p) == 0)
			return 0;
		cfg_error(cfg, "%s: expected yes or no, not \"%s\"", w->name,
		    s);
		return -1;
	case K_STR:
		expects = str_expects(w->name, s);
		if (expects == NULL && !wire_charset_ok(w->cs, s, strlen(s)))
			expects = "printable characters without blanks";
		if (expects == NULL && strlen(s) > w->hi)
			expects = "a shorter one";
		if (expects == NULL)
			return str_copy(p, s, w->hi + 1);
		cfg_error(cfg, "%s: expected %s, not \"%s\"", w->name,
		    expects, s);
		return -1;
	case K_LIST:
		break;
	}
	return 0;
}

static const struct word *
find_word(const char *name)
{
	size_t	i;

	for (i = 0; i < NWORDS; i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

/* Called for each value, with the right line. */
static int
on_value(cfg_t *cfg, cfg_opt_t *opt)
{
	const struct word	*w = find_word(cfg_opt_name(opt));
	unsigned int		 n = cfg_opt_size(opt);
	const char		*s, *expects;

	if (w == NULL || n == 0)
		return 0;
	if ((s = cfg_opt_getnstr(opt, n - 1)) == NULL)
		s = "";
	if (w->kind != K_LIST) {
		if (parse.seen[w - words]++ == 0)
			return set_value(cfg, w, s);
		cfg_error(cfg, "%s: given twice", w->name);
		return -1;
	}
	expects = item_expects(w->name, s);
	if (expects == NULL && !wire_charset_ok(w->cs, s, strlen(s)))
		expects = "printable characters";
	if (expects == NULL && n > 1 && strcmp(w->name, "listen") == 0 &&
	    (strcmp(s, "none") == 0 ||
	    strcmp(cfg_opt_getnstr(opt, 0), "none") == 0))
		expects = "none alone, or addresses";
	if (expects == NULL && n > w->count)
		expects = "fewer of them";
	if (expects == NULL)
		return 0;
	cfg_error(cfg, "%s: expected %s, not \"%s\"", w->name, expects, s);
	return -1;
}

/* Lists as the wire has them; their memory is the process's. */
static int
take_lists(cfg_t *cfg)
{
	struct wire_list	*list;
	struct wire_bin		*v;
	unsigned int		 n, k;
	size_t			 i, bytes;

	for (i = 0; i < NWORDS; i++) {
		if (words[i].kind != K_LIST ||
		    (n = cfg_size(cfg, words[i].name)) == 0)
			continue;
		v = xcalloc(n, sizeof *v);
		for (k = 0, bytes = 0; k < n; k++) {
			v[k] = wire_cstr(xstrdup(cfg_getnstr(cfg,
			    words[i].name, k)));
			bytes += v[k].len;
		}
		list = field(parse.conf, &words[i]);
		list->v = v;
		list->n = n;
		if (bytes > words[i].hi) {
			(void)snprintf(parse.why, CONFIG_WHY,
			    "%s: %s: expected at most %llu bytes together",
			    parse.name, words[i].name,
			    (unsigned long long)words[i].hi);
			return -1;
		}
	}
	return 0;
}

/*
 * libconfuse 3.3 counts each comment as three lines.  Comments become
 * blanks, so that the line in a message is the file's, with any version.
 */
static char *
blank_comments(const char *text, size_t len)
{
	char	*s = xmalloc(len + 1), *p, *end = s + len, quote = '\0';
	int	 fresh = 1;		/* a token may begin here */

	memcpy(s, text, len);
	s[len] = '\0';
	for (p = s; p < end; p++) {
		if (quote != '\0') {
			if (*p == '\\' && p + 1 < end)
				p++;
			else if (*p == quote)
				quote = '\0';
		} else if (*p == '"' || *p == '\'') {
			quote = *p;
		} else if (*p == '#' || (fresh && p[0] == '/' &&
		    p[1] == '/')) {
			while (p < end && *p != '\n')
				*p++ = ' ';
		} else if (fresh && p[0] == '/' && p[1] == '*') {
			for (; p < end && !(p[0] == '*' && p[1] == '/'); p++)
				*p = *p == '\n' ? '\n' : ' ';
			if (p < end) {
				*p++ = ' ';
				*p = ' ';
			}
		}
		fresh = p >= end || strchr(" \t\n={},()+", *p) != NULL;
	}
	return s;
}

static cfg_opt_t *
make_options(void)
{
	static cfg_opt_t	opts[NWORDS + 1];
	const cfg_opt_t		one = CFG_STR(NULL, NULL, CFGF_NODEFAULT);
	const cfg_opt_t		list = CFG_STR_LIST(NULL, NULL, CFGF_NODEFAULT);
	const cfg_opt_t		last = CFG_END();
	size_t			i;

	for (i = 0; i < NWORDS; i++) {
		opts[i] = words[i].kind == K_LIST ? list : one;
		opts[i].name = words[i].name;
	}
	opts[NWORDS] = last;
	return opts;
}

int
config_parse(const char *name, const char *text, size_t len,
    struct conf *ret, char why[CONFIG_WHY])
{
	auto_free char	*plain = NULL;
	cfg_t		*cfg;
	size_t		 i;
	int		 rc;

	memset(&parse, 0, sizeof parse);
	parse.name = name;
	parse.conf = ret;
	parse.why = why;
	*why = '\0';
	set_defaults(ret);
	if (memchr(text, 0, len) != NULL) {
		(void)snprintf(why, CONFIG_WHY, "%s: expected text", name);
		return -1;
	}
	plain = blank_comments(text, len);
	cfg = cfg_init(make_options(), CFGF_NONE);
	(void)cfg_set_error_function(cfg, on_error);
	for (i = 0; i < NWORDS; i++)
		(void)cfg_set_validate_func(cfg, words[i].name, on_value);
	rc = cfg_parse_buf(cfg, plain) == CFG_SUCCESS ? take_lists(cfg) : -1;
	cfg_free(cfg);
	if (rc == -1 && *why == '\0')
		(void)snprintf(why, CONFIG_WHY, "%s: cannot be parsed", name);
	return rc;
}

/* ---- again: SIGHUP ------------------------------------------------------ */

static int
at_once(const char *name)
{
	static const char *const	now[] = {
#define C_NOW(w, f)	w,
#include "conf.def"
	};
	size_t				i;

	for (i = 0; i < sizeof now / sizeof now[0]; i++)
		if (strcmp(now[i], name) == 0)
			return 1;
	return 0;
}

static int
same(const struct word *w, const void *a, const void *b)
{
	const struct wire_list	*x = a, *y = b;
	size_t			 i;

	if (w->kind == K_STR)
		return strcmp(a, b) == 0;
	if (w->kind != K_LIST)
		return *(const uint64_t *)a == *(const uint64_t *)b;
	for (i = 0; i < x->n && i < y->n; i++)
		if (x->v[i].len != y->v[i].len ||
		    memcmp(x->v[i].data, y->v[i].data, x->v[i].len) != 0)
			return 0;
	return x->n == y->n;
}

static size_t
size_of(const struct word *w)
{
	return w->kind == K_STR ? w->hi + 1 : w->kind == K_LIST ?
	    sizeof(struct wire_list) : sizeof(uint64_t);
}

void
config_take(struct conf *c, struct conf *fresh,
    void (*told)(const char *word, int now))
{
	const struct word	*w;

	for (w = words; w < words + NWORDS; w++) {
		if (same(w, field(c, w), field(fresh, w)))
			continue;
		if (at_once(w->name))
			memcpy(field(c, w), field(fresh, w), size_of(w));
		told(w->name, at_once(w->name));
	}
}

/* ---- the whole --------------------------------------------------------- */

static int
differ(char why[CONFIG_WHY], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static int
differ(char why[CONFIG_WHY], const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, CONFIG_WHY, fmt, ap);
	va_end(ap);
	return -1;
}

int
config_check(const struct conf *c, char why[CONFIG_WHY])
{
	uint64_t	end = c->uid_base + c->max_boxes * 65536;
	uint64_t	net = c->net_uid_base + 65535;

	if (strcmp(c->tls_certificate, "none") != 0 &&
	    strcmp(c->tls_key, "none") == 0)
		return differ(why, "tls-key: expected the key of "
		    "tls-certificate, %s", c->tls_certificate);
	if (strcmp(c->tls_certificate, "none") == 0 &&
	    strcmp(c->tls_key, "none") != 0)
		return differ(why, "tls-certificate: expected the "
		    "certificate of tls-key, %s", c->tls_key);
	if (c->default_memory > c->max_memory)
		return differ(why, "default-memory: expected at most "
		    "max-memory, %llu", (unsigned long long)c->max_memory);
	if (c->default_cpu_milli > c->max_cpu_milli)
		return differ(why, "default-cpu-milli: expected at most "
		    "max-cpu-milli, %llu",
		    (unsigned long long)c->max_cpu_milli);
	if (c->default_pids > c->max_pids)
		return differ(why, "default-pids: expected at most max-pids, "
		    "%llu", (unsigned long long)c->max_pids);
	if (end > UINT32_MAX)
		return differ(why, "uid-base: expected room for %llu ranges "
		    "of 65536 below 4294967295",
		    (unsigned long long)c->max_boxes);
	if (net > UINT32_MAX || (c->net_uid_base < end && net > c->uid_base))
		return differ(why, "net-uid-base: expected 65535 uids outside "
		    "of %llu-%llu", (unsigned long long)c->uid_base,
		    (unsigned long long)end - 1);
	return 0;
}

int
config_path(char *dst, size_t size, const char *opt, const char *val)
{
	auto_free char	*cwd = NULL, *abs = NULL;

	if (*val != '/') {
		if ((cwd = getcwd(NULL, 0)) == NULL)
			return fail_errno("--%s: working directory", opt);
		abs = xasprintf("%s/%s", cwd, val);
		val = abs;
	}
	if (!wire_charset_ok(CS_PATH, val, strlen(val)) ||
	    str_copy(dst, val, size) == -1)
		return fail("--%s: expected a path of at most %zu printable "
		    "characters without blanks, not \"%s\"", opt, size - 1,
		    val);
	return 0;
}

int
config_cgroup(struct conf *c, const char *s)
{
	if (!cgroup_ok(s) || str_copy(c->cgroup, s, sizeof c->cgroup) == -1)
		return fail("--cgroup: expected a name, or names with slashes "
		    "between, not \"%s\"", s);
	return 0;
}

int
config_load(const struct args *a, struct conf *ret)
{
	const char	*file = args_get(a, "config");
	const char	*name = file != NULL ? file : WB_CONF_FILE;
	auto_free char	*text = NULL;
	size_t		 len = 0;

	text = text_file(name, CONFIG_MAX, &len);
	if (text == NULL && (file != NULL || errno != ENOENT))
		return fail_errno("%s", name);
	return config_load_text(a, name, text, len, ret);
}

int
config_load_text(const struct args *a, const char *name, const char *text,
    size_t len, struct conf *ret)
{
	const char	*state = args_get(a, "state");
	char		 why[CONFIG_WHY], sock[512];
	int		 rc;

	if (config_parse(name, text != NULL ? text : "", len, ret, why) == -1)
		return fail("%s", why);
	if (state != NULL) {
		if ((rc = config_path(ret->state_dir, sizeof ret->state_dir,
		    "state", state)) != 0)
			return rc;
		(void)snprintf(sock, sizeof sock, "%s/run/api.sock",
		    ret->state_dir);
		if (str_copy(ret->socket, sock, sizeof ret->socket) == -1 &&
		    args_get(a, "socket") == NULL &&
		    strcmp(a->cmd->name, "serve") == 0)
			return fail("--state: too long for the socket "
			    "%s; give --socket", sock);
	}
	if (config_check(ret, why) == -1)
		return fail("%s: %s", name, why);
	return 0;
}
