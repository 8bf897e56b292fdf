/*
 * version.c: for the tests of an upgrade, this program as it was RUNNER_BACK
 * versions of the protocol ago: it is linked in the place of libcommon's, or
 * libbox's, runner_version.c.  Not in the program that is installed.
 */
#include "older.h"

const unsigned int	runner_version = PROTO_RUNNER_VERSION - RUNNER_BACK;
