/*
 * find.c: which sessions there are, which one is meant, how one ended.
 */
#include <inttypes.h>

#include "sref.h"
#include "wb.h"

#define PAGES	64	/* of a runner that would not end; it has 5 at most */

int
wb_each(struct chan *c, void (*fn)(const struct row_rsession *, void *),
    void *arg)
{
	struct msg_runner_sessions	 ask = { .after = "" };
	const struct wire_list		*rows;
	struct row_rsession		 row;
	struct msg			 m;
	size_t				 i;
	int				 e, n;

	for (n = 0; n < PAGES; n++) {
		e = wb_call(c, MSG_RUNNER_SESSIONS, &ask,
		    MSG_RUNNER_SESSIONS_ARE, &m);
		if (e != 0)
			return e;
		rows = &m.body.runner_sessions_are.rows;
		for (i = 0; i < rows->n; i++) {
			if (wire_decode(&wire_row_rsession, rows->v[i].data,
			    rows->v[i].len, &row) == -1)
				return wb_fail("runner: %s", wire_error());
			memcpy(ask.after, row.id, sizeof(ask.after));
			fn(&row, arg);
		}
		if (rows->n == 0)
			return 0;
	}
	return wb_fail("runner: a list without an end");
}

static void
see(const struct row_rsession *row, void *arg)
{
	sref_see(arg, row->id, row->name, row->ended != 0);
}

int
wb_find(struct chan *c, const char *ref, char ret[27])
{
	struct sref	 f;
	const char	*id;
	int		 e;

	if (sref_init(&f, ref) == -1)
		return wb_fail("\"%s\": expected the id of a session, at "
		    "least %d characters of it, or a name", ref, SREF_PREFIX);
	if (ulid_ok(ref)) {
		memcpy(ret, ref, ULID_LEN + 1);
		return 0;
	}
	if ((e = wb_each(c, see, &f)) != 0)
		return e;
	if ((id = sref_id(&f)) == NULL)
		return wb_fail(f.many ? "\"%s\" fits more than one session: "
		    "write more of the id" : "no session \"%s\"", ref);
	memcpy(ret, id, ULID_LEN + 1);
	return 0;
}

int
wb_ended(const struct msg_session_exit *x)
{
	if (x->timed_out)
		(void)wb_fail("session %s: timeout", x->id);
	else if (x->oom)
		(void)wb_fail("session %s: oom", x->id);
	return x->signal != 0 ? EXIT_SIGNAL + (int)x->signal :
	    (int)x->exit_code;
}

void
wb_gap(const struct msg_session_chunk *b)
{
	if (b->gap_last != 0)
		(void)wb_fail("%" PRIu64 " bytes of output were dropped",
		    b->gap_bytes);
}
