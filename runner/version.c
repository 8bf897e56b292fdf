/*
 * version.c: for the tests of an upgrade, this program as it was so many
 * versions of the protocol ago; not of the program that is installed.
 */
#include "../common/runner_version.c"
