/*
 * confine_test: the system-call filters that mkfilter wrote, for each
 * architecture: run by an interpreter against the tables, number by number
 * and argument by argument; and a few calls by the kernel itself.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sha256.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apid_calls.h"
#include "box_calls.h"
#include "confine.h"
#include "netd_calls.h"
#include "netd_maker_calls.h"
#include "privd_calls.h"
#include "proxyd_calls.h"
#include "room_calls.h"
#include "stored_calls.h"
#include "uplinkd_calls.h"
#include "xmalloc.h"

#define MKFILTER	WB_TOP_BUILDDIR "/common/mkfilter"
#define ALLOW		SECCOMP_RET_ALLOW
#define KILL		SECCOMP_RET_KILL_PROCESS
#define ERRNO(e)	(SECCOMP_RET_ERRNO | (uint32_t)(e))
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- the tables, read anew --------------------------------------------- */

enum test { EQ, GT, NE };

struct cond {
	unsigned int	 arg;
	enum test	 test;
	uint64_t	 mask, value;
};

struct row {
	const char	*names;
	uint32_t	 action;
	unsigned int	 nconds;
	struct cond	 cond[3];
};

static const struct row	args_rows[] = {
#define F_ARG(c, e, a, t, m, v, why)					\
	{ c, ERRNO(e), 1, { { a, t, m, v } } },
#define F_AND(c, e, a, t, m, v, a2, t2, m2, v2, why)			\
	{ c, ERRNO(e), 2, { { a, t, m, v }, { a2, t2, m2, v2 } } },
#include "filter.def"
};

static const struct row	lists_rows[] = {
#define F_ALLOW(n)		{ .names = n, .action = ALLOW },
#define F_EPERM(n)		{ .names = n, .action = ERRNO(EPERM) },
#define F_ENOSYS(n)		{ .names = n, .action = ERRNO(ENOSYS) },
#define F_PERSONALITY(v)						\
	{ "personality", ALLOW, 1, { { 0, EQ, UINT64_MAX, v } } },
#include "filter.def"
};

#define CALL(n, why)		{ .names = n, .action = ALLOW },
#define CALL_EQ(n, a, v, why)						\
	{ n, ALLOW, 1, { { a, EQ, UINT64_MAX, v } } },
#define CALL_MASKED(n, a, m, v, why)					\
	{ n, ALLOW, 1, { { a, EQ, m, v } } },
#define CALL_AND(n, a, v, a2, m2, v2, why)				\
	{ n, ALLOW, 2, { { a, EQ, UINT64_MAX, v }, { a2, EQ, m2, v2 } } },
#define CALL_SOCKET(f, t, why)						\
	{ "socket", ALLOW, 3, { { 0, EQ, UINT64_MAX, f },		\
	    { 1, EQ, UINT64_MAX, t }, { 2, EQ, UINT64_MAX, 0 } } },
static const struct row	privd_rows[] = {
#include "calls.def"
#include "../../privd/calls.def"
};
static const struct row	apid_rows[] = {
#include "calls.def"
#include "../../apid/calls.def"
};
static const struct row	stored_rows[] = {
#include "calls.def"
#include "../../stored/calls.def"
};
static const struct row	netd_rows[] = {
#include "calls.def"
#include "../../netd/calls.def"
};
static const struct row	netd_maker_rows[] = {
#include "calls.def"
#include "../../netd/maker_calls.def"
};
static const struct row	uplinkd_rows[] = {
#include "calls.def"
#include "../../uplinkd/calls.def"
};
static const struct row	proxyd_rows[] = {
#include "calls.def"
#include "../../proxyd/calls.def"
};
static const struct row	room_rows[] = {
#include "calls.def"
#include "../../workbox/calls.def"
};

