/*
 * rootfs_build: fills an empty directory with busybox, or with Debian by
 * mmdebstrap, and with what every root file system of ours has: mount
 * points, the user `agent', PATH with wb, and nothing of this host (names,
 * resolvers).
 */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rootfs.h"
#include "xmalloc.h"

#define CA_FILE		"etc/ssl/certs/ca-certificates.crt"
#define CA_MAX		(4UL * 1024 * 1024)

struct file { const char *name; mode_t mode; const char *text; };

/* Replaces what there is, in every kind. */
static const struct file common_files[] = {
	{ "etc/hostname", 0644, "workbox\n" },
	{ "etc/hosts", 0644, "127.0.0.1 localhost\n::1 localhost\n" },
	{ "etc/resolv.conf", 0644, "" },
	{ "etc/machine-id", 0644, "" },
	{ "etc/profile.d/workbox.sh", 0644,
	    "# Workbox: the agent's command, wb\n"
	    "case \":$PATH:\" in\n"
	    "*:/opt/workbox:*) ;;\n"
	    "*) PATH=$PATH:/opt/workbox ;;\n"
	    "esac\n"
	    "export PATH\n" },
};

static const struct file minimal_files[] = {
	{ "etc/passwd", 0644,
	    "root:x:0:0:root:/root:/bin/sh\n"
	    "nobody:x:65534:65534:nobody:/:/bin/false\n"
	    "agent:x:1000:1000:agent:/home/agent:/bin/sh\n" },
	{ "etc/group", 0644,
	    "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
	{ "etc/shadow", 0600,
	    "root:*:::::::\nnobody:*:::::::\nagent:*:::::::\n" },
	{ "etc/shells", 0644, "/bin/sh\n/bin/ash\n" },
	{ "etc/nsswitch.conf", 0644,
	    "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "etc/profile", 0644,
	    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
	    "/sbin:/bin\n"
	    "export PATH\n"
	    "for i in /etc/profile.d/*.sh; do\n"
	    "\t[ -r \"$i\" ] && . \"$i\"\n"
	    "done\n"
	    "unset i\n" },
};

static const struct { const char *name; mode_t mode; } minimal_dirs[] = {
	{ "bin", 0755 }, { "sbin", 0755 }, { "usr", 0755 },
	{ "usr/bin", 0755 }, { "usr/sbin", 0755 }, { "usr/lib", 0755 },
	{ "usr/local", 0755 }, { "usr/local/bin", 0755 },
	{ "usr/local/sbin", 0755 }, { "etc", 0755 },
	{ "etc/profile.d", 0755 }, { "etc/ssl", 0755 },
	{ "etc/ssl/certs", 0755 }, { "home", 0755 }, { "root", 0700 },
	{ "home/agent", 0755 }, { "tmp", 01777 }, { "var", 0755 },
	{ "var/tmp", 01777 }, { "var/log", 0755 }, { "dev", 0755 },
	{ "proc", 0555 }, { "sys", 0555 }, { "run", 0755 }, { "opt", 0755 },
	{ "opt/workbox", 0755 },
};

#define N(x)	(sizeof (x) / sizeof (x)[0])

/* ---- what every kind has ----------------------------------------------- */

static int
put_files(int fd, const struct file *f, size_t n)
{
	size_t	i;

	for (i = 0; i < n; i++) {
		if (unlinkat(fd, f[i].name, 0) == -1 && errno != ENOENT)
			return fail_errno("/%s", f[i].name);
		if (tree_file(fd, f[i].name, f[i].mode, f[i].text,
		    strlen(f[i].text)) == -1)
			return fail_errno("/%s", f[i].name);
	}
	return 0;
}

/* The certificates of --ca, or NULL without one. */
static int
read_ca(const struct args *a, char **ret, size_t *ret_len)
{
	const char	*file = args_get(a, "ca");
	auto_free char	*text = NULL;
	size_t		 len;

	*ret = NULL;
	if (file == NULL)
		return 0;
	if ((text = text_file(file, CA_MAX, &len)) == NULL)
		return fail_errno("--ca %s", file);
	if (strstr(text, "-----BEGIN CERTIFICATE-----") == NULL)
		return fail("--ca %s: expected certificates in PEM", file);
	*ret = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

/* ---- minimal ----------------------------------------------------------- */

static int
open_busybox(const char **ret_path)
{
	static const char *const	paths[] = { "/bin/busybox",
	    "/usr/bin/busybox", "/usr/local/bin/busybox" };
	size_t				i;
	int				fd;

	for (i = 0; i < N(paths); i++) {
		if ((fd = open(paths[i], O_RDONLY | O_CLOEXEC)) == -1)
			continue;
		if (tree_static(fd)) {
			*ret_path = paths[i];
			return fd;
		}
		fd_close(&fd);
	}
	(void)fail("there is no static busybox: install busybox-static");
	return -1;
}

/* What path prints, in one allocation, or NULL. */
static char *
output_of(const char *path, const char *arg)
{
	char	*buf = xmalloc(65536);
	size_t	 len = 0;
	ssize_t	 n;
	pid_t	 pid;
	int	 p[2], status;

	if (pipe2(p, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		free(buf);
		return NULL;
	}
	if (pid == 0) {
		(void)dup2(p[1], STDOUT_FILENO);
		(void)execl(path, path, arg, (char *)NULL);
		_exit(127);
	}
	fd_close(&p[1]);
	while (len < 65535 && (n = read(p[0], buf + len, 65535 - len)) > 0)
		len += (size_t)n;
	fd_close(&p[0]);
	buf[len] = '\0';
	if (waitpid(pid, &status, 0) == pid && status == 0)
		return buf;
	free(buf);
	return NULL;
}

/* "usr/bin/tac": one of our directories and a plain name. */
static int
applet_ok(const char *path)
{
	const char	*name = strrchr(path, '/');
	size_t		 i, dir;

	if (name == NULL || name[1] == '\0' || name[1] == '.')
		return 0;
	dir = (size_t)(name - path);
	for (i = 0; i < 5; i++)
		if (strlen(minimal_dirs[i].name) == dir &&
		    memcmp(minimal_dirs[i].name, path, dir) == 0)
			return strcmp(path, "bin/busybox") != 0;
	return 0;
}

static int
link_applets(int fd, const char *busybox)
{
	auto_free char	*list = output_of(busybox, "--list-full");
	char		*line, *save = NULL;

	if (list == NULL)
		return fail("%s --list-full failed", busybox);
	for (line = strtok_r(list, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save))
		if (applet_ok(line) &&
		    tree_link(fd, line, "/bin/busybox") == -1)
			return fail_errno("/%s", line);
	return 0;
}

static int
os_release(int fd, const char *busybox)
{
	auto_free char	*about = output_of(busybox, "--help"), *text = NULL;
	const char	*p = about != NULL ? strstr(about, " v") : NULL;
	int		 n = p != NULL ? (int)strspn(p + 2, "0123456789.") : 0;
	struct file	 f = { "etc/os-release", 0644, NULL };

	text = xasprintf("NAME=Workbox\nID=workbox\n"
	    "PRETTY_NAME=\"Workbox minimal (busybox%s%.*s)\"\n",
	    n > 0 ? " " : "", n, n > 0 ? p + 2 : "");
	f.text = text;
	return put_files(fd, &f, 1);
}

int
rootfs_minimal(const struct args *a, int fd)
{
	static const char *const	foreign[] = { "suite", "include",
	    "mirror" };
	auto_close int			 bb = -1;
	auto_free char			*ca = NULL;
	const char			*path;
	size_t				 i, len;
	int				 rc;

	for (i = 0; i < N(foreign); i++)
		if (args_get(a, foreign[i]) != NULL)
			return fail("--%s: expected with debian only",
			    foreign[i]);
	if ((rc = read_ca(a, &ca, &len)) != 0)
		return rc;
	if ((bb = open_busybox(&path)) == -1)
		return EXIT_OURS;
	for (i = 0; i < N(minimal_dirs); i++)
		if (tree_dir(fd, minimal_dirs[i].name,
		    minimal_dirs[i].mode) == -1)
			return fail_errno("/%s", minimal_dirs[i].name);
	if (fchownat(fd, "home/agent", 1000, 1000, AT_SYMLINK_NOFOLLOW) == -1)
		return fail_errno("/home/agent");
	if (tree_copy(bb, fd, "bin/busybox", 0755) == -1)
		return fail_errno("/bin/busybox");
	if ((rc = link_applets(fd, path)) != 0 ||
	    (rc = put_files(fd, minimal_files, N(minimal_files))) != 0 ||
	    (rc = put_files(fd, common_files, N(common_files))) != 0 ||
	    (rc = os_release(fd, path)) != 0)
		return rc;
	if (ca != NULL && tree_file(fd, CA_FILE, 0644, ca, len) == -1)
		return fail_errno("/" CA_FILE);
	return 0;
}

/* ---- debian ------------------------------------------------------------ */

#define PACKAGES	"ca-certificates,curl,git,make,python3-minimal"
#define HOOK_USER	"chroot \"$1\" useradd -m -u 1000 -U -s /bin/bash agent"
#define HOOK_CA		"cp \"$WORKBOX_CA\" \"$1/usr/local/share/" \
	"ca-certificates/workbox.crt\" && chroot \"$1\" " \
	"update-ca-certificates"

static volatile sig_atomic_t	interrupted;
static volatile pid_t		builder;

static void
on_signal(int num)
{
	interrupted = num;
	if (builder > 0)
		(void)kill(builder, SIGKILL);
}

/* Words of package lists and suites: nothing that is an option or a path. */
static int
word_ok(const char *s, const char *more)
{
	size_t	n;

	if (*s == '-')
		return 0;
	for (n = 0; s[n] != '\0'; n++)
		if (strchr("abcdefghijklmnopqrstuvwxyz0123456789+-.",
		    s[n]) == NULL && strchr(more, s[n]) == NULL)
			return 0;
	return n > 0;
}

/* This host's release when it is Debian, else stable. */
static const char *
host_suite(void)
{
	static char	 buf[64];
	auto_free char	*text = NULL;
	const char	*p;
	size_t		 len, n;

	text = text_file("/etc/os-release", 65536, &len);
	if (text == NULL || strstr(text, "\nID=debian\n") == NULL ||
	    (p = strstr(text, "VERSION_CODENAME=")) == NULL)
		return "stable";
	p += strlen("VERSION_CODENAME=");
	n = strcspn(p, "\n");
	if (n == 0 || n >= sizeof buf)
		return "stable";
	memcpy(buf, p, n);
	buf[n] = '\0';
	return word_ok(buf, "") ? buf : "stable";
}

/*
 * In the child, which is pid 1 of a pid namespace: whatever ends it ends all
 * that it has started, and its mounts with them.  It holds the lock.  It sees
 * the build's directory in the place of the one around it, which is root's
 * alone: apt fetches as another user.  Nothing else that is open goes along:
 * mmdebstrap names descriptors in a sh that knows none above 9.
 */
static void
become_mmdebstrap(char **argv, const char *build, const char *at, int lock)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    unshare(CLONE_NEWNS) == -1 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount(build, at, NULL, MS_BIND, NULL) == -1 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    NULL) == -1 ||
	    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == -1 ||
	    fcntl(lock, F_SETFD, 0) == -1)
		_exit(fail_errno("prepare mmdebstrap"));
	(void)execvp(argv[0], argv);
	(void)fail_errno("run mmdebstrap (package mmdebstrap)");
	_exit(127);
}

