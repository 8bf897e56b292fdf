/*
 * support: what `doctor --bundle' saves for somebody who is to help, without
 * anything secret.
 *
 * Nothing is taken whole that somebody else has written: of the configuration
 * the values as they were understood, of sandboxes the members that are named
 * here, of mounts those that Workbox needs, of logs the lines of our daemons.
 * Where the key is known it is sought in all that was collected, and cut out.
 *
 * Must never: read the token into a member, a command line, an environment,
 * output or file of a sandbox, or a name that a tenant chose.
 */
#include <sys/stat.h>
#include <sys/utsname.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bundle.h"
#include "host.h"
#include "workbox.h"
#include "xmalloc.h"

#define FILE_MOST	(256UL * 1024)	/* of a file of the system */
#define LOG_MOST	(1024UL * 1024)	/* of a log: its end */
#define BOXES_MOST	4096
#define ASK_MS		10000L		/* the server may hang: that is told */

#define CUT		"(left out)"

/* ---- the configuration --------------------------------------------------- */

static json_t *
list_of(const struct wire_list *l)
{
	json_t	*a = json_array();
	size_t	 i;

	for (i = 0; i < l->n; i++)
		json_array_append_new(a, json_stringn((const char *)
		    l->v[i].data, l->v[i].len));
	return a;
}

/* A URL without who and with what word. */
static json_t *
no_user(const char *s)
{
	const char	*at = strrchr(s, '@'), *p = strstr(s, "://");

	if (at == NULL)
		return json_string(s);
	return json_sprintf("%.*s" CUT "%s", p == NULL ? 0 :
	    (int)(p + 3 - s), s, at);
}

static void
take_conf(struct bundle *b, const struct conf *c)
{
	json_t	*o = json_object();

#define C_STR(w, f, max, cs, d, doc)					\
	json_object_set_new(o, w, no_user(c->f));
#define C_U64(w, f, lo, hi, d, doc)					\
	json_object_set_new(o, w, json_integer((json_int_t)c->f));
#define C_BOOL(w, f, d, doc)						\
	json_object_set_new(o, w, json_boolean(c->f));
#define C_LIST(w, f, n, bytes, cs, doc)					\
	json_object_set_new(o, w, list_of(&c->f));
#include "conf.def"
	bundle_json(b, "configuration.json", o);
}

/* ---- the system -------------------------------------------------------- */

static void
take_file(struct bundle *b, const char *name, const char *path)
{
	size_t	 len = 0;
	char	*s = text_file(path, FILE_MOST, &len);

	if (s == NULL)
		bundle_miss(b, name, "%s: %s", path, strerror(errno));
	else
		bundle_add(b, name, s, len);
}

static void
take_versions(struct bundle *b)
{
	struct utsname	 u;
	auto_free char	*os = NULL;
	const char	*p;
	size_t		 len = 0;

	memset(&u, 0, sizeof u);
	(void)uname(&u);		/* empty then */
	os = text_file("/etc/os-release", FILE_MOST, &len);
	p = os == NULL ? NULL : strstr(os, "PRETTY_NAME=");
	bundle_json(b, "versions.json", json_pack("{s:s, s:s, s:s, s:s, s:o}",
	    "workbox", PACKAGE_VERSION, "kernel", u.release, "build",
	    u.version, "machine", u.machine, "system", p == NULL ?
	    json_null() : json_stringn(p + 12, strcspn(p + 12, "\n"))));
}

/* A mount that Workbox has to do with: no path of anybody else's is told. */
static int
is_ours(const char *dir, const struct conf *c)
{
	static const char *const	ours[] = { "/sys/", "/proc", "/dev",
	    "/run" };
	size_t				i, n = strlen(dir);

	for (i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strncmp(dir, ours[i], strlen(ours[i])) == 0 &&
		    strchr(dir + 1, '/') == strrchr(dir, '/'))
			return 1;
	if (strncmp(dir, "/sys/fs/cgroup", 14) == 0 || strcmp(dir, "/") == 0)
		return 1;
	return strncmp(c->state_dir, dir, n) == 0 &&
	    (c->state_dir[n] == '/' || c->state_dir[n] == '\0');
}

