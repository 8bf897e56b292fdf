/*
 * workbox: the operator's command line.
 *
 * Each command is one const struct cmd at the head of its family's file and
 * one line in workbox.c's table; parsing of options, --help and workbox(1)'s
 * test come from it.  What does not need a server on this host (args, client,
 * text, sandbox, session, exec, events) is POSIX and builds alone.
 */
#ifndef WORKBOX_WORKBOX_H
#define WORKBOX_WORKBOX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION	"unknown"
#endif

#define WB_CONFDIR	"/etc/workbox"
#define WB_TOKEN_FILE	WB_CONFDIR "/token"
#define WB_CONF_FILE	WB_CONFDIR "/workbox.conf"
#define WB_SERVER	"http://127.0.0.1:8790"

/* DESIGN 9: what is not the command's own exit code. */
#define EXIT_OURS	125		/* workbox itself failed */
#define EXIT_CANNOT	126		/* the command cannot run */
#define EXIT_MISSING	127		/* the command was not found */
#define EXIT_SIGNAL	128		/* + the signal */

/* ---- commands and their arguments (args.c) ----------------------------- */

struct opt {
	const char	*name;		/* long, without dashes; NULL ends */
	const char	*arg;		/* its argument's name; NULL: a flag */
	const char	*doc;
	char		 letter;	/* or 0 */
	char		 many;		/* may be given more than once */
};

enum cmd_flags {
	CMD_CLIENT = 1 << 0,		/* --server, --token-file */
	CMD_STATE = 1 << 1,		/* --state, --config */
	CMD_FORMAT = 1 << 2,		/* --format table|json */
	CMD_EXEC = 1 << 3		/* COMMAND [ARG ...] after `--' */
};

struct args;

struct cmd {
	const char		*name;		/* "sandbox exec" */
	const char		*alias;		/* "sandbox ls", or NULL */
	const char		*operands;	/* "SANDBOX SESSION" */
	const char		*doc;		/* one line */
	const struct opt	*opts;		/* or NULL */
	unsigned int		 flags;
	int			 min, max;	/* operands; -1: any */
	int			(*run)(const struct args *);
};

struct given {
	const struct opt	*opt;		/* borrowed: the table */
	const char		*val;		/* borrowed: argv; "" for flags */
};

struct args {
	const struct cmd	*cmd;		/* borrowed */
	struct given		*given;		/* owned */
	size_t			 ngiven;
	char			**operand;	/* owned vector */
	int			 noperand;
	char			**command;	/* borrowed: argv's tail */
	int			 ncommand;
};

/* The commands: every row of cmds.def. */
#define CMD(x)	extern const struct cmd cmd_##x;
#include "cmds.def"

/*
 * Parses what follows the command's name.  0; 1: --help was printed; -1: one
 * line on stderr says what is wrong.
 */
int		 args_parse(const struct cmd *, int argc, char **argv,
		    struct args *ret);
/* The last value given, "" for a flag, or NULL. */
const char	*args_get(const struct args *, const char *name);
/* All values in order: *i starts at 0; NULL ends. */
const char	*args_each(const struct args *, const char *name, size_t *i);
int		 args_json(const struct args *);  /* --format json */
/*
 * " --config FILE --state DIR" as given, quoted for a shell, for a command
 * that a message tells to run; "".  The caller frees.
 */
char		*args_host(const struct args *);
void		 args_help(const struct cmd *, FILE *);

/* ---- messages and text (text.c) ---------------------------------------- */

/* For messages: "workbox sandbox exec". */
void	 text_command(const char *name);
/* One line on stderr after the command's name; returns EXIT_OURS. */
int	 fail(const char *, ...) __attribute__((format(printf, 1, 2)));
int	 fail_errno(const char *, ...) __attribute__((format(printf, 1, 2)));
/* The same without the verdict. */
void	 note(const char *, ...) __attribute__((format(printf, 1, 2)));

/* 0, or -1: not a decimal number within the bounds. */
int	 text_u64(const char *, uint64_t lo, uint64_t hi, uint64_t *ret);
/* The same with K, M, G, T (powers of 1024), KiB ... as suffix. */
int	 text_bytes(const char *, uint64_t lo, uint64_t hi, uint64_t *ret);
/* 0, or -1: not digits with at most one point, within the bounds. */
int	 text_decimal(const char *, double lo, double hi, double *ret);
/* Seconds since 1970 of an RFC 3339 UTC time, or -1. */
int64_t	 text_time(const char *);
/* Local time for people into 20 bytes. */
void	 text_local(int64_t seconds, char ret[20]);
/* "ABRT" to 6, also with SIG or as a number; 0: unknown. */
int	 text_signal(const char *);
const char *text_signal_name(int);	/* "ABRT"; "" when unknown */
/* A file's contents with a NUL behind, at most max bytes; NULL: errno. */
char	*text_file(const char *path, size_t max, size_t *ret_len);

