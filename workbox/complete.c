/*
 * complete: what may stand in the place of the last word of a command line,
 * for the completions of shells.  They ask here each time, so that they know
 * what this workbox knows: the table of commands, and names from the server.
 *
 * A line each: the word, a tab, what it is; or ":files" or ":dirs" where the
 * shell knows better.  Words go into a command line as they are: nothing is
 * printed that a shell could take for more than a word, whatever the server
 * says.  Nothing is told on standard error, and nothing is waited for long.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#ifdef WB_HOST
#include "host.h"
#else
#include "workbox.h"
#endif
#include "xmalloc.h"

#define LIMIT_MS	2000L		/* somebody waits at the prompt */

static int	complete_run(const struct args *);

const struct cmd cmd_complete = {
	.name = "complete",
	.operands = "-- [WORD ...]",
	.doc = "Print what may stand in the place of the last word",
	.flags = CMD_HIDDEN,
	.max = -1,
	.run = complete_run
};

/* What is being completed. */
struct at {
	struct args	 args;		/* the words before it */
	const char	*word;		/* borrowed; its beginning, or "" */
	const char	*before;	/* borrowed; "--name=" in it, or "" */
	size_t		 nbefore;
};

/* ---- candidates -------------------------------------------------------- */

/* Letters and digits of ASCII, and what no shell gives a meaning. */
static int
is_plain(const char *s)
{
	return *s != '\0' && s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:/-")] == '\0';
}

static void
put(const struct at *at, const char *word, const char *doc)
{
	char	shown[160];

	if (!is_plain(word) || strncmp(word, at->word, strlen(at->word)) != 0)
		return;
	(void)text_show(doc, shown, sizeof shown);
	printf("%.*s%s\t%s\n", (int)at->nbefore, at->before, word, shown);
}

static void
put_choices(const struct at *at, const char *spec)
{
	char	word[32];
	size_t	i;

	for (i = 0; args_choice(spec, i, word, sizeof word); i++)
		put(at, word, "");
}

/* ---- names ------------------------------------------------------------- */

/* What is no name may be an option: "--yes" is more than a word, too. */
static void
put_name(const struct at *at, const char *name, const char *doc)
{
	if (args_ref_ok(name))
		put(at, name, doc);
}

static void
put_items(const struct at *at, char *path /* freed */, const char *key,
    const char *doc)
{
	const json_t	*item;
	json_t		*items;
	size_t		 i;

	client_limit(LIMIT_MS);
	if (client_init(&at->args) != 0 || client_list(path, &items) != 0)
		return;
	for (i = 0; i < json_array_size(items); i++) {
		item = json_array_get(items, i);
		put_name(at, json_str(item, key), json_str(item, doc));
	}
	json_decref(items);
}

static void
put_sandboxes(const struct at *at)
{
	put_items(at, client_path("/v1/sandboxes", NULL), "name", "state");
}

/* Of the sandbox that is the operand before: its sessions, by name and id. */
static void
put_sessions(const struct at *at)
{
	const struct args	*a = &at->args;
	const json_t		*item;
	json_t			*items;
	const char		*name;
	size_t			 i;

	client_limit(LIMIT_MS);
	if (a->noperand == 0 || !args_ref_ok(a->operand[0]) ||
	    client_init(a) != 0 || client_list(client_path("/v1/sandboxes",
	    a->operand[0], "sessions", NULL), &items) != 0)
		return;
	for (i = 0; i < json_array_size(items); i++) {
		item = json_array_get(items, i);
		name = json_str(item, "name");
		put_name(at, *name != '\0' ? name : json_str(item, "sessionId"),
		    json_str(item, "state"));
	}
	json_decref(items);
}

/* Root file systems of this host, where it has any. */
static void
put_rootfs(const struct at *at)
{
#ifdef WB_HOST
	static struct conf	 conf;
	const struct dirent	*e;
	auto_free char		*dir = NULL;
	DIR			*d;

	if (config_load(&at->args, &conf) != 0)
		return;
	dir = xasprintf("%s/rootfs", conf.state_dir);
	if ((d = opendir(dir)) == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, "default") != 0)
			put_name(at, e->d_name, "root file system");
	(void)closedir(d);
#else
	(void)at;	/* a server far away does not say which it has */
#endif
}

static void
put_states(const struct at *at)
{
#define STATE(n, N)	put(at, #N, "");
#include "states.def"
}

static void
put_networks(const struct at *at)
{
	put(at, "none", "reaches nobody");
	put(at, "egress", "the open internet, nothing private");
	put(at, "allowlist", "hosts by name, nobody else");
}

static void
put_presets(const struct at *at)
{
	auto_free char	*all = hosts_presets(WB_PRESETDIR, " ");
	char		*one, *rest;

	for (one = strtok_r(all, " ", &rest); one != NULL;
	    one = strtok_r(NULL, " ", &rest))
		put(at, one, "hosts");
}

static void
put_signals(const struct at *at)
{
	int	i;

	for (i = 1; i <= 64; i++)
		put(at, text_signal_name(i), "");
}

static void
put_files(const struct at *at)
{
	(void)at;
	printf(":files\n");
}

static void
put_dirs(const struct at *at)
{
	(void)at;
	printf(":dirs\n");
}

