/*
 * workbox: finds the command in the table, parses its options, runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"

/*
 * So that no file and no connection that is opened later becomes standard
 * output by its number.
 */
static void
fill_stdio(void)
{
	int	fd;

	while ((fd = open("/dev/null", O_RDWR)) != -1 && fd <= 2)
		;
	if (fd > 2)
		(void)close(fd);
}

int
main(int argc, char **argv)
{
	static char		 version[] = "version";
	static struct args	 args;
	const struct cmd	*cmd;
	int			 words, rc;

	fill_stdio();
	(void)setlocale(LC_CTYPE, "");	/* what text_show() may show */
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		argv[1] = version;
	cmd = cmd_find(argc - 1, argv + 1, &words);
	if (cmd == NULL)
		return cmd_unknown(argc - 1, argv + 1);
	text_command(cmd->name);
	rc = args_parse(cmd, argc - 1 - words, argv + 1 + words, &args);
	if (rc == 0)
		rc = cmd->run(&args);
	else
		rc = rc == 1 ? 0 : EXIT_OURS;
	free(args.given);
	free(args.operand);
	if (fflush(stdout) == EOF && errno != EPIPE)
		return fail_errno("write standard output");
	return rc;
}
