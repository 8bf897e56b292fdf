/*
 * workbox: the operator's command line.
 *
 * Each command is one const struct cmd at the head of its family's file and
 * one line in cmds.def; parsing of options, --help and what a shell completes
 * come from it, and workbox(1) is held against it.  What does not need a
 * server on this host (all but what includes host.h) is POSIX and builds
 * alone.
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

#ifndef WB_PRESETDIR
#define WB_PRESETDIR	"/usr/share/workbox/presets"
#endif

#define WB_CONFDIR	"/etc/workbox"
#define WB_TOKEN_FILE	WB_CONFDIR "/token"
#define WB_CONF_FILE	WB_CONFDIR "/workbox.conf"
#define WB_SERVER	"http://127.0.0.1:8790"

/* DESIGN 9: what is not the command's own exit code. */
#define EXIT_LATE	124		/* wait: its time is over */
#define EXIT_OURS	125		/* workbox itself failed */
#define EXIT_CANNOT	126		/* the command cannot run */
#define EXIT_MISSING	127		/* the command was not found */
#define EXIT_SIGNAL	128		/* + the signal */

/* ---- commands and their arguments (args.c) ----------------------------- */

struct opt {
	const char	*name;		/* long, without dashes; NULL ends */
	const char	*arg;		/* NULL: a flag; else see below */
	const char	*doc;
	char		 letter;	/* or 0 */
	char		 many;		/* may be given more than once */
};

/*
 * What an option's argument and an operand are is said by their name in the
 * table: choices in small letters with | between ("table|json") are all that
 * there are; of others complete.c knows some (SANDBOX, FILE ...).
 */
enum cmd_flags {
	CMD_CLIENT = 1 << 0,		/* --server, --token-file, --cacert */
	CMD_STATE = 1 << 1,		/* --state, --config */
	CMD_FORMAT = 1 << 2,		/* --format table|json */
	CMD_EXEC = 1 << 3,		/* COMMAND [ARG ...] after `--' */
	CMD_HIDDEN = 1 << 4		/* not in the overview */
};

struct args;

struct cmd {
	const char		*name;		/* "sandbox exec" */
	const char		*alias;		/* "sandbox ls, ...", or NULL */
	const char		*operands;	/* "SANDBOX SESSION" */
	const char		*doc;		/* one line */
	const struct opt	*opts;		/* or NULL */
	unsigned int		 flags;
	int			 min, max;	/* operands; -1: any */
	int			(*run)(const struct args *);
};

