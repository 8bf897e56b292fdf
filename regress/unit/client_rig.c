/*
 * client_rig.c: see client_rig.h.
 */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "client_rig.h"

#ifndef WB_TOP_BUILDDIR
#define WB_TOP_BUILDDIR	".."
#endif

#define PROGRAM	WB_TOP_BUILDDIR "/workbox/workbox"
#define WORDS	22		/* of a command line, at most */
#define HEAD_OF(type)	"HTTP/1.1 200 OK\r\nContent-Type: " type "\r\n" \
	"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
#define HEAD		HEAD_OF("application/x-ndjson")
#define FRAMES_HEAD	HEAD_OF("application/vnd.workbox.output")

char		 out[1 << 20], errout[65536], asked[65536];
int		 code;

int		 on_terminal, no_reader, env_server = 1;
const char	*term = "xterm", *no_color, *client_file;
mode_t		 client_mode = 0600;

static char	 dir[] = "/tmp/wb-client-XXXXXX";
static int	 port;			/* of the last server */

int
rig_make(void)
{
	if (mkdtemp(dir) == NULL || chdir(dir) == -1)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

void
rig_sweep(void)
{
	(void)!system("rm -rf in out err asked conf");
	(void)rmdir(dir);
}

/* ---- a server that says what it is told -------------------------------- */

static void	serve_one(void);

static void
put_chunk(int fd, const char *p, size_t n)
{
	char	size[32];

	(void)snprintf(size, sizeof size, "%zx\r\n", n);
	(void)!write(fd, size, strlen(size));
	(void)!write(fd, p, n);
	(void)!write(fd, "\r\n", 2);
}

/*
 * "&" stands for the head of a stream of frames, each line after it, "kind
 * number text", for one that comes in two parts, but "!" for a cut.
 */
static void
answer_frames(int fd, const char *text)
{
	char		 frame[4096] = "";
	unsigned long	 kind, seq;
	char		*end;
	size_t		 n, i;

	(void)!write(fd, FRAMES_HEAD, strlen(FRAMES_HEAD));
	for (; *text != '\0' && *text != '!'; text = end + 1 + n + 1) {
		kind = strtoul(text, &end, 10);
		seq = strtoul(end, &end, 10);
		n = strcspn(end + 1, "\n");
		frame[0] = (char)kind;
		for (i = 0; i < 8; i++) {
			frame[4 + i % 4] = (char)(n >> (24 - 8 * (i % 4)));
			frame[8 + i] = (char)(seq >> (56 - 8 * i));
		}
		memcpy(frame + 16, end + 1, n);
		put_chunk(fd, frame, 7);
		if (end[1 + n] == '\0')
			return;		/* a cut in a frame */
		put_chunk(fd, frame + 7, 9 + n);
	}
	if (*text != '!')
		(void)!write(fd, "0\r\n\r\n", 5);
}

/*
 * "$" stands for the head of a stream, each line after it for a chunk; "~"
 * for another connection, served before this one goes on; "!" cuts it.
 */
static void
answer(int fd, const char *text)
{
	const char	*p, *nl;

	if (*text == '&') {
		answer_frames(fd, text + 1);
		return;
	}
	if (*text != '$') {
		(void)!write(fd, text, strlen(text));
		return;
	}
	(void)!write(fd, HEAD, strlen(HEAD));
	for (p = text + 1; *p != '\0' && *p != '!'; p = nl) {
		if (*p == '~') {
			serve_one();
			nl = p + 1;
			continue;
		}
		nl = strchr(p, '\n');
		nl = nl == NULL ? p + strlen(p) : nl + 1;
		put_chunk(fd, p, (size_t)(nl - p));
	}
	if (*p != '!')
		(void)!write(fd, "0\r\n\r\n", 5);
}

/* Reads a whole request; the head's first line and the body go to log. */
static void
take_request(int fd, FILE *log)
{
	static char	 buf[1 << 18];
	size_t		 len = 0, body, want = 0;
	ssize_t		 n;
	const char	*end, *cl;

	while (len < sizeof buf - 1 && (n = read(fd, buf + len,
	    sizeof buf - 1 - len)) > 0) {
		len += (size_t)n;
		buf[len] = '\0';
		if ((end = strstr(buf, "\r\n\r\n")) == NULL)
			continue;
		body = (size_t)(end + 4 - buf);
		cl = strstr(buf, "Content-Length: ");
		if (cl != NULL && cl < end)
			want = (size_t)strtoul(cl + 16, NULL, 10);
		if (len >= body + want) {
			fprintf(log, "%.*s %.*s\n", (int)strcspn(buf, "\r"),
			    buf, (int)want, buf + body);
			return;
		}
	}
}

static int			 listener;
static FILE			*record;
static const char *const	*next;		/* answer */

static void
serve_one(void)
{
	int	fd = accept(listener, NULL, NULL);

	if (fd == -1 || *next == NULL)
		_exit(1);
	take_request(fd, record);
	answer(fd, *next++);
	close(fd);
}

static pid_t
serve(const char *const *answers)
{
	pid_t	pid = fork();

	if (pid != 0)
		return pid;
	record = fopen("asked", "w");
	setvbuf(record, NULL, _IONBF, 0);
	for (next = answers; *next != NULL; )
		serve_one();
	_exit(0);
}

static void
slurp(const char *name, char *buf, size_t size)
{
	int	fd = open(name, O_RDONLY);
	ssize_t	n, len = 0;

	while (fd != -1 && (n = read(fd, buf + len, size - 1 -
	    (size_t)len)) > 0)
		len += n;
	buf[len] = '\0';
	close(fd);
}

/* ---- the program, and what it is run with ------------------------------ */

/* %d in the file's text stands for the port; FIFO and DIR for these. */
static void
write_client_file(void)
{
	FILE	*f;

	(void)mkdir("conf", 0700);
	(void)mkdir("conf/workbox", 0700);
	(void)remove("conf/workbox/config");
	if (client_file == NULL)
		return;
	if (strcmp(client_file, "FIFO") == 0 ||
	    strcmp(client_file, "DIR") == 0) {
		ck_assert_int_eq(*client_file == 'D' ?
		    mkdir("conf/workbox/config", 0700) :
		    mkfifo("conf/workbox/config", 0600), 0);
		return;
	}
	f = fopen("conf/workbox/config", "w");
	for (const char *p = client_file; *p != '\0'; p++)
		if (p[0] == '%' && p[1] == 'd') {
			fprintf(f, "%d", port);
			p++;
		} else
			putc(*p, f);
	fchmod(fileno(f), client_mode);
	fclose(f);
}

static void
set_env(void)
{
	char	server[64], here[128];

	snprintf(server, sizeof server, "http://127.0.0.1:%d", port);
	snprintf(here, sizeof here, "%s/conf", dir);
	unsetenv("WORKBOX_SERVER");
	unsetenv("WORKBOX_CACERT");
	unsetenv("NO_COLOR");
	if (env_server)
		setenv("WORKBOX_SERVER", server, 1);
	setenv("WORKBOX_TOKEN", "sesame-sesame-sesame", 1);
	setenv("XDG_CONFIG_HOME", here, 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", term, 1);
	if (no_color != NULL)
		setenv("NO_COLOR", no_color, 1);
}

/* The child's end of a terminal without echo; the other in *ret. */
static int
open_terminal(int *ret)
{
	struct termios	t;
	int		fd;

	*ret = posix_openpt(O_RDWR | O_NOCTTY);
	ck_assert(*ret != -1 && grantpt(*ret) == 0 && unlockpt(*ret) == 0);
	fd = open(ptsname(*ret), O_RDWR | O_NOCTTY);
	ck_assert(fd != -1 && tcgetattr(fd, &t) == 0);
	t.c_lflag &= ~(tcflag_t)ECHO;
	t.c_oflag &= ~(tcflag_t)OPOST;
	ck_assert_int_eq(tcsetattr(fd, TCSANOW, &t), 0);
	return fd;
}

/* A pipe that nobody reads. */
static int
open_unread(void)
{
	int	p[2];

	ck_assert_int_eq(pipe(p), 0);
	close(p[0]);
	return p[1];
}

/* All that comes until the other end is closed. */
static void
read_terminal(int fd)
{
	FILE	*f = fopen("out", "w");
	char	 buf[4096];
	ssize_t	 n;

	while ((n = read(fd, buf, sizeof buf)) > 0)
		fwrite(buf, 1, (size_t)n, f);
	fclose(f);
	close(fd);
}

static void
run_program(const char *const *argv, const char *input)
{
	pid_t	pid;
	int	status, tty = -1, master = -1;
	FILE	*f = fopen("in", "w");

	fputs(input, f);
	fclose(f);
	f = fopen("err", "w");
	fclose(f);
	write_client_file();
	if (on_terminal) {
		tty = open_terminal(&master);
		(void)!write(master, input, strlen(input));
	}
	if ((pid = fork()) == 0) {
		set_env();
		dup2(tty != -1 ? tty : open("in", O_RDONLY), 0);
		dup2(tty != -1 ? tty : open("out", O_WRONLY | O_CREAT |
		    O_TRUNC, 0600), 1);
		if (no_reader)
			dup2(open_unread(), 1);
		dup2(tty != -1 ? tty : open("err", O_WRONLY | O_CREAT |
		    O_TRUNC, 0600), 2);
		execv(PROGRAM, (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	if (tty != -1) {
		close(tty);
		read_terminal(master);
	}
	waitpid(pid, &status, 0);
	code = WIFEXITED(status) ? WEXITSTATUS(status) :
	    1000 + WTERMSIG(status);
	slurp("out", out, sizeof out);
	slurp("err", errout, sizeof errout);
}

void
with_words(const char *input, const char *const *answers,
    const char *const *words)
{
	struct sockaddr_in	sa = { .sin_family = AF_INET,
	    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t		len = sizeof sa;
	const char		*argv[WORDS + 2] = { "workbox" };
	size_t			n;
	pid_t			server;

	for (n = 0; words[n] != NULL; n++) {
		ck_assert_uint_lt(n, WORDS);
		argv[n + 1] = words[n];
	}
	listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sa, sizeof sa), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&sa, &len),
	    0);
	server = serve(answers);
	close(listener);
	port = ntohs(sa.sin_port);
	run_program(argv, input);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	slurp("asked", asked, sizeof asked);
}

void
with_input(const char *input, const char *const *answers, ...)
{
	const char	*words[WORDS + 1];
	size_t		 n = 0;
	va_list		 ap;

	va_start(ap, answers);
	while ((words[n] = va_arg(ap, const char *)) != NULL)
		ck_assert_uint_lt(++n, WORDS + 1);
	va_end(ap);
	with_words(input, answers, words);
}

void
expect(int want_code, const char *want_out, const char *in_err,
    const char *in_asked)
{
	ck_assert_msg(code == want_code, "code %d, expected %d; out %s; err %s",
	    code, want_code, out, errout);
	if (want_out != NULL)
		ck_assert_str_eq(out, want_out);
	if (in_err != NULL)
		ck_assert_msg(*in_err == '\0' ? *errout == '\0' :
		    strstr(errout, in_err) != NULL, "err: %s", errout);
	if (in_asked != NULL)
		ck_assert_msg(strstr(asked, in_asked) != NULL, "asked: %s",
		    asked);
}
