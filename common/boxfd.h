/*
 * boxfd: the descriptors with which the maker starts a runner, and the
 * paths both agree on.  Nothing else is open.
 */
#ifndef COMMON_BOXFD_H
#define COMMON_BOXFD_H

#include <stdint.h>

/* 0 and 1 are /dev/null of the box; 2 is a pipe into launch.log. */
#define BOXFD_CONTROL	3	/* listening SEQPACKET socket, for the host */
#define BOXFD_BOOT	4	/* sealed memfd: ROW boot, encoded by wire */
/*
 * Detached mounts (open_tree OPEN_TREE_CLONE) of cgroup directories, O_PATH:
 * first the v2 directory <id>/box, in which the runner has a leaf `runner',
 * a directory `sessions' (the box's) and makes sessions/<sid>; then, where
 * boot.cgroup_v1 is not 0, that many v1 directories <id>/box/sessions, of
 * which only cgroup.procs is the box's.
 */
#define BOXFD_CGROUP2	5
#define BOXFD_CGROUP1	6
#define BOXFD_LAST	9

#define BOX_RUNTIME	"/opt/workbox"		/* runner, wb */
#define BOX_RUN		"/run/workbox"
#define BOX_SOCK	"/run/workbox/runner.sock"

/*
 * The runner's second thread: the first process or thread that it makes, and
 * alive for as long as it is.  filter.def guards both numbers.
 */
#define BOX_THREAD	2

/* What the runner needs beside its rings: DESIGN 3, the reserve. */
#define BOX_RESERVE	(8UL * 1024 * 1024)
#define BOX_RING	(64UL * 1024 * 1024)	/* upper bound per box */
#define BOX_RESERVE_PIDS 64
/* Hard limits of a box; what a server allows, what it gives. */
struct box_limits {
	uint64_t	 memory_bytes;	/* multiple of the page size */
	uint64_t	 cpu_milli;	/* thousandths of a core */
	uint64_t	 pids;
};

/* Less than these is no box. */
#define BOX_MEMORY_LEAST (16UL * 1024 * 1024)
#define BOX_PIDS_LEAST	128

/* What the rings of a box of so much memory may hold. */
static inline uint64_t
box_ring(uint64_t memory_bytes)
{
	return memory_bytes / 8 < BOX_RING ? memory_bytes / 8 : BOX_RING;
}

#endif
