/*
 * proxy_box_rig.c: see proxy_box_rig.h.
 */
#include <sys/socket.h>
#include <sys/stat.h>

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy_box_rig.h"
#include "xmalloc.h"

struct ns { int udp, tcp; };
struct relay { int listener; };

struct rig		rig;
static struct chan	netd, ours;

/* ---- in place of the others ------------------------------------------- */

static ino_t
inode(int fd)
{
	struct stat	st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

struct ns *
ns_new(struct event_base *b, struct box *x, int udp, int tcp)
{
	struct ns	*n = xcalloc(1, sizeof(*n));

	ck_assert_ptr_eq(b, rig.base);
	ck_assert_ptr_ne(x->allow, NULL);
	rig.last = x;
	rig.got[BOX_UDP] = inode(n->udp = udp);
	rig.got[BOX_TCP] = inode(n->tcp = tcp);
	return n;
}

void
ns_free(struct ns *n)
{
	if (n == NULL)
		return;
	(void)close(n->udp);
	(void)close(n->tcp);
	free(n);
	rig.ended++;
}

struct relay *
relay_new(struct box *x, int listener)
{
	struct relay	*r = xcalloc(1, sizeof(*r));

	ck_assert_ptr_eq(x, rig.last);
	rig.got[BOX_RELAY] = inode(r->listener = listener);
	rig.served++;
	return r;
}

void
relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	(void)close(r->listener);
	free(r);
}

void
relay_judge(struct relay *r)
{
	ck_assert_ptr_eq(r, rig.last->relay);
	rig.judged++;
	rig.judged_n = allow_count(rig.last->allow);
}

void
proxyd_ask_stored(unsigned int type, const void *body,
    void (*cb)(void *, const struct msg *), void *arg)
{
	struct asked	*a = &rig.asked[rig.nasked++];

	ck_assert_uint_le(rig.nasked, ASKS);
	a->type = type;
	if (type == MSG_ALLOW_READ)
		a->read = *(const struct msg_allow_read *)body;
	else if (type == MSG_NAMES_TAKE)
		a->take = *(const struct msg_names_take *)body;
	else
		ck_abort_msg("stored is asked %u", type);
	a->cb = cb;
	a->arg = arg;
}

void
proxyd_sent(struct chan *c, int result)
{
	ck_assert_ptr_eq(c, &ours);
	ck_assert_int_eq(result, 0);
}

void
proxyd_tell_netd(unsigned int type, const void *body)
{
	proxyd_sent(&ours, chan_send(&ours, type, 0, body, -1));
}

/* ---- netd ------------------------------------------------------------- */

/* What netd said is heard. */
static void
hear(void)
{
	struct msg	m;

	while (chan_recv(&ours, &m) == 1) {
		box_on_netd(&ours, &m);
		if (m.fd != -1)
			(void)close(m.fd);
	}
}

uint32_t
rig_ask(unsigned int type, const void *body, int fd)
{
	uint32_t	rid;

	ck_assert_int_eq(chan_ask(&netd, type, body, fd, &rid), 0);
	hear();
	return rid;
}

