/*
 * session: sandbox exec, run, wait and logs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static int	exec_main(const struct args *);
static int	run_main(const struct args *);
static int	wait_main(const struct args *);
static int	logs_main(const struct args *);

static const struct opt exec_opts[] = {
	{ "env", "NAME=VALUE", "environment variable", 0, 1 },
	{ "cwd", "DIR", "absolute directory in the sandbox; HOME if left out",
	    0, 0 },
	{ "timeout", "SECONDS", "kill the command after this time", 0, 0 },
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
	{ "name", "NAME", "name of the session", 0, 0 },
	{ "env", "NAME=VALUE", "environment variable", 0, 1 },
	{ "cwd", "DIR", "absolute directory in the sandbox; HOME if left out",
	    0, 0 },
	{ "timeout", "SECONDS", "kill the command after this time", 0, 0 },
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

const struct cmd cmd_sandbox_wait = {
	.name = "sandbox wait",
	.operands = "SANDBOX SESSION",
	.doc = "Wait for a session's end, print it as JSON and exit with its "
	    "code",
	.flags = CMD_CLIENT,
	.min = 2, .max = 2,
	.run = wait_main
};

static const struct opt logs_opts[] = {
	{ "after", "NUMBER", "only what follows this chunk", 0, 0 },
	{ "follow", NULL, "go on until the output ends", 'f', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_sandbox_logs = {
	.name = "sandbox logs",
	.operands = "SANDBOX SESSION",
	.doc = "Print the output of a session",
	.opts = logs_opts,
	.flags = CMD_CLIENT,
	.min = 2, .max = 2,
	.run = logs_main
};

#define WAIT_SECONDS	"60"		/* of one request */
#define RETRIES		40		/* some 60 s, as below */

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
	json_t		*body = json_object(), *argv, *env;
	const char	*s;

	argv = argv_json(a);
	if (argv == NULL || json_object_set_new(body, "argv", argv) == -1)
		goto bad;
	if ((env = pairs_json(a, "env")) == NULL)
		goto bad;
	if (json_object_size(env) > 0)
		json_object_set(body, "env", env);
	json_decref(env);
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
	json_t	*body, *s;
	char	 sid[64];
	int	 rc;

	if ((rc = client_init(a)) != 0)
		return rc;
	if ((body = session_spec(a)) == NULL)
		return EXIT_OURS;
	rc = client_call("POST", client_path("/v1/sandboxes", a->operand[0],
	    "sessions", NULL), body, &s);
	if (rc != 0)
		return rc;
	(void)text_show(json_str(s, "sessionId"), sid, sizeof sid);
	printf("{\"sessionId\": \"%s\"}\n", sid);
	json_decref(s);
	return 0;
}

/* ---- wait, logs -------------------------------------------------------- */

/*
 * Before the try after n that failed: 100 ms, 200 ms ... 2 s.  0 when it is
 * not worth another.
 */
static int
again(const struct req *r, unsigned int n)
{
	struct timespec	ts = { 0, 0 };
	unsigned int	ms = n < 5 ? 100U << n : 2000;

	if (!req_retry(r) || n >= RETRIES)
		return 0;
	ts.tv_sec = ms / 1000;
	ts.tv_nsec = (long)(ms % 1000) * 1000000;
	(void)nanosleep(&ts, NULL);
	return 1;
}

static int
is_ended(const json_t *s)
{
	return strcmp(json_str(s, "state"), "ended") == 0;
}

static int
wait_main(const struct args *a)
{
	struct req	*r;
	json_t		*s = NULL;
	char		*path;
	unsigned int	 failed = 0;
	int		 rc;

	if ((rc = client_init(a)) != 0)
		return rc;
	path = client_path("/v1/sandboxes", a->operand[0], "sessions",
	    a->operand[1], NULL);
	client_query(&path, "wait", WAIT_SECONDS);
	while (rc == 0 && !is_ended(s)) {
		r = req_new("GET", path);
		json_decref(s);
		s = NULL;
		if (req_run(r) == 0 && (s = req_answer(r)) != NULL)
			failed = 0;
		else if (!again(r, failed++))
			rc = req_fail(r);
		req_free(r);
	}
	free(path);
	if (rc == 0 && (rc = json_print(s)) == 0)
		rc = session_code(s);
	json_decref(s);
	return rc;
}

struct logs {
	struct lines	 lines;
	uint64_t	 after;
	int		 ended;
	int		 moved;		/* since the last connection */
	int		 rc;
};

static int
log_line(char *line, size_t len, void *arg)
{
	struct logs	*l = arg;
	struct out_line	 o;
	int		 rc = 0;

	switch (out_parse(line, len, &o)) {
	case LINE_CHUNK:
		l->moved = 1;
		if (o.seq <= l->after)
			break;
		l->after = o.seq;
		if (fwrite(o.bytes, 1, o.len, o.fd == STDOUT_FILENO ? stdout :
		    stderr) != o.len || (o.fd == STDOUT_FILENO &&
		    fflush(stdout) == EOF)) {
			l->rc = fail_errno("write output");
			rc = -1;
		}
		break;
	case LINE_GAP:
		l->moved = 1;
		l->after = out_gap(o.json);
		break;
	case LINE_ENDED:
		l->ended = 1;
		break;
	case LINE_BAD:
		l->rc = fail("%s sent a line that is no output",
		    client_server());
		rc = -1;
		break;
	case LINE_SESSION:
	case LINE_OTHER:
		break;
	}
	out_free(&o);
	return rc;
}

static int
log_bytes(const char *data, size_t n, void *arg)
{
	struct logs	*l = arg;

	return lines_feed(&l->lines, data, n, log_line, l);
}

/* One connection.  0: all is read; 1: to be tried again; else rc is set. */
static int
logs_once(const struct args *a, struct logs *l, unsigned int *failed)
{
	struct req	*r;
	char		*path, num[24];
	int		 follow = args_get(a, "follow") != NULL, rc = 0;

	(void)snprintf(num, sizeof num, "%llu", (unsigned long long)l->after);
	path = client_path("/v1/sandboxes", a->operand[0], "sessions",
	    a->operand[1], "output", NULL);
	client_query(&path, "after", num);
	if (follow)
		client_query(&path, "follow", "1");
	r = req_new("GET", path);
	free(path);
	req_sink(r, log_bytes, l);
	l->moved = 0;
	if (req_run(r) == -1 || (follow && !l->ended)) {
		if (l->moved)
			*failed = 0;
		if (l->rc == 0 && !l->ended) {
			if (follow && (req_ok(r) || again(r, (*failed)++)))
				rc = 1;
			else
				l->rc = req_fail(r);
		}
	}
	req_free(r);
	lines_free(&l->lines);
	return rc;
}

static int
logs_main(const struct args *a)
{
	static struct logs	 l;
	const char		*s = args_get(a, "after");
	unsigned int		 failed = 0;
	int			 rc;

	if (s != NULL && text_u64(s, 0, INT64_MAX, &l.after) == -1)
		return fail("--after: expected a number, not \"%s\"", s);
	if ((rc = client_init(a)) != 0)
		return rc;
	while (logs_once(a, &l, &failed) == 1)
		;
	return l.rc;
}