static const struct table {
	const char			*of, *name;
	uint32_t			 unlisted;
	const struct row		*rows;
	size_t				 nrows;
	const struct sock_filter	*built;	/* into the programs here */
	size_t				 nbuilt;
} tables[] = {
#define TABLE(of, name, unlisted, rows)					\
	{ of, #name, unlisted, rows, COUNT(rows), name, COUNT(name) }
	TABLE("box", box_args, ALLOW, args_rows),
	TABLE("box", box_lists, ERRNO(ENOSYS), lists_rows),
	TABLE("privd", privd_calls, KILL, privd_rows),
	TABLE("apid", apid_calls, KILL, apid_rows),
	TABLE("stored", stored_calls, KILL, stored_rows),
	TABLE("netd", netd_calls, KILL, netd_rows),
	TABLE("netd_maker", netd_maker_calls, KILL, netd_maker_rows),
	TABLE("uplinkd", uplinkd_calls, KILL, uplinkd_rows),
	TABLE("proxyd", proxyd_calls, KILL, proxyd_rows),
	TABLE("room", room_calls, KILL, room_rows),
};

static const struct target {
	const char	*name;
	uint32_t	 audit, scmp;
} targets[] = {
	{ "x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64 },
	{ "aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64 },
};
#define EACH	((int)(COUNT(tables) * COUNT(targets)))

/* One call of one row, with the number it has on a target. */
struct rule { uint32_t nr; const struct row *row; };

static struct rule	rules[512];
static size_t		nrules;

static void
rules_of(const struct table *t, const struct target *a)
{
	const struct row	*r;
	const char		*p;
	char			 name[64], *colon;
	int			 nr;

	nrules = 0;
	for (r = t->rows; r < t->rows + t->nrows; r++)
		for (p = r->names; *p != '\0';
		    p += strcspn(p, " "), p += *p == ' ') {
			(void)snprintf(name, sizeof(name), "%.*s",
			    (int)strcspn(p, " "), p);
			if ((colon = strchr(name, ':')) != NULL)
				*colon++ = '\0';
			nr = seccomp_syscall_resolve_name_arch(a->scmp, name);
			if (nr < 0 && colon != NULL)
				nr = (int)strtol(colon, NULL, 10);
			ck_assert_msg(nr != __NR_SCMP_ERROR, "%s", name);
			ck_assert_uint_lt(nrules, COUNT(rules));
			if (nr >= 0)
				rules[nrules++] = (struct rule){
				    (uint32_t)nr, r };
		}
}

static int
holds(const struct row *r, const struct seccomp_data *d)
{
	const struct cond	*c;
	uint64_t		 v;

	for (c = r->cond; c < r->cond + r->nconds; c++) {
		v = d->args[c->arg];
		if (c->test == EQ ? (v & c->mask) != c->value :
		    c->test == GT ? v <= c->value : v == c->value)
			return 0;
	}
	return 1;
}

/* ---- an interpreter ---------------------------------------------------- */

struct prog { struct sock_filter f[4096]; size_t n; };

static uint32_t
run(const struct prog *p, const struct seccomp_data *d)
{
	const struct sock_filter	*f;
	uint32_t			 a = 0;
	size_t				 pc;
	int				 yes = 0;

	for (pc = 0; pc < p->n; pc++) {
		f = &p->f[pc];
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			/* no ck_assert: it writes to a file each time */
			if (f->k > sizeof(*d) - sizeof(a))
				ck_abort_msg("load of %u", f->k);
			memcpy(&a, (const char *)d + f->k, sizeof(a));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_RET | BPF_K:
			return f->k;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == f->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			yes = a > f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= f->k;
			break;
		default:
			ck_abort_msg("instruction %#x at %zu", f->code, pc);
		}
		pc += yes ? f->jt : f->jf;
	}
	ck_abort_msg("ran off its end");
}

/* The program that mkfilter prints, and the digest. */
static void
read_prog(const struct table *t, const struct target *a, struct prog *ret,
    char digest[65])
{
	unsigned int	code, jt, jf, k;
	char		cmd[512], line[256], name[64] = "";
	FILE		*f;

	(void)snprintf(cmd, sizeof(cmd), MKFILTER " --arch %s %s", a->name,
	    t->of);
	ck_assert_ptr_ne(f = popen(cmd, "re"), NULL);
	ret->n = 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)sscanf(line, "static const struct sock_filter %63[a-z_]",
		    name);
		(void)sscanf(line, " \"%64[0-9a-f]\"", digest);
		if (strcmp(name, t->name) == 0 && ret->n < COUNT(ret->f) &&
		    sscanf(line, " { %x, %u, %u, %x }", &code, &jt, &jf,
		    &k) == 4)
			ret->f[ret->n++] = (struct sock_filter){
			    (uint16_t)code, (uint8_t)jt, (uint8_t)jf, k };
	}
	ck_assert_int_eq(pclose(f), 0);
	ck_assert_uint_gt(ret->n, 50);
}

