/*
 * client_test: the command line against servers that answer with what is
 * written here, right, wrong, cut and late; and the parts below it.
 *
 * Each case gives the answers, one per connection, and says what the program
 * must print, exit with, and have asked.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Before check.h, which has a macro fail. */
#include "../../workbox/workbox.h"
#include "xmalloc.h"

#include <check.h>

#ifndef WB_TOP_BUILDDIR
#define WB_TOP_BUILDDIR	".."
#endif

#define PROGRAM	WB_TOP_BUILDDIR "/workbox/workbox"
#define SID	"01K8AAAAAAAAAAAAAAAAAAAAAA"
#define HEAD	"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n" \
	"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
#define START	"{\"start\":{\"sessionId\":\"" SID "\"}}\n"
#define END(c)	"{\"end\":{\"sessionId\":\"" SID "\",\"state\":\"ended\"," \
	"\"exitCode\":" #c ",\"signal\":null,\"reason\":null}}\n"
#define CHUNK(n, s) "{\"seq\":" #n ",\"stream\":\"stdout\",\"data\":\"" s \
	"\",\"encoding\":\"utf-8\"}\n"
#define NONE	"{\"code\":\"not-found\",\"detail\":\"no\"}"
#define JSON(st, b) "HTTP/1.1 " st " X\r\nContent-Type: application/json\r\n" \
	"Connection: close\r\n\r\n" b

static char	 out[1 << 20], err[65536], asked[65536];
static char	 dir[] = "/tmp/wb-client-XXXXXX";
static int	 code;

/* How the program is run, until it is set anew. */
static int		 on_terminal;	/* all three: out has both */
static const char	*term = "xterm", *no_color;
static const char	*client_file;	/* its text; NULL: there is none */
static mode_t		 client_mode = 0600;
static int		 env_server = 1;	/* WORKBOX_SERVER is given */
static int		 port;			/* of the last server */

/* ---- a server that says what it is told -------------------------------- */

static void	serve_one(void);

/*
 * "$" stands for the head of a stream, each line after it for a chunk; "~"
 * for another connection, served before this one goes on; "!" cuts it.
 */
static void
answer(int fd, const char *text)
{
	const char	*p, *nl;
	char		 size[32];

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
		(void)snprintf(size, sizeof size, "%zx\r\n", (size_t)(nl - p));
		(void)!write(fd, size, strlen(size));
		(void)!write(fd, p, (size_t)(nl - p));
		(void)!write(fd, "\r\n", 2);
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
	unsetenv("WORKBOX_CA");
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
run_program(char **argv, const char *input)
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
		dup2(tty != -1 ? tty : open("err", O_WRONLY | O_CREAT |
		    O_TRUNC, 0600), 2);
		execv(PROGRAM, argv);
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
	slurp("err", err, sizeof err);
}

/* Runs `workbox WORDS' with the answers given; NULL ends both. */
static void
with_input(const char *input, const char *const *answers, ...)
{
	struct sockaddr_in	sa = { .sin_family = AF_INET,
	    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t		len = sizeof sa;
	char			*argv[24];
	int			n = 0;
	pid_t			server;
	va_list			ap;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sa, sizeof sa), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	server = serve(answers);
	close(listener);
	argv[n++] = xstrdup("workbox");
	va_start(ap, answers);
	while ((argv[n] = va_arg(ap, char *)) != NULL)
		n++;
	va_end(ap);
	port = ntohs(sa.sin_port);
	run_program(argv, input);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	slurp("asked", asked, sizeof asked);
	free(argv[0]);
}

#define A(...)	(const char *const []){ __VA_ARGS__, NULL }
#define EXEC	"sandbox", "exec", "b", "--", "x", NULL

static void
expect(int want_code, const char *want_out, const char *in_err,
    const char *in_asked)
{
	ck_assert_msg(code == want_code, "code %d, expected %d; out %s; err %s",
	    code, want_code, out, err);
	if (want_out != NULL)
		ck_assert_str_eq(out, want_out);
	if (in_err != NULL)
		ck_assert_msg(*in_err == '\0' ? *err == '\0' :
		    strstr(err, in_err) != NULL, "err: %s", err);
	if (in_asked != NULL)
		ck_assert_msg(strstr(asked, in_asked) != NULL, "asked: %s",
		    asked);
}

/* ---- exec -------------------------------------------------------------- */

START_TEST(exec_whole)
{
	with_input("", A("$" START CHUNK(1, "a\\n") "{\"seq\":2,\"stream\":"
	    "\"stdout\",\"data\":\"AP8=\",\"encoding\":\"base64\"}\n"
	    CHUNK(3, "\\u0000z") END(7)), EXEC);
	expect(7, NULL, "", "POST /v1/sandboxes/b/exec?stream=1 HTTP/1.1 "
	    "{\"argv\":[\"x\"]}");
	ck_assert_mem_eq(out, "a\n\0\377\0z", 6);
}
END_TEST

/* Cut anywhere after it began: taken up behind the last whole chunk. */
START_TEST(exec_cut)
{
	with_input("", A("$" START CHUNK(1, "one\\n") "{\"seq\":2,!",
	    "$" CHUNK(2, "two\\n") "!", "$" CHUNK(2, "two\\n")
	    CHUNK(3, "three\\n") END(0)), EXEC);
	expect(0, "one\ntwo\nthree\n", "", "/sessions/" SID
	    "/output?after=2&follow=1");
	ck_assert_ptr_nonnull(strstr(asked, "/output?after=1&follow=1"));
}
END_TEST

START_TEST(exec_restart)
{
	with_input("", A("$" START "!", JSON("503", "{}"), JSON("502", ""),
	    "", "$" CHUNK(1, "late\\n") END(0)), EXEC);
	expect(0, "late\n", "", "after=0");
}
END_TEST

