/*
 * proto: the types and tables that expand from proto.def, events.def and
 * states.def.  See workbox-protocol(7).
 */
#ifndef COMMON_PROTO_H
#define COMMON_PROTO_H

#include "wire.h"

#define PROTO_VERSION		1	/* between the host's daemons */
/*
 * Host and runner.  A box outlives an upgrade: the host speaks this version
 * and the one before (older.h).
 */
#define PROTO_RUNNER_VERSION	3

enum actor {
	A_PRIVD = 1 << 0,
	A_NETD = 1 << 1,
	A_PROXYD = 1 << 2,
	A_STORED = 1 << 3,
	A_APID = 1 << 4,
	A_HOOKD = 1 << 5,
	A_RUNNER = 1 << 6,
	A_WB = 1 << 7,
	A_UPLINKD = 1 << 8,
	A_ALL = (1 << 9) - 1
};

/* States of a channel, kept by its owner in struct chan. */
enum chan_state {
	S_INIT = 1 << 0,	/* a daemon that is not ready yet */
	S_RUN = 1 << 1,
	S_HELLO = 1 << 2,	/* runner: token and nonce are due */
	S_GO = 1 << 3,		/* runner: only RUNNER_GO and its answer */
	S_ALL = (1 << 4) - 1
};

enum fd_kind { FD_NONE, FD_SOCKET, FD_NETNS, FD_PIDFD, FD_MEMFD };

enum msg_type {
#define MSG(num, N, n, from, to, st, fd, cap, ans) MSG_##N = num,
#include "proto.def"
};

enum wb_code {
	CODE_NONE = 0,
#define CODE(n, N, s, http) CODE_##N = n,
#include "proto.def"
};

enum box_state {
#define STATE(n, N) BOX_##N = n,
#include "states.def"
};
#define BOX_NSTATES	9

enum event_type {
#define EVENT(num, N, n, s) EVENT_##N = num,
#include "events.def"
};

enum wb_health { HEALTHY, SUSPECT, UNKNOWN, ABSENT };
enum wb_network { NETWORK_NONE, NETWORK_EGRESS, NETWORK_ALLOWLIST };
/* Whether a box's processes are stopped by the host. */
enum wb_freeze { FREEZE_KEEP, FREEZE_ON, FREEZE_OFF };
enum wb_stream { STREAM_NONE, STREAM_STDOUT, STREAM_STDERR };

/* struct msg_NAME and struct row_NAME, struct event_NAME */
#define ROW(N, n)	struct row_##n {
#define MSG(num, N, n, from, to, st, fd, cap, ans) struct msg_##n {
#define END(n)		char wire_end; };
#define F_U64(m, f, lo, hi)		uint64_t f;
#define F_STR(m, f, max, cs)		char f[(max) + 1];
#define F_BIN(m, f, lo, hi)		struct wire_bin f;
#define F_STRS(m, f, n, bytes, cs)	struct wire_list f;
#define F_BINS(m, f, n, bytes)		struct wire_list f;
#include "proto.def"

#define EVENT(num, N, n, s)	struct event_##n {
#define END(n)		char wire_end; };
#define F_U64(m, f, lo, hi)		uint64_t f;
#define F_STR(m, f, max, cs)		char f[(max) + 1];
#define F_BIN(m, f, lo, hi)		struct wire_bin f;
#define F_STRS(m, f, n, bytes, cs)	struct wire_list f;
#include "events.def"

union proto_body {
#define MSG(num, N, n, from, to, st, fd, cap, ans) struct msg_##n n;
#include "proto.def"
};

struct proto_row {
	uint16_t		 type;
	const char		*name;		/* "BOX_CREATE" */
	uint16_t		 from, to;	/* sets of enum actor */
	uint16_t		 states;	/* set of enum chan_state */
	enum fd_kind		 fd;
	uint32_t		 cap;		/* bytes */
	uint16_t		 answer;	/* type or 0 */
	const struct wire_desc	*desc;
};

struct event_row {
	uint16_t		 type;
	const char		*name;		/* "sandbox.created" */
	const struct wire_desc	*desc;
};

extern const struct proto_row	proto_rows[];
extern const size_t		proto_nrows;
extern const struct event_row	event_rows[];
extern const size_t		event_nrows;

/* wire_row_NAME: descriptions of the rows of proto.def */
#define ROW(N, n)	extern const struct wire_desc wire_row_##n;
#include "proto.def"
#define MSG(num, N, n, from, to, st, fd, cap, ans) \
	extern const struct wire_desc wire_msg_##n;
#include "proto.def"
#define EVENT(num, N, n, s)	extern const struct wire_desc wire_event_##n;
#include "events.def"

const struct proto_row	*proto_find(unsigned int type);	/* or NULL */
const char		*proto_name(unsigned int type);	/* never NULL */
const struct event_row	*event_find(unsigned int type);	/* or NULL */
const char		*code_name(unsigned int code);	/* "name-taken" */
int			 code_http(unsigned int code);	/* 409 */
const char		*state_name(unsigned int state); /* "READY" */
const char		*health_name(unsigned int);	/* "HEALTHY" */
const char		*network_name(unsigned int);	/* "none" */
int			 state_move_ok(unsigned int from, unsigned int to);

/*
 * The permission table: whether `from' may send this to `to' on a channel in
 * this state, in a packet of len bytes.  NULL, or what is wrong with it.
 */
const char	*proto_refuse(const struct proto_row *, unsigned int from,
		    unsigned int to, unsigned int state, size_t len);

#endif
