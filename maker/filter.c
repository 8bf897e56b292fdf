/*
 * filter: the two system-call filters of every box, from filter.def.
 *
 * Two, since libseccomp cannot say "allow, but with these arguments": an
 * unconditional ALLOW replaces the argument rules of the same call.  The
 * first is an allow list whose default is ENOSYS, the second refuses calls
 * by argument and allows all else; the kernel takes the stricter answer.
 * Built once at start; a box loads the bytes.  Must never know a call that
 * filter.def does not.
 *
 * Why this is safe when the asker is hostile: nothing a peer says reaches
 * this file.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "xmalloc.h"

enum test { EQ, GT, NE };

struct cond {
	unsigned int	 arg;
	enum test	 test;
	uint64_t	 mask, value;
};

static const struct { int err; const char *names; } lists[] = {
#define F_ALLOW(n)	{ -1, n },
#define F_EPERM(n)	{ EPERM, n },
#define F_ENOSYS(n)	{ ENOSYS, n },
#include "filter.def"
};

static const struct {
	const char	*call;
	int		 err;
	struct cond	 cond[2];
	unsigned int	 nconds;
} args[] = {
#define F_ARG(c, e, a, t, m, v, why)					\
	{ c, e, { { a, t, m, v } }, 1 },
#define F_AND(c, e, a, t, m, v, a2, t2, m2, v2, why)			\
	{ c, e, { { a, t, m, v }, { a2, t2, m2, v2 } }, 2 },
#include "filter.def"
};

static const uint64_t		personalities[] = { F_PERSONALITIES };
static struct sock_fprog	programs[BOX_FILTERS];
static char			hash[SHA256_DIGEST_STRING_LENGTH];

/* The call's number here: negative when this architecture has none. */
static int
call_number(const char *name)
{
	char	 buf[40];
	char	*colon;
	int	 nr;

	if (str_copy(buf, name, sizeof(buf)) == -1)
		return __NR_SCMP_ERROR;
	if ((colon = strchr(buf, ':')) != NULL)
		*colon++ = '\0';
	nr = seccomp_syscall_resolve_name(buf);
	if (nr < 0 && colon != NULL)
		nr = (int)strtol(colon, NULL, 10);
	return nr;
}

static int
add_list(scmp_filter_ctx ctx, int err, const char *names)
{
	const char	*p, *end;
	char		 name[40];
	uint32_t	 act = err == -1 ? SCMP_ACT_ALLOW :
			    SCMP_ACT_ERRNO((unsigned int)err);
	int		 nr, r;

	for (p = names; *p != '\0'; p = *end == ' ' ? end + 1 : end) {
		end = p + strcspn(p, " ");
		(void)snprintf(name, sizeof(name), "%.*s", (int)(end - p), p);
		if ((nr = call_number(name)) == __NR_SCMP_ERROR) {
			errno = EINVAL;
			return box_fail("filter %s", name);
		}
		/* ENOSYS is what it gets anyway. */
		if (nr >= 0 && err != ENOSYS &&
		    (r = seccomp_rule_add(ctx, act, nr, 0)) < 0) {
			errno = -r;
			return box_fail("filter %s", name);
		}
	}
	return 0;
}

static int
add_args(scmp_filter_ctx ctx, int nr, int err, const struct cond *cond,
    unsigned int n)
{
	struct scmp_arg_cmp	 cmp[2];
	unsigned int		 i;

	for (i = 0; i < n; i++, cond++)
		cmp[i] = cond->test == EQ ?
		    SCMP_CMP64(cond->arg, SCMP_CMP_MASKED_EQ, cond->mask,
		    cond->value) : SCMP_CMP64(cond->arg,
		    cond->test == GT ? SCMP_CMP_GT : SCMP_CMP_NE,
		    cond->value);
	return seccomp_rule_add_array(ctx,
	    SCMP_ACT_ERRNO((unsigned int)err), nr, n, cmp);
}

static int
fill_allow(scmp_filter_ctx ctx)
{
	size_t	 i;
	int	 nr, r;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (add_list(ctx, lists[i].err, lists[i].names) == -1)
			return -1;
	if ((nr = call_number("personality")) < 0)
		return 0;
	for (i = 0; i < sizeof(personalities) / sizeof(*personalities); i++)
		if ((r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
		    SCMP_A0_64(SCMP_CMP_EQ, personalities[i]))) < 0) {
			errno = -r;
			return box_fail("filter personality");
		}
	return 0;
}

static int
fill_args(scmp_filter_ctx ctx)
{
	size_t	 i;
	int	 nr, r;

	for (i = 0; i < sizeof(args) / sizeof(*args); i++) {
		if ((nr = call_number(args[i].call)) < 0)
			continue;
		if ((r = add_args(ctx, nr, args[i].err, args[i].cond,
		    args[i].nconds)) < 0) {
			errno = -r;
			return box_fail("filter arguments of %s",
			    args[i].call);
		}
	}
	return 0;
}

/* The program as bytes: libseccomp exports to a descriptor only. */
static int
export(scmp_filter_ctx ctx, struct sock_fprog *ret)
{
	auto_close int	 fd = -1;
	struct stat	 st;
	void		*insns;
	int		 r;

	if ((fd = memfd_create("filter", MFD_CLOEXEC)) == -1)
		return box_fail("filter export");
	if ((r = seccomp_export_bpf(ctx, fd)) < 0) {
		errno = -r;
		return box_fail("filter export");
	}
	if (fstat(fd, &st) == -1)
		return box_fail("filter export");
	insns = xmalloc((size_t)st.st_size);
	if (pread(fd, insns, (size_t)st.st_size, 0) != st.st_size) {
		free(insns);
		return box_fail("filter export");
	}
	ret->len = (unsigned short)((size_t)st.st_size /
	    sizeof(struct sock_filter));
	ret->filter = insns;
	return 0;
}

static int
build(uint32_t def, int (*fill)(scmp_filter_ctx), struct sock_fprog *ret)
{
	scmp_filter_ctx	 ctx;
	int		 r = -1;

	if ((ctx = seccomp_init(def)) == NULL) {
		errno = ENOMEM;
		return box_fail("filter init");
	}
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS) < 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0) {
		errno = EOPNOTSUPP;
		(void)box_fail("filter attributes");
	} else if (fill(ctx) == 0)
		r = export(ctx, ret);
	seccomp_release(ctx);
	return r;
}

int
filter_init(void)
{
	SHA2_CTX	 sha;
	size_t		 i;

	if (build(SCMP_ACT_ALLOW, fill_args, &programs[0]) == -1 ||
	    build(SCMP_ACT_ERRNO(ENOSYS), fill_allow, &programs[1]) == -1)
		return -1;
	SHA256Init(&sha);
	for (i = 0; i < BOX_FILTERS; i++)
		SHA256Update(&sha, (const uint8_t *)programs[i].filter,
		    programs[i].len * sizeof(struct sock_filter));
	(void)SHA256End(&sha, hash);
	return 0;
}

int
filter_load(void)
{
	size_t	 i;

	for (i = 0; i < BOX_FILTERS; i++)
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
		    &programs[i]) != 0)
			return -1;
	return 0;
}

const char *
filter_hash(void)
{
	return hash;
}
