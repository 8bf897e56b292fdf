/*
 * runner.c: start, and the log.
 *
 * pid 1 of a box.  The kernel drops every signal from within the box that we
 * have no handler for, and delivers those from outside that cannot be caught;
 * so there is none but SIGCHLD, which is blocked and read (reap.c).
 *
 * Must never: run anything before the first go, hold the token (its digest is
 * enough), give the nonce twice, become dumpable.
 */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define LOG_BURST	20		/* lines in LOG_MS */
#define LOG_MS		10000
#define NOFILE		4096
#define NOFILE_OTHER	320		/* descriptors that are no session's */
#define NOFILE_SESSION	3
#define HEAP_TRIM	65536
#define RING_MIN	(512UL * 1024)

static char	*no_env[] = { NULL };
static uint64_t	 cgroup_v1;		/* trees of that kind */

struct runner	runner = { .env = no_env };

void
runner_log(const char *fmt, ...)
{
	static uint64_t		since;
	static unsigned int	lines, lost;
	struct msg_runner_log	b = { 0 };
	struct peer		*p = peer_host();
	uint64_t		 now = mono_ms();
	va_list			 ap;

	if (now - since >= LOG_MS) {
		since = now;
		lines = 0;
	}
	if (runner.gone && (p == NULL || p->ch.state != S_RUN ||
	    peer_full(p) || lines >= LOG_BURST)) {
		lost++;
		return;
	}
	lines++;
	va_start(ap, fmt);
	(void)vsnprintf(b.line, sizeof(b.line), fmt, ap); /* cut is fine */
	va_end(ap);
	if (!runner.gone) {
		(void)dprintf(STDERR_FILENO, "runner: %s\n", b.line);
		return;
	}
	if (!wire_charset_ok(CS_TEXT, b.line, strlen(b.line)))
		(void)str_copy(b.line, "a line that is no text",
		    sizeof(b.line));
	if (lost > 0 && strlen(b.line) < sizeof(b.line) - 32) {
		(void)snprintf(b.line + strlen(b.line), 32,
		    " (%u lines lost)", lost);
		lost = 0;
	}
	peer_send(p, MSG_RUNNER_LOG, 0, &b);
}

static void	die(const char *, ...) __attribute__((format(printf, 1, 2),
		    noreturn));

/* Only at the start: launch.log gets it, and the box never becomes READY. */
static void
die(const char *fmt, ...)
{
	char	line[512];
	int	e = errno;
	va_list	ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);	/* cut is fine */
	va_end(ap);
	(void)dprintf(STDERR_FILENO, "runner: %s: %s\n", line, strerror(e));
	exit(1);
}

/* Who we are, out of the sealed memfd, which is closed behind us. */
static void
read_boot(void)
{
	struct row_boot	b;
	uint8_t		buf[1024];
	ssize_t		n;
	int		seals = fcntl(BOXFD_BOOT, F_GET_SEALS);

	errno = EPERM;
	if (seals == -1 || !(seals & F_SEAL_WRITE) || !(seals & F_SEAL_SHRINK))
		die("boot memfd: not sealed");
	if ((n = pread(BOXFD_BOOT, buf, sizeof(buf), 0)) == -1)
		die("read boot memfd");
	if (wire_decode(&wire_row_boot, buf, (size_t)n, &b) == -1)
		die("boot memfd: %s", wire_error());
	if (b.version != 1) {
		errno = EPROTONOSUPPORT;
		die("boot memfd: version %u", (unsigned int)b.version);
	}
	(void)str_copy(runner.id, b.id, sizeof(runner.id));
	(void)str_copy(runner.name, b.name, sizeof(runner.name));
	memcpy(runner.token, b.token_sha256.data, sizeof(runner.token));
	memcpy(runner.nonce, b.nonce.data, sizeof(runner.nonce));
	ring_limit(b.ring_bytes > BOX_RING ? BOX_RING :
	    b.ring_bytes < RING_MIN ? RING_MIN : (size_t)b.ring_bytes);
	explicit_bzero(buf, sizeof(buf));
	(void)close(BOXFD_BOOT);
	cgroup_v1 = b.cgroup_v1;
}

/* What privd left must not show in a session, nor what we need ourselves. */
static void
set_limits(void)
{
	struct rlimit	 rl;
	uint64_t	 n;

	if (getrlimit(RLIMIT_NOFILE, &runner.nofile) == -1)
		die("getrlimit");
	rl = runner.nofile;
	if (rl.rlim_cur < NOFILE)
		rl.rlim_cur = rl.rlim_max < NOFILE ? rl.rlim_max : NOFILE;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		die("setrlimit");
	n = rl.rlim_cur < NOFILE_OTHER ? 0 :
	    (rl.rlim_cur - NOFILE_OTHER) / NOFILE_SESSION;
	runner.lives_max = n < SESSIONS_LIVE ? (unsigned int)n : SESSIONS_LIVE;
	(void)umask(022);
}

static void
set_signals(void)
{
	/*
	 * The kernel's struct sigaction, all zeros: SIG_DFL.  libc's function
	 * will not touch 32 and 33, its own, which whoever started the server
	 * may have left ignored.
	 */
	static const uint64_t	dfl[4];
	struct sigaction	ign = { .sa_handler = SIG_IGN };
	int			sig;

	for (sig = 1; sig < NSIG; sig++)	/* KILL, STOP: EINVAL */
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, 8);
	(void)sigaction(SIGPIPE, &ign, NULL);
}

void
runner_prepare(void)
{
	set_signals();
	if (cgroup_init(cgroup_v1) == -1)
		die("open cgroups");
	oom_init();
	if (spawn_init() == -1)
		die("second thread");
}

/* Up to the first answer each step is one that somebody waits for. */
int
main(void)
{
	/* whatever fs.suid_dumpable says of a file that nobody may read */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		die("undumpable");
	/* one heap for both threads, of which one at a time runs */
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_TRIM);
	runner.start_mono = mono_ms();
	read_boot();
	set_limits();
	if (reap_init() == -1 || peer_init() == -1)
		die("watch");
	for (;;) {
		loop_run();
		spawn_follow();
	}
}