/*
 * Whether it has started is not known: it is asked again under the same key,
 * which the server takes for one request; see box/sessions.sh.
 */
START_TEST(exec_once)
{
	static const char	post[] = "POST /v1/sandboxes/b/exec?stream=1";
	const char		*p;

	with_input("", A("", "$" START END(0)), EXEC);
	expect(0, "", "", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_nonnull(strstr(p, post));
	with_input("", A("$!", "$" START END(3)), EXEC);
	expect(3, "", "", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_nonnull(strstr(p, post));
	/* an answer is one */
	with_input("", A(JSON("503", "{\"code\":\"busy\",\"detail\":\"no\"}"),
	    "$" START END(0)), EXEC);
	expect(125, "", "no", post);
	p = strstr(asked, post) + 1;
	ck_assert_ptr_null(strstr(p, post));
}
END_TEST

START_TEST(exec_gap)
{
	with_input("", A("$" START CHUNK(1, "a") "{\"gap\":{\"first\":2,"
	    "\"last\":9,\"bytes\":100}}\n" CHUNK(10, "b") END(0)), EXEC);
	expect(0, "ab", "100 bytes of output were dropped: "
	    "chunks 2 to 9\n", NULL);
}
END_TEST

START_TEST(exec_nonsense)
{
	static const char *const	bad[] = {
		"$" START "nonsense\n",
		"$" START "{\"seq\":1,\"stream\":\"stdin\",\"data\":\"\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":7}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":\"A\","
		    "\"encoding\":\"base64\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":\"A=B=\","
		    "\"encoding\":\"base64\"}\n",
		"$" START "{\"seq\":1,\"stream\":\"stdout\",\"data\":\"AAA\001\","
		    "\"encoding\":\"base64\"}\n",
	};
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(bad[i]), EXEC);
		expect(125, "", "sent a line that is no output", NULL);
	}
	/* What a later server may add is no fault. */
	with_input("", A("$" START "{\"new\":1}\n" END(0)), EXEC);
	expect(0, "", "", NULL);
}
END_TEST

START_TEST(exec_long_line)
{
	char	*text = xmalloc((2 << 20) + 64);
	size_t	 n = strlen("$" START);

	memcpy(text, "$" START, n);
	memset(text + n, 'x', 2 << 20);
	text[n + (2 << 20)] = '\0';
	with_input("", A(text), EXEC);
	expect(125, "", "sent a line that is too long", NULL);
	free(text);
}
END_TEST

START_TEST(exec_codes)
{
	with_input("", A(JSON("422", "{\"code\":\"command-not-found\","
	    "\"detail\":\"x\"}")), EXEC);
	expect(127, "", "x (command-not-found)", NULL);
	with_input("", A(JSON("422", "{\"code\":\"command-not-executable\","
	    "\"detail\":\"x\"}")), EXEC);
	expect(126, "", NULL, NULL);
	with_input("", A("$" START "{\"end\":{\"sessionId\":\"s\","
	    "\"exitCode\":null,\"signal\":9,\"reason\":\"oom\"}}\n"), EXEC);
	expect(137, "", "session s: oom", NULL);
	with_input("", A("$" START "{\"end\":{\"sessionId\":\"s\","
	    "\"exitCode\":null,\"signal\":null,\"reason\":\"lost\"}}\n"),
	    EXEC);
	expect(125, "", "session s: lost", NULL);
}
END_TEST

START_TEST(exec_input)
{
	with_input("hello\n", A("$" START END(0)), EXEC);
	expect(0, "", "", "{\"argv\":[\"x\"],\"stdin\":\"hello\\n\"}");
	with_input("\377\377", A("$" START "~" END(0), JSON("200",
	    "{\"offset\":2}")), EXEC);
	expect(0, "", "", "\"stdinOpen\":true");
	ck_assert_ptr_nonnull(strstr(asked, "/stdin?offset=0&eof=1"));
	/* Taken in part, or taken with the answer lost: the rest, once. */
	with_input("\377abc", A("$" START "~~" END(0), JSON("409",
	    "{\"code\":\"bad-offset\",\"expected\":2}"), JSON("200",
	    "{\"offset\":4}")), EXEC);
	expect(0, "", "", "/stdin?offset=2&eof=1 HTTP/1.1 bc");
	with_input("\377abc", A("$" START "~~" END(0), "", JSON("200",
	    "{\"offset\":4}")), EXEC);
	expect(0, "", "", "/stdin?offset=0&eof=1");
	/* A command that reads no more is no fault. */
	with_input("\377", A("$" START "~" END(3), JSON("409",
	    "{\"code\":\"ended\",\"detail\":\"x\"}")), EXEC);
	expect(3, "", "", NULL);
}
END_TEST

/* ---- others ------------------------------------------------------------ */

