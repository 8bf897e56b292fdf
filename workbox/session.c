/*
 * session: sandbox exec, run, ps and kill.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static int	exec_main(const struct args *);
static int	run_main(const struct args *);
static int	ps_main(const struct args *);
static int	kill_main(const struct args *);

/* Of exec and run. */
#define SPEC_OPTS							\
	{ "name", "NAME", "name of the session", 0, 0 },		\
	{ "env", "NAME=VALUE", "environment variable", 0, 1 },		\
	{ "cwd", "DIR", "absolute directory in the sandbox; HOME if left " \
	    "out", 0, 0 },						\
	{ "user", "USER", "name or uid in the sandbox, or either with "	\
	    ":group; its root if left out", 0, 0 },			\
	{ "memory", "BYTES", "limit of the session's memory; K, M, G and " \
	    "T may follow", 0, 0 },					\
	{ "pids", "NUMBER", "limit of its processes", 0, 0 },		\
	{ "label", "NAME=VALUE", "label of the session", 0, 1 },	\
	{ "timeout", "SECONDS", "kill the command after this time", 0, 0 }

static const struct opt exec_opts[] = {
	SPEC_OPTS,
	{ "no-stdin", NULL, "do not pass standard input on", 'n', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_exec = {
	.name = "sandbox exec",
	.operands = "SANDBOX -- COMMAND [ARG ...]",
	.doc = "Run a command, pass its output on and exit with its code",
	.opts = exec_opts,
	.flags = CMD_CLIENT | CMD_EXEC,
	.min = 1, .max = 1,
	.run = exec_main
};

static const struct opt run_opts[] = {
	SPEC_OPTS,
	{ "follow", NULL, "print its output instead, until it ends, and exit "
	    "with its code", 'f', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_run = {
	.name = "sandbox run",
	.operands = "SANDBOX -- COMMAND [ARG ...]",
	.doc = "Start a command, leave it running and print its session",
	.opts = run_opts,
	.flags = CMD_CLIENT | CMD_EXEC,
	.min = 1, .max = 1,
	.run = run_main
};

static const struct opt ps_opts[] = {
	{ "all", NULL, "those that have ended and left nothing, too", 'a', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_ps = {
	.name = "sandbox ps",
	.operands = "SANDBOX",
	.doc = "List the sessions that run in a sandbox",
	.opts = ps_opts,
	.flags = CMD_CLIENT | CMD_FORMAT,
	.min = 1, .max = 1,
	.run = ps_main
};

static const struct opt kill_opts[] = {
	{ "signal", "SIGNAL", "TERM if left out; KILL ends all processes of "
	    "the session", 's', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_kill = {
	.name = "sandbox kill",
	.operands = "SANDBOX SESSION",
	.doc = "Send a signal to a session, or to what it has left behind",
	.opts = kill_opts,
	.flags = CMD_CLIENT,
	.min = 2, .max = 2,
	.run = kill_main
};

/* ---- what is asked ----------------------------------------------------- */

json_t *
pairs_json(const struct args *a, const char *opt)
{
	json_t		*all = json_object();
	const char	*pair, *eq;
	char		*key;
	size_t		 i = 0;
	int		 rc;

	while ((pair = args_each(a, opt, &i)) != NULL) {
		eq = strchr(pair, '=');
		if (eq == NULL || eq == pair) {
			(void)fail("--%s: expected NAME=VALUE, not \"%s\"",
			    opt, pair);
			break;
		}
		key = xmalloc((size_t)(eq - pair) + 1);
		memcpy(key, pair, (size_t)(eq - pair));
		key[eq - pair] = '\0';
		if (json_object_get(all, key) != NULL) {
			(void)fail("--%s: %s is given twice", opt, key);
			free(key);
			break;
		}
		rc = json_object_set_new(all, key, json_string(eq + 1));
		free(key);
		if (rc == -1) {
			(void)fail("--%s: expected UTF-8", opt);
			break;
		}
	}
	if (pair == NULL)
		return all;
	json_decref(all);
	return NULL;
}

static json_t *
argv_json(const struct args *a)
{
	json_t	*v = json_array();
	int	 i;

	for (i = 0; i < a->ncommand; i++)
		if (json_array_append_new(v, json_string(a->command[i])) ==
		    -1) {
			(void)fail("argument %d: expected UTF-8", i);
			json_decref(v);
			return NULL;
		}
	return v;
}

static int
set_timeout(const struct args *a, json_t *body)
{
	const char	*s = args_get(a, "timeout");
	double		 v;

	if (s == NULL)
		return 0;
	if (text_decimal(s, 0.001, 31536000, &v) == -1)
		return fail("--timeout: expected seconds from 0.001 to "
		    "31536000, not \"%s\"", s);
	json_object_set_new(body, "timeoutSeconds", json_real(v));
	return 0;
}

/* The body of exec and of a session, or NULL: told what was wrong. */
static json_t *
session_spec(const struct args *a)
{
	json_t		*body = json_object(), *argv;
	const char	*s;

	argv = argv_json(a);
	if (argv == NULL || json_object_set_new(body, "argv", argv) == -1)
		goto bad;
	if (spec_pairs(a, "env", "env", body) != 0 ||
	    spec_pairs(a, "label", "labels", body) != 0 ||
	    spec_limits(a, body) != 0)
		goto bad;
	if ((s = args_get(a, "cwd")) != NULL && *s != '/') {
		(void)fail("--cwd: expected an absolute directory, not \"%s\"",
		    s);
		goto bad;
	}
	if (s != NULL &&
	    json_object_set_new(body, "cwd", json_string(s)) == -1) {
		(void)fail("--cwd: expected UTF-8");
		goto bad;
	}
	if ((s = args_get(a, "user")) != NULL &&
	    json_object_set_new(body, "user", json_string(s)) == -1) {
		(void)fail("--user: expected UTF-8");
		goto bad;
	}
	if ((s = args_get(a, "name")) != NULL)
		json_object_set_new(body, "name", json_string(s));
	if (set_timeout(a, body) == 0)
		return body;
bad:
	json_decref(body);
	return NULL;
}

/* ---- exec, run --------------------------------------------------------- */

static int
exec_main(const struct args *a)
{
	json_t	*body;
	int	 rc, input;

	if ((rc = client_init(a)) != 0)
		return rc;
	if ((body = session_spec(a)) == NULL)
		return EXIT_OURS;
	input = args_get(a, "no-stdin") == NULL && !isatty(STDIN_FILENO);
	return exec_run(a->operand[0], body, input);
}

static int
run_main(const struct args *a)
{
	const char	*sid;
	json_t		*body, *s;
	int		 rc;

	if ((rc = client_init(a)) != 0)
		return rc;
	if ((body = session_spec(a)) == NULL)
		return EXIT_OURS;
	rc = again_make(client_path("/v1/sandboxes", a->operand[0],
	    "sessions", NULL), body, &s);
	if (rc != 0)
		return rc;
	sid = json_str(s, "sessionId");
	if (!args_ref_ok(sid))
		rc = fail("%s answered without the session's id",
		    client_server());
	else if (args_get(a, "follow") != NULL) {
		note("session %s", sid);
		rc = logs_run(a->operand[0], sid);
	} else
		printf("{\"sessionId\": \"%s\"}\n", sid);
	json_decref(s);
	return rc;
}

/* ---- ps ---------------------------------------------------------------- */

#define CELL_MAX	48		/* of a command; JSON has it whole */

/* Nothing of it runs any more. */
static int
is_over(const json_t *s)
{
	return strcmp(json_str(s, "state"), "ended") == 0 &&
	    json_integer_value(json_object_get(s, "leftBehind")) == 0;
}

/* How long ago, in its largest unit, as `wb ps' has it. */
static void
age(const char *when, char ret[24])
{
	static const struct { int64_t s; char unit; } units[] = {
		{ 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' },
	};
	int64_t	then = text_time(when), s = (int64_t)time(NULL) - then;
	size_t	i = 0;

	(void)str_copy(ret, "-", 24);
	if (then < 0)
		return;
	if (s < 0)
		s = 0;		/* its clock is ahead of ours */
	while (i < 3 && s < units[i].s)
		i++;
	(void)snprintf(ret, 24, "%lld%c", (long long)(s / units[i].s),
	    units[i].unit);
}

/* The exit code that exec would have, or nothing. */
static void
code_cell(const json_t *s, char ret[24])
{
	const json_t	*sig = json_object_get(s, "signal");
	const json_t	*code = json_object_get(s, "exitCode");

	*ret = '\0';
	if (json_is_integer(sig))
		(void)snprintf(ret, 24, "%lld",
		    (long long)(EXIT_SIGNAL + json_integer_value(sig)));
	else if (json_is_integer(code))
		(void)snprintf(ret, 24, "%lld",
		    (long long)json_integer_value(code));
}

/* The numbers of the chunks that are kept, as far as they are known. */
static void
output_cell(const json_t *s, char ret[48])
{
	json_int_t	first, last;

	first = json_integer_value(json_object_get(s, "firstSeq"));
	last = json_integer_value(json_object_get(s, "lastSeq"));
	*ret = '\0';
	if (last > 0 && first <= last)
		(void)snprintf(ret, 48, "%lld-%lld",
		    first > 0 ? (long long)first : 1LL, (long long)last);
}

/* Its words, cut between two characters; what is not text is a `?'. */
static void
command_cell(const json_t *s, char ret[CELL_MAX + 4])
{
	const json_t	*argv = json_object_get(s, "argv"), *v;
	const char	*word;
	size_t		 i, n = 0, len, cut = 0;

	for (i = 0; i < json_array_size(argv) && !cut; i++) {
		v = json_array_get(argv, i);
		word = json_is_string(v) ? json_string_value(v) : "?";
		if (i > 0 && n < CELL_MAX)
			ret[n++] = ' ';
		len = strlen(word);
		if (len > CELL_MAX - n) {
			cut = 1;
			len = CELL_MAX - n;
			while (len > 0 && (word[len] & 0xc0) == 0x80)
				len--;
		}
		memcpy(ret + n, word, len);
		n += len;
	}
	(void)str_copy(ret + n, cut ? "..." : "", 4);	/* fits */
}

static void
ps_table(const json_t *items)
{
	struct table	 t;
	const json_t	*s;
	const char	*reason;
	char		 cell[CELL_MAX + 4];
	size_t		 i;

	table_init(&t, 8, "ID", "STATE", "EXIT", "AGE", "OUTPUT", "LEFT",
	    "NAME", "COMMAND");
	for (i = 0; i < json_array_size(items); i++) {
		s = json_array_get(items, i);
		reason = json_str(s, "reason");
		table_add(&t, json_str(s, "sessionId"));
		table_add(&t, *reason != '\0' ? reason : json_str(s,
		    "state"));
		code_cell(s, cell);
		table_add(&t, cell);
		age(json_str(s, "startedAt"), cell);
		table_add(&t, cell);
		output_cell(s, cell);
		table_add(&t, cell);
		(void)snprintf(cell, sizeof cell, "%lld", (long long)
		    json_integer_value(json_object_get(s, "leftBehind")));
		table_add(&t, cell);
		table_add(&t, json_str(s, "name"));
		command_cell(s, cell);
		table_add(&t, cell);
	}
	table_print(&t, stdout);
}

static int
ps_main(const struct args *a)
{
	json_t	*items, *list;
	char	*path;
	size_t	 i;
	int	 rc;

	if ((rc = client_init(a)) != 0)
		return rc;
	path = client_path("/v1/sandboxes", a->operand[0], "sessions", NULL);
	if ((rc = client_list(path, &items)) != 0)
		return rc;
	for (i = json_array_size(items); i-- > 0 &&
	    args_get(a, "all") == NULL;)
		if (is_over(json_array_get(items, i)))
			(void)json_array_remove(items, i);
	if (args_json(a)) {
		list = json_pack("{s:O}", "items", items);
		rc = json_print(list);
		json_decref(list);
	} else
		ps_table(items);
	json_decref(items);
	return rc;
}

/* ---- kill -------------------------------------------------------------- */

static int
kill_main(const struct args *a)
{
	const char	*s = args_get(a, "signal");
	uint64_t	 num;
	json_t		*v = NULL;
	int		 rc;

	/* a name goes as it is: numbers differ between systems */
	if (s == NULL)
		v = json_string("TERM");
	else if (text_u64(s, 1, 64, &num) == 0)
		v = json_integer((json_int_t)num);
	else if ((*s < '0' || *s > '9') && (text_signal(s) != 0 ||
	    strncmp(s, "RTMIN", 5) == 0))
		v = json_string(s);
	if (v == NULL)
		return fail("--signal: expected TERM, KILL, INT ... or a "
		    "number from 1 to 64, not \"%s\"", s);
	if ((rc = client_init(a)) == 0)
		rc = client_call("POST", client_path("/v1/sandboxes",
		    a->operand[0], "sessions", a->operand[1], "signal", NULL),
		    json_pack("{s:O}", "signal", v), NULL);
	json_decref(v);
	return rc;
}

