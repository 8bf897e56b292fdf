/*
 * names.c: states and their moves, codes as HTTP says them, health, networks;
 * see proto.h.  Apart from proto.c, since privd needs none of it.
 */
#include "proto.h"

static const int	http[] = {
	[CODE_NONE] = 200,
#define CODE(n, N, s, http) [n] = (http),
#include "proto.def"
};

static const char *const states[BOX_NSTATES] = {
#define STATE(n, N) [n] = #N,
#include "states.def"
};

static const unsigned int moves[BOX_NSTATES][BOX_NSTATES] = {
#define MOVE(F, T) [BOX_##F][BOX_##T] = 1,
#include "states.def"
};

int
code_http(unsigned int code)
{
	return code < sizeof(http) / sizeof(http[0]) && http[code] != 0 ?
	    http[code] : 500;
}

const char *
state_name(unsigned int state)
{
	return state < BOX_NSTATES ? states[state] : "UNKNOWN";
}

int
state_move_ok(unsigned int from, unsigned int to)
{
	return from < BOX_NSTATES && to < BOX_NSTATES && moves[from][to];
}

const char *
health_name(unsigned int h)
{
	static const char *const	names[] = { "HEALTHY", "SUSPECT",
	    "UNKNOWN", "ABSENT" };

	return h < 4 ? names[h] : "UNKNOWN";
}

const char *
network_name(unsigned int n)
{
	static const char *const	names[] = { "none", "egress",
	    "allowlist" };

	return n < 3 ? names[n] : "unknown";
}