/* What the table calls an operand, or the argument of an option. */
static const struct kind {
	const char	*name;
	void		(*put)(const struct at *);
} kinds[] = {
	{ "SANDBOX", put_sandboxes },
	{ "SESSION", put_sessions },
	{ "ROOTFS", put_rootfs },
	{ "STATE", put_states },
	{ "KIND", put_networks },
	{ "PRESET", put_presets },
	{ "SIGNAL", put_signals },
	{ "FILE", put_files },
	{ "PATH", put_files },
	{ "DIR", put_dirs },
};

static void
put_kind(const struct at *at, const char *spec, size_t len)
{
	char	word[64], *one, *rest;
	size_t	i;

	if (len >= sizeof word)
		return;
	memcpy(word, spec, len);
	word[len] = '\0';
	put_choices(at, word);
	for (one = strtok_r(word, "|", &rest); one != NULL;
	    one = strtok_r(NULL, "|", &rest))
		for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
			if (strcmp(kinds[i].name, one) == 0)
				kinds[i].put(at);
}

/* ---- places ------------------------------------------------------------ */

/* The command's operand at the end of those that are there. */
static void
put_operand(const struct at *at)
{
	const struct cmd	*cmd = at->args.cmd;
	const char		*p = cmd->operands, *last = NULL;
	size_t			 len = 0, n;
	int			 i;

	if (cmd->max >= 0 && at->args.noperand >= cmd->max)
		return;
	/* the root file system's commands call theirs by its name */
	if (strncmp(cmd->name, "rootfs ", 7) == 0 && strcmp(p, "NAME") == 0)
		p = "ROOTFS";
	for (i = 0; i <= at->args.noperand && *p != '\0'; i++) {
		p += strspn(p, "[ ");
		n = strcspn(p, " ]");
		if (strncmp(p, "...", n) == 0 || strncmp(p, "--", n) == 0)
			break;	/* more like the one before */
		last = p;
		len = n;
		p += n;
		p += strspn(p, " ]");
	}
	if (last != NULL)
		put_kind(at, last, len);
}

static void
put_options(const struct at *at)
{
	const struct opt	*o;
	char			 name[64];
	size_t			 i;

	for (i = 0; (o = args_opt(at->args.cmd, i)) != NULL; i++) {
		if (!o->many && args_get(&at->args, o->name) != NULL)
			continue;
		(void)snprintf(name, sizeof name, "--%s", o->name);
		put(at, name, o->doc);
	}
}

/* The words of commands, after those that are there. */
static void
put_commands(const struct at *at, int argc, char **argv)
{
	const struct cmd	*cmd;
	const char		*p;
	char			 word[32], last[32] = "";
	size_t			 i, n;
	int			 k;

	for (i = 0; (cmd = cmd_at(i)) != NULL; i++) {
		p = cmd->name;
		for (k = 0; k < argc && p != NULL; k++) {
			n = strcspn(p, " ");
			p = strlen(argv[k]) == n && memcmp(argv[k], p, n) ==
			    0 && p[n] == ' ' ? p + n + 1 : NULL;
		}
		n = p == NULL ? 0 : strcspn(p, " ");
		if (n == 0 || n >= sizeof word || cmd->flags & CMD_HIDDEN)
			continue;
		memcpy(word, p, n);
		word[n] = '\0';
		if (strcmp(word, last) == 0)
			continue;	/* a family stands together */
		memcpy(last, word, sizeof last);
		put(at, word, p[n] == ' ' ? "" : cmd->doc);
	}
}

/* "--name=beginning": the value alone is completed. */
static void
split_value(struct at *at, const char **ret_spec)
{
	const struct opt	*o;
	const char		*eq = strchr(at->word, '=');
	size_t			 i, len;

	*ret_spec = NULL;
	if (strncmp(at->word, "--", 2) != 0 || eq == NULL)
		return;
	len = (size_t)(eq - at->word) - 2;
	for (i = 0; (o = args_opt(at->args.cmd, i)) != NULL; i++)
		if (strlen(o->name) == len && o->arg != NULL &&
		    memcmp(o->name, at->word + 2, len) == 0)
			*ret_spec = o->arg;
	at->before = at->word;
	at->nbefore = (size_t)(eq - at->word) + 1;
	at->word = eq + 1;
}

static void
put_argument(const struct at *at, const struct cmd *cmd,
    const struct opt *pending)
{
	struct at	 here = *at;
	const char	*spec;

	if (pending != NULL) {
		put_kind(&here, pending->arg, strlen(pending->arg));
		return;
	}
	if (here.args.command != NULL) {
		if (!(cmd->flags & CMD_EXEC))
			put_operand(&here);
		return;
	}
	if (*here.word != '-') {
		put_operand(&here);
		return;
	}
	split_value(&here, &spec);
	if (spec != NULL)
		put_kind(&here, spec, strlen(spec));
	else if (here.nbefore == 0)
		put_options(&here);
}

static int
complete_run(const struct args *a)
{
	struct at		 at = { .before = "", .word = "" };
	const struct cmd	*cmd;
	const struct opt	*pending;
	int			 n = a->noperand - 1, words = 0;

	if (n >= 0)
		at.word = a->operand[n];
	if (freopen("/dev/null", "w", stderr) == NULL)
		return EXIT_OURS;
	cmd = n > 0 ? cmd_find(n, a->operand, &words) : NULL;
	if (cmd == &cmd_help)
		put_commands(&at, n - words, a->operand + words);
	else if (cmd == NULL)
		put_commands(&at, n > 0 ? n : 0, a->operand);
	else {
		pending = args_scan(cmd, n - words, a->operand + words,
		    &at.args);
		put_argument(&at, cmd, pending);
		free(at.args.given);
		free(at.args.operand);
	}
	return 0;
}
