/*
 * workbox: finds the command in the table, parses its options, runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workbox.h"

static int	version_run(const struct args *);
static int	help_run(const struct args *);

static const struct cmd cmd_version = {
	.name = "version",
	.operands = "",
	.doc = "Print the version of this program, and of the server when it "
	    "answers",
	.flags = CMD_CLIENT,
	.run = version_run
};

static const struct cmd cmd_help = {
	.name = "help",
	.operands = "[COMMAND ...]",
	.doc = "Print what there is, or how one command is used",
	.max = 2,
	.run = help_run
};

static const struct cmd *const	cmds[] = {
#define CMD(x)	&cmd_##x,
#include "cmds.def"
	&cmd_version,
	&cmd_help
};
#define NCMDS	(sizeof cmds / sizeof cmds[0])

/* How many words of argv the name takes up, or 0 when it is another. */
static int
match(const char *name, int argc, char **argv)
{
	const char	*p = name;
	int		 i;
	size_t		 len;

	for (i = 0; p != NULL && *p != '\0'; i++) {
		len = strcspn(p, " ");
		if (i == argc || strlen(argv[i]) != len ||
		    memcmp(argv[i], p, len) != 0)
			return 0;
		p += len;
		p += *p == ' ';
	}
	return i;
}

static const struct cmd *
find(int argc, char **argv, int *ret_words)
{
	size_t	i;
	int	n;

	for (i = 0; i < NCMDS; i++) {
		n = match(cmds[i]->name, argc, argv);
		if (n == 0 && cmds[i]->alias != NULL)
			n = match(cmds[i]->alias, argc, argv);
		if (n > 0) {
			*ret_words = n;
			return cmds[i];
		}
	}
	return NULL;
}

/* All commands, or those whose first word is family; 0: there are none. */
static int
overview(const char *family, FILE *f)
{
	char	left[128];
	size_t	i, len = family == NULL ? 0 : strlen(family);
	int	n = 0;

	for (i = 0; i < NCMDS; i++) {
		if (family != NULL && (strncmp(cmds[i]->name, family, len) !=
		    0 || cmds[i]->name[len] != ' '))
			continue;
		if (n++ == 0)
			(void)fprintf(f, "usage: workbox COMMAND [OPTION ...]\n\n");
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
	cmd = find(a->noperand, a->operand, &words);
	if (cmd != NULL && words == a->noperand) {
		args_help(cmd, stdout);
		return 0;
	}
	if (a->noperand == 1 && overview(a->operand[0], stdout) > 0)
		return 0;
	return fail("there is no command \"%s%s%s\"", a->operand[0],
	    a->noperand > 1 ? " " : "", a->noperand > 1 ? a->operand[1] : "");
}

static int
version_run(const struct args *a)
{
	struct req	*r;
	json_t		*j;

	printf("workbox %s\n", PACKAGE_VERSION);
	if (client_init(a) != 0)
		return EXIT_OURS;
	r = req_new("GET", "/v1/version");
	/* That it is not told is no fault, but why is. */
	if (req_run(r) == -1)
		(void)req_fail(r);
	else if ((j = req_answer(r)) == NULL)
		note("%s answered without JSON", client_server());
	else {
		printf("server %s at %s\n", json_str(j, "version"),
		    client_server());
		json_decref(j);
	}
	req_free(r);
	return 0;
}

static int
unknown(int argc, char **argv)
{
	const char	*first = argc > 0 ? argv[0] : NULL;

	if (first == NULL) {
		(void)overview(NULL, stderr);
		return EXIT_OURS;
	}
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
		return overview(NULL, stdout) > 0 ? 0 : EXIT_OURS;
	if (argc == 1 || argv[1][0] == '-') {
		if (overview(first, argc == 1 ? stderr : stdout) > 0)
			return argc == 1 || strcmp(argv[1], "--help") != 0 ?
			    EXIT_OURS : 0;
	}
	if (first[0] == '-')
		return fail("expected a command before %s; try workbox "
		    "--help", first);
	return fail("there is no command \"%s%s%s\"; try workbox --help",
	    first, argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
}

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
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		argv[1] = version;
	cmd = find(argc - 1, argv + 1, &words);
	if (cmd == NULL)
		return unknown(argc - 1, argv + 1);
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
