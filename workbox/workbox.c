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

static int	version_run(const struct args *);

const struct cmd cmd_version = {
	.name = "version",
	.operands = "",
	.doc = "Print the version of this program, and of the server when it "
	    "answers",
	.flags = CMD_CLIENT,
	.run = version_run
};

static int
version_run(const struct args *a)
{
	struct req	*r;
	json_t		*j;
	char		 shown[128];

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
		(void)text_show(json_str(j, "version"), shown, sizeof shown);
		printf("server %s at %s\n", shown, client_server());
		json_decref(j);
	}
	req_free(r);
	return 0;
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