START_TEST(problems)
{
	with_input("", A(JSON("409", "{\"code\":\"name-taken\",\"field\":"
	    "\"name\",\"detail\":\"taken \\u001b[31m\"}")), "sandbox",
	    "create", "--name", "a", NULL);
	expect(125, "", "workbox sandbox create: name: taken \\x1b[31m "
	    "(name-taken)\n", "{\"name\":\"a\"}");
	with_input("", A(JSON("500", "{\"code\":\"create-failed\",\"detail\":"
	    "\"d\",\"launchLog\":[\"l1\",\"l2\"]}")), "sandbox", "create",
	    NULL);
	expect(125, "", "launch log: l2", NULL);
	/* Of several operands the one that it is about is named. */
	with_input("", A(JSON("404", NONE), JSON("204", ""),
	    JSON("404", NONE)), "sandbox", "rm", "d", "e", "l", NULL);
	expect(125, "", NULL, "DELETE /v1/sandboxes/l");
	ck_assert_str_eq(err, "workbox sandbox rm: d: no (not-found)\n"
	    "workbox sandbox rm: l: no (not-found)\n");
	with_input("", A(JSON("404", NONE)), "sandbox", "logs", "b", "s",
	    NULL);
	expect(125, "", "sandbox logs: b s: no (not-found)\n", NULL);
	with_input("", A(JSON("404", NONE)), "sandbox", "exec", "b", "--",
	    "x", NULL);
	expect(125, "", "sandbox exec: b: no (not-found)\n", NULL);
	with_input("", A(JSON("500", "<html>")), "sandbox", "inspect", "a",
	    NULL);
	expect(125, "", "answered 500", NULL);
	with_input("", A(JSON("200", "<html>")), "sandbox", "inspect", "a",
	    NULL);
	expect(125, "", "without JSON", NULL);
}
END_TEST

/* What is refused before anything is asked. */
START_TEST(refused)
{
	static const char *const	cpus[] = { "0x2", "1e1", " 1", "+1",
	    "nan", "inf", "1.2.3", "", ".", "0" };
	size_t				i;

	for (i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
		with_input("", A(NULL), "sandbox", "create", "--cpus",
		    cpus[i], NULL);
		expect(125, "", "--cpus: expected a number of cores", NULL);
	}
	with_input("", A(NULL), "sandbox", "exec", "--timeout", "0x2", "b",
	    "--", "x", NULL);
	expect(125, "", "--timeout: expected seconds", NULL);
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--cpus",
	    ".5", NULL);
	expect(0, "{}\n", "", "{\"limits\":{\"cpus\":0.5}}");
	with_input("", A(NULL), "sandbox", "create", "--label", "a=1",
	    "--label", "b=1", "--label", "a=2", NULL);
	expect(125, "", "sandbox create: --label: a is given twice\n", NULL);
	with_input("", A(NULL), "sandbox", "exec", "--env", "A=1", "--env",
	    "A=1", "b", "--", "x", NULL);
	expect(125, "", "sandbox exec: --env: A is given twice\n", NULL);
}
END_TEST

/* The key goes nowhere but to the server that was named. */
START_TEST(redirect)
{
	with_input("", A("HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\n"
	    "Content-Length: 0\r\nConnection: close\r\n\r\n"), "sandbox",
	    "inspect", "a", NULL);
	expect(125, "", "answered 302", NULL);
}
END_TEST

START_TEST(pages)
{
	with_input("", A(JSON("200", "{\"items\":[{\"name\":\"a\"}],"
	    "\"nextCursor\":\"x y\"}"), JSON("200", "{\"items\":[{\"name\":"
	    "\"b\\u001b[1m\"}],\"nextCursor\":null}")), "sandbox", "ls",
	    "--label", "k=v w", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes?label=k%3Dv%20w&after=x%20y");
	ck_assert_ptr_nonnull(strstr(out, "\nb\\x1b[1m "));
}
END_TEST

START_TEST(paths)
{
	static const char *const	bad[] = { "", "a b", "../x", "..", ".",
	    "-", "a/b", "a?b", "Abc", "01ARZ3NDEKTSV4RRFFQ69G5FAVX",
	    "\303\244" };
	size_t				i;

	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(NULL), "sandbox", "inspect", "--", bad[i],
		    NULL);
		expect(125, "", "\": expected a name, ", NULL);
		with_input("", A(NULL), "sandbox", "wait", "--", "a", bad[i],
		    NULL);
		expect(125, "", "\": expected a name, ", NULL);
	}
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect",
	    "01ARZ3NDEKTSV4RRFFQ69G5FAV", NULL);
	expect(0, "{}\n", "", "GET /v1/sandboxes/01ARZ3NDEKTSV4RRFFQ69G5FAV "
	    "HTTP");
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a..-_9",
	    NULL);
	expect(0, "{}\n", "", "GET /v1/sandboxes/a..-_9 HTTP");
}
END_TEST

START_TEST(version)
{
	with_input("", A(JSON("200", "{\"version\":\"9\"}")), "version", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\nserver 9 at http://"));
	expect(0, NULL, "", "GET /v1/version");
	with_input("", A(JSON("401", "{\"code\":\"unauthorized\",\"detail\":"
	    "\"no\"}")), "version", NULL);
	ck_assert_ptr_null(strstr(out, "server"));
	expect(0, NULL, "workbox version: no (unauthorized)\n", NULL);
	with_input("", A(JSON("200", "<html>")), "version", NULL);
	expect(0, NULL, "without JSON", NULL);
	with_input("", A(NULL), "version", "--server", "unix:/nonexistent",
	    NULL);
	expect(0, NULL, "reach unix:/nonexistent: No such file", NULL);
}
END_TEST

START_TEST(waits)
{
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), "",
	    JSON("503", ""), JSON("200", "{\"state\":\"ended\","
	    "\"exitCode\":4}")), "sandbox", "wait", "b", "s", NULL);
	expect(4, NULL, "", "/sessions/s?wait=60");
	with_input("", A(JSON("200", "<html>")), "sandbox", "wait", "b", "s",
	    NULL);
	expect(125, "", "answered without JSON", NULL);
	with_input("", A(JSON("404", "{\"code\":\"not-found\",\"detail\":"
	    "\"no\"}")), "sandbox", "wait", "b", "s", NULL);
	expect(125, "", "no (not-found)", NULL);
}
END_TEST

