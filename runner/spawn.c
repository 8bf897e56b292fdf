/*
 * spawn.c: from a request to a process.
 *
 * Theory of operation.  A child is made by clone(CLONE_VM | CLONE_VFORK):
 * it borrows our memory until it has called exec, and the thread that made it
 * sleeps meanwhile.  That is several times as fast as fork (no page is copied
 * or faulted in again), and the kernel's OOM killer leaves a child of vfork
 * alone, which, sharing our memory, would otherwise take us with it.  Its one
 * danger: a process of the box can stop the child (SIGSTOP cannot be blocked)
 * or make its exec slow, and the thread sleeps on.
 *
 * So there are two threads, of which always one owns the loop and with it
 * everything in this program.  The other follows: it sleeps until a timer,
 * set before each spawn and unset after it, says that the owner is held up:
 *
 *	turn		who moves it on
 *	LOOP		owner, before clone	-> SPAWN
 *	SPAWN		owner, after clone	-> LOOP
 *			follower, timer fired	-> TAKEN, and owns the loop
 *	TAKEN		the new owner, told through an eventfd that the thread
 *			it replaced is back	-> LOOP
 *
 * While TAKEN no further spawn is begun; all else goes on.  A child that is
 * found stopped is killed, one that takes SLOW_MS too.  After TAKEN the old
 * owner touches nothing but its eventfd, and follows.
 *
 * Must never, in the child: allocate, use stdio, call a function of libc that
 * reaches for other threads (setuid and friends: raw calls instead), return.
 */
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
#include "xmalloc.h"

#define PATIENCE_MS	50		/* before the loop is taken over */
#define LOOK_MS		50		/* between looks at a slow child */
#define SLOW_MS		60000		/* it is killed after this */
#define CHILD_STACK	32768
#define THREAD_STACK	131072		/* as much as the first needs */

enum turn { LOOP, SPAWN, TAKEN };

static _Atomic int	 turn = LOOP;
static int		 alarm_fd = -1, back_fd = -1;
static struct watch	 back_watch = { .fd = -1 };
static struct timer	 slow_timer;
static unsigned int	 slow_looks;
static struct spawn	*flight;	/* borrowed: the spawn on its way */
static int		 flight_reaped;	/* its end came first */
static int		 flight_status;
static struct rusage	 flight_usage;
static uint8_t		 child_stack[CHILD_STACK]
			    __attribute__((aligned(64)));

/* ---- environment ----------------------------------------------------- */

static const char	*const env_fixed[] = {
	("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"
	    BOX_RUNTIME),
	"HOME=/root", "LANG=C.UTF-8", "TZ=UTC", "container=workbox",
	"IS_SANDBOX=1",
};
#define ENV_FIXED	(sizeof(env_fixed) / sizeof(env_fixed[0]))

static const char *
env_get(char **envp, const char *key)
{
	size_t	len = strlen(key);

	for (; *envp != NULL; envp++)
		if (strncmp(*envp, key, len) == 0 && (*envp)[len] == '=')
			return *envp + len + 1;
	return NULL;
}

/* What comes later wins, in the place of what was there. */
static void
env_put(char **envp, size_t *n, char *kv)
{
	size_t	i, len = strcspn(kv, "=") + 1;

	for (i = 0; i < *n; i++)
		if (strncmp(envp[i], kv, len) == 0) {
			envp[i] = kv;
			return;
		}
	envp[(*n)++] = kv;
}

static size_t
env_len(char **v)
{
	size_t	n = 0;

	while (v[n] != NULL)
		n++;
	return n;
}

int
spawn_env_ok(char **v)
{
	for (; *v != NULL; v++)
		if (**v == '=' || strchr(*v, '=') == NULL)
			return 0;
	return 1;
}

#define ENV_USER	3	/* HOME, USER, LOGNAME */
#define ENV_USER_BYTES	(sizeof("HOME=USER=LOGNAME=") + \
			    sizeof(((struct user *)NULL)->home) + \
			    2 * sizeof(((struct user *)NULL)->name))

