/*
 * runner_fuzz: the runner under a host and any number of wb that say what
 * they like, while commands write, read and die.
 *
 * input: steps of a byte each (see steps[] below) and their byte;
 * RUNNER_PACKET takes a piece (two bytes of length, a packet) after it.  Ids
 * in packets that are step_id()'s stand for those of the sessions that came
 * to run, in this order.
 *
 * Real are the loop, peers, handlers, sessions, rings and pipes; commands,
 * cgroups, signals and time are made up here.  Answers are what their table says;
 * when all peers and commands have gone nothing is left: no session, no
 * descriptor, no memory.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sha2.h>
#include <signal.h>

#include "fuzz.h"
#include "steps.h"
/* Its two accept functions are where a peer begins; it listens nowhere. */
#include "../../runner/peer.c"

#define COMMANDS	8
#define PEERS		6
#define TURNS		3		/* of the loop, after each step */
#define RINGS		(512UL * 1024)
#define PID		500000		/* of the first command */

/* A command as it is seen from outside of the runner. */
struct command {
	char	id[ULID_LEN + 1];
	int	fd[3];			/* its own ends */
	int	lives;
};

struct runner	runner;

static struct command	 command[COMMANDS];
static unsigned int	 ncommands;
static int		 out[PEERS];	/* the far ends, or -1 */
static unsigned int	 who[PEERS];	/* A_APID or A_WB */
static unsigned int	 fail_step;	/* of the next spawn; 0: none */
static int		 fail_errno;
static int		 left_behind;	/* cgroups are not empty */
static uint64_t		 clock_ms;
static unsigned int	 turns;
static jmp_buf		 turned;

uint64_t	__wrap_mono_ms(void);
uint64_t	__wrap_now_ms(void);
int		__wrap_spawn_start(struct spawn *);

/* ---- the rest of the runner, and of the system ----------------------- */

uint64_t
__wrap_mono_ms(void)
{
	return clock_ms;
}

uint64_t
__wrap_now_ms(void)
{
	return UINT64_C(1767323045678) + clock_ms;
}

void
runner_log(const char *fmt, ...)
{
	struct msg_runner_log	 b = { 0 };
	struct peer		*p = peer_host();
	va_list			 ap;

	va_start(ap, fmt);
	must(vsnprintf(b.line, sizeof(b.line), fmt, ap) >= 0);
	va_end(ap);
	if (p != NULL && p->ch.state == S_RUN &&
	    wire_charset_ok(CS_TEXT, b.line, strlen(b.line)))
		peer_send(p, MSG_RUNNER_LOG, 0, &b);
}

void
runner_prepare(void)
{
}

int
__wrap_spawn_start(struct spawn *sp)
{
	struct command	*c = &command[ncommands];
	int		 i;

	must(sp->argv[0] != NULL && sp->envp != NULL && sp->cwd != NULL);
	sp->step = SPAWN_OK;
	if (fail_step != 0 || ncommands == COMMANDS) {
		sp->step = (int)(fail_step == 0 ? SPAWN_CLONE : fail_step);
		sp->err = fail_errno;
		fail_step = 0;
		return 1;
	}
	memcpy(c->id, sp->session->id, sizeof(c->id));
	for (i = 0; i < 3; i++)
		c->fd[i] = sp->fd[i] == -1 ? -1 : dup(sp->fd[i]);
	c->lives = 1;
	sp->pid = (pid_t)(PID + ncommands++);
	return 1;
}

static struct command *
command_of_pid(pid_t pid)
{
	unsigned int	i = (unsigned int)pid - PID;

	must(i < ncommands);
	return &command[i];
}

/* libc's: nothing here may reach a process of the system. */
int
kill(pid_t pid, int sig)
{
	must(sig > 0 && sig <= 64);
	return command_of_pid(pid < 0 ? -pid : pid)->lives ? 0 : -1;
}

int
cgroup_limits(void)
{
	return 1;
}

int
cgroup_make(const char *sid, uint64_t memory_bytes, uint64_t pids)
{
	(void)memory_bytes;
	(void)pids;
	must(strlen(sid) == ULID_LEN);
	return 0;
}

int
cgroup_join(const char *sid)
{
	(void)sid;
	abort();		/* the child's, and there is none */
}

int
cgroup_remove(const char *sid)
{
	(void)sid;
	errno = EBUSY;
	return left_behind ? -1 : 0;
}

int
cgroup_kill(const char *sid)
{
	(void)sid;
	return 0;
}

void
cgroup_signal(const char *sid, int sig)
{
	(void)sid; (void)sig;
}

uint64_t
cgroup_count(const char *sid)
{
	(void)sid;
	return left_behind ? 3 : 0;
}

uint64_t
cgroup_peak(const char *sid)
{
	(void)sid;
	return 4096;
}

void
oom_watch(void)
{
}

void
oom_forget(const struct session *s)
{
	(void)s;
}

void
oom_exited(struct session *s, pid_t pid)
{
	must(command_of_pid(pid)->lives);
	s->oom = s->signal == SIGKILL;
}