START_TEST(wait_timeout)
{
	with_input("", A(JSON("200", "{\"state\":\"running\"}")), "sandbox",
	    "wait", "b", "s", "--timeout", "0", NULL);
	expect(124, "", "wait: b s: running after 0 s\n",
	    "/sessions/s?wait=0");
	with_input("", A(JSON("200", "{\"state\":\"running\"}"),
	    JSON("200", "{\"state\":\"ended\",\"exitCode\":4}")), "sandbox",
	    "wait", "b", "s", "--timeout", "30", NULL);
	expect(4, NULL, "", "/sessions/s?wait=30");
	/* Cut while it was asked for the first time, then not there. */
	with_input("", A(""), "sandbox", "wait", "b", "s", "--timeout", "1",
	    NULL);
	expect(124, "", "no answer after 1 s\n", NULL);
	/* One that is away for all of it, after it was there. */
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), "", ""),
	    "sandbox", "wait", "b", "s", "--timeout", "1", NULL);
	expect(124, "", "no answer after 1 s\n", NULL);
	with_input("", A(NULL), "sandbox", "wait", "--server",
	    "unix:/nonexistent", "b", "s", NULL);
	expect(125, "", "reach unix:/nonexistent: No such file", NULL);
	with_input("", A(NULL), "sandbox", "wait", "b", "s", "--timeout",
	    "0.5", NULL);
	expect(125, "", "--timeout: expected seconds from 0 to", NULL);
}
END_TEST

#define CUTS	"", "", "", "", ""	/* 100 ms ... 1.6 s: more than 3 s */

/* Away for long: told once, and when it is back; not a byte comes twice. */
START_TEST(away)
{
	with_input("", A("$" CHUNK(1, "a") "!", CUTS, "$" CHUNK(2, "b")
	    END(3)), "sandbox", "logs", "-f", "b", "s", NULL);
	expect(0, "ab", NULL, "/output?after=1&follow=1");
	ck_assert_msg(strstr(err, "logs: http://127.0.0.1:") == err + 16 &&
	    strstr(err, " is away, trying again\nworkbox sandbox logs: "
	    "connected again\n") != NULL, "%s", err);
	with_input("", A("$" START CHUNK(1, "a") "!", CUTS, "",
	    "$" CHUNK(2, "b") END(3)), EXEC);
	expect(3, "ab", "is away, trying again\nworkbox sandbox exec: "
	    "connected again\n", NULL);
	with_input("", A(JSON("200", "{\"state\":\"running\"}"), CUTS,
	    JSON("200", "{\"state\":\"ended\",\"exitCode\":4}")), "sandbox",
	    "wait", "b", "s", NULL);
	expect(4, NULL, "is away, trying again\nworkbox sandbox wait: "
	    "connected again\n", "?wait=1 ");
}
END_TEST

START_TEST(follow)
{
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}")),
	    "sandbox", "run", "--name", "n", "b", "--", "x", NULL);
	expect(0, "{\"sessionId\": \"" SID "\"}\n", "", "{\"argv\":[\"x\"],"
	    "\"name\":\"n\"}");
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}"),
	    "$" CHUNK(1, "a") "!", "$" CHUNK(2, "b") END(9)), "sandbox",
	    "run", "-f", "b", "--", "x", NULL);
	expect(9, "ab", "session " SID "\n", "/output?after=1&follow=1");
	/* It cannot be followed: it runs all the same, which is told. */
	with_input("", A(JSON("201", "{\"sessionId\":\"" SID "\"}"),
	    "$" CHUNK(7, "a") "!", JSON("410", "{\"code\":\"gone\","
	    "\"detail\":\"d\"}")), "sandbox", "run", "-f", "b", "--", "x",
	    NULL);
	expect(125, "a", "left running: session " SID " of b; workbox "
	    "sandbox logs --follow --after 7 b " SID " goes on with it\n",
	    NULL);
	ck_assert_ptr_nonnull(strstr(err, "d (gone)"));
	with_input("", A("$" START END(0)), "sandbox", "exec", "--name", "n",
	    "b", "--", "x", NULL);
	expect(0, "", "", "{\"argv\":[\"x\"],\"name\":\"n\"}");
}
END_TEST

#define S(id, st, more) "{\"sessionId\":\"" id "\",\"state\":\"" st "\"" more "}"

START_TEST(ps)
{
	static const char	page[] = JSON("200", "{\"items\":["
	    S("A", "running", ",\"name\":\"n\",\"argv\":[\"x\",{\"base64\":"
	    "\"/w==\"},\"\\u001b[1m\"],\"firstSeq\":2,\"lastSeq\":9") ","
	    S("B", "ended", ",\"exitCode\":3,\"leftBehind\":0") ","
	    S("C", "ended", ",\"signal\":9,\"exitCode\":null,\"reason\":"
	    "\"oom\",\"leftBehind\":2") "],\"nextCursor\":null}");

	with_input("", A(page), "sandbox", "ps", "b", NULL);
	expect(0, "ID  STATE    EXIT  AGE  OUTPUT  LEFT  NAME  COMMAND\n"
	    "A   running  -     -    2-9     0     n     x ? \\x1b[1m\n"
	    "C   oom      137   -    -       2     -     -\n", "",
	    "GET /v1/sandboxes/b/sessions HTTP");
	with_input("", A(page), "sandbox", "ps", "-a", "b", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\nB   ended    3 "));
	with_input("", A(page), "sandbox", "ps", "--format", "json", "b",
	    NULL);
	ck_assert_ptr_nonnull(strstr(out, "\"sessionId\": \"C\""));
	ck_assert_ptr_null(strstr(out, "\"sessionId\": \"B\""));
	with_input("", A(JSON("200", "{\"items\":[" S("A", "running",
	    ",\"argv\":[\"1234567890123456789012345678901234567890123456"
	    "\303\244\303\244\"]") "],\"nextCursor\":null}")), "sandbox",
	    "ps", "b", NULL);
	ck_assert_ptr_nonnull(strstr(out, "23456\303\244...\n"));
}
END_TEST

START_TEST(kills)
{
	static const char *const	bad[] = { "0", "65", "NOPE", "", "9x",
	    "-1" };
	size_t				i;

	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s", NULL);
	expect(0, "", "", "POST /v1/sandboxes/b/sessions/s/signal HTTP/1.1 "
	    "{\"signal\":\"TERM\"}");
	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s", "-s",
	    "SIGINT", NULL);
	expect(0, "", "", "{\"signal\":\"SIGINT\"}");
	with_input("", A(JSON("204", "")), "sandbox", "kill", "b", "s",
	    "--signal", "15", NULL);
	expect(0, "", "", "{\"signal\":15}");
	with_input("", A(JSON("409", "{\"code\":\"ended\",\"detail\":"
	    "\"no process is left\"}")), "sandbox", "kill", "b", "s", NULL);
	expect(125, "", "kill: b s: no process is left (ended)\n", NULL);
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		with_input("", A(NULL), "sandbox", "kill", "b", "s",
		    "--signal", bad[i], NULL);
		expect(125, "", "--signal: expected TERM, KILL, INT", NULL);
	}
}
END_TEST