static int
run_mmdebstrap(char **argv, const char *build, const char *at, int lock)
{
	struct sigaction	sa;
	int			status;

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_signal;
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	(void)fflush(stdout);
	if (unshare(CLONE_NEWPID) == -1 || (builder = fork()) == -1)
		return fail_errno("run mmdebstrap");
	if (builder == 0)
		become_mmdebstrap(argv, build, at, lock);
	if (interrupted != 0)	/* before there was anything to be ended */
		(void)kill(builder, SIGKILL);
	while (waitpid(builder, &status, 0) == -1)
		if (errno != EINTR)
			return fail_errno("wait for mmdebstrap");
	builder = 0;
	if (interrupted != 0)
		return EXIT_SIGNAL + interrupted;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail("mmdebstrap failed");
	return 0;
}

static int
package_list(const struct args *a, char **ret)
{
	char		*all = xstrdup(PACKAGES), *more;
	const char	*s;
	size_t		 i = 0;

	while ((s = args_each(a, "include", &i)) != NULL) {
		if (!word_ok(s, ",:")) {
			free(all);
			return fail("--include: expected names of packages "
			    "with commas between, not \"%s\"", s);
		}
		more = xasprintf("%s,%s", all, s);
		free(all);
		all = more;
	}
	*ret = all;
	return 0;
}

