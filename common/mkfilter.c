/*
 * mkfilter: the system-call filters, as C source.
 *
 *	mkfilter [--arch NAME] box | privd | apid | stored | netd | netd_maker |
 *	    uplinkd | proxyd | room
 *
 * Runs where this is built and is not installed, so that nothing installed
 * links libseccomp.  NAME is the architecture of what will run, as
 * libseccomp calls it; the tables and the headers' constants are the same
 * on all.
 *
 * A box has two programs, since libseccomp cannot say "allow, but with these
 * arguments": an unconditional ALLOW replaces the argument rules of the same
 * call.  The first refuses calls by argument and allows all else, the second
 * is an allow list whose default is ENOSYS; the kernel takes the stricter
 * answer.
 *
 * Must never: know a call that no table names; pass over a name that it does
 * not know.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
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

#define NEWEST_CALL	450	/* set_mempolicy_home_node, on every arch */
#define NOT_LISTED	SCMP_ACT_ERRNO(ENOSYS)

struct row {
	const char		*names;
	uint32_t		 action;
	unsigned int		 ncmp;
	struct scmp_arg_cmp	 cmp[3];
};

#define CMP_EQ(a, m, v)	{ a, SCMP_CMP_MASKED_EQ, m, v }
#define CMP_GT(a, m, v)	{ a, SCMP_CMP_GT, v, 0 }
#define CMP_NE(a, m, v)	{ a, SCMP_CMP_NE, v, 0 }

