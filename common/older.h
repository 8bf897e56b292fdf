/*
 * older: versions of the protocol between host and runner, and runner and wb.
 *
 * A host speaks runner_version and the one before; a runner and its wb speak
 * theirs alone.  Which one a runner speaks the host finds out by its hello: a
 * runner that does not take the version of a packet closes the channel, and
 * since version 3 says first, by a packet of its own version, which that is.
 */
#ifndef COMMON_OLDER_H
#define COMMON_OLDER_H

#include "chan.h"

#define RUNNER_TELLS	3	/* versions from this one on say theirs */

/* What this program speaks: PROTO_RUNNER_VERSION. */
extern const unsigned int	runner_version;

/* Packets carry, and must carry, this version from now on. */
void	chan_speak(struct chan *, unsigned int version);

#endif
