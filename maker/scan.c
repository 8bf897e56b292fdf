/*
 * scan.c: what an earlier maker left, for a privd that starts again.
 *
 * A directory below sandboxes/ outlives everything else of its box (privd's
 * life.c), so reading that directory finds all there is.  What is alive is
 * asked of the kernel: a box is up when its cgroup holds a pid 1 of its uid
 * range.  Must never: believe a number that was written down.
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <linux/nsfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "maker.h"
#include "ulid.h"

/* netd's user namespace: the parent of the one that owns a box's netns. */
static int
userns_of(int netns)
{
	auto_close int	owner = ioctl(netns, NS_GET_USERNS);
	int		parent = owner == -1 ? -1 :
			    ioctl(owner, NS_GET_PARENT);

	if (parent == -1)
		log_warn("find netd's user namespace");
	else
		(void)fcntl(parent, F_SETFD, FD_CLOEXEC);
	return parent;
}

static int
scan_one(int sock, const char *id, int *userns)
{
	struct maker_ans	 a = { .op = MK_BOX };
	struct maker_found	*f = &a.u.box;
	struct stat		 st;
	int			 fds[] = { -1, -1, -1 }, go[3], r;
	ssize_t			 n;
	size_t			 i;

	(void)str_copy(f->id, id, sizeof(f->id));
	/* no specification: killed while it was made, or while removed */
	if (box_read(id, "host-token", f->token, BOX_TOKEN) == BOX_TOKEN &&
	    (n = box_read(id, "spec", f->spec, sizeof(f->spec))) > 0)
		f->spec_len = (uint32_t)n;
	/* root's: one that an earlier release has made */
	if ((box_stat(id, "spec", &st) == 0 && st.st_uid != 0) ||
	    box_stat(id, "upper", &st) == 0)
		f->uid = st.st_uid;
	f->opened = box_stat(id, MARK_OPENED, &st) == 0;
	f->sealed = box_stat(id, MARK_SEALED, &st) == 0;
	f->frozen = cgroup_frozen(id);
	fds[MK_BOX_FILE] = box_open(id, "launch.log", O_RDWR | O_APPEND |
	    O_CREAT);
	if (f->spec_len != 0 && f->uid != 0 &&
	    (fds[MK_BOX_PID] = box_find(id, f->uid)) != -1) {
		fds[MK_BOX_NETNS] = box_netns(fds[MK_BOX_PID]);
		if (fds[MK_BOX_NETNS] == -1)
			log_warn("box %s: network namespace", id);
		else if (*userns == -1)
			*userns = userns_of(fds[MK_BOX_NETNS]);
	}
	i = fds_pack(fds, 3, go, &a.places);
	r = fds_send(sock, &a, MAKER_LEN(box), go, i, 0);
	explicit_bzero(&a, sizeof(a));
	for (i = 0; i < 3; i++)
		fd_close(&fds[i]);
	return r;
}

int
scan_boxes(int sock, int *ret_userns)
{
	int		 fd = openat(box_dir(), ".", O_RDONLY | O_DIRECTORY |
			    O_CLOEXEC), r = 0;
	struct dirent	*e;
	DIR		*d = fdopendir(fd);	/* of -1: NULL */

	if (d == NULL)
		fatal("read sandboxes");
	*ret_userns = -1;
	while (r == 0 && (e = readdir(d)) != NULL)
		if (ulid_ok(e->d_name))
			r = scan_one(sock, e->d_name, ret_userns);
	(void)closedir(d);		/* read only */
	return r;
}
