/*
 * scan.c: the table, made anew from what a privd before us left.
 *
 * A directory below sandboxes/ outlives everything else of its box (life.c),
 * so reading that directory finds all there is.  What is alive is asked of
 * the kernel: a box is up when its cgroup holds a pid 1 of its uid range.
 * Must never: believe a number that was written down.
 */
#include <sys/ioctl.h>

#include <linux/nsfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "privd.h"
#include "ulid.h"
#include "xmalloc.h"

/* netd's user namespace: the parent of the one that owns a box's netns. */
static void
userns_find(int netns)
{
	auto_close int	owner = ioctl(netns, NS_GET_USERNS);
	int		parent;

	if (owner == -1 || (parent = ioctl(owner, NS_GET_PARENT)) == -1) {
		log_warn("find netd's user namespace");
		return;
	}
	(void)fcntl(parent, F_SETFD, FD_CLOEXEC);
	set_userns(parent);
}

static void
scan_up(struct entry *e, int pidfd, int *found)
{
	life_watch(e, pidfd);
	e->phase = PH_UP;
	if ((e->netns = box_netns(pidfd)) == -1)
		log_warnx("box %s: network namespace: %s", e->spec.id,
		    box_error());
	else if (!*found) {
		*found = 1;
		userns_find(e->netns);
	}
	e->sealed = life_marked(e->spec.id, MARK_SEALED);
	if (e->sealed && cgroup_freeze(e->spec.id, 1) == -1)
		life_end(e);	/* what cannot be held is ended */
}

static void
scan_one(const char *id, int *found)
{
	struct row_spec	 spec;
	struct entry	*e;
	int		 doomed, pidfd;

	/* no specification: killed while it was made, or while removed */
	if ((doomed = box_spec(id, &spec) == -1)) {
		memset(&spec, 0, sizeof(spec));
		(void)str_copy(spec.id, id, sizeof(spec.id));
	}
	if ((e = table_add(&spec)) == NULL) {
		log_warnx("box %s: no room in the table", id);
		return;
	}
	e->doomed = doomed;
	if (box_owner(id, &e->uid) == -1)
		e->uid = 0;
	pidfd = doomed || e->uid == 0 ? -1 : box_find(id, e->uid);
	if (pidfd == -1)
		life_end(e);
	else
		scan_up(e, pidfd, found);
}

void
scan(void)
{
	struct dirent	*d;
	DIR		*dir;
	int		 fd, found = 0;

	if ((fd = openat(box_dir(), ".", O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC)) == -1 || (dir = fdopendir(fd)) == NULL)
		fatal("read sandboxes");
	while ((d = readdir(dir)) != NULL)
		if (ulid_ok(d->d_name))
			scan_one(d->d_name, &found);
	(void)closedir(dir);		/* read only */
	if (table_count() > 0)
		log_info("%u boxes on disk, %u run", table_count(),
		    table_up());
}