/* Type, place, and those options that are a word alone. */
static void
one_mount(FILE *f, char *line, const struct conf *c)
{
	char	*save, *dir, *type, *opts, *o;

	if (strtok_r(line, " ", &save) == NULL ||
	    (dir = strtok_r(NULL, " ", &save)) == NULL ||
	    (type = strtok_r(NULL, " ", &save)) == NULL ||
	    (opts = strtok_r(NULL, " ", &save)) == NULL || !is_ours(dir, c))
		return;
	(void)fprintf(f, "%s %s", type, dir);
	for (o = strtok_r(opts, ",", &save); o != NULL;
	    o = strtok_r(NULL, ",", &save))
		if (strchr(o, '=') == NULL)
			(void)fprintf(f, " %s", o);
	(void)fprintf(f, "\n");
}

static void
take_mounts(struct bundle *b, const struct conf *c)
{
	size_t		 len = 0;
	auto_free char	*s = text_file("/proc/self/mounts", FILE_MOST, &len);
	char		*save, *line, *text;
	FILE		*f = open_memstream(&text, &len);

	if (f == NULL)
		abort();		/* out of memory */
	for (line = s == NULL ? NULL : strtok_r(s, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save)) {
		auto_free char	*copy = xstrdup(line);

		one_mount(f, copy, c);
	}
	(void)fclose(f);		/* in memory */
	bundle_add(b, "mounts.txt", text, len);
}

/* ---- control groups ---------------------------------------------------- */

static void
one_value(FILE *f, const char *dir, const char *file)
{
	auto_free char	*path = xasprintf("%s/%s", dir, file), *s = NULL;
	size_t		 len = 0;

	if ((s = text_file(path, FILE_MOST, &len)) == NULL)
		return;
	while (len > 0 && s[len - 1] == '\n')
		s[--len] = '\0';
	(void)fprintf(f, "%s: %s\n", path, s);
}

static void
one_cgroup(FILE *f, const char *dir)
{
	static const char *const	files[] = { "cgroup.controllers",
	    "cgroup.subtree_control", "cgroup.events", "memory.current",
	    "memory.max", "memory.usage_in_bytes", "memory.limit_in_bytes",
	    "pids.current", "pids.max", "cpu.max", "freezer.state" };
	size_t				i;

	for (i = 0; i < sizeof files / sizeof files[0]; i++)
		one_value(f, dir, files[i]);
}

/* The tree of our boxes, whose names are ids; 1: it is there. */
static int
one_tree(FILE *f, const char *dir)
{
	DIR		*d = opendir(dir);
	struct dirent	*e;
	int		 n = 0;

	if (d == NULL)
		return 0;
	one_cgroup(f, dir);
	while (n < BOXES_MOST && (e = readdir(d)) != NULL)
		if (strlen(e->d_name) == 26) {
			auto_free char	*box = xasprintf("%s/%s/box", dir,
					    e->d_name);

			one_cgroup(f, box);
			n++;
		}
	(void)closedir(d);		/* read only */
	return 1;
}

/* The name in force, which an option may have given. */
static void
tree_name(const struct conf *c, char ret[256])
{
	auto_free char	*path = xasprintf("%s/cgroup", c->state_dir);
	size_t		 len = 0;
	auto_free char	*s = text_file(path, 255, &len);

	(void)str_copy(ret, s != NULL && *s != '\0' ? s : c->cgroup, 256);
}

