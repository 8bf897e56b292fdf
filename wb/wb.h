/*
 * wb: the agent's command, in the box.  Talks to pid 1 through BOX_SOCK, as
 * whoever calls it: nothing here has a right of its own.
 *
 * A command is one file with one struct command, listed in wb.c.
 */
#ifndef WB_H
#define WB_H

#include "chan.h"
#include "older.h"

#define EXIT_WB		125	/* our own failure */
#define EXIT_CANNOT	126	/* the command cannot run */
#define EXIT_MISSING	127	/* the command was not found */
#define EXIT_SIGNAL	128	/* + n: it died of signal n */

struct command {
	const char	*name;
	const char	*usage;		/* behind "wb name" */
	const char	*help;		/* one line */
	/* argv[0] is the name; the exit code */
	int		(*run)(int argc, char **argv);
};

extern const struct command	cmd_denials, cmd_help, cmd_kill, cmd_logs,
				cmd_ps, cmd_run, cmd_status, cmd_wait;
extern const struct command	*const commands[];	/* NULL at the end */

/* Connects, or says why not and exits. */
void	wb_connect(struct chan *);
/*
 * Asks and waits for the answer of that type; an error is said, and its code
 * put into the exit code that it means.  0, or that exit code.
 */
int	wb_call(struct chan *, unsigned int type, const void *body,
	    unsigned int answer, struct msg *ret);
/* Says what an ERROR answer says; the exit code that it means. */
int	wb_refused(const struct msg_error *);
/* Says it on stderr; returns EXIT_WB. */
int	wb_fail(const char *, ...) __attribute__((format(printf, 1, 2)));
/* What is wrong with the arguments, and how it is used; returns EXIT_WB. */
int	wb_usage(const struct command *, const char *, ...)
	    __attribute__((format(printf, 2, 3)));
/* How it is used (NULL: each of them), on stdout; the exit code. */
int	wb_help(const struct command *);
/*
 * One more option of the command's, as getopt_long(3), which says nothing; -1
 * at the end, '?' after it has been said what is wrong.
 */
struct option;
int	wb_option(const struct command *, int argc, char **argv,
	    const char *letters, const struct option *);

/* ps.c: how long ago, in its largest unit. */
void	wb_age(uint64_t ms, char ret[16]);

/* ---- find.c ----------------------------------------------------------- */

/* Calls fn for each session that the caller may see, by id; 0 or a code. */
int	wb_each(struct chan *, void (*fn)(const struct row_rsession *, void *),
	    void *arg);
/* The id of the session that ref means: 0, or a code after it was said. */
int	wb_find(struct chan *, const char *ref, char ret[27]);
/* The exit code of a session's end; a reason beside it is said. */
int	wb_ended(const struct msg_session_exit *);
void	wb_gap(const struct msg_session_chunk *);	/* says it, if any */

#endif
