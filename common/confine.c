/*
 * confine.c: the fence around our own daemons.
 *
 * Stages, in this order, because each needs what a later one takes away:
 *   1 close every descriptor above last_fd; lower the limits
 *   2 the new root (confine_root.c)
 *   3 the bounding and ambient sets; groups, gid, uid, proved by trying to
 *     regain them
 *   4 the permitted, effective and inheritable sets
 *   5 no_new_privs, not dumpable
 *   6 Landlock (confine_landlock.c)
 *   7 the system-call filter, last
 *
 * Must never: go on after a stage that failed.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"

/* Under a sanitizer, whose own calls are on no list, all but the filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_BUILD	1
const char	*__asan_default_options(void);

/* behind the fence there is no /proc in which leaks could be looked for */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#else
#define TEST_BUILD	0
#endif

static char	confine_why[200];

int
confine_fail(const char *fmt, ...)
{
	va_list	ap;
	int	e = errno;
	size_t	n;

	va_start(ap, fmt);
	(void)vsnprintf(confine_why, sizeof(confine_why), fmt, ap);
	va_end(ap);
	n = strlen(confine_why);
	(void)snprintf(confine_why + n, sizeof(confine_why) - n, ": %s",
	    strerror(e));
	errno = e;
	return -1;
}

const char *
confine_error(void)
{
	return confine_why;
}

/* ---- 1: descriptors and limits -------------------------------------- */

/* All but syslog's socket. */
static int
close_above(unsigned int last)
{
	unsigned int	keep = (unsigned int)log_descriptor();

	if (log_descriptor() == -1 || keep <= last)
		return (int)syscall(SYS_close_range, last + 1, ~0U, 0);
	if (keep > last + 1 &&
	    syscall(SYS_close_range, last + 1, keep - 1, 0) == -1)
		return -1;
	return (int)syscall(SYS_close_range, keep + 1, ~0U, 0);
}

static int
confine_limits(const struct confine *c)
{
	struct rlimit	rl;
	size_t		i;

	if (c->last_fd != 0 && close_above(c->last_fd) == -1)
		return confine_fail("close_range");
	for (i = 0; i < c->nlimits; i++) {
		const struct confine_limit *l = &c->limits[i];

		if (getrlimit(l->resource, &rl) == -1)
			return confine_fail("getrlimit %d", l->resource);
		/* root here may lack CAP_SYS_RESOURCE: only ever lower */
		if (rl.rlim_max == RLIM_INFINITY || rl.rlim_max > l->value)
			rl.rlim_max = l->value;
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(l->resource, &rl) == -1)
			return confine_fail("setrlimit %d", l->resource);
	}
	return 0;
}

/* ---- 3: who we are -------------------------------------------------- */

static int
confine_ids(const struct confine *c)
{
	uid_t	r, e, s;

	if (c->uid == 0)
		return 0;
	if (setgroups(0, NULL) == -1)
		return confine_fail("setgroups");
	if (setresgid(c->gid, c->gid, c->gid) == -1)
		return confine_fail("setresgid %u", c->gid);
	if (prctl(PR_SET_KEEPCAPS, c->caps != 0) == -1)
		return confine_fail("keepcaps");
	if (setresuid(c->uid, c->uid, c->uid) == -1)
		return confine_fail("setresuid %u", c->uid);
	if (getresuid(&r, &e, &s) == -1 || r != c->uid || e != c->uid ||
	    s != c->uid) {
		errno = EPERM;
		return confine_fail("uid is not %u", c->uid);
	}
	/* CAP_SETUID may be left until stage 4: only then is this a proof */
	if (c->caps == 0 && (setuid(0) != -1 || seteuid(0) != -1)) {
		errno = EPERM;
		return confine_fail("uid 0 could be regained");
	}
	return 0;
}

/* ---- 4: capabilities ------------------------------------------------ */

static int
confine_bounding(const struct confine *c)
{
	int	i;

	for (i = 0; i < 64; i++) {
		if (c->caps & UINT64_C(1) << i)
			continue;
		if (prctl(PR_CAPBSET_READ, i) == -1)
			break;		/* beyond the kernel's last */
		if (prctl(PR_CAPBSET_READ, i) == 1 &&
		    prctl(PR_CAPBSET_DROP, i) == -1)
			return confine_fail("drop capability %d", i);
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		return confine_fail("clear ambient capabilities");
	return 0;
}

static int
confine_caps(const struct confine *c)
{
	struct __user_cap_header_struct	 h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct	 d[2];

	memset(d, 0, sizeof(d));
	d[0].permitted = d[0].effective = (uint32_t)c->caps;
	d[1].permitted = d[1].effective = (uint32_t)(c->caps >> 32);
	if (syscall(SYS_capset, &h, d) == -1)
		return confine_fail("capset");
	return 0;
}

/* ---- 5, 7: privileges, the filter ------------------------------------ */

static int
confine_privs(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return confine_fail("no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return confine_fail("not dumpable");
	return 0;
}

int
confine_enter(const struct confine *c)
{
	tzset();	/* gmtime_r() would read the file at its first call */
	if (confine_limits(c) == -1 ||
	    (c->root != NULL && c->root(c) == -1) ||
	    confine_bounding(c) == -1 || confine_ids(c) == -1 ||
	    confine_caps(c) == -1 || confine_privs() == -1 ||
	    (c->landlock != NULL && c->landlock(c) == -1))
		return -1;
	if (c->nfilter == 0 || TEST_BUILD)
		return 0;
	return confine_load(c->filter, c->nfilter) == 0 ? 0 :
	    confine_fail("load the filter");
}
