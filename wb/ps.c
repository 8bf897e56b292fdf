/*
 * ps.c: wb ps: the sessions that the runner keeps.
 */
#include <inttypes.h>
#include <stdio.h>

#include "ulid.h"
#include "wb.h"

void
wb_age(uint64_t ms, char ret[16])
{
	uint64_t	now = now_ms(), s = now > ms ? (now - ms) / 1000 : 0;

	if (s < 60)
		(void)snprintf(ret, 16, "%" PRIu64 "s", s);
	else if (s < 3600)
		(void)snprintf(ret, 16, "%" PRIu64 "m", s / 60);
	else if (s < 86400)
		(void)snprintf(ret, 16, "%" PRIu64 "h", s / 3600);
	else
		(void)snprintf(ret, 16, "%" PRIu64 "d", s / 86400 % 100000);
}

static void
line(const struct row_rsession *r, void *arg)
{
	char	code[8] = "-", when[16] = "-", out[48] = "-";

	(void)arg;
	if (r->ended)
		(void)snprintf(code, sizeof(code), "%u", r->signal != 0 ?
		    EXIT_SIGNAL + (unsigned int)r->signal :
		    (unsigned int)r->exit_code);
	if (r->started_ms != 0)
		wb_age(r->started_ms, when);
	if (r->last_seq != 0 && r->first_seq <= r->last_seq)
		(void)snprintf(out, sizeof(out), "%" PRIu64 "-%" PRIu64,
		    r->first_seq, r->last_seq);
	(void)printf("%s  %-7s  %4s  %6s  %15s  %4" PRIu64 "  %s\n", r->id,
	    !r->ended ? "running" : r->timed_out ? "timeout" : "ended", code,
	    when, out, r->left_behind, r->name[0] != '\0' ? r->name : "-");
}

static int
ps(int argc, char **argv)
{
	struct chan	c;
	int		e;

	(void)argv;
	if (argc != 1)
		return wb_usage(&cmd_ps, "expected no argument");
	wb_connect(&c);
	(void)printf("%-26s  %-7s  %4s  %6s  %15s  %4s  %s\n", "ID", "STATE",
	    "EXIT", "AGE", "OUTPUT", "LEFT", "NAME");
	if ((e = wb_each(&c, line, NULL)) != 0)
		return e;
	return fflush(stdout) == 0 ? 0 : wb_fail("stdout: write error");
}

const struct command	cmd_ps = {
	"ps", "", "the sessions that run and those that have ended, with the\n"
	"\tnumbers of the output that is kept and how many processes are left",
	ps
};
