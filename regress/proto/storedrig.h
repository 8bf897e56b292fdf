/*
 * storedrig: starts the real stored as privd does, and plays privd, apid and
 * proxyd.
 *
 * Every function fails the running Check test on what it does not expect.
 */
#ifndef REGRESS_STOREDRIG_H
#define REGRESS_STOREDRIG_H

#include "chan.h"
#include "conf.h"
#include "ulid.h"

#define RIG_UID		64802		/* nobody's, for the tests alone */
#define RIG_TENANT	"default"

/* Into an array of characters, in which the text must have room. */
#define RIG_COPY(array, text)	\
	ck_assert_int_eq(str_copy(array, text, sizeof(array)), 0)

struct rig {
	char		 dir[128];	/* state directory; db/ below it */
	pid_t		 pid;		/* 0: not running */
	uint64_t	 audit_argv;
	const char	*key;		/* a client's, for what is made; NULL */
	struct chan	 privd, apid, proxyd;	/* our ends: we are those */
};

/* Exits 77 unless stored can be started here (root, built). */
void	rig_check(void);
/* A state directory of its own, in which nothing runs yet. */
void	rig_init(struct rig *);
void	rig_free(struct rig *);		/* ends stored, removes the directory */
/* Starts and serves; or only starts, no word said (rig_start = both). */
void	rig_spawn(struct rig *);
void	rig_go(struct rig *);
void	rig_start(struct rig *);
void	rig_kill(struct rig *);		/* SIGKILL, reaped */
/* DAEMON_STOP, apid closes; must exit 0. */
void	rig_stop(struct rig *);
/* Waits for the end of the process; its wait status. */
int	rig_wait(struct rig *);

/* The next message; valid until the next call.  0: the peer has closed. */
int	rig_recv(struct chan *, struct msg *ret);
/* Asks and waits for the answer with that number. */
void	rig_ask(struct chan *, unsigned int type, const void *body,
	    struct msg *ret);
/* Asks; the answer must be OK, or the error with that code. */
void	rig_ok(struct chan *, unsigned int type, const void *body);
void	rig_refused(struct chan *, unsigned int type, const void *body,
	    unsigned int code);
/* Asks; returns the code, CODE_NONE for any answer but an error. */
unsigned int	rig_code(struct chan *, unsigned int type, const void *body);

/* ---- rows and questions ------------------------------------------ */

/* A row REQUESTED with a fresh id. */
struct row_sandbox	rig_box(const char *name);
unsigned int	rig_create(struct rig *, const struct row_sandbox *);
/* durable: 1; proof: NULL or a string. */
unsigned int	rig_move(struct rig *, const char *id, unsigned int to,
		    const char *reason, const char *proof);
/* Creates a box and moves it to READY. */
void		rig_ready(struct rig *, const struct row_sandbox *);
/* ALLOW_PUT of a page with one entry; SANDBOX_NETWORK. */
unsigned int	rig_list(struct rig *, const char *id, unsigned int page,
		    const char *entry);
unsigned int	rig_network(struct rig *, const char *id, unsigned int network,
		    const char *reason);
struct row_session	rig_session(const char *sandbox);
unsigned int	rig_put(struct rig *, const struct row_session *,
		    int durable);
/* The row of SANDBOX_GET; valid until the next call. 0: NOT_FOUND. */
int		rig_get(struct rig *, const char *id,
		    struct row_sandbox *ret);
struct msg_store_info_is rig_info(struct rig *);
/* 32 bytes that stand for what was asked with a key. */
struct wire_bin	rig_asked(const char *key);
/* Appends an auth.failed. */
unsigned int	rig_append(struct rig *, const char *tenant, int durable);

/* ---- the log ----------------------------------------------------- */

/* All records, one a line, as EVENT_READ pages; owned by the caller. */
char		*rig_log(struct rig *, const char *tenant);
/* Proves numbers from 1, the chain and times that never decrease; count. */
uint64_t	 rig_verify(const char *log);
/* How often s stands in the log. */
unsigned int	 rig_count(const char *log, const char *s);

#endif
