/*
 * rootfs_import: a root file system from an archive.
 *
 * This process reads the file, hashes it and passes it on; what it says is
 * read by another one, behind a fence (room.h).  What that one reports is
 * taken as a stranger's word, too: it counts only when the whole file went
 * through.  Signals are heard while waiting alone, so that whatever ends an
 * import, this process ends the other and removes what it made.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <sha256.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "room.h"
#include "rootfs.h"
#include "ulid.h"
#include "xmalloc.h"

static int	import_main(const struct args *);

static const struct opt import_opts[] = {
	{ "sha256", "HEX", "refuse a file that has another sum", 0, 0 },
	{ "max-size", "BYTES", "most that its files may hold (16G)", 0, 0 },
	{ "max-entries", "NUMBER", "most entries (1000000)", 0, 0 },
	{ NULL, NULL, NULL, 0, 0 }
};

const struct cmd cmd_rootfs_import = {
	.name = "rootfs import",
	.operands = "NAME FILE|-",
	.doc = "Make a root file system from a tar archive",
	.opts = import_opts,
	.flags = CMD_STATE,
	.min = 2, .max = 2,
	.run = import_main
};

#define GIB		(UINT64_C(1024) * 1024 * 1024)
#define MAX_SIZE	(16 * GIB)
#define MAX_ENTRIES	1000000

struct import {
	const char		*file;		/* borrowed; for messages */
	int			 in, out, told;	/* owned: the file, the
						   room's ends */
	pid_t			 pid;
	int			 eof;		/* the file was read to it */
	uint64_t		 done, total;	/* bytes; 0: not known */
	uint64_t		 drawn_ms;
	int			 drawn;		/* a line stands there */
	uint8_t			 buf[65536];
	size_t			 len, off;	/* what is not passed on yet */
	SHA256_CTX		 ctx;
	char			 hex[SHA256_DIGEST_STRING_LENGTH];
	sigset_t		 mask;		/* while waiting */
	struct room_report	 rep;
};

static volatile sig_atomic_t	interrupted;

static void
on_signal(int num)
{
	interrupted = num;
}