static const struct row	box_args[] = {
#define F_ARG(c, e, a, t, m, v, why)					\
	{ c, SCMP_ACT_ERRNO(e), 1, { CMP_##t(a, m, v) } },
#define F_AND(c, e, a, t, m, v, a2, t2, m2, v2, why)			\
	{ c, SCMP_ACT_ERRNO(e), 2, { CMP_##t(a, m, v), CMP_##t2(a2, m2, v2) } },
#include "common/filter.def"
};

#define LIST(n, act)	{ .names = n, .action = act },
static const struct row	box_lists[] = {
#define F_ALLOW(n)	LIST(n, SCMP_ACT_ALLOW)
#define F_EPERM(n)	LIST(n, SCMP_ACT_ERRNO(EPERM))
#define F_ENOSYS(n)	LIST(n, NOT_LISTED)
#define F_PERSONALITY(v)						\
	{ "personality", SCMP_ACT_ALLOW, 1, { CMP_EQ(0, UINT64_MAX, v) } },
#include "common/filter.def"
};

#define CALL(n, why)	LIST(n, SCMP_ACT_ALLOW)
#define CALL_EQ(n, a, v, why)	CALL_MASKED(n, a, UINT64_MAX, v, why)
#define CALL_MASKED(n, a, m, v, why)					\
	{ n, SCMP_ACT_ALLOW, 1, { CMP_EQ(a, m, v) } },
#define CALL_AND(n, a, v, a2, m2, v2, why)				\
	{ n, SCMP_ACT_ALLOW, 2, { CMP_EQ(a, UINT64_MAX, v),		\
	    CMP_EQ(a2, m2, v2) } },
#define CALL_SOCKET(f, t, why)						\
	{ "socket", SCMP_ACT_ALLOW, 3, { CMP_EQ(0, UINT64_MAX, f),	\
	    CMP_EQ(1, UINT64_MAX, t), CMP_EQ(2, UINT64_MAX, 0) } },
static const struct row	privd_calls[] = {
#include "common/calls.def"
#include "privd/calls.def"
};
static const struct row	apid_calls[] = {
#include "common/calls.def"
#include "apid/calls.def"
};
static const struct row	stored_calls[] = {
#include "common/calls.def"
#include "stored/calls.def"
};
static const struct row	netd_calls[] = {
#include "common/calls.def"
#include "netd/calls.def"
};
static const struct row	netd_maker_calls[] = {
#include "common/calls.def"
#include "netd/maker_calls.def"
};
static const struct row	uplinkd_calls[] = {
#include "common/calls.def"
#include "uplinkd/calls.def"
};
static const struct row	proxyd_calls[] = {
#include "common/calls.def"
#include "proxyd/calls.def"
};
static const struct row	room_calls[] = {
#include "common/calls.def"
#include "workbox/calls.def"
};

static const struct program {
	const char		*of, *name;
	uint32_t		 unlisted;	/* action */
	const struct row	*rows;
	size_t			 n;
} programs[] = {
#define PROGRAM(of, name, unlisted)					\
	{ of, #name, unlisted, name, sizeof(name) / sizeof(name[0]) }
	PROGRAM("box", box_args, SCMP_ACT_ALLOW),
	PROGRAM("box", box_lists, NOT_LISTED),
	PROGRAM("privd", privd_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("apid", apid_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("stored", stored_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("netd", netd_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("netd_maker", netd_maker_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("uplinkd", uplinkd_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("proxyd", proxyd_calls, SCMP_ACT_KILL_PROCESS),
	PROGRAM("room", room_calls, SCMP_ACT_KILL_PROCESS),
};

#define MOST	4096

static uint32_t			arch;		/* a SCMP_ARCH, AUDIT_ARCH */
static struct sock_filter	out[MOST];
static size_t			nout;

/* ---- ahead of what libseccomp writes -------------------------------------- */

/* The architecture, else on; the call's number. */
static const struct sock_filter	head[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
};
#define HEAD	(sizeof(head) / sizeof(head[0]))

static void
head_add(uint16_t test, int nr, uint32_t action)
{
	const struct sock_filter	f[] = {
		BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
	};

	memcpy(&out[nout], f, sizeof(f));
	nout += 2;
	if (nout - 2 > UINT8_MAX)
		errx(1, "too many calls that libseccomp does not know");
}

static void
head_start(void)
{
	memcpy(out, head, sizeof(head));
	nout = HEAD;
}

static void
head_end(void)
{
	out[1].k = arch;
	out[1].jf = (uint8_t)(nout - 2);
	if (nout == HEAD)
		nout = 0;		/* nothing to say */
}

/* ---- a program --------------------------------------------------------------- */

static void
add_name(scmp_filter_ctx ctx, const struct row *r, uint32_t unlisted,
    char *name)
{
	char	*colon = strchr(name, ':');
	int	 nr, e = 0;

	if (colon != NULL)
		*colon++ = '\0';
	nr = seccomp_syscall_resolve_name_arch(arch, name);
	if (nr == __NR_SCMP_ERROR && colon == NULL)
		errx(1, "no system call has the name %s", name);
	/* libseccomp takes no rule that says what goes unsaid */
	if (r->action == unlisted)
		return;
	if (nr >= 0)
		/* it wants the number that the call has here */
		e = seccomp_rule_add_array(ctx, r->action,
		    seccomp_syscall_resolve_name(name), r->ncmp, r->cmp);
	else if (colon != NULL)
		head_add(BPF_JEQ, (int)strtol(colon, NULL, 10), r->action);
	if (e < 0)
		errx(1, "rule for %s: %s", name, strerror(-e));
}

static void
add_row(scmp_filter_ctx ctx, const struct row *r, uint32_t unlisted)
{
	const char	*p = r->names;
	char		 name[40];

	for (; *p != '\0'; p += strcspn(p, " "), p += *p == ' ') {
		(void)snprintf(name, sizeof(name), "%.*s",
		    (int)strcspn(p, " "), p);
		add_name(ctx, r, unlisted, name);
	}
}

static scmp_filter_ctx
start(uint32_t unlisted)
{
	scmp_filter_ctx	ctx = seccomp_init(unlisted);

	if (ctx == NULL ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS) < 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
		errx(1, "libseccomp is too old");
	if (arch != seccomp_arch_native() &&
	    (seccomp_arch_remove(ctx, seccomp_arch_native()) < 0 ||
	    seccomp_arch_add(ctx, arch) < 0))
		errx(1, "libseccomp cannot write for this architecture");
	return ctx;
}

/* Appends; libseccomp exports to a descriptor only. */
static void
export(scmp_filter_ctx ctx)
{
	FILE	*tmp = tmpfile();

	if (tmp == NULL || seccomp_export_bpf(ctx, fileno(tmp)) < 0)
		err(1, "export");
	rewind(tmp);
	nout += fread(&out[nout], sizeof(out[0]), MOST - nout, tmp);
	if (ferror(tmp) || nout == MOST)
		errx(1, "export: too much");
	(void)fclose(tmp);		/* was read alone */
}

static void
compile(const struct program *p)
{
	scmp_filter_ctx	ctx = start(p->unlisted);
	size_t		i;

	head_start();
	/* libc probes new calls and falls back: pthread_create from clone3
	 * to clone, whose flags a row can hold */
	if (p->unlisted == SCMP_ACT_KILL_PROCESS) {
		head_add(BPF_JGT, NEWEST_CALL, NOT_LISTED);
		head_add(BPF_JEQ, seccomp_syscall_resolve_name_arch(arch,
		    "clone3"), NOT_LISTED);
	}
	for (i = 0; i < p->n; i++)
		add_row(ctx, &p->rows[i], p->unlisted);
	head_end();
	export(ctx);
	seccomp_release(ctx);
}

static void
print(const struct program *p, SHA2_CTX *sha)
{
	size_t	i;

	compile(p);
	SHA256Update(sha, (const uint8_t *)out, nout * sizeof(out[0]));
	printf("\nstatic const struct sock_filter\t%s[] = {\n", p->name);
	for (i = 0; i < nout; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", out[i].code,
		    out[i].jt, out[i].jf, out[i].k);
	printf("};\n");
}

int
main(int argc, char *argv[])
{
	char		hex[SHA256_DIGEST_STRING_LENGTH];
	SHA2_CTX	sha;
	size_t		i, n = 0;

	arch = seccomp_arch_native();
	if (argc == 4 && strcmp(argv[1], "--arch") == 0) {
		if ((arch = seccomp_arch_resolve_name(argv[2])) == 0)
			errx(1, "no architecture has the name %s", argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc != 2)
		errx(1, "usage: mkfilter [--arch NAME] PROGRAM");
	printf("/* Made by mkfilter. */\n#include <linux/filter.h>\n");
	SHA256Init(&sha);
	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(programs[i].of, argv[1]) == 0) {
			print(&programs[i], &sha);
			n++;
		}
	if (n == 0)
		errx(1, "no program has the name %s", argv[1]);
	printf("\n/* SHA-256 of the above */\nstatic const char\t%s_sha256[] =\n"
	    "    \"%s\";\n", argv[1], SHA256End(&sha, hex));
	if (fflush(stdout) != 0)
		err(1, "write");
	return 0;
}
