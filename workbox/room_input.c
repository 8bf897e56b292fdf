/*
 * room_input: the bytes of a file, out of gzip when they are in it.
 *
 * By zlib and not by libarchive, which passes over the sum at the end of
 * each member and over what follows the last.  xz and zstd it checks.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "room.h"

void
room_input_init(struct room_input *in, int fd)
{
	memset(in, 0, sizeof *in);
	in->fd = fd;
}

void
room_input_free(struct room_input *in)
{
	if (in->gzip)
		(void)inflateEnd(&in->z);
}

static int
refuse(struct room_input *in, const char *why)
{
	in->why = why;
	return -1;
}

/* Reads until there are least bytes, or the end. */
static int
fetch(struct room_input *in, size_t least)
{
	ssize_t	n;

	in->off = 0;
	while (!in->eof && in->len < least) {
		n = read(in->fd, in->buf + in->len, sizeof in->buf - in->len);
		if (n == -1 && errno != EINTR)
			return refuse(in, strerror(errno));
		if (n == 0)
			in->eof = 1;
		if (n > 0)
			in->len += (size_t)n;
	}
	return 0;
}

/* What it begins with says what it is. */
static int
begin(struct room_input *in)
{
	in->begun = 1;
	if (fetch(in, 2) == -1)
		return -1;
	if (in->len < 2 || in->buf[0] != 0x1f || in->buf[1] != 0x8b)
		return 0;
	if (inflateInit2(&in->z, 15 + 16) != Z_OK)
		return refuse(in, "zlib cannot start");
	in->gzip = in->between = 1;
	return 0;
}

/* One step; how many bytes came out. */
static ssize_t
inflate_some(struct room_input *in)
{
	int	rc;

	in->z.next_in = in->buf + in->off;
	in->z.avail_in = (uInt)in->len;
	in->z.next_out = in->out;
	in->z.avail_out = sizeof in->out;
	rc = inflate(&in->z, Z_NO_FLUSH);
	if (rc == Z_DATA_ERROR && in->between && in->members > 0)
		return refuse(in, "there is something after its end");
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		return refuse(in, in->z.msg != NULL ? in->z.msg :
		    "gzip is damaged");
	in->off += in->len - in->z.avail_in;
	in->len = in->z.avail_in;
	/* a header may come in pieces: between until one is whole */
	in->between = rc == Z_STREAM_END || (in->between &&
	    in->z.total_out == 0);
	if (rc == Z_STREAM_END) {
		in->members++;
		(void)inflateReset(&in->z);
	}
	return (ssize_t)(sizeof in->out - in->z.avail_out);
}

static ssize_t
gunzip(struct room_input *in, const void **ret)
{
	ssize_t	n = 0;

	*ret = in->out;
	while (n == 0) {
		if (in->len == 0 && fetch(in, 1) == -1)
			return -1;
		if (in->len == 0 && (!in->between || in->z.total_in > 0 ||
		    in->members == 0))
			return refuse(in, "gzip is cut short");
		if (in->len == 0)
			return 0;
		n = inflate_some(in);
	}
	return n;
}

ssize_t
room_input_read(struct room_input *in, const void **ret)
{
	ssize_t	n;

	if (!in->begun && begin(in) == -1)
		return -1;
	if (in->gzip)
		return gunzip(in, ret);
	if (in->len == 0 && fetch(in, 1) == -1)
		return -1;
	*ret = in->buf;
	n = (ssize_t)in->len;
	in->len = 0;
	return n;
}
