/*
 * netd_uplink: the tests of networks that lead out, for netd_test.
 */
#ifndef REGRESS_NETD_UPLINK_H
#define REGRESS_NETD_UPLINK_H

#include <check.h>

/* Adds them, with a fixture; where there is netfilter. */
void	 uplink_tests(TCase *);
/* Those that change the host's network. */
TCase	*uplink_host_tests(void);

#endif
