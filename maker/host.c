/*
 * host.c: whether the host can bear another box: memory and disk.
 */
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "maker.h"

#define MIB	(UINT64_C(1) << 20)

static int
short_of(int error, const char *what, uint64_t have, uint64_t keep)
{
	errno = error;
	return box_fail("%s: %" PRIu64 " MiB are free, %" PRIu64 " are kept",
	    what, have / MIB, keep / MIB);
}

/* A tenth, or half a GiB where that is no more than a quarter. */
static int
memory_allows(void)
{
	const char	*info = "/proc/meminfo";	/* in KiB */
	uint64_t	 total, avail, keep;

	if (read_stat(AT_FDCWD, info, "MemTotal:", &total) == -1 ||
	    read_stat(AT_FDCWD, info, "MemAvailable:", &avail) == -1)
		return box_fail("read %s", info);
	total *= 1024;
	avail *= 1024;
	keep = total / 4 < 512 * MIB ? total / 4 : 512 * MIB;
	if (keep < total / 10)
		keep = total / 10;
	return avail >= keep ? 0 : short_of(ENOMEM, "memory", avail, keep);
}

/* Free inodes are worth what the file system has of bytes for each. */
int
host_disk(uint64_t *ret_free, uint64_t *ret_keep)
{
	struct statvfs	fs;
	uint64_t	total, by_inode;

	if (fstatvfs(box_dir(), &fs) == -1)
		return box_fail("state directory");
	total = (uint64_t)fs.f_blocks * fs.f_frsize;
	*ret_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	by_inode = fs.f_files == 0 ? total :
	    total / fs.f_files * fs.f_favail;
	if (*ret_free > by_inode)
		*ret_free = by_inode;
	*ret_keep = mk.conf.disk_floor != 0 ? mk.conf.disk_floor :
	    total / 20 > 1024 * MIB ? total / 20 : 1024 * MIB;
	return 0;
}

int
host_allows(void)
{
	uint64_t	avail = 0, keep = 0;

	if (memory_allows() == -1 || host_disk(&avail, &keep) == -1)
		return -1;
	return avail >= keep ? 0 :
	    short_of(ENOSPC, "state directory, or inodes for so much",
	    avail, keep);
}