struct given {
	const struct opt	*opt;		/* borrowed: the table */
	const char		*val;		/* borrowed: argv; flags: "" */
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
/*
 * The same of words that may be wrong or not all there yet: takes what it
 * can, silent on stdout.  The option whose argument would come next, or NULL.
 * command is NULL as long as there is no `--'.
 */
const struct opt *args_scan(const struct cmd *, int argc, char **argv,
		    struct args *ret);
/* Option i of a command, or NULL behind the last. */
const struct opt *args_opt(const struct cmd *, size_t i);
/* Choice i of "table|json"; 0: there is none. */
int		 args_choice(const char *spec, size_t i, char *ret, size_t);
/*
 * Whether it is a name, or an id or the beginning of one, as the server takes
 * them: nothing else may become part of a path or of a command line.
 */
int		 args_ref_ok(const char *);
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

/* ---- the table of commands (commands.c) -------------------------------- */

const struct cmd *cmd_at(size_t i);	/* NULL behind the last */
/* How many words of argv a name takes up, or 0 when it is another. */
int		 cmd_match(const char *name, int argc, char **argv);
/* By name or alias, and the words that it took up; NULL: none. */
const struct cmd *cmd_find(int argc, char **argv, int *ret_words);
/* What to do with words that are no command; the exit code. */
int		 cmd_unknown(int argc, char **argv);

/* ---- lists of hosts (hosts.c) ------------------------------------------ */

#define HOST_FORM	"HOST[:PORT[,PORT...]]"

/* Of commands that take a whole list. */
#define HOSTS_OPTS							\
	{ "allow", HOST_FORM, "host that may be reached, with the "	\
	    "network allowlist, at 443 and 80 without PORT; *.SUFFIX: "	\
	    "all below it", 0, 1 },					\
	{ "allow-file", "FILE", "file with such hosts, one a line; - for " \
	    "standard input", 0, 0 },					\
	{ "preset", "PRESET", "such hosts as come with this program: npm, " \
	    "pypi, debian ...", 0, 1 }

/* The first of HOSTS_OPTS that is given, or NULL. */
const char *hosts_given(const struct args *);
/*
 * Where the kind (or NULL) is allowlist, or one of HOSTS_OPTS is given: the
 * network, with their list as `allow'.  0, or fail()'s code: they cannot be
 * read, or the kind is another.
 */
int	 hosts_list(const struct args *, const char *kind, json_t *body);
/*
 * Where that stands which a server calls by its place in a body, "allow[3]":
 * "FILE:LINE", or "--allow"; NULL: it is no such place.  The caller frees.
 */
char	*hosts_where(const char *field);
/*
 * 1: a list as the server tells it has no such entry; 0: it has, or only the
 * server can say, as of names beyond ASCII.  *ret_near (borrowed: the list's)
 * is an entry of it with the same host, or NULL.
 */
int	 hosts_missing(const json_t *list, const char *entry,
	    const char **ret_near);
/*
 * Entries from one option, a text (its name for messages), a file ("-": stdin)
 * or a preset in a directory, to the end of a list.  0, or fail()'s code.
 */
int	 hosts_option(const struct args *, const char *opt, json_t *list);
int	 hosts_text(json_t *list, const char *name, const char *, size_t len);
int	 hosts_file(json_t *list, const char *path);
int	 hosts_preset(json_t *list, const char *dir, const char *name);
/* The names of those that there are, in order; "": none.  The caller frees. */
char	*hosts_presets(const char *dir, const char *glue);

/* ---- misspelt names (nearest.c) ---------------------------------------- */

#define NEAREST_FAR	~0U
#define NEAREST_MOST	3

/* The best so far; begins as { .count = 0 }. */
struct nearest {
	size_t		 count;
	unsigned int	 edits;
	const char	*shown[NEAREST_MOST];	/* borrowed */
};

unsigned int	 nearest_edits(const char *, const char *);
/* Takes shown, where name is near to word and none was nearer. */
void		 nearest_try(struct nearest *, const char *word,
		    const char *name, const char *shown);
/*
 * "; did you mean A, B or C?", each with before in front, or "; OTHERWISE".
 * The caller frees.
 */
char		*nearest_hint(const struct nearest *, const char *before,
		    const char *otherwise);

/* ---- messages and text (text.c) ---------------------------------------- */

/* For messages: "workbox sandbox exec". */
void	 text_command(const char *name);
/* One line on stderr after the command's name; returns EXIT_OURS. */
int	 fail(const char *, ...) __attribute__((format(printf, 1, 2)));
/* From now on all of these go to fn, a line each. */
void	 text_told(void (*fn)(const char *));
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
char	*text_fd(int, size_t max, size_t *ret_len);

/*
 * The next character of UTF-8: its length, or 0: there is none, or no UTF-8.
 */
size_t	 text_utf8(const char *, uint32_t *ret);
/* Controls, and what moves, hides or changes the characters around it. */
int	 text_hidden(uint32_t);
/*
 * Copies src for people: what is hidden, or no printable character of the
 * locale, as \xNN or \uNNNN.  Cut at size, with NUL; the columns it takes.
 */
size_t	 text_show(const char *src, char *dst, size_t size);
/* All of it, what is not printable ASCII as \xNN.  The caller frees. */
char	*text_ascii(const char *);
int	 text_colour(FILE *);		/* whether it may be coloured */

/* ---- tables and JSON (table.c) ----------------------------------------- */

/* Columns as wide as they need; cells by text_show(). */
struct table {
	size_t		 ncols, ncells, room;
	struct cell {
		char	*text;		/* owned */
		size_t	 cols;		/* that it takes */
	}		*cell;		/* owned; row by row */
};
void	 table_init(struct table *, size_t ncols, ...);	/* the heads */
void	 table_add(struct table *, const char *cell);	/* copied */
void	 table_print(struct table *, FILE *);		/* and frees */

int	 json_print(json_t *);		/* indented, to stdout; 0 or fail() */
const char *json_str(const json_t *, const char *key);	/* "" if absent */
/* An integer into 24 bytes, "" of what is none; ret. */
const char *json_num(const json_t *, const char *key, char ret[24]);

/* ---- the client file (settings.c) -------------------------------------- */

/* ~/.config/workbox/config: what is not given otherwise. */
enum setting_key {
	SET_SERVER, SET_TOKEN_FILE, SET_CACERT, SET_ROOTFS, NSETTINGS
};

struct settings {
	struct {
		char	*val;		/* owned; NULL: not there */
		int	 line;
	} key[NSETTINGS];
};
#define SETTINGS_WHY	512

/*
 * Parses len bytes at text with a NUL behind.  home stands for ~.  0, or -1
 * with why: "NAME:LINE: ..."; *ret is to be freed in any case.
 */
int		 settings_parse(const char *name, const char *text, size_t len,
		    const char *home, struct settings *ret,
		    char why[SETTINGS_WHY]);
void		 settings_free(struct settings *);
/* Reads the user's file, once.  0, or fail()'s code. */
int		 settings_load(void);
/*
 * A value by option, environment variable (or NULL) and file, in this order,
 * or NULL.  *ret_where is for messages: "--cacert", "WORKBOX_CACERT",
 * "FILE:LINE: cacert"; it lives as long as the process.
 */
const char	*setting(const struct args *, const char *opt, const char *env,
		    enum setting_key, const char **ret_where);

/* ---- requests to the server (client.c) --------------------------------- */

struct req;

/*
 * Server, token and CA from the options, the environment and the client file,
 * or fail()'s code.  A warning where the token would cross a network in clear.
 */
int	 client_init(const struct args *);
void	 client_limit(long ms);		/* each request is given up then */
/*
 * The operand that a request is about, for messages (copied, or NULL); all
 * operands until this is called.
 */
void	 client_about(const char *);
const char *client_server(void);	/* as given, for messages */
/*
 * For messages: what the caller's words for a member of a body are, that a
 * problem names; NULL: none.  The caller frees.
 */
void	 client_fields(char *(*fn)(const char *field));

/*
 * A path from parts that are percent-encoded; the first is taken as it is.
 * The caller frees.
 */
char	*client_path(const char *first, ...) __attribute__((sentinel));
void	 client_query(char **path, const char *key, const char *value);

struct req *req_new(const char *method, const char *path);
void	 req_free(struct req *);	/* NULL is ignored */
/* Hexadecimal digits that nobody else has; ends the program without any. */
void	 key_new(char ret[33]);
void	 req_key(struct req *, const char *);	/* Idempotency-Key */
void	 req_json(struct req *, json_t *);	/* takes the reference */
void	 req_bytes(struct req *, const void *, size_t);	/* copied */
/*
 * Where the body of a 2xx answer goes as it comes.  fn returns 0; 1 to be
 * called again with the same bytes after req_resume(); -1 to end.
 */
void	 req_sink(struct req *, int (*fn)(const char *, size_t, void *),
	    void *arg);
void	 req_header(struct req *, const char *line);
const char *req_type(const struct req *);	/* of the answer, or "" */
void	 req_resume(struct req *);
/* Runs to the end.  0: 2xx; -1: anything else, not yet told. */
int	 req_run(struct req *);
long	 req_status(const struct req *);	/* 0: no answer, or not yet */
/*
 * None, or a cut answer, or 502 to 504 but for a full host: the server may be
 * restarting.  Nothing that would be the same again, as a certificate.
 */
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
/* What it is made of: -1 when it grows too long; the first n bytes go. */
int	 lines_add(struct lines *, const char *, size_t);
void	 lines_cut(struct lines *, size_t n);
void	 lines_free(struct lines *);

/* ---- servers that go away (again.c) ------------------------------------ */

struct again {
	int64_t		deadline;	/* ms of again_now(); 0: none */
	int64_t		since;		/* away since, ms; 0: it is there */
	int		told;		/* that it is away */
	int		met;		/* it was reached once */
	int64_t		begun;		/* ms: the last request */
	unsigned int	failed;		/* the caller's to reset: progress */
	int		sig;		/* that was caught; ends all waiting */
};

int64_t		 again_now(void);	/* monotonic, ms */
void		 again_lost(struct again *);	/* no answer, or cut */
void		 again_back(struct again *);
/* ms, or less when there will be something to tell; tells when it is due. */
int		 again_ms(struct again *, int ms);
int		 again_over(const struct again *);	/* the deadline */
/* req_start() */
void		 again_start(struct again *, struct req *);
/* req_run(), but for a deadline or a signal: then it is not done either. */
int		 again_run(struct again *, struct req *);
/*
 * After one that failed: how long to wait, 100 ms to 2 s; -1: not again, as it
 * would be for nothing, was too often, is too late, or a signal came.
 */
int		 again_delay(struct again *, const struct req *);
/* The same, and waits: 1: try again; 0: not. */
int		 again_pause(struct again *, const struct req *);
/*
 * POST of what makes something, under a key of its own, so that it is done
 * once however often it is asked: again where req_retry() says so.  path is
 * freed, body taken.  0 with the answer, or a code.
 */
int		 again_make(char *path, json_t *body, json_t **ret);
/* From now on INT, TERM and HUP wait to be taken; fd is readable then. */
int		 signals_catch(void);
int		 signals_take(void);	/* one, or 0 */

/* ---- output of a session (logs.c) -------------------------------------- */

/* Follows all its output; the code of its end, or ours.  Catches signals. */
int		 logs_run(const char *sandbox, const char *session);

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
/* The output behind a chunk, until its end if to_end; not started. */
struct req	*out_ask(const char *sandbox, const char *session,
		    uint64_t after, int to_end);
/*
 * A gap that ends behind the last chunk seen, *after, is told on stderr and
 * moves that: 1.  0: another, which is nothing new.
 */
int		 out_gap(const json_t *line, uint64_t *after);
/* Tells that the command goes on, and how to see what follows a chunk. */
void		 left_running(const char *sandbox, const char *session,
		    uint64_t after);
/* The exit code that a session's JSON means: problem_exit() of its reason. */
int		 session_code(const json_t *);
/* --memory, --cpus and --pids as `limits', pairs as that key; 0 or a code. */
int		 spec_limits(const struct args *, json_t *body);
int		 spec_pairs(const struct args *, const char *opt,
		    const char *key, json_t *body);
/* {"K": "V"} from --env K=V ..., or NULL: told what was wrong. */
json_t		*pairs_json(const struct args *, const char *opt);
/* Runs it to its end; takes body.  The command's exit code or ours. */
int		 exec_run(const char *sandbox, json_t *body, int use_stdin);

#endif