/* The loop comes here once a turn, with nothing half done. */
void
reap_turn(void)
{
	if (turns-- == 0)
		longjmp(turned, 1);
}

int
reap_busy(void)
{
	return 1;		/* it never sleeps */
}

static void
loop_turn(unsigned int n)
{
	turns = n;
	if (setjmp(turned) == 0)
		loop_run();
}

/* ---- peers ----------------------------------------------------------------- */

/* What the runner has said: of a type that this peer may get. */
static void
hear(unsigned int i)
{
	struct chan	c;
	struct msg	m;
	int		r;

	if (out[i] == -1)
		return;
	chan_init(&c, out[i], who[i], A_RUNNER, S_ALL);
	while ((r = chan_recv(&c, &m)) == 1)
		must(m.row->type % 2 == 1 ||
		    m.row->type == MSG_RUNNER_LOG ||
		    m.row->type == MSG_SESSION_ANNOUNCE);
	must(r == 0 || errno == ECONNRESET);
	if (r == -1)
		fd_close(&out[i]);
}

static void
connect_as(unsigned int actor, uid_t uid)
{
	struct peer	*p;
	unsigned int	 i;
	int		 v[2];

	for (i = 0; i < PEERS && out[i] != -1; i++)
		;
	if (i == PEERS)
		return;
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0, v) == 0);
	out[i] = v[1];
	who[i] = actor;
	if (actor == A_APID) {
		on_control(v[0]);
		return;
	}
	on_wb(v[0]);
	p = TAILQ_LAST(&peers, peers);
	must(p != NULL);
	p->uid = uid;
}

static void
step_control(unsigned int arg)
{
	(void)arg;
	connect_as(A_APID, 0);
}

static void
step_wb(unsigned int arg)
{
	connect_as(A_WB, arg & 3 ? 1000 + (arg & 3) : 0);
}

static void
step_hang_up(unsigned int arg)
{
	fd_close(&out[arg % PEERS]);
}

/* Puts the sessions' ids where their names stand. */
static void
real_ids(uint8_t *p, size_t n)
{
	char		name[ULID_LEN + 1];
	unsigned int	i;
	uint8_t		*q, *end = p + n;

	for (i = 0; i < ncommands; i++) {
		step_id(i, name);
		for (q = p; (q = memmem(q, (size_t)(end - q), name,
		    ULID_LEN)) != NULL; q += ULID_LEN)
			memcpy(q, command[i].id, ULID_LEN);
	}
}

