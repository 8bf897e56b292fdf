/*
 * help.c: wb help, and --help of each command.
 */
#include <stdio.h>

#include "wb.h"

static void
entry(const struct command *c)
{
	(void)printf("wb %s%s%s\n\t%s\n", c->name, c->usage[0] != '\0' ?
	    " " : "", c->usage, c->help);
}

int
wb_help(const struct command *c)
{
	size_t	i;

	if (c != NULL)
		entry(c);
	for (i = 0; c == NULL && commands[i] != NULL; i++)
		entry(commands[i]);
	return fflush(stdout) == 0 ? 0 : EXIT_WB;
}

static int
help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return wb_help(NULL);
}

const struct command	cmd_help = { "help", "", "this list", help };
