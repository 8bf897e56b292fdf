/*
 * room: where an archive that a stranger made becomes a directory tree.
 *
 * `rootfs import' runs this in a process of its own, behind a fence: what
 * parses the archive holds two pipes and the tree, and nothing else.  The tree
 * is nobody's yet, and thrown away unless all went well.
 */
#ifndef WORKBOX_ROOM_H
#define WORKBOX_ROOM_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

struct room_limits {
	uint64_t	bytes;		/* of files, and of attributes and
					   links that are kept */
	uint64_t	entries;	/* and directories that one lies in
					   and none before it named */
	uint64_t	floor;		/* bytes of the disk that stay free */
};

/* What is not taken over, counted. */
enum room_left {
	LEFT_DEVICE, LEFT_TRUSTED, LEFT_SECURITY, LEFT_ACL, LEFT_OTHER, LEFT_N
};

struct room_report {
	uint64_t	entries, bytes;
	uint64_t	left[LEFT_N];
	uint32_t	ok;
	char		why[1024];	/* unless ok; has a stranger's words */
};

/*
 * Fills the empty directory tree (may be O_PATH) with what in says, read to
 * its end.  0, or -1 with ret->why and something in the tree.
 */
int	room_fill(int in, int tree, const struct room_limits *,
	    struct room_report *ret);

/* ---- room_fence.c ------------------------------------------------------ */

/*
 * In a process of its own, which ends here: enters the fence, fills tree from
 * in and writes a struct room_report to out.
 */
void	room_run(int in, int out, int tree, const struct room_limits *)
	    __attribute__((noreturn));

/* ---- room_input.c ------------------------------------------------------ */

struct room_input {
	int		 fd;		/* borrowed */
	int		 begun, eof;
	uint8_t		 buf[65536], out[65536];
	size_t		 off, len;	/* of buf, what is not used yet */
	z_stream	 z;		/* if gzip */
	int		 gzip;
	int		 between;	/* members, in a header at most */
	uint64_t	 members;	/* that are whole */
	const char	*why;		/* of -1 */
};

void	room_input_init(struct room_input *, int fd);
void	room_input_free(struct room_input *);
/* The next bytes, valid until the next call: how many, 0 at the end, -1. */
ssize_t	room_input_read(struct room_input *, const void **ret);

/* ---- room_tree.c ------------------------------------------------------- */

#define ROOM_NAME	4096		/* with its NUL */
#define ROOM_DEPTH	128

struct room_attr {
	int64_t		mtime;		/* seconds; if has_mtime */
	long		mtime_ns;
	uint32_t	uid, gid;
	uint32_t	mode;		/* 07777 */
	uint8_t		has_mtime;
};

struct room_late {			/* what a directory gets in the end */
	char			*name;	/* owned */
	struct room_attr	 attr;
};

struct room_tree {
	int			 root;	/* borrowed */
	int			 dir;	/* owned; the directory last used, */
	char			 dir_name[ROOM_NAME];	/* by this name */
	struct room_late	*late;	/* owned */
	size_t			 nlate, room;
	uint64_t		 unnamed;	/* directories made that no
						   entry had named yet */
	const char		*why;	/* of the last -1; NULL: errno */
};

void	room_tree_init(struct room_tree *, int root);
void	room_tree_free(struct room_tree *);
/*
 * The name of an entry without `.' and what is doubled; "" is the root
 * itself.  NULL, or why it is refused.
 */
const char *room_name(const char *, char ret[ROOM_NAME]);
/*
 * Each makes what is not there yet, or fails; none follows a link, leaves
 * the tree or crosses a mount.  Names are room_name()'s.  0 (a descriptor
 * from room_tree_file) or -1 with why.
 */
int	room_tree_dir(struct room_tree *, const char *name,
	    const struct room_attr *, int *ret_fd);
int	room_tree_file(struct room_tree *, const char *name);
int	room_tree_link(struct room_tree *, const char *name, const char *to,
	    const struct room_attr *);
int	room_tree_fifo(struct room_tree *, const char *name,
	    const struct room_attr *);
int	room_tree_hard(struct room_tree *, const char *name, const char *to);
/* Owner, mode and time of an open file. */
int	room_attr_set(int fd, const struct room_attr *);
/* Directories get what they were given, and mount points are looked at. */
int	room_tree_finish(struct room_tree *);

#endif
