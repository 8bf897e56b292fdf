/*
 * older.c: the protocol of host and runner as it was a version ago.
 *
 * A message is what proto.def says without the fields behind a SINCE.  They
 * are the last of their row, so that the older description is the newer one,
 * cut; in a struct they read as zero.
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

/* What is older than the version before is spoken by nobody. */
#define SINCE(m, v)							\
	_Static_assert((v) == PROTO_RUNNER_VERSION, #m ": its SINCE goes");
#include "proto.def"

static const struct {
	const struct wire_desc	*desc;
	size_t			 nfields;
} later[] = {
#define SINCE(m, v)	{ &wire_msg_##m, SINCE_##m },
#include "proto.def"
};

#define NLATER	(sizeof(later) / sizeof(later[0]))

static const struct proto_row *
older_find(unsigned int type)
{
	static struct wire_desc	 desc[NLATER];
	static struct proto_row	 rows[NLATER];
	const struct proto_row	*row = proto_find(type);
	size_t			 i;

	for (i = 0; row != NULL && i < NLATER; i++)
		if (later[i].desc == row->desc) {
			desc[i] = *row->desc;
			desc[i].nfields = later[i].nfields;
			rows[i] = *row;
			rows[i].desc = &desc[i];
			return &rows[i];
		}
	return row;
}

void
chan_speak(struct chan *c, unsigned int version)
{
	c->version = version;
	c->find = version < PROTO_RUNNER_VERSION ? older_find : proto_find;
}
