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
	{ "server", "URL", "http://HOST:PORT, https://HOST:PORT or unix:PATH "
	    "(WORKBOX_SERVER; the client file; " WB_SERVER ")", 0, 0 },
	{ "token-file", "FILE", "file with the key (WORKBOX_TOKEN; the client "
	    "file; " WB_TOKEN_FILE ")", 0, 0 },
	{ "cacert", "FILE", "certificates to trust, in PEM, where the server "
	    "is https (WORKBOX_CACERT; the client file; the system's)", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

static const struct opt state_opts[] = {
	{ "config", "FILE", "configuration (" WB_CONF_FILE ")", 0, 0 },
	{ "state", "DIR", "state directory, instead of the configuration's",
	    0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

static const struct opt format_opts[] = {
	{ "format", "table|json", "how it is printed; a table when left out",
	    0, 0 },
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

const struct opt *
args_opt(const struct cmd *cmd, size_t i)
{
	const struct opt	*t[NTABLES], *o;
	size_t			 k;

	tables(cmd, t);
	for (k = 0; k < NTABLES; k++)
		for (o = t[k]; o != NULL && o->name != NULL; o++)
			if (i-- == 0)
				return o;
	return NULL;
}

static const struct opt *
find(const struct cmd *cmd, const char *name, size_t len)
{
	const struct opt	*o;
	size_t			 i;

	for (i = 0; (o = args_opt(cmd, i)) != NULL; i++)
		if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static const struct opt *
find_letter(const struct cmd *cmd, char letter)
{
	const struct opt	*o;
	size_t			 i;

	for (i = 0; (o = args_opt(cmd, i)) != NULL; i++)
		if (o->letter == letter)
			return o;
	return NULL;
}

int
args_choice(const char *spec, size_t i, char *ret, size_t size)
{
	size_t	n = strcspn(spec, "|");

	if (*spec < 'a' || *spec > 'z')
		return 0;
	for (; i > 0; i--) {
		if (spec[n] == '\0')
			return 0;
		spec += n + 1;
		n = strcspn(spec, "|");
	}
	if (n >= size)
		return 0;
	memcpy(ret, spec, n);
	ret[n] = '\0';
	return 1;
}

/* A value of an option that has choices is one of them. */
static int
check_choice(const struct opt *o, const char *val)
{
	char	word[32], all[128] = "";
	size_t	i, n = 0;

	for (i = 0; args_choice(o->arg, i, word, sizeof word); i++) {
		if (strcmp(word, val) == 0)
			return 0;
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s",
		    i > 0 ? " or " : "", word);
		if (n >= sizeof all)
			n = sizeof all - 1;
	}
	if (i == 0)
		return 0;
	(void)fail("--%s: expected %s, not \"%s\"", o->name, all, val);
	return -1;
}

static int
take(struct args *a, const struct opt *o, const char *val)
{
	if (!o->many && args_get(a, o->name) != NULL) {
		(void)fail("--%s is given twice", o->name);
		return -1;
	}
	if (o->arg != NULL && check_choice(o, val) == -1)
		return -1;
	a->given = xreallocarray(a->given, a->ngiven + 1, sizeof *a->given);
	a->given[a->ngiven].opt = o;
	a->given[a->ngiven].val = val;
	a->ngiven++;
	return 0;
}

static int
unknown(const struct args *a, const char *word)
{
	struct nearest		 n = { .count = 0 };
	const struct opt	*o;
	auto_free char		*hint = NULL, *name = NULL;
	size_t			 i;

	if (a->cmd->flags & CMD_EXEC && a->noperand > 0) {
		(void)fail("unknown option %s; put -- before the command",
		    word);
		return -1;
	}
	name = xstrdup(word + strspn(word, "-"));
	name[strcspn(name, "=")] = '\0';
	for (i = 0; (o = args_opt(a->cmd, i)) != NULL; i++)
		nearest_try(&n, name, o->name, o->name);
	hint = nearest_hint(&n, "--", "try --help");
	(void)fail("unknown option %s%s", word, hint);
	return -1;
}

/* The option that a word names, or NULL; what follows its `=', or NULL. */
static const struct opt *
lookup(const struct cmd *cmd, const char *word, const char **ret_val)
{
	const char	*name = word + 2;
	size_t		 len;

	*ret_val = NULL;
	if (word[1] != '-')
		return word[2] == '\0' ? find_letter(cmd, word[1]) : NULL;
	len = strcspn(name, "=");
	if (name[len] == '=')
		*ret_val = name + len + 1;
	return find(cmd, name, len);
}

/* One word that begins with `-'; *i moves past its argument. */
static int
option(struct args *a, int argc, char **argv, int *i)
{
	const char		*word = argv[*i], *val;
	const struct opt	*o = lookup(a->cmd, word, &val);

	if (o == NULL)
		return unknown(a, word);
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

int
args_ref_ok(const char *s)
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
	const char	*first = a->cmd->operands;
	int		 i;

	first += *first == '[';
	if (strncmp(first, "SANDBOX", strlen("SANDBOX")) != 0)
		return 0;
	for (i = 0; i < a->noperand; i++)
		if (!args_ref_ok(a->operand[i])) {
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
		if (a->noperand < cmd->min)
			(void)fail("expected %s; try --help", cmd->operands);
		else if (cmd->max == 0)
			(void)fail("\"%s\": expected options alone; try "
			    "--help", a->operand[0]);
		else
			(void)fail("\"%s\": expected %s and nothing more; "
			    "try --help", a->operand[cmd->max],
			    cmd->operands);
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
	int	i;

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
	return check_operands(a);
}

const struct opt *
args_scan(const struct cmd *cmd, int argc, char **argv, struct args *a)
{
	const struct opt	*o;
	const char		*val;
	int			 i;

	memset(a, 0, sizeof *a);
	a->cmd = cmd;
	a->operand = xcalloc((size_t)argc + 1, sizeof *a->operand);
	for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			a->operand[a->noperand++] = argv[i];
			continue;
		}
		if ((o = lookup(cmd, argv[i], &val)) == NULL)
			continue;
		if (o->arg != NULL && val == NULL) {
			if (i + 1 == argc)
				return o;
			val = argv[++i];
		}
		(void)take(a, o, val == NULL ? "" : val);	/* or not */
	}
	if (i == argc)
		return NULL;
	if (!(cmd->flags & CMD_EXEC))
		while (++i < argc)
			a->operand[a->noperand++] = argv[i];
	else
		i++;
	a->command = argv + i;
	a->ncommand = argc - i;
	return NULL;
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

/* "-h, --help", "    --name NAME"; its length. */
static int
help_left(const struct opt *o, char ret[64])
{
	return snprintf(ret, 64, "%c%c%s--%s%s%s",
	    o->letter != 0 ? '-' : ' ', o->letter != 0 ? o->letter : ' ',
	    o->letter != 0 ? ", " : "  ", o->name, o->arg != NULL ? " " : "",
	    o->arg != NULL ? o->arg : "");
}

/* The columns of the longest, as many as they have in most commands. */
static int
help_cols(const struct cmd *cmd)
{
	const struct opt	*o;
	char			 left[64];
	size_t			 i;
	int			 cols = 26, n;

	for (i = 0; (o = args_opt(cmd, i)) != NULL; i++)
		if ((n = help_left(o, left)) > cols)
			cols = n;
	return cols;
}

static void
help_opt(const struct opt *o, int cols, FILE *f)
{
	char	left[64];

	(void)help_left(o, left);
	/* main() looks whether all was written */
	(void)fprintf(f, "  %-*s %s%s\n", cols, left, o->doc,
	    o->many ? " (may be repeated)" : "");
}

/* Its own options first, then, after an empty line, those of many commands. */
void
args_help(const struct cmd *cmd, FILE *f)
{
	const struct opt	*t[NTABLES], *o;
	size_t			 i;
	int			 cols = help_cols(cmd);

	(void)fprintf(f, "usage: workbox %s [OPTION ...]%s%s\n%s.\n",
	    cmd->name, *cmd->operands == '\0' ? "" : " ", cmd->operands,
	    cmd->doc);
	if (cmd->alias != NULL)
		(void)fprintf(f, "\nAlso: workbox %s\n", cmd->alias);
	tables(cmd, t);
	for (i = 0; i < NTABLES; i++) {
		if (i == 1 || (i == 0 && t[0] != NULL))
			(void)putc('\n', f);
		for (o = t[i]; o != NULL && o->name != NULL; o++)
			help_opt(o, cols, f);
	}
}