/* From now on they come in ppoll() alone. */
static void
hold_signals(sigset_t *ret_mask)
{
	static const int	all[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction	sa, was;
	sigset_t		set;
	size_t			i;

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = on_signal;
	(void)sigemptyset(&set);
	for (i = 0; i < sizeof all / sizeof all[0]; i++) {
		(void)sigaddset(&set, all[i]);
		(void)sigaction(all[i], NULL, &was);
		/* nohup(1) means it */
		if (all[i] != SIGHUP || was.sa_handler != SIG_IGN)
			(void)sigaction(all[i], &sa, NULL);
	}
	(void)sigprocmask(SIG_BLOCK, &set, ret_mask);
	for (i = 0; i < sizeof all / sizeof all[0]; i++)
		(void)sigdelset(ret_mask, all[i]);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* ---- progress ----------------------------------------------------------- */

/* A bar on a terminal, ten times a second; without a total, bytes. */
static void
progress(struct import *im)
{
	static const char	full[] = "##############################";
	uint64_t		now = mono_ms();
	int			part;

	if (!isatty(STDERR_FILENO) || (im->drawn && now - im->drawn_ms < 100))
		return;
	im->drawn = 1;
	im->drawn_ms = now;
	if (im->total == 0) {
		(void)fprintf(stderr, "\r%" PRIu64 " MiB\033[K",
		    im->done >> 20);
		return;
	}
	part = im->done >= im->total ? 100 :
	    (int)(100.0 * (double)im->done / (double)im->total);
	(void)fprintf(stderr, "\r[%-30.*s] %3d %%  %" PRIu64 " of %" PRIu64
	    " MiB\033[K", part * 30 / 100, full, part, im->done >> 20,
	    im->total >> 20);
}

static void
progress_end(struct import *im)
{
	if (im->drawn)
		(void)fprintf(stderr, "\r\033[K");
}

/* ---- what is imported --------------------------------------------------- */

static int
open_file(struct import *im)
{
	struct stat	st;

	if (strcmp(im->file, "-") == 0) {
		im->file = "standard input";
		if (isatty(STDIN_FILENO))
			return fail("standard input: expected an archive, not "
			    "a terminal");
		im->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	} else
		im->in = open(im->file, O_RDONLY | O_CLOEXEC);
	if (im->in == -1 || fstat(im->in, &st) == -1)
		return fail_errno("%s", im->file);
	if (S_ISDIR(st.st_mode))
		return fail("%s: expected an archive, not a directory",
		    im->file);
	if (S_ISREG(st.st_mode))
		im->total = (uint64_t)st.st_size;
	return 0;
}

static int
read_limits(const struct args *a, struct room_limits *ret)
{
	const char	*s;

	ret->bytes = MAX_SIZE;
	ret->entries = MAX_ENTRIES;
	if ((s = args_get(a, "max-size")) != NULL &&
	    text_bytes(s, 1, INT64_MAX, &ret->bytes) == -1)
		return fail("--max-size: expected bytes, as 16G, not \"%s\"",
		    s);
	if ((s = args_get(a, "max-entries")) != NULL &&
	    text_u64(s, 1, UINT32_MAX, &ret->entries) == -1)
		return fail("--max-entries: expected a number, not \"%s\"",
		    s);
	if ((s = args_get(a, "sha256")) != NULL && (strlen(s) != 64 ||
	    s[strspn(s, "0123456789abcdef")] != '\0'))
		return fail("--sha256: expected 64 of 0-9 a-f, not \"%s\"",
		    s);
	return 0;
}

/* Below this the server refuses to make sandboxes. */
static int
disk_floor(const struct conf *c, int dir, uint64_t *ret)
{
	struct statvfs	st;

	if (fstatvfs(dir, &st) == -1)
		return fail_errno("%s", c->state_dir);
	*ret = state_floor(c, &st);
	return 0;
}

/* ---- the room ----------------------------------------------------------- */

static int
start_room(struct import *im, int root, const struct room_limits *most)
{
	int	data[2], told[2];

	if (pipe2(data, O_CLOEXEC) == -1)
		return fail_errno("pipe");
	im->out = data[1];
	if (pipe2(told, O_CLOEXEC) == -1) {
		(void)fail_errno("pipe");
		fd_close(&data[0]);
		return EXIT_OURS;
	}
	im->told = told[0];
	/* it is root by uid, and would be let signal all that are */
	if (unshare(CLONE_NEWPID) == -1 || (im->pid = fork()) == -1) {
		(void)fail_errno("start the reader");
		fd_close(&data[0]);
		fd_close(&told[1]);
		return EXIT_OURS;
	}
	if (im->pid == 0) {
		(void)close(data[1]);
		(void)close(told[0]);
		room_run(data[0], told[1], root, most);
	}
	fd_close(&data[0]);
	fd_close(&told[1]);
	if (fcntl(im->out, F_SETFL, O_NONBLOCK) == -1)
		return fail_errno("start the reader");
	return 0;
}

/* 0, or fail()'s code */
static int
take_in(struct import *im)
{
	ssize_t	n = read(im->in, im->buf, sizeof im->buf);

	if (n == -1)
		return errno == EINTR || errno == EAGAIN ? 0 :
		    fail_errno("read %s", im->file);
	im->off = 0;
	im->len = (size_t)n;
	SHA256Update(&im->ctx, im->buf, im->len);
	if (n == 0) {
		im->eof = 1;
		fd_close(&im->out);
	}
	return 0;
}

/* What the room does not take any more it has refused, and says why. */
static void
pass_on(struct import *im)
{
	ssize_t	n = write(im->out, im->buf + im->off, im->len - im->off);

	if (n == -1) {
		if (errno != EINTR && errno != EAGAIN)
			fd_close(&im->out);
		return;
	}
	im->off += (size_t)n;
	im->done += (uint64_t)n;
	progress(im);
}

/* Until the room has said something or has ended.  0, or fail()'s code. */
static int
feed(struct import *im)
{
	struct pollfd	p[3];
	int		rc = 0;

	while (rc == 0) {
		p[0] = (struct pollfd){ .fd = im->told, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = im->off < im->len ? im->out :
		    -1, .events = POLLOUT };
		p[2] = (struct pollfd){ .fd = im->out != -1 && im->off ==
		    im->len ? im->in : -1, .events = POLLIN };
		if (ppoll(p, 3, NULL, &im->mask) == -1 && errno != EINTR)
			return fail_errno("wait");
		if (interrupted != 0)
			return EXIT_SIGNAL + interrupted;
		if (p[0].revents != 0)
			return 0;
		if (p[1].revents != 0)
			pass_on(im);
		else if (p[2].revents != 0)
			rc = take_in(im);
	}
	return rc;
}

/* The report, once the room has ended.  0, or fail()'s code. */
static int
hear(struct import *im)
{
	ssize_t	n = read(im->told, &im->rep, sizeof im->rep);
	int	status;

	fd_close(&im->out);
	while (waitpid(im->pid, &status, 0) == -1)
		if (errno != EINTR)
			return fail_errno("wait for the reader");
	im->pid = -1;
	if (n != (ssize_t)sizeof im->rep && WIFSIGNALED(status))
		return fail("%s: its reader was ended by SIG%s", im->file,
		    text_signal_name(WTERMSIG(status)));
	if (n != (ssize_t)sizeof im->rep)
		return fail("%s: its reader ended without a word", im->file);
	im->rep.why[sizeof im->rep.why - 1] = '\0';
	if (!im->rep.ok)
		return fail("%s: %s", im->file, im->rep.why);
	if (!im->eof)
		return fail("%s: its reader did not read all of it", im->file);
	return 0;
}

/* Whatever came of it, the room is gone afterwards. */
static int
fill(struct import *im, int root, const struct room_limits *most)
{
	int	rc = start_room(im, root, most);

	if (rc == 0)
		rc = feed(im);
	progress_end(im);
	if (rc == 0)
		rc = hear(im);
	if (im->pid > 0) {
		(void)kill(im->pid, SIGKILL);
		while (waitpid(im->pid, NULL, 0) == -1 && errno == EINTR)
			;
	}
	(void)SHA256End(&im->ctx, im->hex);
	fd_close(&im->told);
	fd_close(&im->out);
	return rc;
}

/* ---- what came of it ---------------------------------------------------- */

static const struct { const char *key, *what; } left[LEFT_N] = {
	[LEFT_DEVICE] = { "devices", "device nodes: sandboxes have a /dev "
	    "of their own" },
	[LEFT_TRUSTED] = { "trusted", "attributes trusted.*" },
	[LEFT_SECURITY] = { "security", "attributes security.* (labels and "
	    "file capabilities have no effect in sandboxes)" },
	[LEFT_ACL] = { "acls", "access control lists" },
	[LEFT_OTHER] = { "other", "attributes of other kinds" },
};

static json_t *
left_out(const struct room_report *rep)
{
	json_t	*j = json_object();
	size_t	 i;

	for (i = 0; i < LEFT_N; i++) {
		if (rep->left[i] == 0)
			continue;
		note("left out %" PRIu64 " %s", rep->left[i], left[i].what);
		(void)json_object_set_new(j, left[i].key,
		    json_integer((json_int_t)rep->left[i]));
	}
	return j;
}

static json_t *
origin(const struct import *im)
{
	json_t	*j = json_pack("{s:s, s:I}", "sha256", im->hex, "bytes",
	    (json_int_t)im->done);
	char	 name[256];

	/* names that are not UTF-8 are left out */
	(void)str_copy(name, im->file, sizeof name);
	(void)json_object_set_new(j, "file", json_string(name));
	(void)json_object_set_new(j, "leftOut", left_out(&im->rep));
	return j;
}

static int
import_main(const struct args *a)
{
	static struct conf	 c;
	static struct import	 im;
	struct room_limits	 most;
	struct making		 m;
	const char		*name = a->operand[0], *sum;
	int			 rc;

	im.file = a->operand[1];
	im.in = im.out = im.told = im.pid = -1;
	SHA256Init(&im.ctx);
	if ((rc = read_limits(a, &most)) != 0 || (rc = rootfs_name(name)) !=
	    0 || (rc = open_file(&im)) != 0)
		return rc;
	hold_signals(&im.mask);
	if ((rc = rootfs_begin(a, &c, name, &m)) != 0)
		return rc;
	if ((rc = disk_floor(&c, m.dir, &most.floor)) == 0)
		rc = fill(&im, m.root, &most);
	sum = args_get(a, "sha256");
	if (rc == 0 && sum != NULL && strcmp(sum, im.hex) != 0)
		rc = fail("%s: its sum is %s", im.file, im.hex);
	rc = rootfs_end(&c, name, &m, rc == 0 ? origin(&im) : NULL, rc);
	if (rc == 0)
		rootfs_warn(&c, name);
	fd_close(&im.in);
	return rc;
}
