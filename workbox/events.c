/*
 * events: the record, byte for byte as the server has stored it, but on a
 * terminal.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"
#include "xmalloc.h"

static int	tail_main(const struct args *);
static int	export_main(const struct args *);

static const struct opt tail_opts[] = {
	{ "after", "NUMBER", "begin after this record; with the first if left "
	    "out", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_events_tail = {
	.name = "events tail",
	.operands = "",
	.doc = "Print the records that there are, then new ones as they come",
	.opts = tail_opts,
	.flags = CMD_CLIENT,
	.run = tail_main
};

static const struct opt export_opts[] = {
	{ "after", "NUMBER", "begin after this record; with the first if left "
	    "out", 0, 0 },
	{ "limit", "NUMBER", "most records; all if left out", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_events_export = {
	.name = "events export",
	.operands = "",
	.doc = "Print the records that there are, one line each",
	.opts = export_opts,
	.flags = CMD_CLIENT,
	.run = export_main
};

struct tail {
	struct lines	lines;
	uint64_t	after;
	uint64_t	count;		/* lines printed */
	int		moved;		/* since the last connection */
	int		rc;
};

/* The number of a record, with which its line begins, or 0. */
static uint64_t
record_seq(const char *line)
{
	static const char	 head[] = "{\"seq\":";
	const char		*num = line + sizeof head - 1;
	unsigned long long	 seq;
	char			*end;

	if (strncmp(line, head, sizeof head - 1) != 0 || *num < '1' ||
	    *num > '9')
		return 0;
	seq = strtoull(num, &end, 10);
	return *end == ',' ? seq : 0;
}

/* A line that has room for a newline where its NUL is. */
static int
put_line(char *line, size_t len)
{
	auto_free char	*shown = NULL;
	size_t		 size = 4 * len + 12;

	if (isatty(STDOUT_FILENO)) {
		shown = xmalloc(size);
		(void)text_show(line, shown, size);
		return printf("%s\n", shown) < 0 || fflush(stdout) == EOF ?
		    -1 : 0;
	}
	line[len] = '\n';
	return fwrite(line, 1, len + 1, stdout) != len + 1 ||
	    fflush(stdout) == EOF ? -1 : 0;
}

static int
tail_line(char *line, size_t len, void *arg)
{
	struct tail	*t = arg;
	uint64_t	 seq = record_seq(line);

	t->moved = 1;
	if (seq == 0 || seq <= t->after) {
		t->rc = fail("%s sent a line that is no record above %llu",
		    client_server(), (unsigned long long)t->after);
		return -1;
	}
	t->after = seq;
	t->count++;
	if (put_line(line, len) == -1) {
		t->rc = fail_errno("write standard output");
		return -1;
	}
	return 0;
}

static int
tail_bytes(const char *data, size_t n, void *arg)
{
	struct tail	*t = arg;

	return lines_feed(&t->lines, data, n, tail_line, t);
}

static struct req *
ask(struct tail *t, int follow, const char *limit)
{
	char		*path = client_path("/v1/events", NULL), num[24];
	struct req	*r;

	(void)snprintf(num, sizeof num, "%llu", (unsigned long long)t->after);
	client_query(&path, "after", num);
	if (limit != NULL)
		client_query(&path, "limit", limit);
	if (follow)
		client_query(&path, "follow", "1");
	r = req_new("GET", path);
	free(path);
	req_sink(r, tail_bytes, t);
	t->moved = 0;
	return r;
}

static int
get_after(const struct args *a, struct tail *t)
{
	const char	*s = args_get(a, "after");

	if (s != NULL && text_u64(s, 0, INT64_MAX, &t->after) == -1)
		return fail("--after: expected a number, not \"%s\"", s);
	return client_init(a);
}

static int
export_main(const struct args *a)
{
	static struct tail	 t;
	struct req		*r;
	const char		*limit = args_get(a, "limit");
	uint64_t		 v;
	int			 rc;

	if (limit != NULL && text_u64(limit, 1, INT64_MAX, &v) == -1)
		return fail("--limit: expected a number from 1, not \"%s\"",
		    limit);
	if ((rc = get_after(a, &t)) != 0)
		return rc;
	r = ask(&t, 0, limit);
	if (req_run(r) == -1 && t.rc == 0)
		t.rc = req_fail(r);
	else if (t.rc == 0 && t.lines.len > 0)
		t.rc = fail("%s ended within a line", client_server());
	req_free(r);
	lines_free(&t.lines);
	return t.rc;
}

static int
tail_main(const struct args *a)
{
	static struct tail	 t;
	struct again		 away = { 0 };
	struct req		*r;
	int			 rc;

	if ((rc = get_after(a, &t)) != 0)
		return rc;
	while (t.rc == 0) {
		r = ask(&t, 1, NULL);
		rc = again_run(&away, r);
		if (t.moved)
			away.failed = 0;
		if (t.rc == 0 && !again_pause(&away, r))
			t.rc = rc == -1 ? req_fail(r) :
			    fail("%s keeps ending the answer",
			    client_server());
		req_free(r);
		lines_free(&t.lines);
	}
	return t.rc;
}
