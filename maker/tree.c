/*
 * tree: removal of a directory that a box has filled.
 *
 * A child does it, in constant memory and with few descriptors: it goes down
 * DEPTH levels at most; what lies deeper is first renamed into the box's own
 * directory, which is root's, and removed from there.  So no path is ever
 * built, no `..' is followed, and 4,096 levels need no stack.  Everything is
 * done relative to open directories and never through a link; names are
 * bytes.  It can be killed at any point and started again: whatever is there
 * then is removed.  `upper' goes last, since its owner says which uid range
 * is still in use.
 *
 * Safe when the asker is hostile: it names a box by a checked ULID below
 * sandboxes/.  Safe when the tree is: the processes that could change it are
 * dead, and if one were not, a directory that is moved away is still only
 * entered by descriptor, without following links.
 */
#include <sys/prctl.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "ulid.h"
#include "xmalloc.h"

#define DEPTH	16
#define MOVED	"removing"	/* in the box's directory: moved parts */

static int	box = -1, moved = -1;	/* open, in the child */

static int
open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
}

/*
 * Moves a directory into MOVED under a number that is free there.  That is
 * made when it is needed: it takes an inode, of which there may be none.
 */
static int
move_up(int at, const char *name)
{
	static unsigned int	 n;
	char			 number[16];

	if (moved == -1 && ((mkdirat(box, MOVED, 0700) == -1 &&
	    errno != EEXIST) || (moved = open_dir(box, MOVED)) == -1))
		return -1;
	for (;; n++) {
		(void)snprintf(number, sizeof(number), "%u", n);
		if (renameat2(at, name, moved, number, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
}

static int	empty(int fd, int depth, const char *but);

/* Removes one name; -1 when something of it stays. */
static int
remove_one(int at, const char *name, int depth)
{
	int	 fd;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -1;
	if (unlinkat(at, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	if (depth == DEPTH)
		return move_up(at, name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || empty(fd, depth + 1, NULL) == -1)
		return -1;
	return unlinkat(at, name, AT_REMOVEDIR);
}

/* Takes fd.  Passes over the directory until one finds nothing. */
static int
empty(int fd, int depth, const char *but)
{
	struct dirent	*e;
	DIR		*d;
	int		 found, failed = 0;

	if ((d = fdopendir(fd)) == NULL) {
		fd_close(&fd);
		return -1;
	}
	do {
		found = 0;
		rewinddir(d);
		while ((e = readdir(d)) != NULL) {
			if (strcmp(e->d_name, ".") == 0 ||
			    strcmp(e->d_name, "..") == 0 || (but != NULL &&
			    (strcmp(e->d_name, but) == 0 ||
			    strcmp(e->d_name, MOVED) == 0)))
				continue;
			found = 1;
			failed |= remove_one(dirfd(d), e->d_name, depth);
		}
	} while (found && !failed);
	(void)closedir(d);
	return failed;
}

/* The child: 0 when nothing is left. */
static int
remove_box(int dir, const char *id)
{
	int	 fd;

	if ((box = open_dir(dir, id)) == -1)
		return errno == ENOENT ? 0 : -1;
	if (empty(open_dir(dir, id), 0, "upper") == -1)
		return -1;
	if ((fd = open_dir(box, "upper")) != -1 && empty(fd, 0, NULL) == -1)
		return -1;
	/* also of a removal before this one */
	if ((fd = open_dir(box, MOVED)) != -1 && (empty(fd, 0, NULL) == -1 ||
	    unlinkat(box, MOVED, AT_REMOVEDIR) == -1))
		return -1;
	if (unlinkat(box, "upper", AT_REMOVEDIR) == -1 && errno != ENOENT)
		return -1;
	return unlinkat(dir, id, AT_REMOVEDIR);
}

int
tree_remove(const char *id)
{
	char	 name[ULID_LEN + 1];
	pid_t	 pid;
	int	 pidfd = -1;

	errno = EINVAL;
	if (!ulid_ok(id) || str_copy(name, id, sizeof(name)) == -1)
		return box_fail("remove tree");
	if ((pid = box_fork(0, &pidfd)) == -1)
		return box_fail("remove tree");
	if (pid == 0) {
		/* It ends with us: the next start starts another. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
		    nice(10) == -1)
			_exit(1);
		_exit(remove_box(box_dir(), name) == 0 ? 0 : 1);
	}
	return pidfd;
}