/* The file of --ca under an absolute name, for the hook. */
static int
export_ca(const struct args *a, int *ret_given)
{
	auto_free char	*ca = NULL, *path = NULL;
	size_t		 len;
	int		 rc;

	if ((rc = read_ca(a, &ca, &len)) != 0 || ca == NULL)
		return rc;
	if ((path = realpath(args_get(a, "ca"), NULL)) == NULL ||
	    setenv("WORKBOX_CA", path, 1) == -1)
		return fail_errno("--ca %s", args_get(a, "ca"));
	*ret_given = 1;
	return 0;
}

/* For apt; as an option of it, it would stay in what is built. */
static int
export_proxy(const struct conf *c)
{
	if (strcmp(c->upstream_proxy, "none") == 0)
		return 0;
	if (setenv("http_proxy", c->upstream_proxy, 1) == -1 ||
	    setenv("https_proxy", c->upstream_proxy, 1) == -1)
		return fail_errno("tell mmdebstrap of the proxy");
	return 0;
}

/* What mmdebstrap leaves out or takes from this host. */
static int
finish_debian(int fd)
{
	if (tree_dir(fd, "opt/workbox", 0755) == -1 && errno != EEXIST)
		return fail_errno("/opt/workbox");
	return put_files(fd, common_files, N(common_files));
}