/* A table: columns as wide as they need, control characters escaped. */
struct table {
	size_t	  ncols, ncells, room;
	char	**cell;			/* owned; row by row */
};
void	 table_init(struct table *, size_t ncols, ...);	/* the heads */
void	 table_add(struct table *, const char *cell);	/* copied */
void	 table_print(struct table *, FILE *);		/* and frees */

int	 json_print(json_t *);		/* indented, to stdout; 0 or fail() */
const char *json_str(const json_t *, const char *key);	/* "" if absent */

/* ---- requests to the server (client.c) --------------------------------- */

struct req;

/*
 * Server and token from the options and the environment, or fail()'s code.
 * A warning where the token would cross a network in clear.
 */
int	 client_init(const struct args *);
/*
 * The operand that a request is about, for messages (copied, or NULL); all
 * operands until this is called.
 */
void	 client_about(const char *);
const char *client_server(void);	/* as given, for messages */

/*
 * A path from parts that are percent-encoded; the first is taken as it is.
 * The caller frees.
 */
char	*client_path(const char *first, ...) __attribute__((sentinel));
void	 client_query(char **path, const char *key, const char *value);

struct req *req_new(const char *method, const char *path);
void	 req_free(struct req *);	/* NULL is ignored */
void	 req_json(struct req *, json_t *);	/* takes the reference */
void	 req_bytes(struct req *, const void *, size_t);	/* copied */
/*
 * Where the body of a 2xx answer goes as it comes.  fn returns 0; 1 to be
 * called again with the same bytes after req_resume(); -1 to end.
 */
void	 req_sink(struct req *, int (*fn)(const char *, size_t, void *),
	    void *arg);
void	 req_resume(struct req *);
/* Runs to the end.  0: 2xx; -1: anything else, not yet told. */
int	 req_run(struct req *);
long	 req_status(const struct req *);	/* 0: no answer, or not yet */
/* No answer, a broken one, or 502 to 504: the server may be restarting. */
int	 req_retry(const struct req *);
/* The server was never reached: the request has not been sent. */
int	 req_unsent(const struct req *);
json_t	*req_answer(const struct req *);	/* new, or NULL */
/* The exit code that a problem's code or a session's reason means. */
int	 problem_exit(const char *);
/* Tells on stderr what went wrong; the exit code that it means. */
int	 req_fail(const struct req *);

/* One request, one JSON answer: 0 with *ret (NULL: not wanted) or a code. */
int	 client_call(const char *method, char *path /* freed */,
	    json_t *body /* taken, may be NULL */, json_t **ret);
/* All items of a list, page by page: 0 with a new array or a code. */
int	 client_list(char *path /* freed */, json_t **ret);

/* Several at once, which exec needs: started, then moved on together. */
void	 req_start(struct req *);
struct curl_waitfd;
/* Waits at most ms for something on a request or one of fds, moves on. */
void	 multi_step(struct curl_waitfd *fds, unsigned int n, int ms);
int	 req_done(const struct req *);	/* ended, in whatever way */
int	 req_ok(const struct req *);	/* ended with a whole 2xx answer */

/* Bytes to whole lines: calls fn with each (NUL for \n).  -1: too long. */
struct lines {
	char	*buf;			/* owned */
	size_t	 len, room;
};
#define LINE_MAX_BYTES	(1024UL * 1024)
int	 lines_feed(struct lines *, const char *, size_t,
	    int (*fn)(char *, size_t, void *), void *arg);
void	 lines_free(struct lines *);

/* ---- sessions (exec.c) ------------------------------------------------- */

/* What came of one line of output. */
enum line_kind {
	LINE_BAD, LINE_SESSION, LINE_CHUNK, LINE_GAP, LINE_ENDED, LINE_OTHER
};
struct out_line {
	enum line_kind	 kind;
	json_t		*json;		/* owned */
	uint64_t	 seq;
	int		 fd;		/* 1 or 2 */
	const char	*bytes;		/* borrowed: json, or buf */
	size_t		 len;
	char		*buf;		/* owned; decoded base64 */
};
enum line_kind	 out_parse(const char *, size_t, struct out_line *ret);
void		 out_free(struct out_line *);
/* Tells of a gap on stderr; the last chunk that is gone. */
uint64_t	 out_gap(const json_t *line);
/* The exit code that a session's JSON means: problem_exit() of its reason. */
int		 session_code(const json_t *);
/* {"K": "V"} from --env K=V ..., or NULL: told what was wrong. */
json_t		*pairs_json(const struct args *, const char *opt);
/* Runs it to its end; takes body.  The command's exit code or ours. */
int		 exec_run(const char *sandbox, json_t *body, int use_stdin);

#endif