START_TEST(records)
{
	with_input("", A("$" "{\"seq\":1,\"a\":\"\303\244\"}\n"
	    "{\"seq\":2}\n"), "events", "export", NULL);
	ck_assert_int_eq(code, 125);	/* not a record: no comma */
	with_input("", A("$" "{\"seq\":1,\"a\":\"\303\244\"}\n"
	    "{\"seq\":2,\"b\":0}\n"), "events", "export", NULL);
	expect(0, "{\"seq\":1,\"a\":\"\303\244\"}\n{\"seq\":2,\"b\":0}\n", "",
	    NULL);
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n{\"seq\":2,\"b\""),
	    "events", "export", NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n", "ended within a line", NULL);
	with_input("", A("$" "{\"seq\":2,\"a\":0}\n{\"seq\":1,\"b\":0}\n"),
	    "events", "export", NULL);
	expect(125, "{\"seq\":2,\"a\":0}\n", "no record above 2", NULL);
	/* Cut in the middle: an export that is not whole is a failure. */
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n!"), "events", "export",
	    NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n", NULL, NULL);
}
END_TEST

/* Reconnecting is told once each way, and goes on behind what was read. */
START_TEST(tail)
{
	with_input("", A("$" "{\"seq\":1,\"a\":0}\n!", "", JSON("503", ""),
	    "$" "{\"seq\":2,\"a\":0}\n!", JSON("401", "{\"code\":"
	    "\"unauthorized\",\"detail\":\"no\"}")), "events", "tail", NULL);
	expect(125, "{\"seq\":1,\"a\":0}\n{\"seq\":2,\"a\":0}\n", NULL,
	    "GET /v1/events?after=1&follow=1");
	ck_assert_str_eq(err,
	    "workbox events tail: connection lost, trying again\n"
	    "workbox events tail: connected again\n"
	    "workbox events tail: connection lost, trying again\n"
	    "workbox events tail: no (unauthorized)\n");
	/* One that was never there is not waited for. */
	with_input("", A(NULL), "events", "tail", "--server",
	    "unix:/nonexistent", NULL);
	expect(125, "", "reach unix:/nonexistent: No such file", NULL);
}
END_TEST

/* ---- all of them ------------------------------------------------------- */

#define BOX(id, n, st, h) "{\"id\":\"" id "\",\"name\":\"" n "\",\"state\":" \
	"\"" st "\",\"health\":\"" h "\"}"
#define ID1	"01K8AAAAAAAAAAAAAAAAAAAAA1"
#define ID2	"01K8AAAAAAAAAAAAAAAAAAAAA2"
#define ID3	"01K8AAAAAAAAAAAAAAAAAAAAA3"
#define THREE	JSON("200", "{\"items\":[" BOX(ID1, "a", "READY", \
	"HEALTHY") "," BOX(ID2, "b", "QUARANTINED", "SUSPECT") "," \
	BOX(ID3, "c", "DELETING", "ABSENT") "],\"nextCursor\":null}")

START_TEST(rm_all)
{
	/* Each is removed by its id, and a failure keeps no other. */
	with_input("", A(THREE, JSON("200", "{}"), JSON("409", "{\"code\":"
	    "\"bad-transition\",\"detail\":\"no\"}"), JSON("200", "{}")),
	    "sandbox", "rm", "--all", "--yes", "--grace", "0", NULL);
	expect(125, "", NULL, "DELETE /v1/sandboxes/" ID1 "?graceSeconds=0 ");
	ck_assert_ptr_nonnull(strstr(asked, "DELETE /v1/sandboxes/" ID3));
	ck_assert_str_eq(err, "workbox sandbox rm: b: no (bad-transition)\n");
	/* One that somebody else has removed is gone: that was the wish. */
	with_input("", A(THREE, JSON("200", "{}"), JSON("404", NONE),
	    JSON("200", "{}")), "sandbox", "delete", "-y", "--all", NULL);
	expect(0, "", "", "DELETE /v1/sandboxes/" ID3);
	with_input("", A(JSON("200", "{\"items\":[],\"nextCursor\":null}")),
	    "sandbox", "rm", "--all", NULL);
	expect(0, "", "there are no sandboxes", NULL);
	/* Nobody to ask, nothing to be removed, nothing said twice. */
	with_input("y\n", A(THREE), "sandbox", "rm", "--all", NULL);
	expect(125, "", "expected --yes, or a terminal to ask on; nothing was "
	    "removed", NULL);
	ck_assert_ptr_null(strstr(asked, "DELETE"));
	with_input("", A(NULL), "sandbox", "rm", "--all", "a", NULL);
	expect(125, "", "expected SANDBOX ... or --all, not both", NULL);
	with_input("", A(NULL), "sandbox", "rm", NULL);
	expect(125, "", "expected SANDBOX ... or --all;", NULL);
	with_input("", A(NULL), "sandbox", "rm", "--yes", "a", NULL);
	expect(125, "", "--yes goes with --all", NULL);
	/* Ids that are none would be other paths. */
	with_input("", A(JSON("200", "{\"items\":[" BOX(ID1, "a", "READY",
	    "HEALTHY") "," BOX("../x", "b", "READY", "HEALTHY") "],"
	    "\"nextCursor\":null}")), "sandbox", "rm", "--all", "-y", NULL);
	expect(125, "", "a sandbox without id; nothing was removed", NULL);
	ck_assert_ptr_null(strstr(asked, "DELETE"));
}
END_TEST