/* ---- the comparison ---------------------------------------------------- */

#define NEWEST	450		/* above: ENOSYS, as for clone3 */

/* Whether the program may answer so; several rows may hold at once. */
static int
answer_ok(const struct table *t, const struct target *a,
    const struct seccomp_data *d, uint32_t got)
{
	size_t	i;
	int	said = 0;

	if (t->unlisted == KILL && ((uint32_t)d->nr > NEWEST || d->nr ==
	    seccomp_syscall_resolve_name_arch(a->scmp, "clone3")))
		return got == ERRNO(ENOSYS);
	for (i = 0; i < nrules; i++) {
		if (rules[i].nr != (uint32_t)d->nr || !holds(rules[i].row, d))
			continue;
		if (rules[i].row->action == got)
			return 1;
		said = 1;
	}
	return !said && got == t->unlisted;
}

/* Values around the one that a condition names: equal, and each bit off. */
#define NEAR	70
static uint64_t
near(const struct cond *c, unsigned int i)
{
	switch (i) {
	case 64:
		return c->value;
	case 65:
		return c->value + 1;
	case 66:
		return c->value - 1;
	case 67:
		return c->value | ~c->mask;
	case 68:
		return 0;
	case 69:
		return UINT64_MAX;
	default:
		return c->value ^ UINT64_C(1) << i;
	}
}

static unsigned int
wrong_near(const struct prog *p, const struct table *t,
    const struct target *a, const struct rule *r)
{
	struct seccomp_data	 d = { (int)r->nr, a->audit, 0, { 0 } };
	const struct cond	*c = r->row->cond;
	unsigned int		 i, j, n = 0;

	for (i = 0; i < NEAR; i++)
		for (j = 0; j < (r->row->nconds == 2 ? NEAR : 1); j++) {
			d.args[c[0].arg] = near(&c[0], i);
			if (r->row->nconds == 2)
				d.args[c[1].arg] = near(&c[1], j);
			n += !answer_ok(t, a, &d, run(p, &d));
		}
	return n;
}

/* How often the program says what the table, whose rules_of(), does not. */
static unsigned int
wrong(const struct prog *p, const struct table *t, const struct target *a)
{
	struct seccomp_data	d = { 0, a->audit, 0, { 0 } };
	unsigned int		n = 0;
	size_t			i;

	for (d.nr = 0; d.nr < 600; d.nr++) {
		memset(d.args, 0, sizeof(d.args));
		n += !answer_ok(t, a, &d, run(p, &d));
		memset(d.args, 0xff, sizeof(d.args));
		n += !answer_ok(t, a, &d, run(p, &d));
	}
	for (i = 0; i < nrules; i++)
		if (rules[i].row->nconds > 0)
			n += wrong_near(p, t, a, &rules[i]);
	return n;
}

static struct prog	prog;
static char		digest[65];

