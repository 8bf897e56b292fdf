/*
 * box: making, inspecting and ending boxes; see DESIGN 3.
 *
 * One process, no threads.  Nothing here logs, reads a message, or waits for
 * a box: what takes long is done by a child whose pidfd the caller polls.
 * Only *_init() may block.  Functions return 0 or -1 with errno (or NULL)
 * and leave the step that failed in box_error().  Ids and names are held
 * against their charsets again here, whatever the caller checked.
 *
 * A box's life, as the caller drives it:
 *	box_launch -> ready_fd EOF -> box_connect -> box_facts ->
 *	cgroup_freeze, cgroup_usage, ... -> cgroup_kill -> pidfd and
 *	cgroup_events say dead -> cgroup_remove -> tree_remove
 * After a failed box_launch, or at any point after a crash, the same three
 * last steps clean up: each may be called again and for what is not there.
 */
#ifndef MAKER_BOX_H
#define MAKER_BOX_H

#include <sys/stat.h>
#include <sys/types.h>

#include <linux/capability.h>
#include <stddef.h>
#include <stdint.h>

#include "boxfd.h"
#include "fds.h"
#include "maker_ask.h"

#define BOX_CGROUP1	3	/* at most: v1 trees given to the runner */
/* Bounding, permitted and effective set of everything in a box. */
#define BOX_CAPS	(UINT64_C(1) << CAP_CHOWN |			\
	UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER |	\
	UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_KILL |		\
	UINT64_C(1) << CAP_SETGID | UINT64_C(1) << CAP_SETUID |		\
	UINT64_C(1) << CAP_SETFCAP)

/* What was asked; strings borrowed.  No field is 0 or empty. */
struct box_ask {
	const char	*id;		/* ULID */
	const char	*name;		/* CS_NAME */
	const char	*rootfs;	/* a directory, no link */
	const char	*filter;	/* filter_hash() when it was made */
	unsigned int	 network;	/* enum wb_network */
	struct box_limits limits;
	uint32_t	 uid;		/* first of its range */
};

/* What privd made for a new box; borrowed. */
struct box_boot {
	const uint8_t	*token;		/* BOX_TOKEN */
	const uint8_t	*spec;		/* row_spec, as wire encodes it */
	const uint8_t	*boot;		/* row_boot, likewise */
	size_t		 spec_len, boot_len;
};

/* What a launch gives; all owned by the caller, CLOEXEC, non-blocking. */
struct box_run {
	int		 pidfd;		/* pid 1 of the box, our child */
	int		 ready_fd;	/* EOF: the runner runs; else text */
	int		 log_fd;	/* the runner's stderr */
	int		 netns_fd;	/* fds_send() the netns here, once */
};

/* ---- box.c: the host, once; a box's own directory ------------------- */

/*
 * Opens the state directory (making sandboxes/ and rootfs/ where they are
 * missing), finds and limits the cgroup tree, verifies the runtime.  Called
 * once, as root.
 */
int		 box_init(const struct server_conf *);
/* What failed last, and why: "mount overlay: Invalid argument". */
const char	*box_error(void);
/* Sets that text from errno and a literal step; returns -1. */
int		 box_fail(const char *fmt, ...)
		    __attribute__((format(printf, 1, 2)));
/* O_DIRECTORY descriptor of STATE/sandboxes (borrowed); entries are ids. */
int		 box_dir(void);
/* Whether it begins a range of the pool. */
int		 box_uid_ok(uint32_t uid);
/* A file of the box's directory; name: literal. */
int		 box_open(const char *id, const char *name, int flags);
int		 box_stat(const char *id, const char *name,
		    struct stat *ret);
ssize_t		 box_read(const char *id, const char *name, void *ret,
		    size_t size);
/* Makes it, unless it is there. */
int		 box_mark(const char *id, const char *name,
		    const char *text);
