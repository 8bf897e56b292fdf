/*
 * doctor: says whether this host can carry sandboxes, by trying what they
 * need, never by a version; each fault with its cause and its cure.  The
 * checks are the rows of checks.def.
 *
 * What a check does is undone before it ends.  Nothing here mends anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "xmalloc.h"

static int	doctor_main(const struct args *);

static const struct opt doctor_opts[] = {
	{ "cgroup", "NAME", "cgroup of all sandboxes", 0, 0 },
	{ "bundle", "FILE", "save the results, and what else helps to find a "
	    "fault, in a new file (tar.gz), without secrets; - for standard "
	    "output", 0, 0 },
	{ "calls", NULL, "print the system calls that a sandbox may and may "
	    "not make, and exit", 0, 0 },
	{ "root", "DIR", "read the files of the system below this directory",
	    0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.operands = "",
	.doc = "Check this host; exits with 1 when a check failed, with 2 when "
	    "none could run, with 125 for a wrong command line",
	.opts = doctor_opts,
	.flags = CMD_STATE | CMD_FORMAT,
	.run = doctor_main
};

enum { C_FATAL = 1 << 0, C_TRY = 1 << 1, C_TELL = 1 << 2 };

static const struct check {
	const char	*name;
	unsigned int	 flags;
	void		(*fn)(const struct conf *, struct finding *);
} checks[] = {
#define CHECK(name, flags, fn)	{ name, flags, fn },
#include "checks.def"
};
#define NCHECKS	(sizeof checks / sizeof checks[0])

struct doctor			doctor;
static const char *const	words[] = { "ok", "warning", "failed",
    "skipped" };

void
finding_set(struct finding *f, enum verdict v, const char *cure,
    const char *fmt, ...)
{
	char	detail[sizeof f->detail];
	va_list	ap;

	f->verdict = v;
	va_start(ap, fmt);
	(void)vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	(void)text_show(cure, f->cure, sizeof f->cure);
	(void)text_show(detail, f->detail, sizeof f->detail);
}

/* ---- the system calls of a sandbox ------------------------------------- */

static const struct { const char *verdict, *names; } calls[] = {
#define F_ALLOW(n)	{ "allow", n },
#define F_EPERM(n)	{ "EPERM", n },
#define F_ENOSYS(n)	{ "ENOSYS", n },
#include "filter.def"
};

static const char *const	call_args[] = {
#define F_ARG(c, e, a, t, m, v, why)				why,
#define F_AND(c, e, a, t, m, v, a2, t2, m2, v2, why)		why,
#include "filter.def"
};

static unsigned int
print_names(const char *verdict)
{
	const char	*p;
	size_t		 i, len, col = 0;
	unsigned int	 n = 0;

	printf("%s:\n", verdict);
	for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		if (strcmp(calls[i].verdict, verdict) != 0)
			continue;
		for (p = calls[i].names; *p != '\0'; p += len, p += *p == ' ') {
			len = strcspn(p, " ");
			if (col > 0 && col + len > 70) {
				putchar('\n');
				col = 0;
			}
			col += (size_t)printf("%s%.*s", col == 0 ? "  " : " ",
			    (int)strcspn(p, " :"), p);
			n++;
		}
	}
	printf("\n");
	return n;
}

static int
print_calls(void)
{
	unsigned int	allow, eperm, enosys;
	size_t		i, n = sizeof call_args / sizeof call_args[0];

	allow = print_names("allow");
	eperm = print_names("EPERM");
	enosys = print_names("ENOSYS");
	printf("by argument:\n");
	for (i = 0; i < n; i++)
		printf("  %s\n", call_args[i]);
	printf("%u allowed, %u EPERM, %u ENOSYS, %zu by argument; all that "
	    "the kernel has besides: ENOSYS; other architectures: killed\n",
	    allow, eperm, enosys, n);
	return 0;
}

/* ---- the whole --------------------------------------------------------- */

/* A signal that ends us waits until the check has undone what it did. */
static void
run(const struct check *k, const struct conf *c, struct finding *f)
{
	sigset_t	ends, old;

	memset(f, 0, sizeof *f);
	if (look_root() != NULL && (k->flags & C_TRY)) {
		finding_set(f, V_SKIP, "", "it is tried, not read: only the "
		    "running system can tell");
		return;
	}
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGHUP);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGQUIT);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &ends, &old);
	k->fn(c, f);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void
print_one(const char *name, const struct finding *f)
{
	printf("%-7s %s: %s\n", words[f->verdict], name, f->detail);
	if (f->cure[0] != '\0')
		printf("        cure: %s\n", f->cure);
	(void)fflush(stdout);
}

static json_t *
one_json(const char *name, const struct finding *f)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "name", name, "status",
	    words[f->verdict], "detail", f->detail, "cure", f->cure);
}

/* Where a path of the other system really lies; 0, or -1 with errno. */
static int
resolve(const char *path, char *ret, size_t size)
{
	auto_close int	fd = look_open(path, O_PATH);
	auto_free char	*link = xasprintf("/proc/self/fd/%d", fd);
	ssize_t		n;

	if (fd == -1 || (n = readlink(link, ret, size - 1)) == -1)
		return -1;
	ret[n] = '\0';
	return 0;
}

