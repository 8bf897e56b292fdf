/*
 * seed: first inputs for the harnesses that take messages: a few bodies of
 * each table within its bounds, so that a new message is found at once.  Those
 * that read steps get conversations (seed_runner.c and its neighbours).
 *
 *	fuzz_seed TARGET DIR	nothing, for those that take no messages
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "gen.h"
#include "seed.h"
#include "steps.h"

#define EACH		3		/* bodies of a table */
#define SESSIONS	4		/* that ids are of */
#define SHORT		3		/* most strings and lists in steps */

/* In the order of wire_fuzz. */
static const struct wire_desc *const tables[] = {
#define ROW(N, n)	&wire_row_##n,
#include "proto.def"
#define MSG(num, N, n, from, to, st, fd, cap, ans) &wire_msg_##n,
#include "proto.def"
#define EVENT(num, N, n, s)	&wire_event_##n,
#include "events.def"
	&wire_conf,
};

static _Alignas(max_align_t) uint8_t	body[SEED_STRUCT];
static uint8_t				buf[WIRE_MAX + 16];
static const char			*dir;

void
seed_put(const char *name, size_t i, int k, const uint8_t *p, size_t len)
{
	char	 path[4096];
	FILE	*f;

	(void)snprintf(path, sizeof(path), "%s/seed-%s-%zu-%d", dir, name, i,
	    k);
	if ((f = fopen(path, "we")) == NULL || fwrite(p, 1, len, f) !=
	    len || fclose(f) == EOF)
		err(1, "%s", path);
}

static void
put(const char *name, size_t i, int k, size_t len)
{
	seed_put(name, i, k, buf, len);
}

static size_t
encode(const struct wire_desc *d, size_t off)
{
	ssize_t	n = wire_encode(d, body, buf + off, WIRE_MAX);

	if (n == -1)
		errx(1, "%s", wire_error());
	return off + (size_t)n;
}

static void
seed_wire(size_t i, int k)
{
	buf[0] = (uint8_t)(i >> 8);
	buf[1] = (uint8_t)i;
	gen_body(tables[i], body, SEED_BUDGET);
	put("wire", i, k, encode(tables[i], 2));
}

static uint8_t
lowest_bit(unsigned int set)
{
	return (uint8_t)__builtin_ctz(set);
}

/* As chan_init() has it, of the two actors. */
static uint32_t
version_of(unsigned int actors)
{
	return actors & (A_RUNNER | A_WB) ? PROTO_RUNNER_VERSION :
	    PROTO_VERSION;
}

static void
seed_chan(size_t i, int k)
{
	const struct proto_row	*r = &proto_rows[i];
	uint32_t		 head[3] = { 0, r->type, gen_rand() % 300 };
	unsigned int		 others;
	ssize_t			 h;

	buf[0] = lowest_bit(r->from);
	others = r->to & ~(1U << buf[0]);
	buf[1] = lowest_bit(others != 0 ? others : r->to);
	head[0] = version_of(1U << buf[0] | 1U << buf[1]);
	buf[2] = lowest_bit(r->states);
	buf[3] = (uint8_t)r->fd;	/* in the order of chan_fuzz */
	gen_body(r->desc, body, SEED_BUDGET);
	if ((h = wire_head_encode(head, buf + 4, 16)) == -1)
		errx(1, "%s", wire_error());
	put("chan", i, k, encode(r->desc, 4 + (size_t)h));
}

static void
seed_conf(int k)
{
	buf[0] = 0;
	gen_body(&wire_conf, body, SEED_BUDGET);
	put("conf", 0, k, encode(&wire_conf, 1));
}

static void
seed_record(size_t i, int k)
{
	static uint8_t		data[WIRE_MAX];
	struct msg_event_append	m;
	ssize_t			n;

	gen_body(event_rows[i].desc, body, SEED_BUDGET);
	n = wire_encode(event_rows[i].desc, body, data, sizeof(data));
	if (n == -1)
		errx(1, "%s", wire_error());
	gen_body(&wire_msg_event_append, &m, 0);
	m.type = event_rows[i].type;
	m.data.data = data;
	m.data.len = (size_t)n;
	memcpy(body, &m, sizeof(m));
	put("record", i, k, encode(&wire_msg_event_append, 0));
}

/* ---- steps -------------------------------------------------------- */

unsigned int
seed_below(unsigned int n)
{
	return gen_rand() % n;
}

int
seed_chance(unsigned int n)
{
	return seed_below(n) == 0;
}

void
seed_end(struct seed *s, const char *name, size_t i)
{
	seed_put(name, i, 0, s->p, s->n);
	s->n = 0;
}

void
seed_step(struct seed *s, unsigned int step, unsigned int arg)
{
	if (sizeof(s->p) - s->n < 2)
		return;
	s->p[s->n++] = (uint8_t)step;
	s->p[s->n++] = (uint8_t)arg;
}

