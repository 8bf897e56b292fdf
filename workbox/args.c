/*
 * args: options and operands of one command, from its table.
 *
 * Options may stand before, between and after operands, up to `--'; what
 * follows `--' is the command of a CMD_EXEC command and operands otherwise.
 * Nothing here exits or runs anything.
 */
#include <stdlib.h>
#include <string.h>

#include "workbox.h"
#include "xmalloc.h"

static const struct opt client_opts[] = {
	{ "server", "URL", "http://HOST:PORT or unix:PATH (WORKBOX_SERVER; "
	    WB_SERVER ")", 0, 0 },
	{ "token-file", "FILE", "file with the key (WORKBOX_TOKEN; "
	    WB_TOKEN_FILE ")", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

static const struct opt state_opts[] = {
	{ "config", "FILE", "configuration (" WB_CONF_FILE ")", 0, 0 },
	{ "state", "DIR", "state directory, instead of the configuration's",
	    0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

static const struct opt format_opts[] = {
	{ "format", "FORM", "table or json", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

static const struct opt help_opts[] = {
	{ "help", NULL, "print this", 'h', 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

#define NTABLES	5

/* The tables of options that a command takes; empty ones are NULL. */
static void
tables(const struct cmd *cmd, const struct opt *ret[NTABLES])
{
	ret[0] = cmd->opts;
	ret[1] = cmd->flags & CMD_STATE ? state_opts : NULL;
	ret[2] = cmd->flags & CMD_FORMAT ? format_opts : NULL;
	ret[3] = cmd->flags & CMD_CLIENT ? client_opts : NULL;
	ret[4] = help_opts;
}

static const struct opt *
find(const struct cmd *cmd, const char *name, size_t len)
{
	const struct opt	*t[NTABLES], *o;
	size_t			 i;

	tables(cmd, t);
	for (i = 0; i < NTABLES; i++)
		for (o = t[i]; o != NULL && o->name != NULL; o++)
			if (strlen(o->name) == len &&
			    memcmp(o->name, name, len) == 0)
				return o;
	return NULL;
}

static const struct opt *
find_letter(const struct cmd *cmd, char letter)
{
	const struct opt	*t[NTABLES], *o;
	size_t			 i;

	tables(cmd, t);
	for (i = 0; i < NTABLES; i++)
		for (o = t[i]; o != NULL && o->name != NULL; o++)
			if (o->letter == letter)
				return o;
	return NULL;
}

static int
take(struct args *a, const struct opt *o, const char *val)
{
	if (!o->many && args_get(a, o->name) != NULL) {
		(void)fail("--%s is given twice", o->name);
		return -1;
	}
	a->given = xreallocarray(a->given, a->ngiven + 1, sizeof *a->given);
	a->given[a->ngiven].opt = o;
	a->given[a->ngiven].val = val;
	a->ngiven++;
	return 0;
}

/* One word that begins with `-'; *i moves past its argument. */
static int
option(struct args *a, int argc, char **argv, int *i)
{
	const char		*word = argv[*i], *val = NULL, *name;
	const struct opt	*o;
	size_t			 len;

	if (word[1] == '-') {
		name = word + 2;
		len = strcspn(name, "=");
		o = find(a->cmd, name, len);
		if (name[len] == '=')
			val = name + len + 1;
	} else
		o = word[2] == '\0' ? find_letter(a->cmd, word[1]) : NULL;
	if (o == NULL) {
		(void)fail("unknown option %s%s", word,
		    a->cmd->flags & CMD_EXEC && a->noperand > 0 ?
		    "; put -- before the command" : "; try --help");
		return -1;
	}
	if (o->arg == NULL && val != NULL) {
		(void)fail("--%s takes no argument", o->name);
		return -1;
	}
	if (o->arg != NULL && val == NULL) {
		if (*i + 1 == argc) {
			(void)fail("--%s expects %s", o->name, o->arg);
			return -1;
		}
		val = argv[++*i];
	}
	return take(a, o, val == NULL ? "" : val);
}

/*
 * A name, or an id or the beginning of one, as the server takes them:
 * nothing else may become part of a path.
 */
static int
ref_ok(const char *s)
{
	size_t	n = strlen(s);

	if (n >= 1 && n <= 26 &&
	    strspn(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == n)
		return 1;
	return n >= 1 && n <= 63 && strchr("._-", s[0]) == NULL &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* Operands that name a sandbox, or a session of one. */
static int
check_refs(const struct args *a)
{
	int	i;

	if (strncmp(a->cmd->operands, "SANDBOX", strlen("SANDBOX")) != 0)
		return 0;
	for (i = 0; i < a->noperand; i++)
		if (!ref_ok(a->operand[i])) {
			(void)fail("\"%s\": expected a name, of at most 63 "
			    "of a-z 0-9 . _ -, or an id", a->operand[i]);
			return -1;
		}
	return 0;
}

static int
check_operands(struct args *a)
{
	const struct cmd	*cmd = a->cmd;

	if (cmd->flags & CMD_EXEC && a->ncommand == 0 &&
	    a->noperand > cmd->max) {
		/* "exec demo ls": the command without `--'. */
		a->command = a->operand + cmd->max;
		a->ncommand = a->noperand - cmd->max;
		a->noperand = cmd->max;
	}
	if (a->noperand < cmd->min ||
	    (cmd->max >= 0 && a->noperand > cmd->max)) {
		(void)fail("expected %s%s; try --help",
		    cmd->max == 0 ? "no operands" : cmd->operands,
		    a->noperand < cmd->min ? "" : " and nothing more");
		return -1;
	}
	if (check_refs(a) == -1)
		return -1;
	if (cmd->flags & CMD_EXEC && a->ncommand == 0) {
		(void)fail("expected a command: %s", cmd->operands);
		return -1;
	}
	return 0;
}

int
args_parse(const struct cmd *cmd, int argc, char **argv, struct args *a)
{
	const char	*form;
	int		 i;

	memset(a, 0, sizeof *a);
	a->cmd = cmd;
	a->operand = xcalloc((size_t)argc + 1, sizeof *a->operand);
	for (i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			a->operand[a->noperand++] = argv[i];
		else if (option(a, argc, argv, &i) == -1)
			return -1;
	}
	if (args_get(a, "help") != NULL) {
		args_help(cmd, stdout);
		return 1;
	}
	if (cmd->flags & CMD_EXEC) {
		a->command = argv + i;
		a->ncommand = argc - i;
	} else
		for (; i < argc; i++)
			a->operand[a->noperand++] = argv[i];
	form = args_get(a, "format");
	if (form != NULL && strcmp(form, "json") != 0 &&
	    strcmp(form, "table") != 0) {
		(void)fail("--format: expected table or json, not \"%s\"",
		    form);
		return -1;
	}
	return check_operands(a);
}

const char *
args_get(const struct args *a, const char *name)
{
	size_t	i = a->ngiven;

	while (i-- > 0)
		if (strcmp(a->given[i].opt->name, name) == 0)
			return a->given[i].val;
	return NULL;
}

const char *
args_each(const struct args *a, const char *name, size_t *i)
{
	while (*i < a->ngiven)
		if (strcmp(a->given[(*i)++].opt->name, name) == 0)
			return a->given[*i - 1].val;
	return NULL;
}

int
args_json(const struct args *a)
{
	const char	*form = args_get(a, "format");

	return form != NULL && strcmp(form, "json") == 0;
}

/* One word for a shell. */
static char *
quoted(const char *s)
{
	const char	*plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789/._+,:=@%-";
	char		*q, *p;

	if (*s != '\0' && s[strspn(s, plain)] == '\0')
		return xstrdup(s);
	q = p = xmalloc(4 * strlen(s) + 3);
	*p++ = '\'';
	for (; *s != '\0'; s++) {
		if (*s == '\'') {
			memcpy(p, "'\\'", 3);
			p += 3;
		}
		*p++ = *s;
	}
	*p++ = '\'';
	*p = '\0';
	return q;
}

char *
args_host(const struct args *a)
{
	static const char *const	names[] = { "config", "state" };
	char				*all = xstrdup(""), *word, *more;
	const char			*s;
	size_t				 i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		if ((s = args_get(a, names[i])) == NULL)
			continue;
		word = quoted(s);
		more = xasprintf("%s --%s %s", all, names[i], word);
		free(word);
		free(all);
		all = more;
	}
	return all;
}

void
args_help(const struct cmd *cmd, FILE *f)
{
	const struct opt	*t[NTABLES], *o;
	char			 left[64];
	size_t			 i;

	/* main() looks whether all was written */
	(void)fprintf(f, "usage: workbox %s [OPTION ...]%s%s\n%s.\n\n",
	    cmd->name, *cmd->operands == '\0' ? "" : " ", cmd->operands,
	    cmd->doc);
	if (cmd->alias != NULL)
		(void)fprintf(f, "Also: workbox %s\n\n", cmd->alias);
	tables(cmd, t);
	for (i = 0; i < NTABLES; i++)
		for (o = t[i]; o != NULL && o->name != NULL; o++) {
			(void)snprintf(left, sizeof left, "%c%c%s--%s%s%s",
			    o->letter != 0 ? '-' : ' ',
			    o->letter != 0 ? o->letter : ' ',
			    o->letter != 0 ? ", " : "  ", o->name,
			    o->arg != NULL ? " " : "",
			    o->arg != NULL ? o->arg : "");
			(void)fprintf(f, "  %-26s %s%s\n", left, o->doc,
			    o->many ? " (may be repeated)" : "");
		}
}
