/*
 * storedrig.c: see storedrig.h.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storedrig.h"
#include "xmalloc.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	"/"
#endif
#define STORED		WB_TOP_BUILDDIR "/stored/stored"
#define DEADLINE_MS	20000

/* ---- the process ------------------------------------------------- */

void
rig_check(void)
{
	if (geteuid() != 0) {
		printf("skipped: stored starts as root\n");
		exit(77);
	}
	if (access(STORED, X_OK) == -1) {
		printf("skipped: %s is not built\n", STORED);
		exit(77);
	}
}

void
rig_init(struct rig *r)
{
	const char	*tmp = getenv("TMPDIR");

	memset(r, 0, sizeof(*r));
	snprintf(r->dir, sizeof(r->dir), "%s/wb-stored.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(r->dir));
	ck_assert_int_eq(chmod(r->dir, 0755), 0);
	r->audit_argv = 1;
	chan_init(&r->privd, -1, A_PRIVD, A_STORED, S_INIT);
	chan_init(&r->apid, -1, A_APID, A_STORED, S_RUN);
	chan_init(&r->proxyd, -1, A_PROXYD, A_STORED, S_RUN);
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

void
rig_free(struct rig *r)
{
	if (r->pid != 0)
		rig_kill(r);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The descriptors that privd gives; everything else is close-on-exec. */
static void
child(int conf, int privd, int apid, int proxyd)
{
	char	*argv[] = { (char *)(uintptr_t)STORED, NULL }, *envp[1] = {
	    NULL };
	int	 v[4] = { privd, conf, apid, proxyd }, i;

	for (i = 0; i < 4; i++)
		if ((v[i] = fcntl(v[i], F_DUPFD_CLOEXEC, 20)) == -1)
			_exit(120);
	for (i = 0; i < 4; i++)
		if (dup2(v[i], 3 + i) == -1)
			_exit(120);
	execve(STORED, argv, envp);
	_exit(121);
}

static int
sealed_conf(const struct rig *r)
{
	struct conf	c;

	memset(&c, 0, sizeof(c));
#define C_STR(w, f, max, cs, d, doc)	(void)str_copy(c.f, d, sizeof(c.f));
#define C_U64(w, f, lo, hi, d, doc)	c.f = d;
#define C_BOOL(w, f, d, doc)		c.f = d;
#define X_U64(f, lo, hi)		c.f = RIG_UID;
#include "conf.def"
	(void)str_copy(c.state_dir, r->dir, sizeof(c.state_dir));
	(void)str_copy(c.log_level, "debug", sizeof(c.log_level));
	c.audit_argv = r->audit_argv;
	return conf_seal(&c);
}

void
rig_spawn(struct rig *r)
{
	int	p[2], a[2], x[2], conf = sealed_conf(r);

	ck_assert_int_ne(conf, -1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, p), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, a), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, x), 0);
	fflush(NULL);
	ck_assert_int_ne(r->pid = fork(), -1);
	if (r->pid == 0)
		child(conf, p[1], a[1], x[1]);
	close(conf);
	close(p[1]);
	close(a[1]);
	close(x[1]);
	chan_init(&r->privd, p[0], A_PRIVD, A_STORED, S_INIT);
	chan_init(&r->apid, a[0], A_APID, A_STORED, S_RUN);
	chan_init(&r->proxyd, x[0], A_PROXYD, A_STORED, S_RUN);
}

void
rig_go(struct rig *r)
{
	struct msg_daemon_go	go = { .generation = 1 };
	struct msg		m;

	ck_assert_int_eq(rig_recv(&r->privd, &m), 1);
	ck_assert_uint_eq(m.row->type, MSG_DAEMON_READY);
	ck_assert_int_eq(chan_send(&r->privd, MSG_DAEMON_GO, m.rid, &go, -1),
	    0);
	r->privd.state = S_RUN;
}

void
rig_start(struct rig *r)
{
	rig_spawn(r);
	rig_go(r);
}

int
rig_wait(struct rig *r)
{
	int	st;

	ck_assert_int_eq(waitpid(r->pid, &st, 0), r->pid);
	r->pid = 0;
	chan_close(&r->privd);
	chan_close(&r->apid);
	chan_close(&r->proxyd);
	return st;
}

