/*
 * egress_rig.c: see egress_rig.h.
 */
#include <sys/socket.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egress_rig.h"
#include "log.h"
#include "xmalloc.h"

struct lab			lab;
int				news, ask;
struct event_base		*base;
int				(*ask_hook)(unsigned int, struct hosts *);
unsigned int			asked;
static struct wire_list		none;

void
asked_anew(int (*hook)(unsigned int, struct hosts *))
{
	ask_hook = hook;
	asked = 0;
}

int	__real_hostaddr_ask(int, struct hosts *);
int	__wrap_hostaddr_ask(int, struct hosts *);

int
__wrap_hostaddr_ask(int fd, struct hosts *ret)
{
	int	e, r = __real_hostaddr_ask(fd, ret);

	if (r == -1 || ask_hook == NULL)
		return r;
	if ((r = ask_hook(asked++, ret)) == -1) {
		e = errno;
		hosts_free(ret);
		errno = e;
	}
	return r;
}

void
rig_setup(void)
{
	int	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	log_init("egress_test", getenv("DAEMON_LOG") != NULL ? LOG_L_DEBUG :
	    LOG_L_ERROR, 0);
	lab_make(&lab);
	ck_assert_int_eq(sealed_init(&none, &none), 0);
	ck_assert_int_eq(ruleset_init(0), 0);
	lab_enter(&lab, LAB_HOST);
	ck_assert_int_eq(hostaddr_open(&news, &ask), 0);
	ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
	close(home);
}

void
rig_teardown(void)
{
	lab_free(&lab);
	fd_close(&news);
	fd_close(&ask);
}

void
hosts_now(void)
{
	struct hosts	h;

	ck_assert_int_eq(hostaddr_ask(ask, &h), 0);
	ck_assert_int_ge(ruleset_hosts(&h.v4, &h.v6), 0);
	hosts_free(&h);
}

int
is_whole(void)
{
	struct ruleset_seen	seen;

	ck_assert_int_eq(ruleset_read(lab.nft, &seen), 0);
	return ruleset_is(&seen, RULESET_EGRESS);
}

void
egress_on(void)
{
	hosts_now();
	ck_assert_msg(ruleset_make(lab.nft, RULESET_EGRESS) == 0, "%s",
	    strerror(errno));
	ck_assert_int_eq(is_whole(), 1);
}

void
egress_off(void)
{
	struct nl_batch	b;

	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	nl_took(&b, nftnl_nlmsg_build_hdr(nl_next(&b), NFT_MSG_DELTABLE,
	    NFPROTO_UNSPEC, 0, 0), 1);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	ck_assert_int_eq(nl_send(lab.nft, &b, NULL), 0);
}

void
element(enum rs_set set, const char *text, int add, int want)
{
	element_at(lab.nft, set, text, add, want);
}

void
element_at(int nft, enum rs_set set, const char *text, int add, int want)
{
	struct nl_batch	b;
	struct spans	s;
	struct prefix	p;
	int		r;

	ck_assert_int_eq(prefix_parse(text, &p), 0);
	spans_init(&s, p.len);
	spans_add(&s, &p);
	nl_start(&b);
	nl_took(&b, nftnl_batch_begin(nl_next(&b), 0), 0);
	rs_elements(&b, set, &s, add);
	nl_took(&b, nftnl_batch_end(nl_next(&b), 0), 0);
	r = nl_send(nft, &b, NULL) == 0 ? 0 : errno;
	ck_assert_msg(r == want, "%s: %s", text, strerror(r));
	spans_free(&s);
}

/* ---- live ------------------------------------------------------------ */

void
live(void)
{
	struct nets_fds	fds = { -1, -1, -1, news, ask };

	ck_assert_int_ne(fds.watch = link_watch(), -1);
	fds.home = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ck_assert_ptr_ne(base = event_base_new(), NULL);
	nets_init(base, &fds, 0, 1000);
}

struct net *
sealed_net(const char *id, int netns, int nft)
{
	struct net	*n = net_new(0, RULESET_EGRESS);

	ck_assert_ptr_ne(n, NULL);
	n->netns = netns;
	n->ctl = nft;
	net_own(n, id, SEALED);
	return n;
}

struct net *
live_net(const char *id, int netns, int nft)
{
	struct net	*n = sealed_net(id, netns, nft);

	ck_assert_ptr_eq(net_set(n, n->kind), NULL);
	net_move(n, OPEN);
	return n;
}

struct net *
live_box(void)
{
	live();
	return live_net(ID(1), fcntl(lab.netns[LAB_BOX], F_DUPFD_CLOEXEC, 0),
	    fcntl(lab.nft, F_DUPFD_CLOEXEC, 0));
}

void
pump(long us)
{
	struct timeval	tv = { us / 1000000, us % 1000000 };

	ck_assert_int_eq(event_base_loopexit(base, &tv), 0);
	ck_assert_int_ge(event_base_dispatch(base), 0);
}

struct probe { const char *to; int want; };

static int
probe(void *arg)
{
	const struct probe	*p = arg;
	int			 e = lab_tcp(p->to, LAB_PORT, NULL);

	return e == p->want ? 0 : 1;
}

long
until_in(const char *to, int want, const char *what, long ms)
{
	struct probe	p = { to, want };
	long		t0 = lab_us(), us;

	do {
		pump(1000);
		us = lab_us() - t0;
		ck_assert_msg(us < ms * 1000, "%s: %s is not %s within %ld ms",
		    what, to, want == 0 ? "open" : "refused", ms);
	} while (lab_in(&lab, LAB_BOX, probe, &p) != 0);
	printf("%s: %s %s after %ld ms\n", what, to, want == 0 ? "open" :
	    "refused", us / 1000);
	return us;
}

long
until(const char *to, int want, const char *what)
{
	return until_in(to, want, what, 1000);
}

int
all_dropped(void *arg)
{
	(void)arg;
	return lab_tcp("198.51.100.10", LAB_PORT, NULL) == ETIME &&
	    lab_tcp("203.0.112.0", LAB_PORT, NULL) == ETIME ? 0 : 1;
}

int
breaks(struct net *n)
{
	int	keep = fcntl(n->ctl, F_DUPFD_CLOEXEC, 0), sv[2];

	ck_assert_int_ne(keep, -1);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	ck_assert_int_eq(dup2(sv[0], n->ctl), n->ctl);
	close(sv[0]);		/* the other is left: this one has no end */
	return keep;
}

void
mends(struct net *n, int keep)
{
	ck_assert_int_eq(dup2(keep, n->ctl), n->ctl);
	close(keep);
}
