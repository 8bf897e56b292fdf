/*
 * room: reads an archive by libarchive and fills a tree with it.
 *
 * Two readers, one behind the other: the first takes xz or zstd off (gzip is
 * off by then: room_input.c), the second reads tar from what comes out.  So
 * it is seen here that nothing but zeros follows the archive, and nothing at
 * all what was compressed.  The C locale is expected: names are bytes.
 *
 * Whatever is not plain is refused, and the whole archive with it; what a
 * sandbox could not use anyway is left out and counted.
 */
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "room.h"
#include "xmalloc.h"

#define ID_MOST		65535		/* a sandbox has no others */
#define LOOK		(64UL * 1024 * 1024)	/* bytes between two looks at
						   how full the disk is */
#define BLOCK		4096		/* what an entry is taken to take */

struct room {
	const struct room_limits *most;		/* borrowed */
	struct room_report	*rep;		/* borrowed */
	struct room_tree	 tree;
	struct archive		*outer, *tar;	/* owned */
	struct room_input	 in;
	uint64_t		 taken;		/* bytes that came from it */
	uint64_t		 out, nonzero;	/* bytes uncompressed; up to
						   the last that is not 0 */
	uint64_t		 since;		/* bytes since the last look */
	uint64_t		 unnamed;	/* of the tree's, looked for */
};

/* The first fault is told, with the entry that it is about; -1. */
static int __attribute__((format(printf, 3, 4)))
refuse(struct room *r, const char *name, const char *fmt, ...)
{
	struct room_report	*rep = r->rep;
	size_t			 n = 0;
	va_list			 ap;

	if (rep->why[0] != '\0')
		return -1;
	if (name != NULL)
		n = (size_t)snprintf(rep->why, sizeof rep->why, "\"%.*s%s\" ",
		    300, name, strlen(name) > 300 ? "..." : "");
	va_start(ap, fmt);
	(void)vsnprintf(rep->why + n, sizeof rep->why - n, fmt, ap);
	va_end(ap);
	return -1;
}

static int
refuse_tree(struct room *r, const char *name)
{
	return refuse(r, name, "%s", r->tree.why != NULL ? r->tree.why :
	    strerror(errno));
}

/* ---- bytes -------------------------------------------------------------- */

static la_ssize_t
on_read(struct archive *a, void *arg, const void **ret)
{
	struct room	*r = arg;
	ssize_t		 n = room_input_read(&r->in, ret);

	if (n == -1) {
		archive_set_error(a, EIO, "%s", r->in.why);
		return -1;
	}
	r->taken += (uint64_t)n;
	return n;
}

static void
note_zeros(struct room *r, const uint8_t *p, size_t len)
{
	size_t	n = len;

	while (n > 0 && p[n - 1] == 0)
		n--;
	if (n > 0)
		r->nonzero = r->out + n;
	r->out += len;
}

/* What the first reader has taken the compression off. */
static la_ssize_t
on_read_tar(struct archive *a, void *arg, const void **ret)
{
	struct room	*r = arg;
	la_int64_t	 off;
	size_t		 len = 0;
	int		 rc;

	do
		rc = archive_read_data_block(r->outer, ret, &len, &off);
	while (rc == ARCHIVE_OK && len == 0);
	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc != ARCHIVE_OK) {
		archive_set_error(a, EIO, "%s",
		    archive_error_string(r->outer));
		return -1;
	}
	note_zeros(r, *ret, len);
	return (la_ssize_t)len;
}

static const char *
why(struct archive *a)
{
	const char	*s = archive_error_string(a);

	return s != NULL ? s : "no reason was given";
}