/* In every hierarchy: at its root, or where systemd has the boxes' unit. */
static void
take_cgroups(struct bundle *b, const struct conf *c)
{
	static const char *const	tops[] = { "", "/memory", "/cpu",
	    "/pids", "/unified" };
	static const char *const	units[] = { "",
	    "/system.slice/workbox-boxes.service" };
	char				*text, name[256];
	size_t				 i, len = 0;
	int				 n = 0;
	FILE				*f = open_memstream(&text, &len);

	if (f == NULL)
		abort();		/* out of memory */
	tree_name(c, name);
	one_cgroup(f, "/sys/fs/cgroup");
	for (i = 0; i < 2 * sizeof tops / sizeof tops[0]; i++) {
		auto_free char	*dir = xasprintf("/sys/fs/cgroup%s%s/%s",
				    tops[i / 2], units[i % 2], name);

		n += one_tree(f, dir);
	}
	(void)fclose(f);		/* in memory */
	bundle_add(b, "cgroups.txt", text, len);
	if (n == 0)
		bundle_miss(b, "cgroups.txt", "no control group %s: no server "
		    "has made one", name);
}

/* ---- logs -------------------------------------------------------------- */

/*
 * Whether a daemon of ours wrote it: "NAME[PID]: LEVEL: ", also behind the
 * time that a logger sets.  What else is in such a file is not told, nor what
 * is said on debug.
 */
static int
is_log(const char *line)
{
	static const char *const	names[] = { "privd[", "maker[",
	    "reader[", "netd[", "uplinkd[", "proxyd[", "stored[", "apid[" };
	const char			*p;
	size_t				 i;

	for (i = 0; i < sizeof names / sizeof names[0]; i++)
		if ((p = strstr(line, names[i])) != NULL && p - line < 64 &&
		    (p = strchr(p, ']')) != NULL &&
		    (strncmp(p, "]: info: ", 9) == 0 ||
		    strncmp(p, "]: warning: ", 12) == 0 ||
		    strncmp(p, "]: error: ", 10) == 0))
			return 1;
	return 0;
}

/* The end of a log, of the lines that are ours. */
static void
take_log(struct bundle *b, const char *name, const char *path)
{
	auto_close int	 fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
			    O_NOFOLLOW);
	struct stat	 st;
	auto_free char	*s = NULL;
	char		*save, *line, *text;
	size_t		 len = 0;
	FILE		*f;

	if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		return;
	if (st.st_size > (off_t)LOG_MOST)
		(void)lseek(fd, -(off_t)LOG_MOST, SEEK_END);
	if ((s = text_fd(fd, 2 * LOG_MOST, &len)) == NULL ||
	    (f = open_memstream(&text, &len)) == NULL)
		return;
	for (line = strtok_r(s, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save))
		if (is_log(line))
			(void)fprintf(f, "%s\n", line);
	(void)fclose(f);		/* in memory */
	bundle_add(b, name, text, len);
}

static void
take_logs(struct bundle *b)
{
	size_t	n = b->n;

	take_log(b, "log/workbox.log", "/var/log/workbox.log");
	take_log(b, "log/current", "/var/log/workbox/current");
	if (b->n == n)
		bundle_miss(b, "log", "none below /var/log: with systemd, add "
		    "`journalctl -u workbox' after you have read it");
}

/* ---- the server -------------------------------------------------------- */

/* Members of a sandbox that nobody but the server and its operator chose. */
static json_t *
plain(const json_t *box)
{
	static const char *const	keys[] = { "id", "state",
	    "stateReason", "health", "healthReason", "network", "denied",
	    "traffic", "limits", "createdAt", "changedAt" };
	json_t				*o = json_object(), *v;
	size_t				 i;

	for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if ((v = json_object_get(box, keys[i])) != NULL)
			json_object_set(o, keys[i], v);
	return o;
}

static json_t *
get(const char *path)
{
	struct req	*r = req_new("GET", path);
	json_t		*o = req_run(r) == 0 ? req_answer(r) : NULL;

	req_free(r);
	return o;
}

static void
take_boxes(struct bundle *b)
{
	json_t	*all, *told;
	size_t	 i;

	if (client_list(client_path("/v1/sandboxes", NULL), &all) != 0) {
		bundle_miss(b, "sandboxes.json", "the server did not answer");
		return;
	}
	told = json_array();
	for (i = 0; i < json_array_size(all); i++)
		json_array_append_new(told, plain(json_array_get(all, i)));
	bundle_json(b, "sandboxes.json", told);
	json_decref(all);
}