void
rig_kill(struct rig *r)
{
	ck_assert_int_eq(kill(r->pid, SIGKILL), 0);
	(void)rig_wait(r);
}

void
rig_stop(struct rig *r)
{
	struct msg_daemon_stop	stop = { 0 };
	struct msg		m;
	int			st;

	rig_ask(&r->privd, MSG_DAEMON_STOP, &stop, &m);
	ck_assert_uint_eq(m.row->type, MSG_OK);
	chan_close(&r->apid);
	st = rig_wait(r);
	ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 0,
	    "stored ended with %#x", (unsigned int)st);
}

/* ---- asking ------------------------------------------------------ */

int
rig_recv(struct chan *c, struct msg *ret)
{
	struct pollfd	p = { .fd = c->fd, .events = POLLIN };
	int		r;

	while ((r = chan_recv(c, ret)) == 0) {
		if (chan_flush(c) == 1)
			p.events = POLLIN | POLLOUT;
		if (poll(&p, 1, DEADLINE_MS) != 1)
			ck_abort_msg("no answer in time");
		p.events = POLLIN;
	}
	if (r == -1 && errno != ECONNRESET)
		ck_abort_msg("receive: %s %s", strerror(errno), c->why);
	return r == 1;
}

void
rig_ask(struct chan *c, unsigned int type, const void *body, struct msg *ret)
{
	uint32_t	rid;

	ck_assert_msg(chan_ask(c, type, body, -1, &rid) == 0, "%s: %s",
	    proto_name(type), c->why);
	do
		ck_assert_msg(rig_recv(c, ret) == 1, "%s: closed",
		    proto_name(type));
	while (ret->rid != rid);
}

unsigned int
rig_code(struct chan *c, unsigned int type, const void *body)
{
	struct msg	m;

	rig_ask(c, type, body, &m);
	return m.row->type == MSG_ERROR ? (unsigned int)m.body.error.code :
	    CODE_NONE;
}

void
rig_ok(struct chan *c, unsigned int type, const void *body)
{
	struct msg	m;

	rig_ask(c, type, body, &m);
	ck_assert_msg(m.row->type == MSG_OK, "%s: %s", proto_name(type),
	    m.row->type == MSG_ERROR ? m.body.error.detail : m.row->name);
}

void
rig_refused(struct chan *c, unsigned int type, const void *body,
    unsigned int code)
{
	struct msg	m;

	rig_ask(c, type, body, &m);
	ck_assert_msg(m.row->type == MSG_ERROR, "%s: not refused",
	    proto_name(type));
	ck_assert_msg(m.body.error.code == code, "%s: %s instead of %s: %s",
	    proto_name(type), code_name((unsigned int)m.body.error.code),
	    code_name(code), m.body.error.detail);
}

/* ---- rows and questions ------------------------------------------ */

struct row_sandbox
rig_box(const char *name)
{
	struct row_sandbox	row;

	memset(&row, 0, sizeof(row));
	row.version = 1;
	ulid_new(row.id);
	(void)str_copy(row.tenant, RIG_TENANT, sizeof(row.tenant));
	(void)str_copy(row.created_by, "admin", sizeof(row.created_by));
	(void)str_copy(row.name, name, sizeof(row.name));
	row.created_ms = now_ms();
	return row;
}

struct wire_bin
rig_asked(const char *key)
{
	static uint8_t	asked[32];

	memset(asked, key[0], sizeof(asked));
	return (struct wire_bin){ asked, sizeof(asked) };
}

static void
put_key(const struct rig *r, char key[256], struct wire_bin *asked)
{
	if (r->key == NULL)
		return;
	ck_assert_int_eq(str_copy(key, r->key, 256), 0);
	*asked = rig_asked(r->key);
}

unsigned int
rig_create(struct rig *r, const struct row_sandbox *row)
{
	static uint8_t			buf[WIRE_MAX];
	struct msg_sandbox_create	m = { .actor = "test" };
	ssize_t				n;

	n = wire_encode(&wire_row_sandbox, row, buf, sizeof(buf));
	ck_assert_msg(n > 0, "%s", wire_error());
	m.row.data = buf;
	m.row.len = (size_t)n;
	put_key(r, m.key, &m.asked);
	return rig_code(&r->apid, MSG_SANDBOX_CREATE, &m);
}

