/*
 * seed: first inputs for the harnesses that take messages: a few bodies of
 * each table within its bounds, so that a new message is found at once.
 *
 *	fuzz_seed wire|chan|conf|record DIR
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "gen.h"
#include "proto.h"

#define STRUCT_MAX	16384
#define EACH		3		/* bodies of a table */
#define BUDGET		200		/* bytes of what is open-ended */

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

static _Alignas(max_align_t) uint8_t	body[STRUCT_MAX];
static uint8_t				buf[WIRE_MAX + 16];
static const char			*dir;

static void
put(const char *name, size_t i, int k, size_t len)
{
	char	 path[4096];
	FILE	*f;

	(void)snprintf(path, sizeof(path), "%s/seed-%s-%zu-%d", dir, name, i,
	    k);
	if ((f = fopen(path, "we")) == NULL || fwrite(buf, 1, len, f) !=
	    len || fclose(f) == EOF)
		err(1, "%s", path);
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
	gen_body(tables[i], body, BUDGET);
	put("wire", i, k, encode(tables[i], 2));
}

static uint8_t
lowest_bit(unsigned int set)
{
	return (uint8_t)__builtin_ctz(set);
}

static void
seed_chan(size_t i, int k)
{
	const struct proto_row	*r = &proto_rows[i];
	uint32_t		 head[3] = { 1, r->type, gen_rand() % 300 };
	unsigned int		 others;
	ssize_t			 h;

	buf[0] = lowest_bit(r->from);
	others = r->to & ~(1U << buf[0]);
	buf[1] = lowest_bit(others != 0 ? others : r->to);
	buf[2] = lowest_bit(r->states);
	buf[3] = (uint8_t)r->fd;	/* in the order of chan_fuzz */
	gen_body(r->desc, body, BUDGET);
	if ((h = wire_head_encode(head, buf + 4, 16)) == -1)
		errx(1, "%s", wire_error());
	put("chan", i, k, encode(r->desc, 4 + (size_t)h));
}

static void
seed_conf(int k)
{
	buf[0] = 0;
	gen_body(&wire_conf, body, BUDGET);
	put("conf", 0, k, encode(&wire_conf, 1));
}

static void
seed_record(size_t i, int k)
{
	static uint8_t		data[WIRE_MAX];
	struct msg_event_append	m;
	ssize_t			n;

	gen_body(event_rows[i].desc, body, BUDGET);
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

int
main(int argc, char *argv[])
{
	size_t	i;
	int	k;

	if (argc != 3)
		errx(2, "usage: fuzz_seed TARGET DIR");
	dir = argv[2];
	for (k = 0; k < EACH; k++) {
		if (strcmp(argv[1], "wire") == 0)
			for (i = 0; i < sizeof(tables) / sizeof(tables[0]);
			    i++)
				seed_wire(i, k);
		else if (strcmp(argv[1], "chan") == 0)
			for (i = 0; i < proto_nrows; i++)
				seed_chan(i, k);
		else if (strcmp(argv[1], "conf") == 0)
			seed_conf(k);
		else if (strcmp(argv[1], "record") == 0)
			for (i = 0; i < event_nrows; i++)
				seed_record(i, k);
	}
	return 0;
}
