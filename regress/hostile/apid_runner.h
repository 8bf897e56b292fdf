/*
 * apid_runner: the runners of apid_world, good and bad.
 */
#ifndef APID_RUNNER_H
#define APID_RUNNER_H

#include "apid_world.h"
#include "chan.h"

/* A runner: its end of the channel. */
struct rn {
	struct chan		 c;
	struct world_box	*box;
	enum act		 act;
	int			 used;
	uint32_t		 wait_rid;	/* SESSION_WAIT that is out */
	uint32_t		 run_rid;	/* SESSION_RUN that is out */
	char			 wait_id[27];
	uint64_t		 chunks, gone;
};

extern const uint8_t	mounts[31], nonce[32];

void	rn_msg(struct rn *, const struct msg *);

/* A box as it should be; both messages of facts have these fields. */
#define FACTS(f) do {							\
	(void)str_copy((f)->uid_map, "0 1879048192 65536",		\
	    sizeof((f)->uid_map));					\
	(void)str_copy((f)->gid_map, "0 1879048192 65536",		\
	    sizeof((f)->gid_map));					\
	(void)str_copy((f)->setgroups, "allow", sizeof((f)->setgroups));\
	(f)->cap_bnd = (f)->cap_prm = (f)->cap_eff = 0x800000fb;	\
	(f)->no_new_privs = 1;						\
	(f)->seccomp_mode = 2;						\
	(f)->seccomp_filters = 2;					\
	(f)->nspid = 1;							\
	(f)->mounts.data = mounts;					\
	(f)->mounts.len = sizeof(mounts) - 1;				\
} while (0)

#endif