void
seed_piece(struct seed *s, unsigned int step, int arg, const void *data,
    size_t len)
{
	if (sizeof(s->p) - s->n < 4 + len)
		return;
	s->p[s->n++] = (uint8_t)step;
	if (arg != -1)
		s->p[s->n++] = (uint8_t)arg;
	s->p[s->n++] = (uint8_t)(len >> 8);
	s->p[s->n++] = (uint8_t)len;
	if (len > 0)
		memcpy(s->p + s->n, data, len);
	s->n += len;
}

void
seed_packet(struct seed *s, unsigned int step, int arg, unsigned int type,
    uint32_t rid, const void *b)
{
	static uint8_t	packet[WIRE_MAX];
	uint32_t	head[3] = { STEP_VERSION, type, rid };
	ssize_t		h, n;

	if ((h = wire_head_encode(head, packet, sizeof(packet))) == -1 ||
	    (n = wire_encode(proto_find(type)->desc, b, packet + h,
	    sizeof(packet) - (size_t)h)) == -1)
		errx(1, "%s: %s", proto_name(type), wire_error());
	seed_piece(s, step, arg, packet, (size_t)(h + n));
}

static void
body_str(const struct wire_field *f, char *p)
{
	static const char *const	users[] = { "", "", "root", "0",
	    "1:1", "root:root", "nobody", "0:nosuch", "70000", "nosuch" };

	if (f->cs == CS_ULID || (f->cs == CS_ULID0 && !seed_chance(3)))
		step_id(seed_below(SESSIONS), p);
	else if (strcmp(f->key, "user") == 0)
		(void)snprintf(p, f->hi + 1, "%s", users[seed_below(
		    sizeof(users) / sizeof(users[0]))]);
	else if (strcmp(f->key, "cwd") == 0 && seed_chance(2))
		*p = '\0';
	else if (strlen(p) > SHORT && f->cs != CS_ULID0)
		p[SHORT] = '\0';
}

static void
body_list(const struct wire_field *f, struct wire_list *l)
{
	static struct wire_bin	env, argv;

	env = (struct wire_bin){ (const uint8_t *)"KEY=value", 9 };
	argv = (struct wire_bin){ (const uint8_t *)"sh", 2 };
	if (l->n > SHORT)
		l->n = SHORT;
	if (strcmp(f->key, "env") == 0)
		*l = (struct wire_list){ &env, seed_below(2) };
	else if (strcmp(f->key, "argv") == 0 && l->n == 0)
		*l = (struct wire_list){ &argv, 1 };
}

void
seed_body(const struct wire_desc *d, void *ret)
{
	const struct wire_field	*f;
	struct wire_list	 l;
	uint64_t		 v;
	uint8_t			*p;

	gen_body(d, ret, SEED_BUDGET / 4);
	for (f = d->field; f < d->field + d->nfields; f++) {
		p = (uint8_t *)ret + f->off;
		if (f->kind == WIRE_STR && !seed_chance(8))
			body_str(f, (char *)p);
		if (f->kind == WIRE_U64 && f->lo <= 1 && f->hi > 8 &&
		    !seed_chance(4)) {
			v = f->lo + seed_below(8);
			memcpy(p, &v, sizeof(v));
		}
		if (f->kind == WIRE_STRS && !seed_chance(8)) {
			memcpy(&l, p, sizeof(l));
			body_list(f, &l);
			memcpy(p, &l, sizeof(l));
		}
	}
}

/* ---- all ---------------------------------------------------------- */

static void
seed_wires(void)
{
	size_t	i;
	int	k;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (k = 0; k < EACH; k++)
			seed_wire(i, k);
}

static void
seed_chans(void)
{
	size_t	i;
	int	k;

	for (i = 0; i < proto_nrows; i++)
		for (k = 0; k < EACH; k++)
			seed_chan(i, k);
}

static void
seed_confs(void)
{
	int	k;

	for (k = 0; k < EACH; k++)
		seed_conf(k);
}

static void
seed_records(void)
{
	size_t	i;
	int	k;

	for (i = 0; i < event_nrows; i++)
		for (k = 0; k < EACH; k++)
			seed_record(i, k);
}

static const struct {
	const char	 *name;
	void		(*fn)(void);
} targets[] = {
	{ "apid", seed_apid },
	{ "chan", seed_chans },
	{ "conf", seed_confs },
	{ "record", seed_records },
	{ "runner", seed_runner },
	{ "store", seed_store },
	{ "wire", seed_wires },
};

int
main(int argc, char *argv[])
{
	size_t	i;

	if (argc != 3)
		errx(2, "usage: fuzz_seed TARGET DIR");
	dir = argv[2];
	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (strcmp(argv[1], targets[i].name) == 0)
			targets[i].fn();
	return 0;
}