static void
packet(unsigned int arg, struct bytes b)
{
	unsigned int	 i = arg % PEERS;
	uint8_t		*copy;

	if (out[i] == -1 || b.n == 0)
		return;
	must((copy = malloc(b.n)) != NULL);
	memcpy(copy, b.p, b.n);
	step_version(copy, b.n);
	real_ids(copy, b.n);
	/* the runner may read no more from it */
	(void)!send(out[i], copy, b.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(copy);
}

/* ---- commands --------------------------------------------------------------- */

static void
step_spawn(unsigned int arg)
{
	static const int	errs[] = { ENOENT, EACCES, E2BIG, EAGAIN,
	    EINVAL };

	fail_step = arg % (SPAWN_CLONE + 1);
	fail_errno = errs[(arg >> 4) % (sizeof(errs) / sizeof(errs[0]))];
}

static struct command *
command_of(unsigned int arg)
{
	struct command	*c = &command[arg % COMMANDS];

	return c->lives ? c : NULL;
}

static void
step_print(unsigned int arg)
{
	static uint8_t	 text[40000];
	struct command	*c = command_of(arg);
	size_t		 n = arg & 32 ? sizeof(text) : (arg & 16) + 1;

	text[0] = (uint8_t)arg;
	/* the pipe may be full */
	if (c != NULL && fcntl(c->fd[arg & 8 ? 2 : 1], F_SETFL,
	    O_NONBLOCK) == 0)
		(void)!write(c->fd[arg & 8 ? 2 : 1], text, n);
}

static void
step_input(unsigned int arg)
{
	uint8_t		 buf[65536];
	struct command	*c = command_of(arg);

	if (c == NULL || c->fd[0] == -1)
		return;
	if (arg & 64)
		fd_close(&c->fd[0]);
	else if (fcntl(c->fd[0], F_SETFL, O_NONBLOCK) == 0)
		(void)!read(c->fd[0], buf, arg & 8 ? 100 : sizeof(buf));
}

/* Its input is full, as if much had been written; inputs are too short. */
static void
step_fill(unsigned int arg)
{
	static const uint8_t	 much[65536];
	struct command		*c = command_of(arg);
	char			 path[64];
	int			 fd;

	if (c == NULL || c->fd[0] == -1)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", c->fd[0]);
	must((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) != -1);
	while (write(fd, much, sizeof(much)) > 0)
		continue;
	(void)close(fd);
}

static void
step_silent(unsigned int arg)
{
	struct command	*c = command_of(arg);

	if (c != NULL)
		fd_close(&c->fd[arg & 8 ? 2 : 1]);
}

static void
command_end(struct command *c, int status)
{
	struct rusage	ru = { .ru_utime = { 1, 2 } };
	int		i;

	for (i = 0; i < 3; i++)
		fd_close(&c->fd[i]);
	session_exited((pid_t)(PID + (c - command)), status, &ru);
	c->lives = 0;
}

static void
step_exit(unsigned int arg)
{
	struct command	*c = command_of(arg);

	if (c != NULL)		/* by a signal, or with a code */
		command_end(c, arg & 8 ? (int)(arg >> 4) + 1 :
		    (int)(arg >> 4) << 8);
}

static void
step_orphan(unsigned int arg)
{
	struct rusage	ru = { 0 };

	(void)arg;
	session_exited(PID - 1, 0, &ru);
}

static void
step_left(unsigned int arg)
{
	left_behind = (arg & 1) != 0;
}

static void
step_hear(unsigned int arg)
{
	hear(arg % PEERS);
}

/* Time passes: a little, or a lot. */
static void
step_time(unsigned int arg)
{
	clock_ms += arg & 128 ? (arg & 127) * UINT64_C(1000) : arg;
}

static void	(*const steps[RUNNER_NSTEPS])(unsigned int) = {
	[RUNNER_PACKET] = NULL,
	[RUNNER_CONTROL] = step_control,
	[RUNNER_WB] = step_wb,
	[RUNNER_HANG_UP] = step_hang_up,
	[RUNNER_SPAWN] = step_spawn,
	[RUNNER_PRINT] = step_print,
	[RUNNER_INPUT] = step_input,
	[RUNNER_SILENT] = step_silent,
	[RUNNER_EXIT] = step_exit,
	[RUNNER_ORPHAN] = step_orphan,
	[RUNNER_LEFT] = step_left,
	[RUNNER_HEAR] = step_hear,
	[RUNNER_TIME] = step_time,
	[RUNNER_FILL] = step_fill,
};

/* ---- one input ------------------------------------------------------------------ */

static void
prepare(void)
{
	uint8_t		token[32];
	SHA2_CTX	ctx;

	(void)signal(SIGPIPE, SIG_IGN);	/* as the runner does */
	memset(token, 'T', sizeof(token));
	SHA256Init(&ctx);
	SHA256Update(&ctx, token, sizeof(token));
	SHA256Final(runner.token, &ctx);
	memset(runner.nonce, 'N', sizeof(runner.nonce));
	memcpy(runner.id, "01K8ZZZZZZZZZZZZZZZZZZZZZZ", ULID_LEN + 1);
	memcpy(runner.name, "box", sizeof("box"));
	runner.draining = 0;
	runner.nonce_given = 1;		/* what comes before is once for all */
	runner.gone = 1;		/* its socket for wb stays unmade */
	runner.lives_max = SESSIONS_LIVE;
	free(runner.env);
	runner.env = calloc(1, sizeof(*runner.env));
	ring_limit(RINGS);
	memset(command, 0, sizeof(command));
	memset(out, -1, sizeof(out));
	ncommands = fail_step = 0;
	left_behind = 0;
	clock_ms += 1000000;
}

static void
all_over(void)
{
	struct session	*s;
	unsigned int	 i;

	left_behind = 0;
	for (i = 0; i < PEERS; i++)
		hear(i);
	/* those that still wait for the spawner come to run in a turn each */
	while (table.nqueued > 0)
		loop_turn(1);
	for (i = 0; i < ncommands; i++)
		if (command[i].lives)
			command_end(&command[i], 0);
	for (i = 0; i < PEERS; i++)
		fd_close(&out[i]);
	step_orphan(0);			/* the last of those left behind */
	/* a reader that holds output back is given up, a drain is over */
	for (i = 0; i < 16 && table.nlives + table.nleft + nhello > 0; i++) {
		clock_ms += UINT64_C(100000000);
		loop_turn(4);
	}
	must(table.nlives == 0);
	must(table.nleft == 0 && table.ndrains == 0);
	while ((s = TAILQ_FIRST(&table.ends)) != NULL) {
		TAILQ_REMOVE(&table.ends, s, part);
		table.nends--;
		session_free(s);
	}
	loop_turn(2);
	must(TAILQ_EMPTY(&table.all) && TAILQ_EMPTY(&peers));
	must(table.nends == 0 && table.nqueued == 0);
	must(nwb == 0 && nhello == 0 && host == NULL);
}

/* The lowest number that is free. */
static int
lowest(void)
{
	int	fd = dup(STDERR_FILENO);

	must(fd != -1 && close(fd) == 0);
	return fd;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes	b = { data, len };
	unsigned int	step, arg;
	int		spare = lowest();

	prepare();
	while (b.n > 0) {
		step = take_u8(&b) % RUNNER_NSTEPS;
		arg = take_u8(&b);
		if (step == RUNNER_PACKET)
			packet(arg, take_piece(&b));
		else
			steps[step](arg);
		loop_turn(TURNS);
	}
	all_over();
	must(lowest() == spare);
	return 0;
}