/* What a login would say of the user, into *copy, which it moves on. */
static void
env_user(char **v, size_t *n, const struct user *u, char **copy)
{
	const char *const	keys[] = { "HOME", "USER", "LOGNAME" };
	const char *const	vals[] = { u->home, u->name, u->name };
	char			*kv;
	size_t			 i;

	for (i = 0; i < ENV_USER; i++) {
		if (*vals[i] == '\0')
			continue;
		kv = *copy;
		*copy = stpcpy(stpcpy(stpcpy(kv, keys[i]), "="), vals[i]) + 1;
		env_put(v, n, kv);
	}
}

/*
 * The box's and the user's strings are copied: another go may replace them
 * meanwhile.
 */
int
spawn_env(struct spawn *sp, const struct user *u)
{
	static char	id[sizeof("WORKBOX_SANDBOX_ID=") + ULID_LEN];
	static char	name[sizeof("WORKBOX_SANDBOX_NAME=") + 64];
	char		**v, **p, *copy;
	size_t		 i, n = 0, bytes, len, slots;

	(void)snprintf(id, sizeof(id), "WORKBOX_SANDBOX_ID=%s", runner.id);
	(void)snprintf(name, sizeof(name), "WORKBOX_SANDBOX_NAME=%s",
	    runner.name);
	slots = ENV_FIXED + 3 + ENV_USER + env_len(runner.env) +
	    env_len(sp->env);
	bytes = slots * sizeof(*v) + ENV_USER_BYTES;
	for (p = runner.env; *p != NULL; p++)
		bytes += strlen(*p) + 1;
	if ((v = malloc(bytes)) == NULL)
		return -1;
	copy = (char *)(v + slots);
	for (i = 0; i < ENV_FIXED; i++)
		v[n++] = (char *)(uintptr_t)env_fixed[i];
	v[n++] = id;
	v[n++] = name;
	if (u != NULL)
		env_user(v, &n, u, &copy);
	for (p = runner.env; *p != NULL; p++) {
		len = strlen(*p) + 1;
		env_put(v, &n, memcpy(copy, *p, len));
		copy += len;
	}
	for (p = sp->env; *p != NULL; p++)
		env_put(v, &n, *p);
	v[n] = NULL;
	sp->envp = v;
	return 0;
}

void
spawn_free(struct spawn *sp)
{
	int	i;

	if (sp == NULL)
		return;
	for (i = 0; i < 3; i++)
		fd_close(&sp->fd[i]);
	free(sp->argv);
	free(sp->env);
	free(sp->envp);
	free(sp->cwd);
	free(sp->groups);
	free(sp);
}

/* ---- the child ------------------------------------------------------- */

/* It runs on a stack of its own in our memory: sanitizers cannot follow. */
#define CHILD	__attribute__((no_sanitize("address", "undefined")))

static void	child_fail(struct spawn *, int) __attribute__((noreturn));

static CHILD void
child_fail(struct spawn *sp, int step)
{
	sp->err = errno;
	sp->step = step;
	_exit(127);
}

/* 0, 1, 2 and nothing else. */
static CHILD int
child_stdio(struct spawn *sp)
{
	int	i;

	for (i = 0; i < 3; i++)
		if (sp->fd[i] != -1 && dup2(sp->fd[i], i) == -1)
			return -1;
	return close_range(3, ~0U, 0);
}

static CHILD int
child_user(const struct spawn *sp)
{
	if (sp->uid == 0 && sp->gid == 0 && sp->groups == NULL)
		return 0;
	if (syscall(SYS_setgroups, sp->ngroups, sp->groups) == -1 ||
	    syscall(SYS_setresgid, sp->gid, sp->gid, sp->gid) == -1 ||
	    syscall(SYS_setresuid, sp->uid, sp->uid, sp->uid) == -1)
		return -1;
	return 0;
}