struct text { char *s; size_t len; FILE *f; struct lines lines; };

/* A series without the label that is a tenant's word. */
static int
series(char *s, size_t len, void *arg)
{
	struct text	*t = arg;
	char		*p = strstr(s, ",name=\""), *e;

	(void)len;
	if (p != NULL && (e = strchr(p + 7, '"')) != NULL)
		(void)fprintf(t->f, "%.*s%s\n", (int)(p - s), s, e + 1);
	else
		(void)fprintf(t->f, "%s\n", s);
	return 0;
}

static int
series_bytes(const char *data, size_t n, void *arg)
{
	struct text	*t = arg;

	return lines_feed(&t->lines, data, n, series, t);
}

static void
take_metrics(struct bundle *b)
{
	struct text	 t = { .s = NULL };
	struct req	*r = req_new("GET", "/metrics");

	if ((t.f = open_memstream(&t.s, &t.len)) == NULL)
		abort();		/* out of memory */
	req_sink(r, series_bytes, &t);
	if (req_run(r) == -1)
		bundle_miss(b, "metrics.txt", "the server answered %ld",
		    req_status(r));
	(void)fclose(t.f);		/* in memory */
	bundle_add(b, "metrics.txt", t.s, t.len);
	req_free(r);
	lines_free(&t.lines);
}

static void
take_server(struct bundle *b, const struct args *a)
{
	json_t	*o;

	if (client_init(a) != 0) {
		bundle_miss(b, "server", "it cannot be asked from here: see "
		    "WORKBOX_SERVER and WORKBOX_TOKEN");
		return;
	}
	client_limit(ASK_MS);
	if ((o = get("/v1/version")) == NULL) {
		bundle_miss(b, "server", "%s did not answer, or takes another "
		    "key", client_server());
		return;
	}
	bundle_json(b, "server.json", o);
	take_boxes(b);
	take_metrics(b);
}

/* ---- the whole --------------------------------------------------------- */

/* Whatever was collected: a key that is known is in none of it. */
static void
cut_key(struct bundle *b, const char *key)
{
	size_t	 i, n = strlen(key);
	char	*p;

	if (n < 8)
		return;			/* it would be found anywhere */
	for (i = 0; i < b->n; i++)
		while ((p = memmem(b->member[i].data, b->member[i].len, key,
		    n)) != NULL)
			memset(p, 'x', n);
}

static void
cut_keys(struct bundle *b)
{
	const char	*key = getenv("WORKBOX_TOKEN");
	size_t		 len = 0;
	auto_free char	*file = text_file(WB_TOKEN_FILE, 4096, &len);

	if (key != NULL)
		cut_key(b, key);
	if (file != NULL) {
		file[strcspn(file, "\r\n")] = '\0';
		cut_key(b, file);
		explicit_bzero(file, len);
	}
}

int
support_write(const struct args *a, const struct conf *c, json_t *results,
    const char *path)
{
	static struct bundle	b;
	int			rc;

	bundle_init(&b, "workbox-support");
	bundle_json(&b, "doctor.json", results);
	take_versions(&b);
	take_conf(&b, c);
	take_file(&b, "meminfo.txt", "/proc/meminfo");
	take_file(&b, "pressure-memory.txt", "/proc/pressure/memory");
	take_file(&b, "filesystems.txt", "/proc/filesystems");
	take_file(&b, "cgroups-v1.txt", "/proc/cgroups");
	take_file(&b, "lsm.txt", "/sys/kernel/security/lsm");
	take_mounts(&b, c);
	take_cgroups(&b, c);
	take_logs(&b);
	take_server(&b, a);
	cut_keys(&b);
	rc = bundle_write(&b, json_pack("{s:s}", "workbox", PACKAGE_VERSION),
	    path, 1);
	bundle_free(&b);
	return rc;
}