/* On a terminal it lists them and asks; all but y and yes is no. */
START_TEST(rm_asks)
{
	static const char *const	no[] = { "\n", "n\n", "yep\n",
	    "\004", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n" };
	size_t				i;

	on_terminal = 1;
	with_input("y\n", A(THREE, JSON("200", "{}"), JSON("200", "{}"),
	    JSON("200", "{}")), "sandbox", "rm", "--all", NULL);
	expect(0, NULL, NULL, "DELETE /v1/sandboxes/" ID3);
	ck_assert_ptr_nonnull(strstr(out, "\na "));
	ck_assert_ptr_nonnull(strstr(out, ID2));
	ck_assert_ptr_nonnull(strstr(out,
	    "Remove these 3 sandboxes, and all that is in them? [y/N] "));
	for (i = 0; i < sizeof no / sizeof no[0]; i++) {
		with_input(no[i], A(THREE), "sandbox", "rm", "--all", NULL);
		expect(125, NULL, NULL, NULL);
		ck_assert_ptr_nonnull(strstr(out, "nothing was removed"));
		ck_assert_ptr_null(strstr(asked, "DELETE"));
	}
}
END_TEST

/* ---- on a terminal ----------------------------------------------------- */

START_TEST(colours)
{
	on_terminal = 1;
	with_input("", A(THREE), "sandbox", "list", NULL);
	expect(0, NULL, NULL, NULL);
	/* padded behind the colour, so that columns hold */
	ck_assert_ptr_nonnull(strstr(out, "\033[32mREADY\033[0m        "
	    "\033[32mHEALTHY\033[0m  "));
	ck_assert_ptr_nonnull(strstr(out, "\033[31mQUARANTINED\033[0m  "
	    "\033[33mSUSPECT\033[0m  "));
	ck_assert_ptr_nonnull(strstr(out, "  DELETING  "));
	no_color = "1";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	no_color = "";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_nonnull(strchr(out, '\033'));
	term = "dumb";
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	term = "xterm";
	on_terminal = 0;
	with_input("", A(THREE), "sandbox", "list", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	ck_assert_ptr_nonnull(strstr(out, "  READY        HEALTHY  "));
}
END_TEST

/* Whatever a server says, it is text; into a pipe it goes as it came. */
START_TEST(hostile_text)
{
	static const char	list[] = JSON("200", "{\"items\":[{\"name\":"
	    "\"\302\233" "31m\\u001b[31m\342\200\256\"}],\"nextCursor\":null}");
	static const char	record1[] = "$" "{\"seq\":1,\"a\":\"\302\233 "
	    "\033[31m\"}\n";

	on_terminal = 1;
	no_color = "1";
	with_input("", A(list), "sandbox", "list", NULL);
	ck_assert_ptr_nonnull(strstr(out,
	    "\n\\u009b31m\\x1b[31m\\u202e  "));
	with_input("", A(list), "sandbox", "list", "--format", "json", NULL);
	ck_assert_ptr_nonnull(strstr(out, "\"\\u009b31m\\u001B[31m\\u202e\""));
	with_input("", A(record1), "events", "export", NULL);
	expect(0, "{\"seq\":1,\"a\":\"\\u009b \\x1b[31m\"}\n", NULL, NULL);
	with_input("", A(JSON("200", "{\"version\":\"\\u001b[1m\"}")),
	    "version", NULL);
	ck_assert_ptr_nonnull(strstr(out, "server \\x1b[1m at "));
	with_input("", A(JSON("201", "{\"sessionId\":\"\\u001b[1m\"}")),
	    "sandbox", "run", "b", "--", "x", NULL);
	ck_assert_ptr_null(strchr(out, '\033'));
	on_terminal = 0;
	with_input("", A(record1), "events", "export", NULL);
	expect(0, record1 + 1, "", NULL);
}
END_TEST

/* ---- the client file --------------------------------------------------- */

START_TEST(client_files)
{
	/* The file's server, where neither option nor environment names one. */
	env_server = 0;
	client_file = "server = http://127.0.0.1:%d\n"
	    "default-rootfs = special\n";
	with_input("", A(JSON("201", "{}")), "sandbox", "create", NULL);
	expect(0, "{}\n", "", "{\"rootfs\":\"special\"}");
	with_input("", A(JSON("201", "{}")), "sandbox", "create", "--rootfs",
	    "other", NULL);
	expect(0, "{}\n", "", "{\"rootfs\":\"other\"}");
	client_file = "server = http://127.0.0.1:1\n";
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(125, "", "reach http://127.0.0.1:1: ", NULL);
	env_server = 1;		/* before the file */
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a",
	    "--server", "unix:/nonexistent", NULL);
	expect(125, "", "reach unix:/nonexistent: ", NULL);
	/* Faults name the file, the line and the key. */
	env_server = 0;
	client_file = "\nserver = ftp://x\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:2: server: expected http://",
	    NULL);
	client_file = "sevrer = x\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:1: there is no key \"sevrer\"; "
	    "did you mean server?", NULL);
	client_file = "server = https://127.0.0.1:1\nca = /nonexistent\n";
	with_input("", A(NULL), "sandbox", "list", NULL);
	expect(125, "", "/conf/workbox/config:2: ca /nonexistent: No such file",
	    NULL);
	/* The environment's key comes before the file's. */
	client_file = "server = http://127.0.0.1:%d\n"
	    "token-file = /nonexistent\n";
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
}
END_TEST