static CHILD int
child_cwd(const struct spawn *sp)
{
	const char	*home;

	if (sp->cwd[0] != '\0') {
		if (sp->cwd[0] != '/') {
			errno = EINVAL;
			return -1;
		}
		return chdir(sp->cwd);
	}
	home = env_get(sp->envp, "HOME");
	if (home == NULL || home[0] != '/' || chdir(home) == -1)
		return chdir("/");
	return 0;
}

/* ENOENT of a file that is there speaks of its interpreter. */
static CHILD void
child_exec_path(struct spawn *sp, const char *path)
{
	int	e;

	(void)execve(path, sp->argv, sp->envp);
	e = errno;
	if (e == ENOENT && faccessat(AT_FDCWD, path, F_OK, 0) == 0) {
		errno = e;
		child_fail(sp, SPAWN_INTERPRETER);
	}
	errno = e;
}

/* As execvp(3), without its /bin/sh for files that are no programs. */
static CHILD void
child_exec(struct spawn *sp)
{
	const char	*name = sp->argv[0], *p, *end;
	char		 path[PATH_MAX];
	size_t		 len = strlen(name), n;
	int		 seen = ENOENT;

	if (len == 0) {
		errno = ENOENT;
		child_fail(sp, SPAWN_LOOKUP);
	}
	if (memchr(name, '/', len) != NULL) {
		child_exec_path(sp, name);
		child_fail(sp, SPAWN_EXEC);
	}
	if ((p = env_get(sp->envp, "PATH")) == NULL)
		p = "";
	for (;; p = end + 1) {
		for (end = p; *end != '\0' && *end != ':'; end++)
			continue;
		n = (size_t)(end - p);
		if (n + 1 + len + 1 <= sizeof(path)) {
			memcpy(path, p, n);
			path[n] = '/';
			memcpy(path + n + (n > 0), name, len + 1);
			child_exec_path(sp, path);
			if (errno == EACCES)
				seen = EACCES;
			else if (errno != ENOENT && errno != ENOTDIR)
				child_fail(sp, SPAWN_EXEC);
		}
		if (*end == '\0')
			break;
	}
	errno = seen;
	child_fail(sp, seen == ENOENT ? SPAWN_LOOKUP : SPAWN_EXEC);
}

static CHILD int
child_main(void *arg)
{
	struct spawn		*sp = arg;
	struct sigaction	 dfl = { .sa_handler = SIG_DFL };
	sigset_t		 none;

	if (setsid() == -1)
		child_fail(sp, SPAWN_SETSID);
	if (cgroup_join(sp->session->id) == -1)
		child_fail(sp, SPAWN_CGROUP);
	if (child_stdio(sp) == -1)
		child_fail(sp, SPAWN_STDIO);
	if (setrlimit(RLIMIT_NOFILE, &runner.nofile) == -1)
		child_fail(sp, SPAWN_LIMITS);
	if (child_user(sp) == -1)
		child_fail(sp, SPAWN_USER);
	if (child_cwd(sp) == -1)
		child_fail(sp, SPAWN_CWD);
	(void)sigemptyset(&none);
	(void)sigaction(SIGPIPE, &dfl, NULL);	/* cannot fail */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	child_exec(sp);
	return 127;
}

/* ---- the thread that is held up -------------------------------------- */

static void
alarm_set(unsigned int ms)
{
	struct itimerspec	it = { .it_value.tv_nsec = ms * 1000000L };

	(void)timerfd_settime(alarm_fd, 0, &it, NULL);	/* cannot fail */
}

int
spawn_busy(void)
{
	return atomic_load(&turn) != LOOP;
}

void
spawn_follow(void)
{
	uint64_t	n;
	int		expected;

	do {
		if (read(alarm_fd, &n, sizeof(n)) == -1 && errno != EINTR)
			abort();	/* a timer of our own */
		expected = SPAWN;
	} while (!atomic_compare_exchange_strong(&turn, &expected, TAKEN));
	slow_looks = 0;
	timer_arm(&slow_timer, LOOK_MS);
}

static void *
follower(void *arg)
{
	for (;;) {
		spawn_follow();
		loop_run();
	}
	return arg;
}

