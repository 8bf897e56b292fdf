/*
 * seed_store.c: for store_fuzz: boxes that are made and moved through their
 * states, their sessions, and records of each type.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "gen.h"
#include "seed.h"
#include "steps.h"

#define TALKS		160		/* conversations */
#define TURNS		10		/* steps of one, below */
#define BOXES		3
#define SESSIONS	4		/* of all boxes */
#define NO_BOX		BOX_NSTATES

static _Alignas(max_align_t) uint8_t	body[SEED_STRUCT];
static unsigned int			state[BOXES];	/* or NO_BOX */

/* A step of this kind, whatever flags it has. */
static void
job(struct seed *s, enum store_job kind, unsigned int flags, const void *p,
    size_t len)
{
	unsigned int	how = flags;

	while (how % STORE_NJOBS != (unsigned int)kind)
		how++;
	seed_piece(s, how, -1, p, len);
}

static void
job_body(struct seed *s, enum store_job kind, unsigned int flags,
    const struct wire_desc *d)
{
	static uint8_t	buf[WIRE_MAX];
	ssize_t		n = wire_encode(d, body, buf, sizeof(buf));

	if (n == -1)
		errx(1, "%s: %s", d->name, wire_error());
	job(s, kind, flags, buf, (size_t)n);
}

/* Of an hour that passes, a disk that is full, privd for apid. */
static unsigned int
some_flags(void)
{
	return seed_chance(6) ? gen_rand() & (STORE_PRIVD | STORE_SHORT |
	    STORE_HOUR | STORE_DAYS) : 0;
}

static struct wire_bin
encoded(const struct wire_desc *d, const void *row)
{
	static uint8_t	buf[WIRE_MAX];
	ssize_t		n = wire_encode(d, row, buf, sizeof(buf));

	if (n == -1)
		errx(1, "%s: %s", d->name, wire_error());
	return (struct wire_bin){ buf, (size_t)n };
}

static void
box_id(unsigned int n, char ret[27])
{
	memcpy(ret, "01K8Z000000000000000000000", 27);
	ret[25] = (char)('0' + n);
}

/* One of a few keys, or none. */
static void
a_key(char key[256], struct wire_bin *asked)
{
	static const uint8_t	hash[32];

	key[0] = '\0';
	if (!seed_chance(3)) {
		(void)snprintf(key, 256, "k%u", seed_below(3));
		*asked = (struct wire_bin){ hash, seed_chance(8) ? 3 : 32 };
	}
}

/* The rest of a row follows from its number: it is the same each time. */
static void
same_body(const struct wire_desc *d, unsigned int n, void *ret)
{
	uint32_t	next = gen_rand();

	gen_seed(1000 + n);
	seed_body(d, ret);
	gen_seed(next);
}

static void
create(struct seed *s, unsigned int n, unsigned int flags)
{
	static struct row_sandbox	 row;
	struct msg_sandbox_create	*m = (void *)body;
	struct wire_bin			 b;

	same_body(&wire_row_sandbox, n, &row);
	row.version = 1;
	box_id(n, row.id);
	memcpy(row.tenant, "t", 2);
	/* two of them want the same */
	(void)snprintf(row.name, sizeof(row.name), "box%u", n / 2);
	row.state = seed_chance(16) ? BOX_READY : BOX_REQUESTED;
	row.proof.len = 0;
	b = encoded(&wire_row_sandbox, &row);
	seed_body(&wire_msg_sandbox_create, body);
	a_key(m->key, &m->asked);
	m->row = b;
	job_body(s, STORE_CREATE, flags, &wire_msg_sandbox_create);
	if (state[n] == NO_BOX)
		state[n] = BOX_REQUESTED;
}

static void
move_to(struct seed *s, unsigned int n, unsigned int to, unsigned int flags)
{
	struct msg_sandbox_move	*m = (void *)body;

	seed_body(&wire_msg_sandbox_move, body);
	box_id(n, m->id);
	m->to = to;
	if (to == BOX_READY || to == BOX_QUARANTINED)
		m->proof = (struct wire_bin){ (const uint8_t *)"{}", 2 };
	else if (!seed_chance(8))
		m->proof.len = 0;
	job_body(s, STORE_MOVE, flags, &wire_msg_sandbox_move);
	if (state[n] != NO_BOX && state_move_ok(state[n], to))
		state[n] = to;
}

/* Where it may go; seldom, where it may not. */
static void
move(struct seed *s, unsigned int n, unsigned int flags)
{
	unsigned int	to, tries;

	for (tries = 0; tries < 40; tries++) {
		to = seed_below(BOX_NSTATES);
		if (state[n] == NO_BOX || state_move_ok(state[n], to))
			break;
	}
	move_to(s, n, to, flags);
}

static void
session(struct seed *s, unsigned int n, unsigned int to, unsigned int flags)
{
	static struct row_session	 row;
	struct msg_session_put		*m = (void *)body;
	struct wire_bin			 b;

	same_body(&wire_row_session, n, &row);
	row.version = 1;
	box_id(n % BOXES, row.sandbox);
	step_id(n, row.id);
	memcpy(row.tenant, "t", 2);
	row.origin = n == 3;
	row.state = to;
	row.exit_code = to == 2 ? 7 : 0;
	b = encoded(&wire_row_session, &row);
	seed_body(&wire_msg_session_put, body);
	a_key(m->key, &m->asked);
	m->row = b;
	job_body(s, STORE_SESSION, flags, &wire_msg_session_put);
}

