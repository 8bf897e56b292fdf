/*
 * wait.c: wb wait and wb kill: the end of a session, and how to bring it
 * about.
 */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "wb.h"

static int
wait_for(int argc, char **argv)
{
	static const struct option	none[] = { { NULL, 0, NULL, 0 } };
	struct msg_session_wait		w = { 0 };
	struct chan			ch;
	struct msg			m;
	int				e;

	if (wb_option(&cmd_wait, argc, argv, ":", none) != -1)
		return EXIT_WB;
	if (argc - optind != 1)
		return wb_usage(&cmd_wait, "expected one session");
	wb_connect(&ch);
	if ((e = wb_find(&ch, argv[optind], w.id)) != 0)
		return e;
	e = wb_call(&ch, MSG_SESSION_WAIT, &w, MSG_SESSION_EXIT, &m);
	return e != 0 ? e : wb_ended(&m.body.session_exit);
}

const struct command	cmd_wait = {
	"wait", "SESSION", "wait for a session's end; its exit code is ours",
	wait_for
};

/* "TERM", "SIGTERM" or "15"; 0: none of them. */
static unsigned int
signal_of(const char *s)
{
	const char	*name;
	char		*end;
	unsigned long	 n;
	int		 i;

	if (*s >= '0' && *s <= '9') {
		n = strtoul(s, &end, 10);
		return *end == '\0' && n <= 64 ? (unsigned int)n : 0;
	}
	if (strncmp(s, "SIG", 3) == 0)
		s += 3;
	for (i = 1; i < 32; i++)
		if ((name = sigabbrev_np(i)) != NULL && strcmp(name, s) == 0)
			return (unsigned int)i;
	return 0;
}

static int
kill_it(int argc, char **argv)
{
	static const struct option	longs[] = {
		{ "signal", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 }
	};
	struct msg_session_signal	k = { .signal = SIGTERM };
	struct chan			ch;
	struct msg			m;
	int				c, e;

	while ((c = wb_option(&cmd_kill, argc, argv, ":s:", longs)) != -1)
		if (c != 's')
			return EXIT_WB;
		else if ((k.signal = signal_of(optarg)) == 0)
			return wb_usage(&cmd_kill, "--signal: expected TERM, "
			    "KILL, INT ... or a number from 1 to 64, not "
			    "\"%s\"", optarg);
	if (argc - optind != 1)
		return wb_usage(&cmd_kill, "expected one session");
	wb_connect(&ch);
	if ((e = wb_find(&ch, argv[optind], k.id)) != 0)
		return e;
	return wb_call(&ch, MSG_SESSION_SIGNAL, &k, MSG_OK, &m);
}

const struct command	cmd_kill = {
	"kill", "[-s | --signal SIGNAL] SESSION",
	"send TERM, or SIGNAL, to a session's process group, or to what it has\n"
	"\tleft behind when it has ended; KILL ends all of it", kill_it
};
