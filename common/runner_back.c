/*
 * runner_back.c: for the tests of an upgrade, a program as it was RUNNER_BACK
 * versions of the protocol ago: apid, runner and wb are linked with it in the
 * place of libcommon's, or libbox's, runner_version.c.  It is in no library,
 * and in no program that is installed.
 */
#include "older.h"

const unsigned int	runner_version = PROTO_RUNNER_VERSION - RUNNER_BACK;