/* The build's directory: the tree in root, what passes in tmp. */
static int
make_room(const struct making *m)
{
	return fchmod(m->build, 0755) == -1 ||
	    tree_dir(m->build, "tmp", 01777) == -1 ?
	    fail_errno("make the build's directory") : 0;
}

int
rootfs_debian(const struct args *a, const struct conf *c,
    const struct making *m, json_t *origin)
{
	auto_free char	*at = NULL, *build = NULL, *include = NULL;
	auto_free char	*tmpdir = NULL;
	const char	*suite = args_get(a, "suite");
	const char	*mirror = args_get(a, "mirror");
	char		*argv[16];
	int		 rc, n = 0, ca = 0;

	if (suite == NULL)
		suite = host_suite();
	if (!word_ok(suite, ""))
		return fail("--suite: expected the name of a release, not "
		    "\"%s\"", suite);
	if (mirror != NULL && *mirror == '-')
		return fail("--mirror: expected a URL, not \"%s\"", mirror);
	if ((rc = package_list(a, &include)) != 0 ||
	    (rc = export_ca(a, &ca)) != 0 || (rc = make_room(m)) != 0)
		return rc;
	(void)json_object_set_new(origin, "suite", json_string(suite));
	at = xasprintf("%s/rootfs", c->state_dir);
	build = xasprintf("%s/%s", at, m->tmp);
	tmpdir = xasprintf("%s/tmp", at);
	if (setenv("TMPDIR", tmpdir, 1) == -1)
		return fail_errno("%s", tmpdir);
	if ((rc = export_proxy(c)) != 0)
		return rc;
	argv[n++] = xstrdup("mmdebstrap");
	argv[n++] = xstrdup("--mode=root");
	argv[n++] = xstrdup("--variant=minbase");
	argv[n++] = xstrdup("--format=directory");
	argv[n++] = xasprintf("--include=%s", include);
	argv[n++] = xstrdup("--customize-hook=" HOOK_USER);
	if (ca)
		argv[n++] = xstrdup("--customize-hook=" HOOK_CA);
	if (!isatty(STDERR_FILENO))
		argv[n++] = xstrdup("--quiet");
	argv[n++] = xstrdup(suite);
	argv[n++] = xasprintf("%s/root", at);
	if (mirror != NULL)
		argv[n++] = xstrdup(mirror);
	argv[n] = NULL;
	if ((rc = run_mmdebstrap(argv, build, at, m->build)) == 0)
		rc = finish_debian(m->root);
	while (n > 0)
		free(argv[--n]);
	return rc;
}
