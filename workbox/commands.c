/*
 * commands: the table of all commands, found by name or nearly so, and the
 * overview of them.
 */
#include <stdlib.h>
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

static int	help_run(const struct args *);

const struct cmd cmd_help = {
	.name = "help",
	.operands = "[COMMAND ...]",
	.doc = "Print what there is, or how one command is used",
	.max = 2,
	.run = help_run
};

static const struct cmd *const	cmds[] = {
#define CMD(x)	&cmd_##x,
#include "cmds.def"
};
#define NCMDS	(sizeof cmds / sizeof cmds[0])

const struct cmd *
cmd_at(size_t i)
{
	return i < NCMDS ? cmds[i] : NULL;
}

/* ---- by name ----------------------------------------------------------- */

/* The name ends at NUL or a comma. */
int
cmd_match(const char *name, int argc, char **argv)
{
	const char	*p = name;
	int		 i;
	size_t		 len;

	for (i = 0; *p != '\0' && *p != ','; i++) {
		len = strcspn(p, " ,");
		if (i == argc || strlen(argv[i]) != len ||
		    memcmp(argv[i], p, len) != 0)
			return 0;
		p += len;
		p += *p == ' ';
	}
	return i;
}

/* Behind the comma and blank that follow a name in a list, or NULL. */
static const char *
another(const char *names)
{
	const char	*comma = names == NULL ? NULL : strchr(names, ',');

	return comma == NULL ? NULL : comma + 2;
}

const struct cmd *
cmd_find(int argc, char **argv, int *ret_words)
{
	const char	*alias;
	size_t		 i;
	int		 n;

	for (i = 0; i < NCMDS; i++) {
		n = cmd_match(cmds[i]->name, argc, argv);
		for (alias = cmds[i]->alias; n == 0 && alias != NULL;
		    alias = another(alias))
			n = cmd_match(alias, argc, argv);
		if (n > 0) {
			*ret_words = n;
			return cmds[i];
		}
	}
	return NULL;
}

static int
is_family(const char *word)
{
	size_t	i, len = strlen(word);

	for (i = 0; i < NCMDS; i++)
		if (strncmp(cmds[i]->name, word, len) == 0 &&
		    cmds[i]->name[len] == ' ')
			return 1;
	return 0;
}

/* ---- nearly so --------------------------------------------------------- */

/*
 * Holds name, that of command i or an alias of it, against what was written:
 * in a family the second words, else the first word, its second ("list" for
 * "sandbox list") and both together; a family's name alone against itself.
 */
static void
try_name(struct nearest *n, const char *name, size_t i, const char *first,
    const char *second)
{
	static char	 family[NCMDS][16];
	auto_free char	*own = xstrdup(name), *both = NULL;
	char		*sub;

	own[strcspn(own, ",")] = '\0';
	if ((sub = strchr(own, ' ')) == NULL) {
		nearest_try(n, first, own, cmds[i]->name);
		return;
	}
	*sub++ = '\0';
	if (is_family(first)) {
		if (strcmp(own, first) == 0)
			nearest_try(n, second, sub, cmds[i]->name);
		return;
	}
	nearest_try(n, first, sub, cmds[i]->name);
	if (*second == '\0') {
		(void)str_copy(family[i], own, sizeof family[i]);
		nearest_try(n, first, own, family[i]);
		return;
	}
	both = xasprintf("%s %s", first, second);
	sub[-1] = ' ';
	nearest_try(n, both, own, cmds[i]->name);
}

static int
no_command(const char *first, const char *second)
{
	struct nearest	 n = { .count = 0 };
	auto_free char	*hint = NULL;
	const char	*alias;
	size_t		 i;

	for (i = 0; i < NCMDS; i++) {
		if (cmds[i]->flags & CMD_HIDDEN)
			continue;
		try_name(&n, cmds[i]->name, i, first, second);
		for (alias = cmds[i]->alias; alias != NULL;
		    alias = another(alias))
			try_name(&n, alias, i, first, second);
	}
	hint = nearest_hint(&n, "workbox ", "try workbox --help");
	return fail("there is no command \"%s%s%s\"%s", first,
	    *second != '\0' ? " " : "", second, hint);
}

/* ---- overviews --------------------------------------------------------- */

/* All commands, or those whose first word is family; 0: there are none. */
static int
overview(const char *family, FILE *f)
{
	char	left[128];
	size_t	i, len = family == NULL ? 0 : strlen(family);
	int	n = 0;

	for (i = 0; i < NCMDS; i++) {
		if (cmds[i]->flags & CMD_HIDDEN || (family != NULL &&
		    (strncmp(cmds[i]->name, family, len) != 0 ||
		    cmds[i]->name[len] != ' ')))
			continue;
		if (n++ == 0)
			(void)fprintf(f, "usage: workbox COMMAND "
			    "[OPTION ...]\n\n");
		(void)snprintf(left, sizeof left, "%s %s", cmds[i]->name,
		    cmds[i]->operands);
		(void)fprintf(f, "  %-47s %s\n", left, cmds[i]->doc);
	}
	if (n > 0)
		(void)fprintf(f, "\nworkbox COMMAND --help tells the options; "
		    "see also workbox(1).\n");
	return n;
}

static int
help_run(const struct args *a)
{
	const struct cmd	*cmd;
	int			 words;

	if (a->noperand == 0)
		return overview(NULL, stdout) > 0 ? 0 : EXIT_OURS;
	cmd = cmd_find(a->noperand, a->operand, &words);
	if (cmd != NULL && words == a->noperand) {
		args_help(cmd, stdout);
		return 0;
	}
	if (a->noperand == 1 && overview(a->operand[0], stdout) > 0)
		return 0;
	return no_command(a->operand[0], a->noperand > 1 ? a->operand[1] : "");
}

static int
is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int
cmd_unknown(int argc, char **argv)
{
	const char	*first = argc > 0 ? argv[0] : NULL;

	if (first == NULL) {
		(void)overview(NULL, stderr);
		return EXIT_OURS;
	}
	if (is_help(first))
		return overview(NULL, stdout) > 0 ? 0 : EXIT_OURS;
	if (first[0] == '-')
		return fail("expected a command before %s; try workbox "
		    "--help", first);
	if (!is_family(first))
		return no_command(first, argc > 1 && argv[1][0] != '-' ?
		    argv[1] : "");
	if (argc == 1) {
		(void)overview(first, stderr);
		return EXIT_OURS;
	}
	if (is_help(argv[1]))
		return overview(first, stdout) > 0 ? 0 : EXIT_OURS;
	if (argv[1][0] == '-')
		return fail("expected a command of %s before %s; try workbox "
		    "%s --help", first, argv[1], first);
	return no_command(first, argv[1]);
}