unsigned int
rig_move(struct rig *r, const char *id, unsigned int to, const char *reason,
    const char *proof)
{
	struct msg_sandbox_move	m = { .to = to, .durable = 1,
	    .actor = "test" };

	(void)str_copy(m.id, id, sizeof(m.id));
	(void)str_copy(m.reason, reason, sizeof(m.reason));
	if (proof != NULL)
		m.proof = wire_cstr(proof);
	return rig_code(&r->apid, MSG_SANDBOX_MOVE, &m);
}

unsigned int
rig_list(struct rig *r, const char *id, unsigned int page, const char *entry)
{
	struct wire_bin		v = wire_cstr(entry);
	struct msg_allow_put	m = { .page = page, .entries = { &v, 1 } };

	(void)str_copy(m.id, id, sizeof(m.id));
	return rig_code(&r->apid, MSG_ALLOW_PUT, &m);
}

unsigned int
rig_network(struct rig *r, const char *id, unsigned int network,
    const char *reason)
{
	struct msg_sandbox_network	m = { .network = network,
					    .actor = "test" };

	(void)str_copy(m.id, id, sizeof(m.id));
	(void)str_copy(m.reason, reason, sizeof(m.reason));
	return rig_code(&r->apid, MSG_SANDBOX_NETWORK, &m);
}

