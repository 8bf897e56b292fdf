/*
 * help.c: wb help.
 */
#include <stdio.h>

#include "wb.h"

static int
help(int argc, char **argv)
{
	size_t	i;

	(void)argc;
	(void)argv;
	for (i = 0; commands[i] != NULL; i++)
		(void)printf("wb %s%s%s\n\t%s\n", commands[i]->name,
		    commands[i]->usage[0] != '\0' ? " " : "",
		    commands[i]->usage, commands[i]->help);
	return fflush(stdout) == 0 ? 0 : EXIT_WB;
}

const struct command	cmd_help = { "help", "", "this list", help };