/* Who can write the file can have the key: nobody else may. */
START_TEST(client_files_refused)
{
	static const mode_t	modes[] = { 0620, 0602, 0666 };
	size_t			i;

	client_file = "server = http://127.0.0.1:%d\n";
	for (i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		client_mode = modes[i];
		with_input("", A(JSON("200", "{}")), "sandbox", "inspect",
		    "a", NULL);
		expect(125, "", "/config: others than its owner can write it: "
		    "chmod go-w ", NULL);
		ck_assert_str_eq(asked, "");
	}
	client_mode = 0644;
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
	/* A FIFO is not waited for, a directory not read. */
	client_file = "FIFO";
	with_input("", A(NULL), "sandbox", "inspect", "a", NULL);
	expect(125, "", "/config: expected a regular file\n", NULL);
	client_file = "DIR";
	with_input("", A(NULL), "sandbox", "inspect", "a", NULL);
	expect(125, "", "/config: expected a regular file\n", NULL);
	client_file = NULL;
	with_input("", A(JSON("200", "{}")), "sandbox", "inspect", "a", NULL);
	expect(0, "{}\n", "", NULL);
}
END_TEST

/* ---- completion -------------------------------------------------------- */

START_TEST(completes)
{
	static const char	nasty[] = JSON("200", "{\"items\":[{\"name\":"
	    "\"good\",\"state\":\"RE\\u001bADY\"},{\"name\":\"$(id)\"},"
	    "{\"name\":\"a b\"},{\"name\":\"\\u001b\"},{\"name\":\"x;y\"},"
	    "{\"name\":\"--yes\"},{\"name\":\"\"}],\"nextCursor\":null}");

	/* Names that are more than a word to a shell are left out. */
	with_input("", A(nasty), "complete", "--", "sandbox", "rm", "", NULL);
	expect(0, "good\tRE\\x1bADY\n", "", "GET /v1/sandboxes ");
	with_input("", A(JSON("200", "{\"items\":[{\"name\":\"n1\",\"state\":"
	    "\"ended\"},{\"name\":null,\"sessionId\":\"" SID "\"}],"
	    "\"nextCursor\":null}")), "complete", "--", "sandbox", "wait",
	    "b", "", NULL);
	expect(0, "n1\tended\n" SID "\t\n", "",
	    "GET /v1/sandboxes/b/sessions ");
	with_input("", A(nasty), "complete", "--", "sandbox", "wait", "--",
	    "-", NULL);
	expect(0, "", "", "GET /v1/sandboxes ");
	with_input("", A(nasty), "complete", "--", "sandbox", "wait", "--",
	    "b", "", NULL);
	expect(0, NULL, "", "GET /v1/sandboxes/b/sessions ");
	/* The server that the line names is asked, not another. */
	with_input("", A(nasty), "complete", "--", "sandbox", "rm",
	    "--server", "unix:/nonexistent", "", NULL);
	expect(0, "", "", NULL);
	ck_assert_str_eq(asked, "");
	/* Nothing is told, whatever is wrong. */
	with_input("", A(JSON("401", "{}")), "complete", "--", "sandbox",
	    "inspect", "", NULL);
	expect(0, "", "", NULL);
	client_file = "nonsense\n";
	with_input("", A(nasty), "complete", "--", "sandbox", "rm", "", NULL);
	expect(0, "", "", NULL);
}
END_TEST

START_TEST(completes_words)
{
	with_input("", A(NULL), "complete", "--", "sandbox", "l", NULL);
	expect(0, NULL, "", NULL);
	ck_assert_ptr_nonnull(strstr(out, "list\tList the sandboxes\n"));
	ck_assert_ptr_null(strstr(out, "rm\t"));
	with_input("", A(NULL), "complete", "--", "sandbox", "list",
	    "--format", "", NULL);
	expect(0, "table\t\njson\t\n", "", NULL);
	with_input("", A(NULL), "complete", "--", "sandbox", "ls",
	    "--format=j", NULL);
	expect(0, "--format=json\t\n", "", NULL);
	/* One that was given is not given again; one that may be is. */
	with_input("", A(NULL), "complete", "--", "sandbox", "create",
	    "--name", "x", "--label", "a=b", "--", NULL);
	expect(0, NULL, "", NULL);
	ck_assert_ptr_null(strstr(out, "--name\t"));
	ck_assert_ptr_nonnull(strstr(out, "--label\t"));
	with_input("", A(NULL), "complete", "--", "sandbox", "list",
	    "--state", "Q", NULL);
	expect(0, "QUARANTINED\t\n", "", NULL);
	with_input("", A(NULL), "complete", "--", "sandbox", "list",
	    "--token-file", "", NULL);
	expect(0, ":files\n", "", NULL);
	/* What runs in the sandbox is not this host's to know. */
	with_input("", A(NULL), "complete", "--", "sandbox", "exec", "b",
	    "--", "l", NULL);
	expect(0, "", "", NULL);
	with_input("", A(NULL), "complete", "--", "help", "sandbox", "proo",
	    NULL);
	ck_assert(strncmp(out, "proof\t", 6) == 0);
	with_input("", A(NULL), "complete", NULL);
	ck_assert_ptr_nonnull(strstr(out, "sandbox\t\n"));
	ck_assert_ptr_null(strstr(out, "complete"));
}
END_TEST