/* Rounds memory down to pages, as the kernel does. */
void		 box_limits_round(struct box_limits *);
/* What `sessions' may have of them. */
struct box_limits box_sessions(const struct box_limits *);

/* For the mechanics alone: */

/* Whether the OOM killer spares this process, which no box may inherit. */
int		 box_spared(void);
/* O_PATH; name: checked. */
int		 box_rootfs_open(const char *name);
/* The directory of a new box with upper, work, spec, host-token; opened. */
int		 box_make(const struct box_ask *, const struct box_boot *);
/* One write to an existing file (cgroup, /proc); a new file with data. */
int		 box_put(int dirfd, const char *path, const char *fmt, ...)
		    __attribute__((format(printf, 3, 4)));
int		 box_file(int dirfd, const char *name, mode_t, const void *,
		    size_t);

/* ---- launch.c, mounts.c --------------------------------------------- */

/*
 * Makes state directory, cgroups and user namespace, and starts the child
 * that becomes the runner.  Takes about a millisecond; the rest happens in
 * the child, which goes on as far as it can while netd makes the network
 * namespace, waits for it, and writes "step: reason" to ready_fd when it
 * fails.  On failure -1; what was made is cleaned up as after any box.
 */
int		 box_launch(const struct box_ask *, const struct box_boot *,
		    struct box_run *ret);

/* A child in new namespaces (flags may be 0), with a pidfd of it. */
pid_t		 box_fork(uint64_t flags, int *ret_pidfd);
/*
 * For the child, which is still the host's root: its file system, up to
 * pivot_root.  NULL, or the step that failed, with errno.
 */
const char	*mounts_make(const struct box_ask *, int state_fd,
		    int rootfs_fd, int userns_fd);
/* Whether a mountinfo shows the mounts that a box has, and no other. */
int		 mounts_agree(const uint8_t *mountinfo, size_t len);

/* ---- attach.c ------------------------------------------------------- */

/* For box_init(). */
int		 attach_init(void);
/*
 * A pidfd of the box's living pid 1, found through its cgroup and checked
 * (innermost NSpid 1, uid, cgroup).  For a privd that has just started.
 * -1 with ESRCH: there is none.
 */
int		 box_find(const char *id, uint32_t uid);
/*
 * A connection to the box's control socket, made in the box's netns, whose
 * listener was checked to be pid 1 of this box, the one of pidfd.  -1 with
 * EAGAIN: the queue is full, try later; ECONNREFUSED or ENOENT: not (or no
 * longer) listening; EPERM: someone else listens.
 */
int		 box_connect(const char *id, uint32_t uid, int pidfd);
/* The network namespace of a living box. */
int		 box_netns(int pidfd);
/* Its number in this pid namespace; 0 when it has been reaped. */
pid_t		 box_pid(int pidfd);
/* /proc/<pid> of exactly that process (O_PATH), or -1 with ESRCH. */
int		 box_proc(int pidfd);

/* ---- facts.c -------------------------------------------------------- */

/* The v2 cgroup of a process.  0: it is the one of that box's pid 1; or -1. */
int		 box_place(int proc, const char *id, char ret[256]);

/*
 * Reads what the kernel says of pid 1 and its cgroups, and compares it with
 * what was asked: ret->verdict is the first field that differs, or "".
 * netns (borrowed) as at launch, or -1.  Leaves ret->ruleset to the caller;
 * ret->mounts borrows mounts.  With whole the loaded filters are read too,
 * for which pid 1 is stopped for a moment; ret->filter is "" where the kernel
 * tells of none (without CHECKPOINT_RESTORE, or with Yama's scope 3).
 */
int		 box_facts(const struct box_ask *, int pidfd, int netns,
		    int whole, char mounts[FACTS_MOUNTS],
		    struct msg_box_facts_are *ret);

/* ---- cgroup.c ------------------------------------------------------- */

