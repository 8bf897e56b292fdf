/*
 * runner_version.c: the version that a host, a runner or wb speaks at most.
 *
 * In an object of its own: a program that is linked with another one, built
 * with RUNNER_BACK, is of so many versions ago.  Tests of an upgrade have
 * their older boxes so (runner/version.c and its like).
 */
#include "older.h"

#ifndef RUNNER_BACK
#define RUNNER_BACK	0
#endif

const unsigned int	runner_version = PROTO_RUNNER_VERSION - RUNNER_BACK;
