/*
 * bundle: an archive of what was collected, with a manifest of its members.
 *
 * Must never: leave a part of a file behind, or let others read it.
 */
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bundle.h"
#include "workbox.h"
#include "xmalloc.h"

void
bundle_init(struct bundle *b, const char *dir)
{
	memset(b, 0, sizeof *b);
	b->dir = dir;
	b->missing = json_object();
}

void
bundle_free(struct bundle *b)
{
	size_t	i;

	for (i = 0; i < b->n; i++) {
		free(b->member[i].name);
		free(b->member[i].data);
	}
	json_decref(b->missing);
}

void
bundle_add(struct bundle *b, const char *name, char *data, size_t len)
{
	struct member	*m = &b->member[b->n];

	if (b->n == BUNDLE_MEMBERS) {
		free(data);
		bundle_miss(b, name, "too many members");
		return;
	}
	m->name = xstrdup(name);
	m->data = data;
	m->len = len;
	b->n++;
}

void
bundle_text(struct bundle *b, const char *name, const char *s)
{
	bundle_add(b, name, xstrdup(s), strlen(s));
}

void
bundle_json(struct bundle *b, const char *name, json_t *o)
{
	auto_free char	*s = o == NULL ? NULL : json_dumps(o, JSON_INDENT(2));

	json_decref(o);
	if (s == NULL)
		bundle_miss(b, name, "it is no JSON");
	else
		bundle_add(b, name, xasprintf("%s\n", s), strlen(s) + 1);
}

void
bundle_miss(struct bundle *b, const char *name, const char *fmt, ...)
{
	char	why[512];
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof why, fmt, ap);	/* cut is fine */
	va_end(ap);
	json_object_set_new(b->missing, name, json_string(why));
}

static void
manifest(struct bundle *b, json_t *head)
{
	json_t	*all = json_object();
	char	 hex[SHA256_DIGEST_STRING_LENGTH];
	size_t	 i;

	for (i = 0; i < b->n; i++) {
		(void)SHA256Data((const uint8_t *)b->member[i].data,
		    b->member[i].len, hex);
		json_object_set_new(all, b->member[i].name, json_pack(
		    "{s:I, s:s}", "bytes", (json_int_t)b->member[i].len,
		    "sha256", hex));
	}
	json_object_set_new(head, "members", all);
	json_object_set(head, "missing", b->missing);
	bundle_json(b, "manifest.json", head);
}

static int
put(struct archive *a, const struct bundle *b, const struct member *m)
{
	struct archive_entry	*e = archive_entry_new();
	auto_free char		*path = xasprintf("%s/%s", b->dir, m->name);
	int			 rc;

	archive_entry_set_pathname(e, path);
	archive_entry_set_size(e, (la_int64_t)m->len);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0600);
	archive_entry_set_mtime(e, time(NULL), 0);
	rc = archive_write_header(a, e) == ARCHIVE_OK &&
	    archive_write_data(a, m->data, m->len) == (la_ssize_t)m->len ?
	    0 : -1;
	archive_entry_free(e);
	return rc;
}

static int
put_all(const struct bundle *b, int fd, int gzip)
{
	struct archive	*a = archive_write_new();
	size_t		 i;
	int		 rc = 0;

	if (a == NULL || archive_write_set_format_pax_restricted(a) !=
	    ARCHIVE_OK || (gzip && archive_write_add_filter_gzip(a) !=
	    ARCHIVE_OK) || archive_write_set_bytes_in_last_block(a, 1) !=
	    ARCHIVE_OK || archive_write_open_fd(a, fd) != ARCHIVE_OK)
		rc = -1;
	for (i = 0; rc == 0 && i < b->n; i++)
		rc = put(a, b, &b->member[i]);
	if (rc == 0 && archive_write_close(a) != ARCHIVE_OK)
		rc = -1;
	if (rc == -1)
		(void)fail("write the archive: %s", a == NULL ?
		    "out of memory" : archive_error_string(a));
	(void)archive_write_free(a);
	return rc;
}

int
bundle_write(struct bundle *b, json_t *head, const char *path, int gzip)
{
	auto_close int	 fd = -1;

	manifest(b, head);
	if (strcmp(path, "-") == 0)
		return put_all(b, STDOUT_FILENO, gzip) == 0 ? 0 : EXIT_OURS;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1)
		return errno == EEXIST ? fail("%s is there already: expected "
		    "a new file", path) : fail_errno("%s", path);
	if (put_all(b, fd, gzip) == 0) {
		if (fsync(fd) == 0)
			return 0;
		(void)fail_errno("%s", path);
	}
	(void)unlink(path);		/* ours, and of no use */
	return EXIT_OURS;
}