/*
 * A child that changed its uid has, in the memory that it shared with us, set
 * what fs.suid_dumpable says.
 */
static void
spawn_undump(const struct spawn *sp)
{
	if (sp->uid != 0 || sp->gid != 0)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail */
}

int
spawn_start(struct spawn *sp)
{
	uint64_t	one = 1;
	pid_t		pid;
	int		expected = SPAWN, err;

	sp->pid = 0;
	sp->step = SPAWN_OK;
	flight = sp;
	flight_reaped = 0;
	atomic_store(&turn, SPAWN);
	alarm_set(PATIENCE_MS);
	/* sp->pid is there before the child runs, for who takes over */
	pid = clone(child_main, child_stack + sizeof(child_stack),
	    CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, sp,
	    &sp->pid);
	err = errno;
	if (atomic_compare_exchange_strong(&turn, &expected, LOOP)) {
		alarm_set(0);
		spawn_undump(sp);
		flight = NULL;
		if (pid == -1) {
			sp->step = SPAWN_CLONE;
			sp->err = err;
		}
		return 1;
	}
	(void)!write(back_fd, &one, sizeof(one));	/* cannot fail */
	return 0;
}

/* The thread that was held up is back. */
static void
on_back(void *arg, short events)
{
	struct spawn	*sp = flight;
	pid_t		 pid;
	uint64_t	 n;

	(void)arg;
	(void)events;
	if (read(back_fd, &n, sizeof(n)) == -1)
		return;
	timer_stop(&slow_timer);
	spawn_undump(sp);
	flight = NULL;
	if (sp->pid == 0) {
		sp->step = SPAWN_CLONE;
		sp->err = EAGAIN;
	}
	atomic_store(&turn, LOOP);
	pid = sp->pid;
	session_spawned(sp);		/* frees it */
	if (flight_reaped)
		session_exited(pid, flight_status, &flight_usage);
}

int
spawn_reaped(pid_t pid, int status, const struct rusage *ru)
{
	if (flight == NULL || flight->pid != pid)
		return 0;
	flight_reaped = 1;
	flight_status = status;
	flight_usage = *ru;
	return 1;
}

/* The state letter of a process; 0 when it is gone. */
static char
proc_state(pid_t pid)
{
	auto_close int	 fd = -1;
	char		 path[32], buf[512], *p;
	ssize_t		 n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1 ||
	    (n = read(fd, buf, sizeof(buf) - 1)) <= 0)
		return 0;
	buf[n] = '\0';
	/* the name before it may hold anything, also ')' */
	if ((p = strrchr(buf, ')')) == NULL || p[1] != ' ')
		return 0;
	return p[2];
}

/* A child on its way to exec has no reason to be stopped. */
static void
on_slow(void *arg)
{
	pid_t	pid = flight != NULL ? flight->pid : 0;

	(void)arg;
	if (pid > 0 && !flight_reaped && (++slow_looks * LOOK_MS > SLOW_MS ||
	    proc_state(pid) == 'T'))
		(void)kill(pid, SIGKILL);	/* it may just have gone */
	timer_arm(&slow_timer, LOOK_MS);
}

int
spawn_init(void)
{
	pthread_attr_t	 attr;
	pthread_t	 thread;

	slow_timer.fn = on_slow;
	if ((alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) == -1 ||
	    (back_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) == -1 ||
	    loop_add(&back_watch, back_fd, POLLIN, on_back, NULL) == -1 ||
	    (errno = pthread_attr_init(&attr)) != 0)
		return -1;
	if ((errno = pthread_attr_setstacksize(&attr, THREAD_STACK)) == 0)
		errno = pthread_create(&thread, &attr, follower, NULL);
	(void)pthread_attr_destroy(&attr);	/* cannot fail */
	if (errno != 0)
		return -1;
	/* there, so no number of another process: what the filter guards */
	if (syscall(SYS_tgkill, getpid(), BOX_THREAD, 0) == 0)
		return 0;
	errno = ESRCH;
	return -1;
}