static int
open_outer(struct room *r)
{
	struct archive		*a = r->outer = archive_read_new();
	struct archive_entry	*e;

	/* ARCHIVE_WARN: by a program of the host's, which is not for this */
	if (a == NULL || archive_read_support_filter_xz(a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_format_raw(a) != ARCHIVE_OK)
		return refuse(r, NULL, "libarchive lacks xz or zstd");
	if (archive_read_open(a, r, NULL, on_read, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(a, &e) != ARCHIVE_OK)
		return r->taken == 0 && r->in.why == NULL ?
		    refuse(r, NULL, "there is nothing in it") :
		    refuse(r, NULL, "cannot be read: %s", why(a));
	/* the last is the file itself; a bomb may be in any before */
	if (archive_filter_count(a) + r->in.gzip > 2)
		return refuse(r, NULL, "is compressed more than once");
	return 0;
}

static int
open_tar(struct room *r)
{
	struct archive	*a = r->tar = archive_read_new();

	if (a == NULL || archive_read_support_format_tar(a) != ARCHIVE_OK)
		return refuse(r, NULL, "libarchive lacks tar");
	if (archive_read_open(a, r, NULL, on_read_tar, NULL) != ARCHIVE_OK)
		return refuse(r, NULL, "expected a tar archive, plain or "
		    "compressed by gzip, xz or zstd (%s)", why(a));
	return 0;
}

/*
 * After the last entry.  An archive ends with a block of zeros: libarchive
 * takes one that lacks it for whole, which is how one looks that was cut
 * between two entries.
 */
static int
check_end(struct room *r)
{
	int64_t		 end = archive_filter_bytes(r->tar, 0);
	const void	*p;
	la_ssize_t	 n;

	if (end == archive_read_header_position(r->tar))
		return refuse(r, NULL, "is cut short: it has no end mark");
	while ((n = on_read_tar(r->tar, r, &p)) > 0)
		;
	while (n == 0 && (n = on_read(r->outer, r, &p)) > 0)
		n = 0;
	if (n < 0)
		return refuse(r, NULL, "cannot be read: %s", r->in.why != NULL ?
		    r->in.why : why(r->tar));
	if (r->nonzero > (uint64_t)end ||
	    (uint64_t)archive_filter_bytes(r->outer, -1) != r->taken)
		return refuse(r, NULL, "has something after its end");
	return 0;
}

/* ---- entries ------------------------------------------------------------ */

static int
entry_attr(struct room *r, struct archive_entry *e, const char *name,
    struct room_attr *ret)
{
	int64_t	uid = archive_entry_uid(e), gid = archive_entry_gid(e);

	if (uid < 0 || uid > ID_MOST || gid < 0 || gid > ID_MOST)
		return refuse(r, name, "belongs to %" PRId64 ":%" PRId64
		    ": expected ids up to %d", uid, gid, ID_MOST);
	ret->uid = (uint32_t)uid;
	ret->gid = (uint32_t)gid;
	ret->mode = (uint32_t)archive_entry_perm(e) & 07777;
	ret->has_mtime = archive_entry_mtime_is_set(e) != 0;
	ret->mtime = archive_entry_mtime(e);
	ret->mtime_ns = archive_entry_mtime_nsec(e);
	return 0;
}

/* Refuses when the disk gets too full for the rest of this host. */
static int
look_at_disk(struct room *r, const char *name, uint64_t bytes)
{
	struct statfs	st;

	r->since += bytes;
	if (r->since < LOOK)
		return 0;
	r->since = 0;
	if (fstatfs(r->tree.root, &st) == -1)
		return refuse(r, name, "%s", strerror(errno));
	if ((uint64_t)st.f_bavail * (uint64_t)st.f_bsize < r->most->floor)
		return refuse(r, name, "%s would leave less than %" PRIu64
		    " MiB of the disk free", name != NULL ?
		    "and what follows" : "what follows", r->most->floor >> 20);
	return 0;
}

/* Counts what is to be kept for an entry, before it is. */
static int
charge(struct room *r, const char *name, uint64_t bytes)
{
	if (bytes > r->most->bytes - r->rep->bytes)
		return refuse(r, name, "and what comes before are more than "
		    "%" PRIu64 " bytes (--max-size)", r->most->bytes);
	r->rep->bytes += bytes;
	return 0;
}

static int
keep_xattr(struct room *r, int fd, const char *file, const char *name,
    const void *val, size_t len)
{
	if (charge(r, file, strlen(name) + len) == -1 ||
	    look_at_disk(r, file, len) == -1)
		return -1;
	return fsetxattr(fd, name, val, len, 0) == 0 ? 0 :
	    refuse(r, file, "%s", strerror(errno));
}

/* user.* alone; fd -1: none */
static int
keep_xattrs(struct room *r, struct archive_entry *e, int fd,
    const char *file)
{
	const char	*name;
	const void	*val;
	size_t		 len;

	(void)archive_entry_xattr_reset(e);
	while (archive_entry_xattr_next(e, &name, &val, &len) == ARCHIVE_OK) {
		if (name == NULL)
			continue;
		if (fd != -1 && strncmp(name, "user.", 5) == 0) {
			if (keep_xattr(r, fd, file, name, val, len) == -1)
				return -1;
		} else if (strncmp(name, "trusted.", 8) == 0)
			r->rep->left[LEFT_TRUSTED]++;
		else if (strncmp(name, "security.", 9) == 0)
			r->rep->left[LEFT_SECURITY]++;
		else if (strncmp(name, "system.posix_acl_", 17) == 0)
			r->rep->left[LEFT_ACL]++;
		else
			r->rep->left[LEFT_OTHER]++;
	}
	if (archive_entry_acl_types(e) != 0)
		r->rep->left[LEFT_ACL]++;
	return 0;
}

static int
write_at(int fd, const uint8_t *p, size_t len, int64_t off)
{
	ssize_t	n;

	for (; len > 0; p += n, len -= (size_t)n, off += n)
		if ((n = pwrite(fd, p, len, off)) == -1) {
			if (errno != EINTR)
				return -1;
			n = 0;
		}
	return 0;
}

static int
file_data(struct room *r, int fd, const char *name, int64_t size)
{
	const void	*p;
	la_int64_t	 off;
	size_t		 len;
	int		 rc;

	while ((rc = archive_read_data_block(r->tar, &p, &len, &off)) ==
	    ARCHIVE_OK) {
		if (off < 0 || off > size || len > (uint64_t)(size - off))
			return refuse(r, name, "has more in it than its size "
			    "says");
		if (write_at(fd, p, len, off) == -1)
			return refuse(r, name, "%s", strerror(errno));
		if (look_at_disk(r, name, len) == -1)
			return -1;
	}
	if (rc != ARCHIVE_EOF)
		return refuse(r, name, "cannot be read: %s", why(r->tar));
	return ftruncate(fd, size) == 0 ? 0 :
	    refuse(r, name, "%s", strerror(errno));
}

static int
put_file(struct room *r, struct archive_entry *e, const char *name,
    const struct room_attr *a)
{
	int64_t		size = archive_entry_size(e);
	auto_close int	fd = -1;

	if (size < 0 || !archive_entry_size_is_set(e))
		return refuse(r, name, "has no size");
	if (charge(r, name, (uint64_t)size) == -1)
		return -1;
	if ((fd = room_tree_file(&r->tree, name)) == -1)
		return refuse_tree(r, name);
	if (file_data(r, fd, name, size) == -1)
		return -1;
	if (keep_xattrs(r, e, fd, name) == -1)
		return -1;
	return room_attr_set(fd, a) == 0 ? 0 :
	    refuse(r, name, "%s", strerror(errno));
}

static int
put_dir(struct room *r, struct archive_entry *e, const char *name,
    const struct room_attr *a)
{
	auto_close int	fd = -1;

	if (room_tree_dir(&r->tree, name, a, &fd) == -1)
		return refuse_tree(r, name);
	return keep_xattrs(r, e, fd, name);
}

static int
put_hard(struct room *r, struct archive_entry *e, const char *name,
    const char *to)
{
	char		 target[ROOM_NAME];
	const char	*bad = room_name(to, target);

	if (bad != NULL)
		return refuse(r, name, "is a hard link to what %s", bad);
	if (archive_entry_size_is_set(e) && archive_entry_size(e) > 0)
		return refuse(r, name, "is a hard link with contents");
	return room_tree_hard(&r->tree, name, target) == 0 ? 0 :
	    refuse_tree(r, name);
}

/* A link, a FIFO or a device: what has no contents. */
static int
put_special(struct room *r, struct archive_entry *e, const char *name,
    const struct room_attr *a)
{
	const char	*to = archive_entry_symlink(e);
	mode_t		 type = archive_entry_filetype(e);
	int		 rc;

	(void)keep_xattrs(r, e, -1, name);	/* counts them, keeps none */
	if (type == AE_IFCHR || type == AE_IFBLK) {
		r->rep->left[LEFT_DEVICE]++;
		return 0;
	}
	to = to != NULL ? to : "";
	if (charge(r, name, strlen(to)) == -1)
		return -1;
	if (type == AE_IFLNK)
		rc = room_tree_link(&r->tree, name, to, a);
	else if (type == AE_IFIFO)
		rc = room_tree_fifo(&r->tree, name, a);
	else
		return refuse(r, name, "is of a kind that is not known");
	return rc == 0 ? 0 : refuse_tree(r, name);
}

static int
put_entry(struct room *r, struct archive_entry *e)
{
	const char		*raw = archive_entry_pathname(e), *bad, *to;
	struct room_attr	 a = { 0 };
	char			 name[ROOM_NAME];

	if (raw == NULL)
		return refuse(r, NULL, "has an entry without a name");
	if ((bad = room_name(raw, name)) != NULL)
		return refuse(r, raw, "%s", bad);
	if ((to = archive_entry_hardlink(e)) != NULL)
		return put_hard(r, e, name, to);
	if (entry_attr(r, e, raw, &a) == -1)
		return -1;
	if (archive_entry_filetype(e) == AE_IFREG)
		return put_file(r, e, name, &a);
	if (archive_entry_filetype(e) == AE_IFDIR)
		return put_dir(r, e, name, &a);
	return put_special(r, e, name, &a);
}

/*
 * A warning means that libarchive has passed over something that it could
 * not make sense of.  One is none: in the C locale it says so of each name
 * that is not ASCII, and gives the bytes as they are, which is what is wanted.
 */
static int
only_charset(struct archive *a)
{
	return strstr(why(a), "can't be converted from") != NULL;
}

/*
 * Whatever they are: each takes a name of the file system, most an inode and a
 * block.  So does a directory that an entry lies in and none before it named.
 */
static int
count_in(struct room *r, uint64_t n)
{
	uint64_t	more = r->tree.unnamed - r->unnamed;

	r->unnamed += more;
	r->rep->entries += n;
	if (r->rep->entries + r->tree.unnamed > r->most->entries)
		return refuse(r, NULL, "has more than %" PRIu64 " entries "
		    "(--max-entries)", r->most->entries);
	return look_at_disk(r, NULL, (n + more) * BLOCK);
}

static int
entries(struct room *r)
{
	struct archive_entry	*e;
	int			 rc;

	while ((rc = archive_read_next_header(r->tar, &e)) == ARCHIVE_OK ||
	    (rc == ARCHIVE_WARN && only_charset(r->tar)))
		if (count_in(r, 1) == -1 || put_entry(r, e) == -1 ||
		    count_in(r, 0) == -1)
			return -1;
	if (rc != ARCHIVE_EOF)
		return refuse(r, NULL, "cannot be read: %s", why(r->tar));
	if (r->rep->entries == 0)
		return refuse(r, NULL, "there is nothing in it: no archive, "
		    "or an empty one");
	return check_end(r);
}

int
room_fill(int in, int tree, const struct room_limits *most,
    struct room_report *ret)
{
	struct room	*r = xcalloc(1, sizeof *r);
	int		 rc;

	memset(ret, 0, sizeof *ret);
	r->most = most;
	r->rep = ret;
	room_input_init(&r->in, in);
	room_tree_init(&r->tree, tree);
	rc = open_outer(r) == -1 || open_tar(r) == -1 ||
	    entries(r) == -1 ? -1 : 0;
	if (rc == 0 && room_tree_finish(&r->tree) == -1)
		rc = refuse_tree(r, NULL);
	(void)archive_read_free(r->tar);	/* NULL is fine */
	(void)archive_read_free(r->outer);
	room_tree_free(&r->tree);
	room_input_free(&r->in);
	free(r);
	ret->ok = rc == 0;
	return rc;
}