/* A socket of a box's; the other end of it is kept. */
uint32_t
rig_give(const char *id, unsigned int which)
{
	struct msg_proxy_box	m = { .socket = which };
	int			sv[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	(void)str_copy(m.id, id, sizeof(m.id));
	rig.given[which] = inode(sv[0]);
	if (rig.far[which] != -1)
		(void)close(rig.far[which]);
	rig.far[which] = sv[1];
	return rig_ask(MSG_PROXY_BOX, &m, sv[0]);
}

uint32_t
rig_list(const char *id)
{
	struct msg_proxy_list	m = { .wire_end = 0 };

	(void)str_copy(m.id, id, sizeof(m.id));
	return rig_ask(MSG_PROXY_LIST, &m, -1);
}

uint32_t
rig_end(const char *id)
{
	struct msg_proxy_end	m = { .wire_end = 0 };

	(void)str_copy(m.id, id, sizeof(m.id));
	return rig_ask(MSG_PROXY_END, &m, -1);
}

/* The next message that netd gets; 0: none is there. */
int
rig_next(void)
{
	return chan_recv(&netd, &rig.heard) == 1;
}

void
rig_is_ok(uint32_t rid)
{
	ck_assert(rig_next());
	ck_assert_uint_eq(rig.heard.row->type, MSG_OK);
	ck_assert_uint_eq(rig.heard.rid, rid);
}

void
rig_is_error(uint32_t rid, unsigned int code, const char *what)
{
	ck_assert(rig_next());
	ck_assert_uint_eq(rig.heard.row->type, MSG_ERROR);
	ck_assert_uint_eq(rig.heard.rid, rid);
	ck_assert_uint_eq(rig.heard.body.error.code, code);
	ck_assert_msg(strstr(rig.heard.body.error.detail, what) != NULL, "%s",
	    rig.heard.body.error.detail);
}

/* Whether the socket that was given lives here. */
int
rig_lives(unsigned int which)
{
	char	c;

	return recv(rig.far[which], &c, 1, MSG_DONTWAIT) == -1 &&
	    errno == EAGAIN;
}

/* ---- stored ----------------------------------------------------------- */

/* The question that is due. */
static struct asked *
due(unsigned int type)
{
	ck_assert_uint_lt(rig.answered, rig.nasked);
	ck_assert_uint_eq(rig.asked[rig.answered].type, type);
	return &rig.asked[rig.answered++];
}

void
rig_page(uint64_t generation, uint64_t more, size_t n,
    const char *const *entries)
{
	static struct wire_bin	 v[1024];
	struct msg		 m = { .row = proto_find(MSG_ALLOW_PAGE),
				    .fd = -1 };
	struct asked		*a = due(MSG_ALLOW_READ);
	size_t			 i;

	for (i = 0; i < n; i++)
		v[i] = wire_cstr(entries[i]);
	m.body.allow_page.generation = generation;
	m.body.allow_page.more = more;
	m.body.allow_page.entries = (struct wire_list){ v, n };
	a->cb(a->arg, &m);
}

void
rig_one_page(const char *entry)
{
	rig_page(7, 0, 1, &entry);
}

void
rig_fails(unsigned int type, unsigned int code)
{
	struct msg	 m = { .row = proto_find(MSG_ERROR), .fd = -1 };
	struct asked	*a = due(type);

	m.body.error.code = code;
	(void)str_copy(m.body.error.detail, "stored says no",
	    sizeof(m.body.error.detail));
	a->cb(a->arg, &m);
}

void
rig_taken(uint64_t first, uint64_t count)
{
	struct msg	 m = { .row = proto_find(MSG_NAMES_TAKEN), .fd = -1 };
	struct asked	*a = due(MSG_NAMES_TAKE);

	ck_assert_uint_eq(a->take.count, TAKE);
	m.body.names_taken.first = first;
	m.body.names_taken.count = count;
	a->cb(a->arg, &m);
}

void
rig_silent(unsigned int type)
{
	struct asked	*a = due(type);

	a->cb(a->arg, NULL);
}

/* ---- the whole -------------------------------------------------------- */

void
rig_setup(void)
{
	int	sv[2], i;

	rig.base = event_base_new();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	chan_init(&netd, sv[0], A_NETD, A_PROXYD, S_RUN);
	chan_init(&ours, sv[1], A_PROXYD, A_NETD, S_RUN);
	for (i = 0; i < BOX_NSOCKETS; i++)
		rig.far[i] = -1;
	box_init(rig.base);
}

void
rig_teardown(void)
{
	ck_assert_uint_eq(rig.answered, rig.nasked);
	(void)rig_end(ID);
	(void)rig_end(OTHER);
	event_base_free(rig.base);
}

/* A box that is served, with one entry. */
void
rig_serve(const char *id)
{
	(void)rig_give(id, BOX_RELAY);
	(void)rig_give(id, BOX_UDP);
	(void)rig_give(id, BOX_TCP);
	rig_one_page("a.example");
	while (rig_next())
		;
	ck_assert_ptr_ne(rig.last, NULL);
	ck_assert_str_eq(rig.last->id, id);
}
