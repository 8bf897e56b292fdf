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

/*
 * Boxes are looked for in the cgroup that the configuration names.  One that
 * was made under another name would be taken for dead while it runs, so the
 * name is kept beside them.
 */
static void
scan_cgroup(unsigned int boxes)
{
	const char	*name = srv.conf->cgroup;
	char		 was[sizeof(srv.conf->cgroup)] = "";
	auto_close int	 fd = openat(srv.state_fd, "cgroup", O_RDONLY |
			    O_NOFOLLOW | O_CLOEXEC);

	if (fd != -1 && read(fd, was, sizeof(was) - 1) == -1)
		fatal("read the name of the cgroup");
	if (strcmp(was, name) == 0)
		return;
	if (was[0] != '\0' && boxes > 0)
		fatalx("%u boxes are in cgroup %s: start with it, or remove "
		    "them first", boxes, was);
	(void)unlinkat(srv.state_fd, "cgroup", 0);	/* or it was none */
	if (box_file(srv.state_fd, "cgroup", 0600, name, strlen(name)) == -1)
		fatal("write the name of the cgroup");
}

void
scan(void)
{
	struct dirent	*d;
	DIR		*dir;
	unsigned int	 n = 0;
	int		 fd, found = 0;

	if ((fd = openat(box_dir(), ".", O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC)) == -1 || (dir = fdopendir(fd)) == NULL)
		fatal("read sandboxes");
	while ((d = readdir(dir)) != NULL)
		n += (unsigned int)ulid_ok(d->d_name);
	scan_cgroup(n);			/* before anything is ended */
	rewinddir(dir);
	while ((d = readdir(dir)) != NULL)
		if (ulid_ok(d->d_name))
			scan_one(d->d_name, &found);
	(void)closedir(dir);		/* read only */
	if (n > 0)
		log_info("%u on disk, %u run", n, table_up());
}