void
rig_ready(struct rig *r, const struct row_sandbox *row)
{
	ck_assert_uint_eq(rig_create(r, row), CODE_NONE);
	ck_assert_uint_eq(rig_move(r, row->id, BOX_PROVISIONING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(r, row->id, BOX_BOOTSTRAPPING, "", NULL),
	    CODE_NONE);
	ck_assert_uint_eq(rig_move(r, row->id, BOX_READY, "", "{}"),
	    CODE_NONE);
}

struct row_session
rig_session(const char *sandbox)
{
	static struct wire_bin	argv[2];
	struct row_session	row;

	memset(&row, 0, sizeof(row));
	argv[0] = wire_cstr("echo");
	argv[1] = wire_cstr("hello");
	row.version = 1;
	(void)str_copy(row.sandbox, sandbox, sizeof(row.sandbox));
	ulid_new(row.id);
	(void)str_copy(row.tenant, RIG_TENANT, sizeof(row.tenant));
	row.argv.v = argv;
	row.argv.n = 2;
	row.state = 1;
	row.started_ms = now_ms();
	return row;
}

unsigned int
rig_put(struct rig *r, const struct row_session *row, int durable)
{
	static uint8_t		buf[WIRE_MAX];
	struct msg_session_put	m = { .actor = "test",
	    .durable = durable != 0 };
	ssize_t			n;

	n = wire_encode(&wire_row_session, row, buf, sizeof(buf));
	ck_assert_msg(n > 0, "%s", wire_error());
	m.row.data = buf;
	m.row.len = (size_t)n;
	put_key(r, m.key, &m.asked);
	return rig_code(&r->apid, MSG_SESSION_PUT, &m);
}

int
rig_get(struct rig *r, const char *id, struct row_sandbox *ret)
{
	static uint8_t		buf[WIRE_MAX];
	struct msg_sandbox_get	q = { 0 };
	struct msg		m;
	size_t			n;

	(void)str_copy(q.id, id, sizeof(q.id));
	rig_ask(&r->apid, MSG_SANDBOX_GET, &q, &m);
	if (m.row->type == MSG_ERROR) {
		ck_assert_uint_eq(m.body.error.code, CODE_NOT_FOUND);
		return 0;
	}
	ck_assert_uint_eq(m.row->type, MSG_SANDBOX_IS);
	n = m.body.sandbox_is.row.len;
	memcpy(buf, m.body.sandbox_is.row.data, n);
	ck_assert_msg(wire_decode(&wire_row_sandbox, buf, n, ret) == 0, "%s",
	    wire_error());
	return 1;
}

struct msg_store_info_is
rig_info(struct rig *r)
{
	struct msg_store_info	q = { 0 };
	struct msg		m;

	rig_ask(&r->apid, MSG_STORE_INFO, &q, &m);
	ck_assert_uint_eq(m.row->type, MSG_STORE_INFO_IS);
	return m.body.store_info_is;
}

unsigned int
rig_append(struct rig *r, const char *tenant, int durable)
{
	struct event_auth_failed	ev = { .method = "GET", .path = "/v1",
	    .peer = "127.0.0.1:9" };
	struct msg_event_append		m = { .type = EVENT_AUTH_FAILED,
	    .durable = durable != 0, .actor = "test", .outcome = "denied" };
	uint8_t				buf[1024];
	ssize_t				n;

	n = wire_encode(&wire_event_auth_failed, &ev, buf, sizeof(buf));
	ck_assert_int_gt(n, 0);
	(void)str_copy(m.tenant, tenant, sizeof(m.tenant));
	m.data.data = buf;
	m.data.len = (size_t)n;
	return rig_code(&r->apid, MSG_EVENT_APPEND, &m);
}

/* ---- the log ----------------------------------------------------- */

char *
rig_log(struct rig *r, const char *tenant)
{
	struct msg_event_read	 q = { .limit = 1000 };
	struct msg		 m;
	size_t			 len = 0, n, cap = 1 << 17;
	char			*log = xmalloc(cap);

	(void)str_copy(q.tenant, tenant, sizeof(q.tenant));
	do {
		rig_ask(&r->apid, MSG_EVENT_READ, &q, &m);
		ck_assert_uint_eq(m.row->type, MSG_EVENT_PAGE);
		n = m.body.event_page.lines.len;
		if (len + n + 1 > cap)
			log = xreallocarray(log, cap *= 2, 1);
		if (n > 0)
			memcpy(log + len, m.body.event_page.lines.data, n);
		len += n;
		ck_assert(m.body.event_page.next > q.after ||
		    m.body.event_page.next == m.body.event_page.last);
		q.after = m.body.event_page.next;
	} while (q.after < m.body.event_page.last);
	log[len] = '\0';
	return log;
}

static void
hash_hex(const char *line, size_t n, char ret[65])
{
	static const uint8_t	zero;
	uint8_t			h[32];
	SHA2_CTX		c;
	int			i;

	SHA256Init(&c);
	SHA256Update(&c, &zero, 1);
	SHA256Update(&c, (const uint8_t *)line, n);
	SHA256Final(h, &c);
	for (i = 0; i < 32; i++) {
		ret[2 * i] = "0123456789abcdef"[h[i] >> 4];
		ret[2 * i + 1] = "0123456789abcdef"[h[i] & 15];
	}
	ret[64] = '\0';
}

uint64_t
rig_verify(const char *log)
{
	char		 prev[65], head[64], when[25] = "", tail[80];
	const char	*p = log, *nl;
	uint64_t	 seq = 0;
	size_t		 n;

	memset(prev, '0', 64);
	prev[64] = '\0';
	for (; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		n = (size_t)(nl - p);
		snprintf(head, sizeof(head), "{\"seq\":%llu,\"time\":\"",
		    (unsigned long long)++seq);
		/* an assertion that holds is a write(2) of Check's */
		if (strncmp(p, head, strlen(head)) != 0)
			ck_abort_msg("record %llu: %.60s",
			    (unsigned long long)seq, p);
		if (strncmp(p + strlen(head), when, 24) < 0)
			ck_abort_msg("record %llu: time goes back",
			    (unsigned long long)seq);
		memcpy(when, p + strlen(head), 24);
		snprintf(tail, sizeof(tail), "\"%s\"}", prev);
		if (n <= strlen(tail) || strncmp(nl - strlen(tail), tail,
		    strlen(tail)) != 0)
			ck_abort_msg("record %llu: chain",
			    (unsigned long long)seq);
		hash_hex(p, n, prev);
	}
	ck_assert_int_eq(*p, '\0');
	return seq;
}

unsigned int
rig_count(const char *log, const char *s)
{
	unsigned int	n = 0;

	while ((log = strstr(log, s)) != NULL) {
		n++;
		log += strlen(s);
	}
	return n;
}