START_TEST(says_what_the_table_says)
{
	const struct table	*t = &tables[_i % (int)COUNT(tables)];
	const struct target	*a = &targets[_i / (int)COUNT(tables)];

	read_prog(t, a, &prog, digest);
	rules_of(t, a);
	ck_assert_msg(wrong(&prog, t, a) == 0, "%s, %s: %u answers",
	    t->name, a->name, wrong(&prog, t, a));
}
END_TEST

/* The control: what was changed, or is another's, is found. */
START_TEST(finds_what_is_wrong)
{
	const struct table	*t = &tables[_i % (int)COUNT(tables)];
	const struct target	*a = &targets[_i / (int)COUNT(tables)];
	const struct sock_filter *f;
	size_t			 i;
	uint32_t		 k;

	read_prog(t, a, &prog, digest);
	for (i = 0; i < COUNT(tables); i++)
		if (&tables[i] != t) {
			rules_of(&tables[i], a);
			ck_assert_uint_gt(wrong(&prog, &tables[i], a), 0);
		}
	rules_of(t, a);
	for (i = 0; i < prog.n; i++) {
		f = &prog.f[i];
		k = f->k;
		/* what kills another architecture has no call to show it */
		if (f->code != (BPF_RET | BPF_K) || k == KILL)
			continue;
		prog.f[i].k = k == ALLOW ? ERRNO(EPERM) : ALLOW;
		ck_assert_msg(wrong(&prog, t, a) > 0, "%s: %zu", t->name, i);
		prog.f[i].k = k;
	}
}
END_TEST

START_TEST(other_architectures)
{
	static const uint32_t	 others[] = { AUDIT_ARCH_X86_64,
				    AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386,
				    AUDIT_ARCH_ARM, 0 };
	const struct table	*t = &tables[_i % (int)COUNT(tables)];
	const struct target	*a = &targets[_i / (int)COUNT(tables)];
	struct seccomp_data	 d = { 0 };
	size_t			 i;

	read_prog(t, a, &prog, digest);
	ck_assert_uint_eq(prog.f[0].code, BPF_LD | BPF_W | BPF_ABS);
	ck_assert_uint_eq(prog.f[0].k, offsetof(struct seccomp_data, arch));
	ck_assert_uint_eq(prog.f[1].code, BPF_JMP | BPF_JEQ | BPF_K);
	ck_assert_uint_eq(prog.f[1].k, a->audit);
	for (i = 0; i < COUNT(others); i++)
		for (d.nr = 0, d.arch = others[i]; d.nr < 600; d.nr++)
			if (d.arch != a->audit && run(&prog, &d) != KILL)
				ck_abort_msg("%#x: %d", d.arch, d.nr);
	/* x32 in a box; for a daemon its numbers are merely too high */
	d.nr = 0x40000000 + SYS_getpid;
	d.arch = AUDIT_ARCH_X86_64;
	if (d.arch == a->audit)
		ck_assert_uint_eq(run(&prog, &d), t->unlisted == KILL ?
		    ERRNO(ENOSYS) : KILL);
}
END_TEST

/* What was built in is what mkfilter prints, with the digest beside it. */
START_TEST(built_in)
{
	const struct table	*t = &tables[_i];
	char			 hex[SHA256_DIGEST_STRING_LENGTH];
	SHA2_CTX		 sha;
	size_t			 i;

	for (i = 0; i < COUNT(targets); i++)
		if (targets[i].scmp == seccomp_arch_native())
			break;
	ck_assert_uint_lt(i, COUNT(targets));
	read_prog(t, &targets[i], &prog, digest);
	ck_assert_uint_eq(prog.n, t->nbuilt);
	ck_assert_mem_eq(prog.f, t->built, prog.n * sizeof(prog.f[0]));
	SHA256Init(&sha);
	for (i = 0; i < COUNT(tables); i++)
		if (strcmp(tables[i].of, t->of) == 0)
			SHA256Update(&sha, (const uint8_t *)tables[i].built,
			    tables[i].nbuilt * sizeof(*tables[i].built));
	ck_assert_str_eq(SHA256End(&sha, hex), digest);
	if (strcmp(t->of, "box") == 0)
		ck_assert_str_eq(digest, box_sha256);
}
END_TEST

