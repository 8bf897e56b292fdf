/*
 * maker_ask: what privd asks its maker, the program that forks, mounts, enters
 * namespaces, and reads and writes the host's files for it; see PRIVSEP.
 *
 * One packet of fds.h each way, a request and its answer, as these structs
 * lie in memory: both programs are built and installed together, and trust
 * runs from privd to the maker alone.  The maker holds every name, limit and
 * uid against its bounds again.  Answers of one box come in the order of its
 * requests; requests of different boxes are answered in the order in which
 * they were sent.
 */
#ifndef COMMON_MAKER_ASK_H
#define COMMON_MAKER_ASK_H

#include "facts.h"
#include "proto.h"
#include "server.h"

#define MAKER_FD	3	/* the socket, in the maker */
#define MAKER_USERNS	4	/* a new user namespace for netd, there */
#define MAKER_DAEMONS	5	/* netd, stored, apid, uplinkd, proxyd */
#define MAKER_UNDER_WAY	32	/* unanswered requests that the socket holds */

#define BOX_IDS		65536U	/* uids of one box */
#define BOX_NONCE	32	/* bytes */
#define BOX_TOKEN	32

/* Files in a box's directory that tell a privd which starts again. */
#define MARK_OPENED	"opened"	/* the nonce came: network open */
#define MARK_SEALED	"quarantined"	/* holds the field that differed */

/* Of what is wanted of a box at one time, the first is sent first. */
enum maker_op {
	MK_INIT,	/* in: conf; fds: lock, conf, token; out: maker_init */
	MK_RELOAD,	/* in: conf; fds: conf, token: for the next MK_SET */
	MK_SCAN,	/* out: an MK_BOX for each directory, then this with
			 * fd 0: netd's user namespace, where a box has it */
	MK_BOX,		/* out: maker_found; fds: MK_BOX_* */
	MK_SET,		/* in: fd 0: user namespace for netd, or none; out:
			 * a channel and a pidfd of each daemon */
	MK_SET_KILL,	/* SIGKILL to the set's processes */
	MK_LAUNCH,	/* in: token, spec, boot; fds out: MK_RUN_* */
	MK_CONNECT,	/* in: fd 0: pid 1; out: fd 0: connected socket */
	MK_FACTS,	/* in: fds: pid 1, netns or none; out: facts */
	MK_HEALTH,	/* in: as MK_FACTS; out: health */
	MK_OPENED,	/* writes the mark */
	MK_RELEASE,	/* in: as MK_FACTS; looks, thaws; with `written' it
			 * looks at filters, too, and takes the mark away */
	MK_SEAL,	/* writes the mark with text, then freezes */
	MK_KILL,	/* in: fd 0: pid 1 or none; out: cgroup.events */
	MK_CGROUP,	/* removes cgroups; EAGAIN: ask again, EBUSY: later */
	MK_TREE,	/* removes the directory; out: fd 0: pidfd of who does
			 * it, none when there is nothing left */
	MK_LEAVE,	/* the server ends: its empty cgroup, its socket */
	MK_N
};

/* Places of descriptors. */
enum { MK_RUN_PID, MK_RUN_READY, MK_RUN_LOG, MK_RUN_NETNS, MK_RUN_FILE };
enum { MK_BOX_PID, MK_BOX_NETNS, MK_BOX_FILE };

struct maker_req {
	uint32_t	 places;	/* of descriptors: fds_pack() */
	enum maker_op	 op;
	unsigned int	 n;		/* the asker's, echoed */
	uint32_t	 uid;		/* first of the box's range */
	struct row_spec	 spec;
	union {
		struct server_conf	 conf;		/* MK_INIT */
		struct {				/* MK_LAUNCH */
			uint8_t		 token[BOX_TOKEN];
			uint32_t	 spec_len, boot_len;
			uint8_t		 spec[512], boot[512];
		} launch;
		char			 text[64];	/* MK_SEAL */
		struct {				/* MK_HEALTH */
			uint32_t	 freeze, written;
		} look;
	} u;
};

struct maker_init {
	unsigned int	 cgroup_v1;	/* for row_boot */
	char		 filter[65];	/* for row_spec */
	char		 note[400];	/* for the log, or "" */
};

struct maker_found {
	char		 id[27];
	int		 opened, sealed, frozen;
	uint32_t	 uid;			/* 0: holds no range */
	uint32_t	 spec_len;		/* 0: has no specification */
	uint8_t		 token[BOX_TOKEN];
	uint8_t		 spec[512];
};

/* .facts.mounts.data is to be set to .mounts by the receiver. */
struct maker_facts {
	struct msg_box_facts_are facts;		/* but ruleset */
	char		 mounts[FACTS_MOUNTS];
};

struct maker_ans {
	uint32_t	 places;
	enum maker_op	 op;
	unsigned int	 n;
	int		 error;		/* errno, 0: done */
	char		 why[200];	/* "mount overlay: Invalid argument" */
	union {
		struct maker_init	 init;
		struct maker_found	 box;
		struct maker_facts	 facts;
		struct msg_box_health_is health;	/* but its state */
	} u;
};

/* Bytes of an answer that holds the member m of u, or none. */
#define MAKER_LEN(m)	(offsetof(struct maker_ans, u) + \
			    sizeof(((struct maker_ans *)0)->u.m))
#define MAKER_LEN0	offsetof(struct maker_ans, u)

#endif
