/*
 * runner_version.c: the version that a host, a runner or wb speaks at most.
 *
 * In an object of its own: tests of an upgrade have programs that are linked
 * with another one (runner_back.c), so that their older boxes are real.
 */
#include "older.h"

const unsigned int	runner_version = PROTO_RUNNER_VERSION;