/* ---- by the kernel ----------------------------------------------------- */

#define KILLED	-1
#define DONE	0		/* else an errno */
#define NO_PID	0x7fffffffUL

static const struct try {
	const char	*table;
	long		 nr;
	unsigned long	 a, b, c;
	int		 want;
} tries[] = {
#define EACH_DAEMON(nr, a, b, c, want)					\
	{ "privd_calls", nr, a, b, c, want },				\
	{ "apid_calls", nr, a, b, c, want },				\
	{ "stored_calls", nr, a, b, c, want },				\
	{ "netd_calls", nr, a, b, c, want },				\
	{ "netd_maker_calls", nr, a, b, c, want },			\
	{ "room_calls", nr, a, b, c, want }
	EACH_DAEMON(SYS_gettid, 0, 0, 0, DONE),
	EACH_DAEMON(SYS_lseek, ~0UL, 0, 0, EBADF),
	EACH_DAEMON(SYS_clone3, 0, 0, 0, ENOSYS),
	EACH_DAEMON(NEWEST + 1, 0, 0, 0, ENOSYS),
	EACH_DAEMON(SYS_getppid, 0, 0, 0, KILLED),
	EACH_DAEMON(SYS_execve, 0, 0, 0, KILLED),
	EACH_DAEMON(SYS_execveat, ~0UL, 0, 0, KILLED),
	EACH_DAEMON(SYS_ptrace, 0, 0, 0, KILLED),
	EACH_DAEMON(SYS_mount, 0, 0, 0, KILLED),
	EACH_DAEMON(SYS_unshare, 0, 0, 0, KILLED),
	EACH_DAEMON(SYS_connect, ~0UL, 0, 0, KILLED),
	EACH_DAEMON(SYS_socket, AF_UNIX, SOCK_STREAM, 0, KILLED),
	EACH_DAEMON(SYS_socket, AF_INET, SOCK_STREAM, 0, KILLED),
	EACH_DAEMON(SYS_socket, AF_INET6, SOCK_STREAM, 0, KILLED),
	EACH_DAEMON(SYS_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, KILLED),
	EACH_DAEMON(SYS_clone, SIGCHLD, 0, 0, KILLED),
	EACH_DAEMON(SYS_ioctl, ~0UL, TIOCSTI, 0, KILLED),
	EACH_DAEMON(SYS_mprotect, 1, 0, PROT_READ, EINVAL),
	EACH_DAEMON(SYS_mprotect, 1, 0, PROT_READ | PROT_EXEC, KILLED),
	{ "apid_calls", SYS_accept4, ~0UL, 0, 0, EBADF },
	{ "apid_calls", SYS_setsockopt, ~0UL, SOL_SOCKET, 0, EBADF },
	{ "apid_calls", SYS_setsockopt, ~0UL, IPPROTO_IPV6, 0, KILLED },
	{ "apid_calls", SYS_openat, ~0UL, 0, 0, KILLED },
	{ "stored_calls", SYS_fsync, ~0UL, 0, 0, EBADF },
	{ "stored_calls", SYS_clone, CLONE_VM | CLONE_THREAD |
	    CLONE_SIGHAND | CLONE_NEWUSER, 0, 0, KILLED },
	{ "netd_calls", SYS_ioctl, ~0UL, NS_GET_NSTYPE, 0, EBADF },
	{ "netd_calls", SYS_ioctl, ~0UL, NS_GET_USERNS, 0, KILLED },
	{ "netd_calls", SYS_openat, ~0UL, 0, 0, KILLED },
	{ "netd_maker_calls", SYS_kill, NO_PID, SIGKILL, 0, ESRCH },
	{ "netd_maker_calls", SYS_kill, NO_PID, SIGTERM, 0, KILLED },
	{ "netd_maker_calls", SYS_setns, ~0UL, CLONE_NEWNET, 0, EBADF },
	{ "netd_maker_calls", SYS_setns, ~0UL, CLONE_NEWUSER, 0, KILLED },
	{ "netd_maker_calls", SYS_setresuid, ~0UL, 0x10000, ~0UL, KILLED },
	/* proxyd's three sockets, each as it is, and nothing beside them */
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_STREAM |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, DONE },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_DGRAM |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, DONE },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_DGRAM, 0, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_STREAM |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_MPTCP, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_DGRAM |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_RAW, 0, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, IPPROTO_ICMP, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_INET, SOCK_SEQPACKET |
	    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, KILLED },
	{ "netd_maker_calls", SYS_socket, AF_PACKET, SOCK_RAW, 0, KILLED },
	{ "netd_maker_calls", SYS_bind, ~0UL, 0, sizeof(struct sockaddr_in),
	    EBADF },
	{ "netd_maker_calls", SYS_bind, ~0UL, 0, 0, KILLED },
	{ "netd_maker_calls", SYS_bind, ~0UL, 0, sizeof(struct sockaddr_un),
	    KILLED },
	{ "netd_maker_calls", SYS_bind, ~0UL, 0, sizeof(struct sockaddr_in6),
	    KILLED },
	{ "netd_maker_calls", SYS_listen, ~0UL, 512, 0, EBADF },
	{ "netd_maker_calls", SYS_listen, ~0UL, 0, 0, KILLED },
	{ "netd_maker_calls", SYS_accept, ~0UL, 0, 0, KILLED },
	{ "netd_maker_calls", SYS_accept4, ~0UL, 0, 0, KILLED },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_IP, IP_TRANSPARENT,
	    EBADF },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_SOCKET, SO_REUSEADDR,
	    EBADF },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_SOCKET, SO_REUSEPORT,
	    KILLED },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_IP, 64, KILLED },
	/* the number of one at the level of the other, and elsewhere */
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_SOCKET,
	    IP_TRANSPARENT, KILLED },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, SOL_IP, SO_REUSEADDR,
	    KILLED },
	{ "netd_maker_calls", SYS_setsockopt, ~0UL, IPPROTO_TCP,
	    SO_REUSEADDR, KILLED },
	{ "uplinkd_calls", SYS_setns, ~0UL, CLONE_NEWUSER, 0, EBADF },
	{ "uplinkd_calls", SYS_setns, ~0UL, CLONE_NEWNET, 0, EBADF },
	{ "uplinkd_calls", SYS_setns, ~0UL, CLONE_NEWNS, 0, KILLED },
	{ "uplinkd_calls", SYS_unshare, CLONE_NEWUSER, 0, 0, KILLED },
	{ "uplinkd_calls", SYS_connect, ~0UL, 0, 0, EBADF },
	{ "uplinkd_calls", SYS_listen, ~0UL, 0, 0, KILLED },
	{ "uplinkd_calls", SYS_accept4, ~0UL, 0, 0, KILLED },
	{ "uplinkd_calls", SYS_socket, AF_UNIX, SOCK_STREAM, 0, KILLED },
	{ "uplinkd_calls", SYS_socket, AF_NETLINK, SOCK_RAW, 0, KILLED },
	{ "uplinkd_calls", SYS_ptrace, ~0UL, NO_PID, 0, KILLED },
	{ "uplinkd_calls", SYS_kill, NO_PID, SIGKILL, 0, ESRCH },
	{ "uplinkd_calls", SYS_kill, NO_PID, SIGTERM, 0, KILLED },
	{ "proxyd_calls", SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, DONE },
	{ "proxyd_calls", SYS_socket, AF_INET6, SOCK_DGRAM, ~0UL,
	    EINVAL },
	{ "proxyd_calls", SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP,
	    KILLED },
	{ "proxyd_calls", SYS_socket, AF_UNIX, SOCK_STREAM, 0, KILLED },
	{ "proxyd_calls", SYS_socket, AF_NETLINK, SOCK_RAW, 0, KILLED },
	{ "proxyd_calls", SYS_connect, ~0UL, 0, 0, EBADF },
	{ "proxyd_calls", SYS_accept4, ~0UL, 0, 0, EBADF },
	{ "proxyd_calls", SYS_bind, ~0UL, 0, 0, KILLED },
	{ "proxyd_calls", SYS_listen, ~0UL, 0, 0, KILLED },
	{ "proxyd_calls", SYS_setsockopt, ~0UL, SOL_SOCKET, 0, EBADF },
	{ "proxyd_calls", SYS_setsockopt, ~0UL, IPPROTO_IP, 0, KILLED },
	{ "proxyd_calls", SYS_openat, ~0UL, 0, 0, KILLED },
	{ "proxyd_calls", SYS_setns, ~0UL, CLONE_NEWNET, 0, KILLED },
	{ "proxyd_calls", SYS_clone, SIGCHLD, 0, 0, KILLED },
	{ "proxyd_calls", SYS_execve, 0, 0, 0, KILLED },
	{ "room_calls", SYS_openat, ~0UL, 0, 0, EFAULT },
	{ "room_calls", SYS_fchown, ~0UL, 0, 0, EBADF },
	{ "room_calls", SYS_unlinkat, ~0UL, 0, 0, KILLED },
	{ "room_calls", SYS_renameat2, ~0UL, 0, 0, KILLED },
	{ "room_calls", SYS_fchdir, ~0UL, 0, 0, KILLED },
	{ "room_calls", SYS_open_by_handle_at, ~0UL, 0, 0, KILLED },
	{ "room_calls", SYS_kill, NO_PID, SIGKILL, 0, KILLED },
};

