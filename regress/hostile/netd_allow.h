/*
 * netd_allow: the tests of networks that proxyd serves, for netd_test.
 */
#ifndef REGRESS_NETD_ALLOW_H
#define REGRESS_NETD_ALLOW_H

#include <check.h>

/* Adds them, with a fixture; where there is netfilter. */
void	 allow_tests(TCase *);

#endif
