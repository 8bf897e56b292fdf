/*
 * egress_rig.c: see egress_rig.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egress_rig.h"
#include "log.h"
#include "xmalloc.h"

struct lab			lab;
int				news, ask;
static struct wire_list		none;

void
rig_setup(void)
{
	int	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	log_init("egress_test", getenv("NETD_LOG") != NULL ? LOG_L_DEBUG :
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
	r = nl_send(lab.nft, &b, NULL) == 0 ? 0 : errno;
	ck_assert_msg(r == want, "%s: %s", text, strerror(r));
	spans_free(&s);
}
