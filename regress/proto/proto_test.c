/*
 * proto_test.c: every message and every row of proto.def.  Round trips,
 * truncations, added bytes, flipped bits; and the whole matrix of type,
 * sender, receiver and state, through real sockets, against a table that
 * this file expands from proto.def by itself.
 */
#include <sys/mman.h>
#include <sys/socket.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chan.h"
#include "conf.h"
#include "gen.h"
#include "xmalloc.h"

#define ROUNDS	20

static const struct wire_desc *const descs[] = {
#define ROW(N, n)	&wire_row_##n,
#include "proto.def"
#define MSG(num, N, n, from, to, st, fd, cap, ans) &wire_msg_##n,
#include "proto.def"
#define EVENT(num, N, n, s) &wire_event_##n,
#include "events.def"
	&wire_conf,
};
#define NDESCS	(sizeof(descs) / sizeof(descs[0]))

static uint8_t	buf[2 * WIRE_MAX], again[2 * WIRE_MAX];
static _Alignas(16) uint8_t body[65536], back[65536];

static size_t
encode(const struct wire_desc *d, size_t budget)
{
	ssize_t	n;

	ck_assert_uint_le(d->size, sizeof(body));
	gen_body(d, body, budget);
	n = wire_encode(d, body, buf, WIRE_MAX);
	ck_assert_msg(n > 0, "%s: %s", d->name, wire_error());
	return (size_t)n;
}

START_TEST(round_trip)
{
	const struct wire_desc	*d = descs[_i];
	size_t			 n;
	ssize_t			 m;
	int			 k;

	for (k = 0; k < ROUNDS; k++) {
		n = encode(d, 2000);
		ck_assert_msg(wire_decode(d, buf, n, back) == 0, "%s: %s",
		    d->name, wire_error());
		ck_assert_ptr_null(wire_differs(d, body, back));
		m = wire_encode(d, back, again, sizeof(again));
		ck_assert_int_eq(m, (ssize_t)n);
		ck_assert_mem_eq(buf, again, n);
	}
}
END_TEST

START_TEST(truncated_and_added)
{
	const struct wire_desc	*d = descs[_i];
	size_t			 n = encode(d, 200), k;
	uint8_t			*exact;

	for (k = 0; k < n; k++) {
		exact = xmalloc(k);	/* so that a read past it is seen */
		memcpy(exact, buf, k);
		ck_assert_msg(wire_decode(d, exact, k, back) == -1,
		    "%s: %zu of %zu bytes taken", d->name, k, n);
		free(exact);
	}
	for (k = 0; k < 256; k++) {
		buf[n] = (uint8_t)k;
		ck_assert_msg(wire_decode(d, buf, n + 1, back) == -1,
		    "%s: a byte %02zx behind it taken", d->name, k);
	}
}
END_TEST

START_TEST(flipped_bits)
{
	const struct wire_desc	*d = descs[_i];
	size_t			 n = encode(d, 100), bit;
	uint8_t			*exact = xmalloc(n);

	for (bit = 0; bit < n * 8; bit++) {
		memcpy(exact, buf, n);
		exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (wire_decode(d, exact, n, back) == 0)
			/* what is taken is within its bounds: it encodes */
			ck_assert_int_ne(wire_encode(d, back, again,
			    sizeof(again)), -1);
	}
	free(exact);
}
END_TEST

/* ---- the matrix ------------------------------------------------------ */

struct cell { unsigned int num, from, to, states; int fd; unsigned int cap; };

static const struct cell cells[] = {
#define MSG(num, N, n, from, to, st, fd, cap, ans) \
	{ num, from, to, st, fd, cap },
#include "proto.def"
};
#define NCELLS	(sizeof(cells) / sizeof(cells[0]))

/* A descriptor of the kind, or -1. */
static int
make_fd(enum fd_kind k)
{
	int	v[2], fd;

	switch (k) {
	case FD_SOCKET:
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, v), 0);
		close(v[1]);
		return v[0];
	case FD_NETNS:
		return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	case FD_MEMFD:
		fd = memfd_create("t", MFD_ALLOW_SEALING | MFD_CLOEXEC);
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE |
		    F_SEAL_SHRINK), 0);
		return fd;
	case FD_PIDFD:
	case FD_NONE:
		break;
	}
	return -1;
}

/* Sends what bytes of type `row' would be, whoever we are. */
static void
raw_send(int sock, const struct proto_row *row, unsigned int version, int fd)
{
	struct chan	c;
	uint32_t	head[3] = { version, row->type, 7 };
	ssize_t		h, n;
	union {
		char		b[CMSG_SPACE(sizeof(int))];
		struct cmsghdr	align;
	}		u = { { 0 } };
	struct iovec	iov = { buf, 0 };
	struct msghdr	mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	(void)c;
	h = wire_head_encode(head, buf, sizeof(buf));
	gen_body(row->desc, body, row->cap > 700 ? 200 : 16);
	n = wire_encode(row->desc, body, buf + h, sizeof(buf) - (size_t)h);
	ck_assert_int_gt(n, 0);
	iov.iov_len = (size_t)(h + n);
	if (fd != -1) {
		struct cmsghdr *cm;

		mh.msg_control = u.b;
		mh.msg_controllen = sizeof(u.b);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	}
	ck_assert_int_eq(sendmsg(sock, &mh, 0), (ssize_t)iov.iov_len);
}