static void
child(const struct try *y, const struct table *t)
{
	long	r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    confine_load(t->built, t->nbuilt) == -1)
		_exit(255);
	errno = 0;
	r = syscall(y->nr, y->a, y->b, y->c, 0, 0);
	_exit(r == -1 ? errno : 0);
}

START_TEST(by_the_kernel)
{
	const struct try	*y = &tries[_i];
	const struct table	*t = tables;
	pid_t			 pid;
	int			 st;

	while (strcmp(t->name, y->table) != 0)
		t++;
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0)
		child(y, t);
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	if (y->want == KILLED)
		ck_assert_msg(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS,
		    "%s: call %ld was not killed: %#x", y->table, y->nr, st);
	else
		ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == y->want,
		    "%s: call %ld: %#x", y->table, y->nr, st);
}
END_TEST

/* ---- Landlock ---------------------------------------------------------- */

static int	dir = -1, abstract = -1;
static pid_t	parent;

static int
by_descriptor(void)
{
	return openat(dir, "confine_test", O_RDONLY);
}

static int
by_name(void)
{
	return open("/proc/self/status", O_RDONLY);
}

static int
by_making(void)
{
	return mkdirat(dir, "confine_test.dir", 0700);
}

static int
by_port(void)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int			fd = socket(AF_INET, SOCK_STREAM, 0);

	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

