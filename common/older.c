/*
 * older.c: the protocol of host and runner as it was a version ago.
 *
 * A message is what proto.def says without the fields behind a SINCE of a
 * later version.  They are the last of their row, so that the older
 * description is the newer one, cut; in a struct they read as zero.
 *
 * Linked into whoever speaks to a runner, or is one: not into privd.
 */
#include "older.h"

/* SINCE_name: how many fields of the row stand before it. */
#define ROW(N, n)	enum {
#define MSG(num, N, n, from, to, st, fd, cap, ans) enum {
#define END(n)		END_OF_##n };
#define F_U64(m, f, lo, hi)		AT_##m##_##f,
#define F_STR(m, f, max, cs)		AT_##m##_##f,
#define F_BIN(m, f, lo, hi)		AT_##m##_##f,
#define F_STRS(m, f, n, bytes, cs)	AT_##m##_##f,
#define F_BINS(m, f, n, bytes)		AT_##m##_##f,
#define SINCE(m, v)	SINCE_##m, BEFORE_##m = SINCE_##m - 1,
#include "proto.def"

static const struct {
	const struct wire_desc	*desc;
	unsigned int		 version;
	size_t			 nfields;	/* of versions before it */
} later[] = {
#define SINCE(m, v)	{ &wire_msg_##m, v, SINCE_##m },
#include "proto.def"
};

static const struct wire_desc *
older_desc(const struct proto_row *row, unsigned int version,
    struct wire_desc *room)
{
	size_t	i;

	for (i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (later[i].desc == row->desc && version < later[i].version) {
			*room = *row->desc;
			room->nfields = later[i].nfields;
			return room;
		}
	return row->desc;
}

void
chan_speak(struct chan *c, unsigned int version)
{
	c->version = version;
	c->older = version < PROTO_RUNNER_VERSION ? older_desc : NULL;
}