/* The paths of the configuration lie below the other system's root. */
static int
below(char *path, size_t size, const char *word)
{
	auto_free char	*whole = NULL;
	char		 real[PATH_MAX];

	if (resolve(path, real, sizeof real) == 0) {
		/* a root that was moved meanwhile has another name */
		if (look_behind(real) == NULL)
			return fail("%s %s below --root: expected to lie in "
			    "%s, not at %s", word, path, look_root(), real);
		whole = xstrdup(real);
	} else if (errno == ENOENT)
		whole = xasprintf("%s%s", look_root(), path);
	else
		return fail_errno("%s %s below --root", word, path);
	if (str_copy(path, whole, size) == -1)
		return fail("%s: %s is longer than %zu bytes", word, whole,
		    size - 1);
	return 0;
}

static int
load_there(const struct args *a, struct conf *c)
{
	auto_close int	 fd = look_read(WB_CONF_FILE);
	auto_free char	*text = NULL;
	char		 file[PATH_MAX];
	size_t		 len = 0;

	if (fd == -1 && errno == ENOENT)
		return config_load_text(a, WB_CONF_FILE, NULL, 0, c);
	if (fd == -1 || (text = text_fd(fd, CONFIG_MAX, &len)) == NULL ||
	    resolve(WB_CONF_FILE, file, sizeof file) == -1)
		return fail_errno("%s below --root", WB_CONF_FILE);
	return config_load_text(a, file, text, len, c);
}

static int
set_root(const struct args *a, struct conf *c)
{
	static char	dir[PATH_MAX];
	const char	*s = args_get(a, "root");
	int		rc;

	if (realpath(s, dir) == NULL || look_at(dir) == -1)
		return fail_errno("--root %s", s);
	rc = doctor.named ? config_load(a, c) : load_there(a, c);
	if (rc != 0 || (rc = below(c->state_dir, sizeof c->state_dir,
	    "state-dir")) != 0)
		return rc;
	return below(c->libexec_dir, sizeof c->libexec_dir, "libexec-dir");
}

static void
set_given(const struct args *a)
{
	const char	*file = args_get(a, "config");

	doctor.given = args_host(a);	/* for as long as we live */
	doctor.config = file != NULL ? file : WB_CONF_FILE;
	doctor.named = file != NULL;
}

/* 0, or the exit code: told why nothing can be checked. */
static int
prepare(const struct args *a, struct conf *c)
{
	const char	*cgroup = args_get(a, "cgroup");

	set_given(a);
	if (args_get(a, "root") != NULL ? set_root(a, c) : config_load(a, c))
		return 2;
	if (cgroup != NULL && config_cgroup(c, cgroup) != 0)
		return EXIT_OURS;
	if (look_root() == NULL && geteuid() != 0) {
		(void)fail("expected to be run as root");
		return 2;
	}
	return 0;
}

/* Runs them all, and prints each as it comes unless quiet. */
static json_t *
check_all(const struct conf *c, int quiet, unsigned int n[4])
{
	struct finding	 f;
	json_t		*all = json_array();
	size_t		 i;

	for (i = 0; i < NCHECKS; i++) {
		run(&checks[i], c, &f);
		n[f.verdict]++;
		json_array_append_new(all, one_json(checks[i].name, &f));
		if (!quiet)
			print_one(checks[i].name, &f);
	}
	return json_pack("{s:o, s:i, s:i, s:i, s:i}", "checks", all,
	    words[V_OK], n[V_OK], words[V_WARN], n[V_WARN], words[V_FAIL],
	    n[V_FAIL], words[V_SKIP], n[V_SKIP]);
}

static int
doctor_main(const struct args *a)
{
	static struct conf	 c;
	const char		*bundle = args_get(a, "bundle");
	/* standard output is the archive's, then */
	int			 mute = bundle != NULL &&
				    strcmp(bundle, "-") == 0;
	json_t			*all;
	unsigned int		 n[4] = { 0, 0, 0, 0 };
	int			 rc;

	if (args_get(a, "calls") != NULL)
		return print_calls();
	if (bundle != NULL && args_get(a, "root") != NULL)
		return fail("--bundle is of the running system: expected it "
		    "without --root");
	if ((rc = prepare(a, &c)) != 0)
		return rc;
	all = check_all(&c, args_json(a) || mute, n);
	if (bundle != NULL)
		rc = support_write(a, &c, json_incref(all), bundle);
	if (mute)
		;
	else if (args_json(a))
		(void)json_print(all);
	else
		printf("%u ok, %u warning, %u failed, %u skipped\n", n[V_OK],
		    n[V_WARN], n[V_FAIL], n[V_SKIP]);
	json_decref(all);
	return rc != 0 ? rc : n[V_FAIL] > 0;
}

int
doctor_serve(const struct args *a, const struct conf *c, const char *only)
{
	struct finding	f;
	size_t		i;
	int		rc = 0;

	set_given(a);
	for (i = 0; i < NCHECKS; i++) {
		if (!(checks[i].flags & C_FATAL) ||
		    (only != NULL && strcmp(checks[i].name, only) != 0))
			continue;
		run(&checks[i], c, &f);
		if (f.verdict == V_WARN && (checks[i].flags & C_TELL))
			note("warning: %s: %s", checks[i].name, f.detail);
		if (f.verdict != V_FAIL)
			continue;
		rc = fail("%s: %s", checks[i].name, f.detail);
		if (f.cure[0] != '\0')
			note("cure: %s", f.cure);
	}
	return rc;
}