static int
by_connect(void)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9) };
	int			fd = socket(AF_INET, SOCK_STREAM, 0);

	/* nobody listens: ECONNREFUSED is what may be told */
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == -1 &&
	    errno != ECONNREFUSED ? -1 : 0;
}

static struct sockaddr_un
abstract_name(void)
{
	struct sockaddr_un	a = { .sun_family = AF_UNIX };

	(void)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
	    "confine_test-%ld", (long)parent);
	return a;
}

static int
by_abstract(void)
{
	struct sockaddr_un	a = abstract_name();
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

static int
by_signal(void)
{
	return kill(parent, 0);
}

static const struct reach {
	int	(*fn)(void);
	int	 error, abi;
} reaches[] = {
	{ by_descriptor, EACCES, 1 }, { by_name, EACCES, 1 },
	{ by_making, EACCES, 1 }, { by_port, EACCES, 4 },
	{ by_connect, EACCES, 4 }, { by_abstract, EPERM, 6 },
	{ by_signal, EPERM, 6 },
};

/* Works before the fence and is refused behind it; some daemon connects. */
START_TEST(landlock)
{
	const struct reach	*y = &reaches[_i / 2];
	const struct confine	 c = { .landlock = confine_landlock,
				    .landlock_connects = _i % 2 };
	struct sockaddr_un	 a;
	long			 abi;
	pid_t			 pid;
	int			 st;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	if (abi < y->abi) {
		printf("skipped: landlock %d: this kernel has ABI %ld, not %d"
		    "\n", _i, abi, y->abi);
		return;
	}
	parent = getpid();
	ck_assert_int_ne(dir = open(WB_TOP_BUILDDIR "/regress", O_PATH |
	    O_DIRECTORY), -1);
	a = abstract_name();
	ck_assert_int_ne(abstract = socket(AF_UNIX, SOCK_STREAM, 0), -1);
	ck_assert_int_eq(bind(abstract, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(abstract, 1), 0);
	if ((pid = fork()) == 0) {
		if (y->fn() == -1)
			_exit(100);	/* the control */
		(void)unlinkat(dir, "confine_test.dir", AT_REMOVEDIR);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
		    confine_landlock(&c) == -1)
			_exit(101);
		_exit(y->fn() == -1 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	(void)close(dir);
	(void)close(abstract);
	ck_assert(WIFEXITED(st));
	ck_assert_int_eq(WEXITSTATUS(st), c.landlock_connects &&
	    y->fn == by_connect ? 0 : y->error);
}
END_TEST

/* errno of bind(2) to that port, or 0. */
static int
binds(uint16_t port)
{
	struct sockaddr_in	a = { .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons(port) };
	int			fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == -1)
		return errno;
	(void)close(fd);
	return 0;
}

#define NO_NETNS	77

/* But for ports that are named, and these to bind alone. */
START_TEST(landlock_but_ports)
{
	const uint16_t		ports[] = { 40001, 40003 };
	const struct confine	c = { .landlock = confine_landlock,
	    .landlock_bind = ports, .nlandlock_bind = 2 };
	pid_t			pid;
	int			st;

	if ((pid = fork()) == 0) {
		/* others may hold these ports in ours */
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1)
			_exit(NO_NETNS);
		if (binds(40002) == EACCES)
			_exit(1);	/* the control */
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
		    confine_landlock(&c) == -1)
			_exit(2);
		if (binds(40001) == EACCES || binds(40003) == EACCES)
			_exit(3);
		if (binds(40002) != EACCES || binds(0) != EACCES)
			_exit(4);
		_exit(by_connect() == -1 && errno == EACCES ? 0 : 5);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert(WIFEXITED(st));
	if (WEXITSTATUS(st) == NO_NETNS)
		printf("skipped: landlock_but_ports: no namespace to bind "
		    "in\n");
	else
		ck_assert_int_eq(WEXITSTATUS(st), 0);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("confine");
	TCase	*t = tcase_create("filters");
	TCase	*l = tcase_create("landlock");
	SRunner	*r;
	int	 failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, says_what_the_table_says, 0, EACH);
	tcase_add_loop_test(t, finds_what_is_wrong, 0, EACH);
	tcase_add_loop_test(t, other_architectures, 0, EACH);
	tcase_add_loop_test(t, built_in, 0, (int)COUNT(tables));
	tcase_add_loop_test(t, by_the_kernel, 0, (int)COUNT(tries));
	suite_add_tcase(s, t);
	tcase_add_loop_test(l, landlock, 0, 2 * (int)COUNT(reaches));
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4)
		tcase_add_test(l, landlock_but_ports);
	else
		printf("skipped: landlock_but_ports: this kernel's Landlock "
		    "knows no ports\n");
	suite_add_tcase(s, l);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
