/*
 * wb.c: which command, and the connection to pid 1.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxfd.h"
#include "wb.h"

const struct command	*const commands[] = {
	&cmd_run, &cmd_ps, &cmd_logs, &cmd_wait, &cmd_kill, &cmd_status,
	&cmd_denials, &cmd_help, NULL
};

int
wb_fail(const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)fputs("wb: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	return EXIT_WB;
}

int
wb_usage(const struct command *c, const char *fmt, ...)
{
	va_list	ap;

	va_start(ap, fmt);
	(void)fprintf(stderr, "wb %s: ", c->name);
	(void)vfprintf(stderr, fmt, ap);
	(void)fprintf(stderr, "; usage: wb %s%s%s\n", c->name,
	    c->usage[0] != '\0' ? " " : "", c->usage);
	va_end(ap);
	return EXIT_WB;
}

int
wb_option(const struct command *cmd, int argc, char **argv,
    const char *letters, const struct option *longs)
{
	int	c;

	opterr = 0;
	c = getopt_long(argc, argv, letters, longs, NULL);
	if (c == ':')
		(void)wb_usage(cmd, "%s expects an argument",
		    argv[optind - 1]);
	else if (c == '?' && optopt != 0 && strchr(letters, optopt) == NULL)
		(void)wb_usage(cmd, "unknown option -%c", optopt);
	else if (c == '?')
		(void)wb_usage(cmd, optopt != 0 ? "%s takes no argument" :
		    "unknown option %s", argv[optind - 1]);
	return c == ':' ? '?' : c;
}

void
wb_connect(struct chan *c)
{
	struct sockaddr_un	un = { .sun_family = AF_UNIX };
	int			fd;

	memcpy(un.sun_path, BOX_SOCK, sizeof(BOX_SOCK));
	/* it blocks while the queue is full, so that its turn comes */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (struct sockaddr *)&un, sizeof(un)) == -1)
		exit(wb_fail("%s: %s", BOX_SOCK, strerror(errno)));
	chan_init(c, fd, A_WB, A_RUNNER, S_RUN);
	chan_speak(c, runner_version);
}

int
wb_refused(const struct msg_error *e)
{
	(void)wb_fail("%s: %s", code_name((unsigned int)e->code), e->detail);
	switch (e->code) {
	case CODE_COMMAND_NOT_FOUND:
		return EXIT_MISSING;
	case CODE_COMMAND_NOT_EXECUTABLE:
	case CODE_BAD_CWD:
	case CODE_USER_UNKNOWN:
		return EXIT_CANNOT;
	default:
		return EXIT_WB;
	}
}

int
wb_call(struct chan *c, unsigned int type, const void *body,
    unsigned int answer, struct msg *ret)
{
	struct pollfd	pfd = { .fd = c->fd, .events = POLLIN };
	uint32_t	rid;
	int		r;

	if (chan_ask(c, type, body, -1, &rid) == -1)
		return wb_fail("%s: %s", proto_name(type),
		    errno == EINVAL ? c->why : strerror(errno));
	while ((r = chan_recv(c, ret)) == 0)
		if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
			return wb_fail("poll: %s", strerror(errno));
	if (r == -1)
		return wb_fail("runner: %s", errno == EBADMSG ? c->why :
		    strerror(errno));
	if (ret->rid == rid && ret->row->type == answer)
		return 0;
	if (ret->rid == rid && ret->row->type == MSG_ERROR)
		return wb_refused(&ret->body.error);
	return wb_fail("runner: %s was not asked for", ret->row->name);
}

static int
is_help(const char *s)
{
	return strcmp(s, "--help") == 0 || strcmp(s, "-h") == 0;
}

int
main(int argc, char **argv)
{
	size_t	i;

	if (argc < 2) {
		(void)cmd_help.run(0, NULL);
		return EXIT_WB;
	}
	for (i = 0; commands[i] != NULL; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return argc > 2 && is_help(argv[2]) ?
			    wb_help(commands[i]) :
			    commands[i]->run(argc - 1, argv + 1);
	if (is_help(argv[1]))
		return cmd_help.run(0, NULL);
	return wb_fail("%s: no such command; try `wb help'", argv[1]);
}