/* What was meant is asked, where anything is near to it. */
START_TEST(misspelt)
{
	static const struct { const char *a, *b, *want; }	t[] = {
		{ "sandbox", "lst", "\"sandbox lst\"; did you mean workbox "
		    "sandbox list?\n" },
		{ "sandbxo", "list", "\"sandbxo list\"; did you mean workbox "
		    "sandbox list?\n" },
		{ "sandbx", NULL, "\"sandbx\"; did you mean workbox "
		    "sandbox?\n" },
		{ "create", NULL, "\"create\"; did you mean workbox sandbox "
		    "create?\n" },
		{ "evnets", "tail", "\"evnets tail\"; did you mean workbox "
		    "events tail?\n" },
		{ "frobnicate", NULL, "\"frobnicate\"; try workbox --help\n" },
		{ "sandbox", "--json", "expected a command of sandbox before "
		    "--json; try workbox sandbox --help\n" },
	};
	size_t							i;

	for (i = 0; i < sizeof t / sizeof t[0]; i++) {
		with_input("", A(NULL), t[i].a, t[i].b, NULL);
		expect(125, "", t[i].want, NULL);
	}
	with_input("", A(NULL), "sandbox", "create", "--memroy", "1G", NULL);
	expect(125, "", "unknown option --memroy; did you mean --memory?\n",
	    NULL);
	with_input("", A(NULL), "sandbox", "create", "-name", "x", NULL);
	expect(125, "", "unknown option -name; did you mean --name?\n", NULL);
	with_input("", A(NULL), "sandbox", "list", "--format", "xml", NULL);
	expect(125, "", "--format: expected table or json, not \"xml\"\n",
	    NULL);
}
END_TEST

/* ---- parts ------------------------------------------------------------- */

START_TEST(numbers)
{
	uint64_t	v = 0;

	ck_assert_int_eq(text_bytes("1", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, 1);
	ck_assert_int_eq(text_bytes("2k", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, 2048);
	ck_assert_int_eq(text_bytes("3GiB", 0, UINT64_MAX, &v), 0);
	ck_assert_uint_eq(v, UINT64_C(3) << 30);
	ck_assert_int_eq(text_bytes("18446744073709551615", 0, UINT64_MAX,
	    &v), 0);
	ck_assert_int_eq(text_bytes("16777216T", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("1 K", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("1KX", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_bytes("", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64("18446744073709551616", 0, UINT64_MAX, &v),
	    -1);
	ck_assert_int_eq(text_u64("-1", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64(" 1", 0, UINT64_MAX, &v), -1);
	ck_assert_int_eq(text_u64("5", 6, 7, &v), -1);
}
END_TEST

START_TEST(times)
{
	ck_assert_int_eq(text_time("1970-01-01T00:00:00.000Z"), 0);
	ck_assert_int_eq(text_time("2000-02-29T12:34:56.789Z"), 951827696);
	ck_assert_int_eq(text_time("2026-11-29T14:00:00.000Z"), 1795960800);
	ck_assert_int_eq(text_time("2038-01-19T03:14:08.000Z"), 2147483648);
	ck_assert_int_eq(text_time("yesterday"), -1);
	ck_assert_int_eq(text_time(""), -1);
	ck_assert_int_eq(text_signal("TERM"), SIGTERM);
	ck_assert_int_eq(text_signal("SIGKILL"), 9);
	ck_assert_int_eq(text_signal("15"), 15);
	ck_assert_int_eq(text_signal("65"), 0);
	ck_assert_int_eq(text_signal("NOPE"), 0);
	ck_assert_str_eq(text_signal_name(SIGINT), "INT");
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("client");
	TCase	*tc = tcase_create("client");
	SRunner	*sr;
	int	 failed;

	if (mkdtemp(dir) == NULL || chdir(dir) == -1)
		return 99;
	signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, exec_whole);
	tcase_add_test(tc, exec_cut);
	tcase_add_test(tc, exec_restart);
	tcase_add_test(tc, exec_once);
	tcase_add_test(tc, exec_gap);
	tcase_add_test(tc, exec_nonsense);
	tcase_add_test(tc, exec_long_line);
	tcase_add_test(tc, exec_codes);
	tcase_add_test(tc, exec_input);
	tcase_add_test(tc, problems);
	tcase_add_test(tc, refused);
	tcase_add_test(tc, version);
	tcase_add_test(tc, tail);
	tcase_add_test(tc, redirect);
	tcase_add_test(tc, pages);
	tcase_add_test(tc, paths);
	tcase_add_test(tc, waits);
	tcase_add_test(tc, wait_timeout);
	tcase_add_test(tc, away);
	tcase_add_test(tc, follow);
	tcase_add_test(tc, ps);
	tcase_add_test(tc, kills);
	tcase_add_test(tc, records);
	tcase_add_test(tc, rm_all);
	tcase_add_test(tc, rm_asks);
	tcase_add_test(tc, colours);
	tcase_add_test(tc, hostile_text);
	tcase_add_test(tc, client_files);
	tcase_add_test(tc, client_files_refused);
	tcase_add_test(tc, completes);
	tcase_add_test(tc, completes_words);
	tcase_add_test(tc, misspelt);
	tcase_add_test(tc, numbers);
	tcase_add_test(tc, times);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	(void)!system("rm -rf in out err asked conf");
	(void)rmdir(dir);
	return failed != 0;
}
