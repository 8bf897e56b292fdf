/*
 * denied: the rules by which a network refuses what a box wants to reach, as
 * netd and apid number and name them.  The names are those of chains and
 * counters in the ruleset, and stand in records; see workbox-network(7).
 */
#ifndef COMMON_DENIED_H
#define COMMON_DENIED_H

#include <stddef.h>

enum denied_rule {
	DENIED_SEALED,			/* a sealed prefix */
	DENIED_HOST,			/* an address of the host */
	DENIED_LIMITED,			/* too many new connections */
	DENIED_PROTOCOL,		/* neither TCP, UDP nor ICMP */
	DENIED_RULESET,			/* these have a chain of egress's */
	/* of `allowlist' */
	DENIED_ADDRESS = DENIED_RULESET, /* not by name */
	DENIED_NAME,			/* a name that no entry has */
	DENIED_PORT,			/* one that has, but not this port */
	DENIED_TLS,			/* TLS for another name, or for none */
	DENIED_HTTP,			/* HTTP for another host, or none */
	DENIED_EXHAUSTED,		/* no address is left for a name */
	DENIED_RULES
};

const char	*denied_name(unsigned int);	/* static; "unknown" */
/* IANA's number of a protocol: "tcp"; "132" where it has no name here. */
const char	*denied_proto(unsigned int, char buf[16]);
/* The rule of this name of len bytes, or -1. */
int		 denied_find(const char *, size_t len);

#endif