START_TEST(matrix)
{
	const struct cell	*cell = &cells[_i];
	const struct proto_row	*row = proto_find(cell->num);
	unsigned int		 from, to, st;
	struct chan		 c;
	struct msg		 m;
	int			 sv[2], fd, want, r;

	ck_assert_ptr_nonnull(row);
	for (from = 1; from < A_ALL; from <<= 1)
	for (to = 1; to < A_ALL; to <<= 1)
	for (st = 1; st < S_ALL; st <<= 1) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv),
		    0);
		chan_init(&c, sv[0], to, from, st);
		fd = make_fd(cell->fd);
		raw_send(sv[1], row, c.version, fd);
		if (fd != -1)
			close(fd);
		want = (cell->from & from) && (cell->to & to) &&
		    (cell->states & st);
		r = chan_recv(&c, &m);
		ck_assert_msg(r == (want ? 1 : -1),
		    "%s from %x to %x in %x: %d, expected %s (%s)", row->name,
		    from, to, st, r, want ? "taken" : "refused", c.why);
		if (r == 1 && m.fd != -1)
			close(m.fd);
		chan_close(&c);
		close(sv[1]);
	}
}
END_TEST

/*
 * Who may say what to whom, once more and by hand: a row of proto.def that
 * grants more is no slip of the pen.  States: S_RUN where nothing is said.
 */
static const struct { unsigned int from, to; const char *types; } said[] = {
	{ A_PRIVD, A_NETD, "11i 14* 16 60 62 64 66 68" },
	{ A_PRIVD, A_STORED, "11i 14* 16 80 98" },
	{ A_PRIVD, A_APID, "11i 12i 14* 16 18 21 23 27 29 37 41 42" },
	{ A_NETD, A_PRIVD, "10i 61 63" },
	{ A_NETD, A_APID, "57 59 71 78" },
	{ A_PRIVD, A_UPLINKD, "11i 14* 16" },
	{ A_UPLINKD, A_PRIVD, "10i" },
	{ A_NETD, A_UPLINKD, "72 74" },
	{ A_UPLINKD, A_NETD, "73 76" },
	{ A_STORED, A_PRIVD, "10i 81 99" },
	{ A_STORED, A_APID, "81 83 91 93 97 99 101 115" },
	{ A_APID, A_PRIVD, "10i 20 22 24 26 28 30 32 34 36 38 40 44" },
	{ A_APID, A_NETD, "56 58 70" },
	{ A_PRIVD, A_PROXYD, "11i 14* 16" },
	{ A_PROXYD, A_PRIVD, "10i" },
	{ A_NETD, A_PROXYD, "104 106 108 110" },
	{ A_PROXYD, A_NETD, "111 112" },
	{ A_PROXYD, A_STORED, "114 116" },
	{ A_STORED, A_PROXYD, "115 117" },
	{ A_APID, A_STORED, "80 82 84 86 88 90 92 94 96 98 100 102 114 118" },
	{ A_APID, A_RUNNER, "120h 122g 124 126 128 130 132 134 136 138 145" },
	{ A_RUNNER, A_APID, "121h 123g 125 127 129 131 135 140 142 144" },
	{ A_RUNNER, A_WB, "125 127 129 131 135 161 165" },
	{ A_WB, A_RUNNER, "126 128 130 132 134 160 162 164" },
};

/* The states in which type may be said, by the table above. */
static unsigned int
said_states(unsigned int from, unsigned int to, unsigned int type)
{
	const char	*p;
	char		*end;
	size_t		 i;

	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		for (p = said[i].types; said[i].from == from &&
		    said[i].to == to && *p != '\0'; p = end + strspn(end, " "))
			if (strtoul(p, &end, 10) == type)
				return *end == 'i' ? S_INIT : *end == 'h' ?
				    S_HELLO : *end == 'g' ? S_GO | S_RUN :
				    *end == '*' ? S_ALL : S_RUN;
			else
				end += strcspn(end, " ");
	return 0;
}

START_TEST(permissions)
{
	unsigned int		 from, to, st, want;
	const struct proto_row	*row;
	size_t			 i;

	for (i = 0; i < proto_nrows; i++)
	for (from = 1; from < A_ALL; from <<= 1)
	for (to = 1; to < A_ALL; to <<= 1)
	for (st = 1; st < S_ALL; st <<= 1) {
		row = &proto_rows[i];
		want = row->type == MSG_OK || row->type == MSG_ERROR ? S_ALL :
		    said_states(from, to, row->type);
		ck_assert_msg((proto_refuse(row, from, to, st, 0) == NULL) ==
		    ((want & st) != 0), "%s from %x to %x in %x", row->name,
		    from, to, st);
	}
}
END_TEST

