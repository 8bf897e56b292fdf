/*
 * logs.c: wb logs: the output of a session, by its numbers.  We are a
 * watcher: nobody waits for us, and what we are too late for is told.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wb.h"

static int
write_out(unsigned int stream, struct wire_bin b)
{
	int		fd = stream == STREAM_STDERR ? STDERR_FILENO :
			    STDOUT_FILENO;
	struct pollfd	pfd = { .fd = fd, .events = POLLOUT };
	size_t		off = 0;
	ssize_t		n;

	while (off < b.len) {
		if ((n = write(fd, b.data + off, b.len - off)) != -1)
			off += (size_t)n;
		else if (errno == EAGAIN)
			(void)poll(&pfd, 1, -1);
		else if (errno != EINTR)
			return wb_fail("write: %s", strerror(errno));
	}
	return 0;
}

/* Up to what there was when we came, or with follow to the end. */
static int
print(struct chan *c, struct msg_session_read *ask)
{
	const struct msg_session_chunk	*b;
	struct msg			 m;
	uint64_t			 last = UINT64_MAX;
	int				 e;

	do {
		e = wb_call(c, MSG_SESSION_READ, ask, MSG_SESSION_CHUNK, &m);
		if (e != 0)
			return e;
		b = &m.body.session_chunk;
		wb_gap(b);
		if (b->seq != 0 && (e = write_out((unsigned int)b->stream,
		    b->bytes)) != 0)
			return e;
		if (last == UINT64_MAX && !ask->wait)
			last = b->last_seq;
		ask->after = b->seq;
	} while (!b->eof && b->seq != 0 && b->seq < last);
	return 0;
}

/* -1: it is none. */
static int
number(const char *s, uint64_t *ret)
{
	char	*end;

	errno = 0;
	*ret = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && *end == '\0' && errno == 0 &&
	    *ret <= WB_U63 ? 0 : -1;
}

static int
logs(int argc, char **argv)
{
	static const struct option	longs[] = {
		{ "after", required_argument, NULL, 'a' },
		{ "follow", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 }
	};
	struct msg_session_read		ask = { .after = 0 };
	struct chan			ch;
	int				c, e;

	while ((c = wb_option(&cmd_logs, argc, argv, ":f", longs)) != -1)
		if (c == 'f')
			ask.wait = 1;
		else if (c != 'a')
			return EXIT_WB;
		else if (number(optarg, &ask.after) == -1)
			return wb_usage(&cmd_logs, "--after: expected the "
			    "number of a chunk, not \"%s\"", optarg);
	if (argc - optind != 1)
		return wb_usage(&cmd_logs, "expected one session");
	wb_connect(&ch);
	if ((e = wb_find(&ch, argv[optind], ask.id)) != 0)
		return e;
	return print(&ch, &ask);
}

const struct command	cmd_logs = {
	"logs", "[--after NUMBER] [-f | --follow] SESSION",
	"the output of a session that is kept, behind chunk NUMBER\n"
	"\t--follow: until it ends", logs
};