static void
network(struct seed *s, unsigned int n, unsigned int to, unsigned int flags)
{
	struct msg_sandbox_network	*m = (void *)body;

	seed_body(&wire_msg_sandbox_network, body);
	box_id(n, m->id);
	m->network = to;
	if (!seed_chance(4))
		m->reason[0] = '\0';
	job_body(s, STORE_NETWORK, flags, &wire_msg_sandbox_network);
}

static void
list(struct seed *s, unsigned int n, unsigned int page, unsigned int flags)
{
	static const char *const entries[] = { "a.example", "*.b.example",
	    "c.example:22", "d.example:80,8080", "No", "" };
	struct msg_allow_put	*m = (void *)body;
	struct wire_bin		 v[4];
	unsigned int		 i;

	seed_body(&wire_msg_allow_put, body);
	box_id(n, m->id);
	m->page = page;
	m->entries = (struct wire_list){ v, seed_below(5) };
	for (i = 0; i < m->entries.n; i++)
		v[i] = wire_cstr(entries[seed_below(seed_chance(8) ? 6 : 4)]);
	job_body(s, STORE_LIST, flags, &wire_msg_allow_put);
}

static void
take(struct seed *s, unsigned int n, uint64_t count, unsigned int flags)
{
	struct msg_names_take	*m = (void *)body;

	seed_body(&wire_msg_names_take, body);
	box_id(n, m->id);
	m->count = count;
	job_body(s, STORE_TAKE, flags, &wire_msg_names_take);
}

static void
append(struct seed *s, const struct event_row *e, unsigned int flags)
{
	static const char *const	outcomes[] = { "ok", "denied",
	    "failed", "ok", "?" };
	static _Alignas(max_align_t) uint8_t	data[SEED_STRUCT];
	struct msg_event_append		*m = (void *)body;
	struct wire_bin			 b;

	seed_body(e->desc, data);
	b = encoded(e->desc, data);
	seed_body(&wire_msg_event_append, body);
	m->type = e->type;
	m->data = b;
	(void)snprintf(m->outcome, sizeof(m->outcome), "%s",
	    outcomes[seed_below(5)]);
	job_body(s, STORE_APPEND, flags, &wire_msg_event_append);
}

static void
begin(struct seed *s)
{
	unsigned int	i;

	s->n = 0;
	for (i = 0; i < BOXES; i++)
		state[i] = NO_BOX;
}

static void
turn(struct seed *s)
{
	unsigned int	n = seed_below(BOXES), flags = some_flags();

	switch (seed_below(13)) {
	case 0:
		create(s, n, flags);
		break;
	case 1:
	case 2:
	case 3:
		move(s, n, flags);
		break;
	case 4:
	case 5:
	case 6:
		session(s, seed_below(SESSIONS), seed_below(3), flags);
		break;
	case 7:
		append(s, &event_rows[seed_below((unsigned int)event_nrows)],
		    flags);
		break;
	case 8:
		network(s, n, seed_below(3), flags);
		break;
	case 9:
	case 10:
		list(s, n, seed_below(3), flags);
		break;
	case 11:
		take(s, n, seed_chance(4) ? 65535 : 256, flags);
		break;
	default:
		job(s, STORE_PURGE, flags, NULL, 0);
		break;
	}
}

/* A box that comes to be READY, as most of what is asked needs one. */
static void
boot(struct seed *s, unsigned int n)
{
	create(s, n, 0);
	move_to(s, n, BOX_PROVISIONING, 0);
	move_to(s, n, BOX_BOOTSTRAPPING, 0);
	move_to(s, n, BOX_READY, 0);
}

/* From its making to its purge. */
static void
life(struct seed *s)
{
	static const unsigned int	path[] = { BOX_DRAINING,
	    BOX_DELETING, BOX_DELETED };
	size_t				i;

	begin(s);
	boot(s, 0);
	session(s, 0, 0, 0);
	session(s, 0, 1, 0);
	session(s, 0, 2, 0);
	list(s, 0, 0, 0);
	list(s, 0, 1, 0);
	network(s, 0, NETWORK_ALLOWLIST, 0);
	list(s, 0, 0, 0);
	network(s, 0, NETWORK_ALLOWLIST, 0);
	network(s, 0, NETWORK_EGRESS, 0);
	network(s, 0, NETWORK_ALLOWLIST, 0);
	take(s, 0, 65000, 0);
	take(s, 0, 65535, 0);
	list(s, 0, 0, 0);
	for (i = 0; i < sizeof(path) / sizeof(path[0]); i++)
		move_to(s, 0, path[i], 0);
	job(s, STORE_PURGE, STORE_DAYS, NULL, 0);
	create(s, 1, 0);
	job(s, STORE_PURGE, 0, NULL, 0);
}

static void
talk(struct seed *s)
{
	unsigned int	i;

	begin(s);
	boot(s, 0);
	if (seed_chance(4))
		boot(s, 2);
	for (i = seed_below(TURNS); i > 0; i--)
		turn(s);
}

void
seed_store(void)
{
	static struct seed	s;
	size_t			i;

	for (i = 0; i < event_nrows; i++) {
		begin(&s);
		append(&s, &event_rows[i], 0);
		append(&s, &event_rows[i], STORE_PRIVD);
		append(&s, &event_rows[i], STORE_SHORT);
		seed_end(&s, "each", i);
	}
	for (i = 0; i < TALKS; i++) {
		if (i < 4)
			life(&s);
		else
			talk(&s);
		seed_end(&s, "talk", i);
	}
}