/* Each type with a descriptor that is missing, not due, or another kind. */
START_TEST(descriptors)
{
	const struct cell	*cell = &cells[_i];
	const struct proto_row	*row = proto_find(cell->num);
	enum fd_kind		 k;
	struct chan		 c;
	struct msg		 m;
	int			 sv[2], fd;
	unsigned int		 from = cell->from & -cell->from;
	unsigned int		 to = cell->to & -cell->to;

	for (k = FD_NONE; k <= FD_MEMFD; k++) {
		if (k == FD_PIDFD)
			continue;	/* no row carries one yet */
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv),
		    0);
		chan_init(&c, sv[0], to, from, cell->states & -cell->states);
		fd = make_fd(k);
		raw_send(sv[1], row, c.version, fd);
		if (fd != -1)
			close(fd);
		if ((int)k == cell->fd) {
			ck_assert_msg(chan_recv(&c, &m) == 1, "%s", c.why);
			if (m.fd != -1)
				close(m.fd);
		} else {
			ck_assert_int_eq(chan_recv(&c, &m), -1);
			ck_assert_int_eq(errno, EBADMSG);
		}
		chan_close(&c);
		close(sv[1]);
	}
}
END_TEST

START_TEST(wrong_version)
{
	const struct cell	*cell = &cells[_i];
	const struct proto_row	*row = proto_find(cell->num);
	struct chan		 c;
	struct msg		 m;
	int			 sv[2], fd;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	chan_init(&c, sv[0], cell->to & -cell->to, cell->from & -cell->from,
	    cell->states & -cell->states);
	fd = make_fd(cell->fd);
	raw_send(sv[1], row, c.version + 1, fd);
	if (fd != -1)
		close(fd);
	ck_assert_int_eq(chan_recv(&c, &m), -1);
	ck_assert_int_eq(errno, EBADMSG);
	chan_close(&c);
	close(sv[1]);
}
END_TEST

/* Numbers: requests even with an odd answer, answers odd, none twice. */
START_TEST(numbers)
{
	size_t			 i, k;
	const struct proto_row	*a;

	for (i = 0; i < proto_nrows; i++) {
		for (k = 0; k < i; k++)
			ck_assert_int_ne(proto_rows[i].type,
			    proto_rows[k].type);
		if (proto_rows[i].answer == 0)
			continue;
		ck_assert_int_eq(proto_rows[i].type % 2, 0);
		a = proto_find(proto_rows[i].answer);
		ck_assert_ptr_nonnull(a);
		ck_assert_int_eq(a->type % 2, 1);
		ck_assert_int_eq(proto_rows[i].from & ~a->to, 0);
		ck_assert_int_eq(proto_rows[i].to & ~a->from, 0);
	}
	for (i = 0; i < event_nrows; i++)
		for (k = 0; k < i; k++) {
			ck_assert_int_ne(event_rows[i].type,
			    event_rows[k].type);
			ck_assert_str_ne(event_rows[i].name,
			    event_rows[k].name);
		}
}
END_TEST

/* The largest body that a table allows fits into its packet's cap. */
START_TEST(caps)
{
	const struct proto_row	*r = &proto_rows[_i];
	size_t			 i, worst = 16;

	for (i = 0; i < r->desc->nfields; i++) {
		const struct wire_field *f = &r->desc->field[i];

		worst += strlen(f->key) + 1;
		switch (f->kind) {
		case WIRE_U64:
			worst += 9;
			break;
		case WIRE_STR:
		case WIRE_BIN:
			worst += 3 + f->hi;
			break;
		case WIRE_STRS:
		case WIRE_BINS:
			worst += 3 + f->hi + 3 * f->count;
			break;
		}
	}
	ck_assert_msg(r->cap <= WIRE_MAX, "%s", r->name);
	/* lists may be refused by their sender when both bounds are reached */
	for (i = 0; i < r->desc->nfields; i++)
		if (r->desc->field[i].kind == WIRE_STRS ||
		    r->desc->field[i].kind == WIRE_BINS)
			return;
	ck_assert_msg(worst <= r->cap, "%s: %zu bytes may be due, cap %u",
	    r->name, worst, r->cap);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("proto");
	TCase	*t = tcase_create("bodies");
	SRunner	*r;
	int	 failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, round_trip, 0, NDESCS);
	tcase_add_loop_test(t, truncated_and_added, 0, NDESCS);
	tcase_add_loop_test(t, flipped_bits, 0, NDESCS);
	suite_add_tcase(s, t);
	t = tcase_create("table");
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, matrix, 0, NCELLS);
	tcase_add_test(t, permissions);
	tcase_add_loop_test(t, descriptors, 0, NCELLS);
	tcase_add_loop_test(t, wrong_version, 0, NCELLS);
	tcase_add_test(t, numbers);
	tcase_add_loop_test(t, caps, 0, NCELLS);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