/* Descriptors for the launcher; all owned, -1 when unused. */
struct cgroup {
	int		 box;		/* v2 <id>/box, on the host's mount */
	int		 join[4];	/* v1 <id>/box/cgroup.procs, to write */
	int		 tree[1 + BOX_CGROUP1]; /* detached, for the runner */
	size_t		 njoin, ntree;
};

/* v1 hierarchies of which the runner gets a directory; after the next. */
unsigned int	 cgroup_sessions(void);
/* Finds or makes the tree and puts the host's own limits on it. */
int		 cgroup_init(const char *name);
int		 cgroup_make(const char *id, const struct box_limits *,
		    uint32_t uid, struct cgroup *ret);
void		 cgroup_close(struct cgroup *);
/* In the child: enters all of them, its cgroup namespace and its leaf. */
int		 cgroup_enter(struct cgroup *, const struct box_limits *);
/*
 * The names of all limits (the box's, its sessions' or the parent's) that are
 * not enforced as asked, with commas between, or NULL; good until the next
 * call.  *ret is what the box has now.
 */
const char	*cgroup_differs(const char *id, const struct box_limits *,
		    struct box_limits *ret);
/* The number after a word at the start of a line of a file below dirfd. */
int		 read_stat(int dirfd, const char *path, const char *word,
		    uint64_t *ret);

/*
 * Memory, processes and time; written: also the bytes
 * that its processes have had written, ever, as far as is known.
 */
int		 cgroup_usage(const char *id, int written,
		    struct msg_box_health_is *ret);
int		 cgroup_freeze(const char *id, int on);
int		 cgroup_frozen(const char *id);
/* SIGKILL for all in it, also when frozen.  ENOENT is success. */
int		 cgroup_kill(const char *id);
/* cgroup.events of the box: POLLPRI when populated or frozen changes. */
int		 cgroup_events(const char *id);
/* -1 with EBUSY while processes are left (try again on the event). */
int		 cgroup_remove(const char *id);
/* pids in the runner's leaf, at most n; their number or -1. */
int		 cgroup_runner(const char *id, pid_t *ret, int n);
/*
 * Makes, where it is missing, the part of the tree that uplinkd has, which is
 * of that uid; and moves the caller there, who is to become uplinkd.
 */
int		 cgroup_uplinks(uint32_t uid);
int		 cgroup_enter_uplinks(void);
/* Removes the tree, where it was named, not given as a path, and is empty. */
void		 cgroup_leave(void);
/* What the operator should know of the tree, or "". */
const char	*cgroup_note(void);

/* ---- userns.c ------------------------------------------------------- */

/* A user namespace mapping uid..uid+65535, created by (and owned by) uid. */
int		 userns_make(uint32_t uid);

/* ---- filter.c ------------------------------------------------------- */

#define BOX_FILTERS	2

/* Loads both into the calling process, which has no_new_privs. */
int		 filter_load(void);
/* SHA-256 of the two programs, hexadecimal. */
const char	*filter_hash(void);

/* ---- runtime.c ------------------------------------------------------ */

/*
 * Verifies STATE/runtime while copying it into a tmpfs, in a mount
 * namespace of its own that holds nothing else: the nursery, in which the
 * life of each box's mount namespace begins.
 */
int		 runtime_init(int state_fd);
int		 runtime_nursery(void);	/* its descriptor, borrowed */
/*
 * Whether STATE/runtime holds what its checksums say; looked at when a file
 * has changed.  What boxes run is not touched by it.
 */
int		 runtime_intact(void);
/*
 * SHA-256, hexadecimal, of the program that a process runs (an older runner,
 * perhaps).
 * -1 with EPERM when it is not one that a maker put there.
 */
int		 runtime_of(int procfd, char ret_hex[65]);

/* ---- tree.c --------------------------------------------------------- */

/*
 * Starts a child that removes STATE/sandboxes/<id>, whatever is in it, and
 * returns its pidfd.  Can be started again after any interruption.  The uid
 * range is free when the directory is gone (box_owner: ENOENT).
 */
int		 tree_remove(const char *id);

#endif
