/*
 * confine_landlock.c: no file, no TCP port, no signal and no abstract socket of
 * others; the second fence behind the root.
 */
#include <sys/syscall.h>

#include <linux/landlock.h>
#include <stdint.h>
#include <unistd.h>

#include "confine.h"
#include "xmalloc.h"

/* Of ABI 4, which libc's headers may not have yet. */
#define NET_BIND_TCP	UINT64_C(1)
#define RULE_NET_PORT	2

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER	(1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE	(1ULL << 14)
#endif

static uint64_t
landlock_fs(int abi)
{
	/* the rights of ABI 1 are bits 0 to 12 */
	uint64_t	v = (UINT64_C(1) << 13) - 1;

	if (abi >= 2)
		v |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		v |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		v |= UINT64_C(1) << 15;		/* IOCTL_DEV */
	return v;
}

static int
landlock_but(int ruleset, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr	attr = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | access,
		.parent_fd = fd,
	};

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
	    &attr, 0) == -1)
		return confine_fail("Landlock rule for descriptor %d", fd);
	return 0;
}

static int
landlock_bind(int ruleset, uint16_t port)
{
	/* allowed_access, port */
	const uint64_t	attr[2] = { NET_BIND_TCP, port };

	if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, attr, 0) ==
	    -1)
		return confine_fail("Landlock rule for port %u", port);
	return 0;
}

int
confine_landlock(const struct confine *c)
{
	/* handled_access_fs, handled_access_net (ABI 4), scoped (ABI 6) */
	uint64_t	attr[3] = { 0, 0, 0 };
	auto_close int	fd = -1;
	size_t		i;
	long		abi;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1)
		return confine_fail("Landlock is missing");
	attr[0] = landlock_fs((int)abi);
	if (abi >= 4)
		/* bind and connect TCP */
		attr[1] = c->landlock_connects ? 1 : 3;
	if (abi >= 6)
		attr[2] = 3;			/* abstract sockets, signals */
	fd = (int)syscall(SYS_landlock_create_ruleset, attr,
	    (abi >= 6 ? 3 : abi >= 4 ? 2 : 1) * sizeof(attr[0]), 0);
	if (fd == -1)
		return confine_fail("Landlock ruleset");
	for (i = 0; i < c->nlandlock_but; i++)
		if (landlock_but(fd, c->landlock_but[i],
		    LANDLOCK_ACCESS_FS_WRITE_FILE) == -1)
			return -1;
	/* before ABI 4 no port is anybody's */
	for (i = 0; i < c->nlandlock_bind && abi >= 4; i++)
		if (landlock_bind(fd, c->landlock_bind[i]) == -1)
			return -1;
	if (c->landlock_exec != 0 && landlock_but(fd, c->landlock_exec,
	    LANDLOCK_ACCESS_FS_EXECUTE) == -1)
		return -1;
	if (c->landlock_read != 0 && landlock_but(fd, c->landlock_read,
	    LANDLOCK_ACCESS_FS_READ_DIR) == -1)
		return -1;
	if (syscall(SYS_landlock_restrict_self, fd, 0) == -1)
		return confine_fail("Landlock restrict");
	return 0;
}
