/*
 * relay_test.c: proxyd's relay, dialling and pump, with real sockets in a
 * network namespace of their own.
 *
 * The relay runs in a child, as in proxyd; boxes' ends and hosts' are here.
 * 198.18.0.0/16 is local, so that a socket that listens at any address gets
 * what is sent there, and is told which address that was, as behind TPROXY.
 * Names are resolved by a table; one of its hosts is a hole.
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <check.h>
#include <err.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxyd.h"
#include "xmalloc.h"

#include "relay_world.h"
#include "relay_ends.h"

/* ---- TLS ------------------------------------------------------------ */

START_TEST(tls)
{
	uint8_t	h[256];
	size_t	n = hello("good.example", h);
	int	l = host(443), b = box_connect(1, 443), s;

	put(b, h, 20);			/* in two parts */
	put(b, h + 20, n - 20);
	put(b, "rest", 4);
	s = host_accept(l);
	get(s, h, n);
	get(s, "rest", 4);
	put(s, "answer", 6);
	get(b, "answer", 6);
	/* one half after the other */
	ck_assert_int_eq(shutdown(b, SHUT_WR), 0);
	is_eof(s);
	put(s, "more", 4);
	get(b, "more", 4);
	ask('C');
	ck_assert_uint_eq(sh->open, 1);
	ck_assert_int_eq(close(s), 0);
	is_eof(b);
	ask('C');
	ck_assert_uint_eq(sh->sent, n + 4);
	ck_assert_uint_eq(sh->received, 10);
	ck_assert_uint_eq(sh->connections, 1);
	ck_assert_uint_eq(sh->open, 0);
	ck_assert_uint_eq(sh->n, 0);
}
END_TEST

/* For another name, for none, and what is no TLS at all. */
START_TEST(no_tls)
{
	static const char	*const names[] = { "other.example", NULL };
	uint8_t			 h[256] = "GET / HTTP/1.1\r\n";
	size_t			 n = _i < 2 ? hello(names[_i], h) : 16;
	int			 l = host(443), b = box_connect(1, 443);

	put(b, h, n);
	is_reset(b);
	got_nothing(l);
	denied(DENIED_TLS, _i == 0 ? "other.example" :
	    "good.example", 443);
}
END_TEST

/* One that begins and does not go on. */
START_TEST(tls_cut)
{
	uint8_t	h[256];
	size_t	n = hello("good.example", h);
	int	l = host(443), b = box_connect(1, 443);

	put(b, h, n - 1);
	ck_assert_int_eq(shutdown(b, SHUT_WR), 0);
	is_reset(b);
	got_nothing(l);
	denied(DENIED_TLS, "good.example", 443);
}
END_TEST

/* On other ports TLS needs no name, but is for this one if it has any. */
START_TEST(other_ports)
{
	static const char	*const names[] = { "good.example", NULL,
				    "other.example" };
	uint8_t			 h[256] = "\0nothing";
	size_t			 n = _i < 3 ? hello(names[_i], h) : 8;
	int			 l = host(8443), b = box_connect(1, 8443);

	put(b, h, n);
	if (_i == 2) {
		is_reset(b);
		got_nothing(l);
		denied(DENIED_TLS, "other.example", 8443);
		return;
	}
	get(host_accept(l), h, n);
	ck_assert_uint_eq(sh->n, 0);
}
END_TEST

START_TEST(server_first)
{
	int	l = host(22), b = box_connect(1, 22), s = host_accept(l);

	put(s, "SSH-2.0-x\r\n", 11);
	get(b, "SSH-2.0-x\r\n", 11);
	put(b, "SSH-2.0-y\r\n", 11);
	get(s, "SSH-2.0-y\r\n", 11);
	ck_assert_int_eq(close(b), 0);
	is_eof(s);
}
END_TEST

/* It is a byte like the others, in its place. */
START_TEST(urgent)
{
	int	l = host(22), b = box_connect(1, 22), s = host_accept(l);

	put(b, "one", 3);
	ck_assert_int_eq(send(b, "!", 1, MSG_OOB), 1);
	put(b, "two", 3);
	get(s, "one!two", 7);
	ck_assert_int_eq(send(s, "?", 1, MSG_OOB), 1);
	put(s, "three", 5);
	get(b, "?three", 6);
}
END_TEST

/* All of it, and the end, has come before anybody looks. */
START_TEST(urgent_and_end)
{
	int	l = host(22), b = box_connect(1, 22), s;

	put(b, "one", 3);
	ck_assert_int_eq(send(b, "!", 1, MSG_OOB), 1);
	put(b, "two", 3);
	ck_assert_int_eq(shutdown(b, SHUT_WR), 0);
	s = host_accept(l);
	get(s, "one!two", 7);
	is_eof(s);
	put(s, "1", 1);
	ck_assert_int_eq(send(s, "?", 1, MSG_OOB), 1);
	put(s, "2", 1);
	ck_assert_int_eq(close(s), 0);
	get(b, "1?2", 3);
	is_eof(b);
}
END_TEST

/* Who only listens closes its half first. */
START_TEST(silent)
{
	int	l = host(22), b = box_connect(1, 22), s;

	ck_assert_int_eq(shutdown(b, SHUT_WR), 0);
	s = host_accept(l);
	is_eof(s);
	put(s, "banner", 6);
	ck_assert_int_eq(close(s), 0);
	get(b, "banner", 6);
	is_eof(b);
}
END_TEST

/* One side has said all and is reset while the other one says nothing. */
START_TEST(reset_after_end)
{
	const struct linger	lin = { 1, 0 };
	int			l = host(22), b = box_connect(1, 22),
				s = host_accept(l), ends = _i == 0 ? b : s,
				waits = _i == 0 ? s : b;

	ck_assert_int_eq(shutdown(ends, SHUT_WR), 0);
	is_eof(waits);
	ask('S');
	ck_assert_uint_eq(sh->open, 1);
	ck_assert_int_eq(setsockopt(ends, SOL_SOCKET, SO_LINGER, &lin,
	    sizeof(lin)), 0);
	ck_assert_int_eq(close(ends), 0);
	until(sh->open == 0);
}
END_TEST

/* ---- HTTP ----------------------------------------------------------- */

#define GET(host)	"GET /a HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define POST		"POST /b HTTP/1.1\r\nHost: good.example:80\r\n" \
			"Content-Length: 5\r\n\r\nbytes"

START_TEST(http)
{
	static const char	ok[] = "HTTP/1.1 200 OK\r\n"
				    "Content-Length: 2\r\n\r\nhi";
	int			l = host(80), b = box_connect(1, 80), s;

	put(b, GET("good.example") POST, sizeof(GET("good.example") POST) - 1);
	s = host_accept(l);
	get(s, GET("good.example") POST, sizeof(GET("good.example") POST) - 1);
	put(s, ok, sizeof(ok) - 1);
	get(b, ok, sizeof(ok) - 1);
	put(b, GET("GOOD.example."), sizeof(GET("GOOD.example.")) - 1);
	get(s, GET("GOOD.example."), sizeof(GET("GOOD.example.")) - 1);
	ck_assert_int_eq(shutdown(b, SHUT_WR), 0);
	is_eof(s);
	put(s, ok, sizeof(ok) - 1);
	ck_assert_int_eq(close(s), 0);
	get(b, ok, sizeof(ok) - 1);
	is_eof(b);
	ck_assert_uint_eq(sh->n, 0);
}
END_TEST

/* The second request of a connection, whatever the first was. */
START_TEST(http_other)
{
	int	l = host(80), b = box_connect(1, 80), s;
	char	c;

	if (_i == 1)			/* at once */
		put(b, GET("good.example") GET("other.example"),
		    sizeof(GET("good.example") GET("other.example")) - 1);
	else
		put(b, GET("good.example"), sizeof(GET("good.example")) - 1);
	s = host_accept(l);
	get(s, GET("good.example"), sizeof(GET("good.example")) - 1);
	if (_i == 0)
		put(b, GET("other.example"), sizeof(GET("other.example")) - 1);
	is_reset(b);
	ck_assert_int_le(recv(s, &c, 1, 0), 0);
	denied(DENIED_HTTP, "other.example", 80);
}
END_TEST

#define UPGRADE(to)	"GET /c HTTP/1.1\r\nHost: good.example\r\n" \
			"Connection: Upgrade\r\nUpgrade: " to "\r\n\r\n"
#define SWITCHED	"HTTP/1.1 101 Switching Protocols\r\n\r\n"

/* To what can be anything from then on, and to what cannot be judged. */
START_TEST(http_upgrade)
{
	const char	*ask_for = _i == 0 ? UPGRADE("websocket") :
			    UPGRADE("h2c");
	int		 l = host(80), b = box_connect(1, 80), s;

	put(b, ask_for, strlen(ask_for));
	s = host_accept(l);
	get(s, ask_for, strlen(ask_for));
	put(b, "\x81\x05hello", 7);
	put(s, SWITCHED, sizeof(SWITCHED) - 1);
	if (_i == 1) {
		is_reset(b);
		denied(DENIED_HTTP, "good.example", 80);
		return;
	}
	get(b, SWITCHED, sizeof(SWITCHED) - 1);
	get(s, "\x81\x05hello", 7);
	put(s, "\x81\x02hi", 4);
	get(b, "\x81\x02hi", 4);
}
END_TEST

/* The server ends before it has said whether it will. */
START_TEST(http_upgrade_cut)
{
	static const char	*const said[] = { "HTTP/1.1 4",
				    "HTTP/1.1 100 Continue\r\n\r\n",
				    "HTTP/1.1 103 Early Hints\r\nLink" };
	int			 l = host(80), b = box_connect(1, 80), s;

	put(b, UPGRADE("websocket"), sizeof(UPGRADE("websocket")) - 1);
	s = host_accept(l);
	get(s, UPGRADE("websocket"), sizeof(UPGRADE("websocket")) - 1);
	put(s, said[_i], strlen(said[_i]));
	ask('S');			/* it is looked at, and too little */
	ck_assert_int_eq(close(s), 0);
	get(b, said[_i], strlen(said[_i]));
	is_eof(b);
	put(b, GET("other.example"), sizeof(GET("other.example")) - 1);
	denied(DENIED_HTTP, "other.example", 80);
}
END_TEST

/* It is answered as any other: requests go on, and are judged. */
START_TEST(http_no_upgrade)
{
	static const char	ok[] = "HTTP/1.1 200 OK\r\n"
				    "Content-Length: 0\r\n\r\n";
	int			l = host(80), b = box_connect(1, 80), s;

	put(b, UPGRADE("h2c"), sizeof(UPGRADE("h2c")) - 1);
	s = host_accept(l);
	get(s, UPGRADE("h2c"), sizeof(UPGRADE("h2c")) - 1);
	put(s, ok, sizeof(ok) - 1);
	get(b, ok, sizeof(ok) - 1);
	put(b, GET("good.example"), sizeof(GET("good.example")) - 1);
	get(s, GET("good.example"), sizeof(GET("good.example")) - 1);
	put(b, GET("other.example"), sizeof(GET("other.example")) - 1);
	is_reset(b);
	denied(DENIED_HTTP, "other.example", 80);
}
END_TEST

/* ---- where to ------------------------------------------------------- */

START_TEST(refused)
{
	static const struct { unsigned int number, port; enum denied_rule rule;
	    const char *name; } cases[] = {
		{ 2, 443, DENIED_SEALED, "sealed.example" },
		{ 1, 9, DENIED_PORT, "good.example" },
		{ 5, 443, DENIED_NAME, "other.example" },
	};
	int	b = box_connect(cases[_i].number, cases[_i].port);

	is_reset(b);
	denied(cases[_i].rule, cases[_i].name, cases[_i].port);
}
END_TEST

static void
logged(unsigned int n, const char *end)
{
	size_t	len = strlen(end), all = strlen(sh->info);

	ck_assert_uint_eq(sh->infos, n);
	ck_assert_uint_ge(all, len);
	ck_assert_str_eq(sh->info + all - len, end);
}

/* A name that has no address: no policy did it. */
START_TEST(nowhere)
{
	is_reset(box_connect(3, 443));
	ck_assert_uint_eq(sh->n, 0);
	logged(1, ": connect to none.example:443: no address was found");
}
END_TEST

/* Where no way leads: told, but not as often as it is tried. */
START_TEST(unreachable)
{
	int	i;

	for (i = 0; i < 10; i++)
		is_reset(box_connect(7, 443));
	ck_assert_uint_eq(sh->n, 0);
	logged(1, ": connect to shut.example:443: No route to host");
	sh->later_ms = 59000;
	is_reset(box_connect(7, 443));
	ck_assert_uint_eq(sh->infos, 1);
	sh->later_ms = 61000;
	is_reset(box_connect(7, 443));
	is_reset(box_connect(3, 443));
	logged(2, ": connect to shut.example:443: No route to host"
	    "; 10 more before it");
}
END_TEST

/* Told once, until it goes on. */
START_TEST(no_descriptors)
{
	unsigned int	i;
	int		l = host(22), b;

	for (i = 1; i <= 2; i++) {
		sh->accepts = 0;
		sh->no_accept = 1;
		b = box_connect(1, 22);
		until(sh->accepts >= 3);
		ck_assert_uint_eq(sh->warns, i);
		sh->no_accept = 0;
		put(b, "here", 4);
		get(host_accept(l), "here", 4);
	}
	ck_assert_uint_eq(sh->n, 0);
}
END_TEST

/* An address that is no name's, as one that was forgotten. */
START_TEST(nobody)
{
	is_reset(box_connect(77, 443));
	denied(DENIED_ADDRESS, "", 443);
}
END_TEST

/* The relay's own address, without one that was wanted. */
START_TEST(direct)
{
	struct sockaddr_in	sin = { .sin_family = AF_INET,
	    .sin_port = htons(443), .sin_addr.s_addr =
	    htonl(INADDR_LOOPBACK) };
	int			fd = socket(AF_INET, SOCK_STREAM, 0);

	timeout(fd, 20);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)),
	    0);
	is_reset(fd);
	denied(DENIED_ADDRESS, "", 443);
}
END_TEST

/* Two that do not answer come first. */
START_TEST(eyeballs)
{
	int	l = host(8443), b = box_connect(4, 8443), s = host_accept(l);

	put(b, "here", 4);
	get(s, "here", 4);
}
END_TEST

/* Of four that are tried, three of them in vain, two at a time. */
START_TEST(two_at_a_time)
{
	int		l = host(8443), b = box_connect(6, 8443), most = 0, i;
	struct pollfd	p = { .fd = l, .events = POLLIN };

	for (i = 0; i < 2000 && poll(&p, 1, 10) == 0; i++) {
		ask('S');
		most = sh->trying > most ? sh->trying : most;
	}
	ck_assert_int_eq(most, 2);
	put(b, "here", 4);
	get(host_accept(l), "here", 4);
}
END_TEST

/* ---- many bytes, many connections ----------------------------------- */

static uint8_t
byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 4099);
}

static void
write_all(int fd)
{
	static uint8_t	buf[60000];
	size_t		i, n, at = 0;

	while (at < BULK) {
		n = BULK - at < sizeof(buf) ? BULK - at : sizeof(buf);
		for (i = 0; i < n; i++)
			buf[i] = byte_at(at + i);
		if (send(fd, buf, n, MSG_NOSIGNAL) != (ssize_t)n)
			_exit(1);
		at += n;
	}
	if (shutdown(fd, SHUT_WR) == -1)
		_exit(1);
	_exit(0);
}

static void
read_all(int fd)
{
	static uint8_t	buf[50000];
	size_t		at = 0;
	ssize_t		n, i;

	while (at <= BULK && (n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		for (i = 0; i < n; i++)
			if (buf[i] != byte_at(at + (size_t)i))
				ck_abort_msg("byte %zu", at + (size_t)i);
		at += (size_t)n;
	}
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(at, BULK);
}

static void
is_over(pid_t pid)
{
	int	st;

	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_int_eq(st, 0);
}

/* Each way, so much that neither end's buffers hold it; while others stall. */
START_TEST(bulk)
{
	int	l = host(22), stalled[18], i, b, s;
	pid_t	w;

	for (i = 0; i < _i * 18; i++) {
		stalled[i] = box_connect(1, 22);
		s = host_accept(l);
		if (fork() == 0)
			write_all(s);	/* and nobody reads: it is killed */
		(void)close(s);
	}
	b = box_connect(1, 22);
	s = host_accept(l);
	if ((w = fork()) == 0)
		write_all(s);
	read_all(b);
	is_over(w);
	if ((w = fork()) == 0)
		write_all(b);
	read_all(s);
	is_over(w);
	for (i = 0; i < _i * 18; i++)
		(void)close(stalled[i]);
}
END_TEST

START_TEST(most)
{
	int	l = host(22), i, b;

	for (i = 0; i < MOST; i++) {
		(void)box_connect(1, 22);
		(void)host_accept(l);
	}
	b = box_connect(1, 22);
	is_reset(b);
	denied(DENIED_LIMITED, "good.example", 22);
}
END_TEST

/* Who reads much has no more, nor have many together. */
START_TEST(waits)
{
	uint64_t	one;
	int		l = host(22), b = box_connect(1, 22),
			s = host_accept(l), i;
	pid_t		w;

	if ((w = fork()) == 0)
		write_all(s);
	read_all(b);
	is_over(w);
	ask('S');
	one = sh->buffers;
	ck_assert_uint_gt(one, 128 * 1024);
	ck_assert_uint_le(one, 1024 * 1024);
	for (i = 1; i < MOST; i++) {
		b = box_connect(1, 22);
		s = host_accept(l);
		put(s, "x", 1);
		get(b, "x", 1);
	}
	ask('S');
	ck_assert_uint_gt(sh->buffers, one);
	ck_assert_uint_le(sh->buffers, 90UL * 1024 * 1024);
}
END_TEST

/* Of the few that are left, who has many gets none; each port is a box's. */
START_TEST(share)
{
	int	l = host(22), l4 = host(8443), i, b;

	for (i = 0; i < 6; i++) {
		(void)box_connect(1, 22);
		(void)host_accept(l);
	}
	b = box_connect(1, 22);
	is_reset(b);
	denied(DENIED_LIMITED, "good.example", 22);
	b = box_connect(1, 8443);
	put(b, "here", 4);
	get(host_accept(l4), "here", 4);
}
END_TEST

START_TEST(list_changes)
{
	int	l = host(22), l4 = host(8443), b = box_connect(1, 22),
		stays = box_connect(4, 8443), s = host_accept(l),
		s4 = host_accept(l4);
	char	c;

	ask('J');
	is_reset(b);
	ck_assert_int_le(recv(s, &c, 1, 0), 0);
	put(stays, "here", 4);
	get(s4, "here", 4);
	is_reset(box_connect(1, 22));
	denied(DENIED_NAME, "good.example", 22);
}
END_TEST

/* With connections in each state. */
START_TEST(goes)
{
	uint8_t	h[256];
	size_t	n = hello("good.example", h);
	int	l = host(443), a = box_connect(1, 443), b = box_connect(1, 443),
		c = box_connect(4, 8443), s;

	put(a, h, n);
	put(b, h, n / 2);
	s = host_accept(l);
	ask('F');
	is_reset(a);
	is_reset(b);
	is_reset(c);
	(void)close(s);
	ck_assert_uint_eq(sh->open, 0);
}
END_TEST

/* ---- behind a proxy ------------------------------------------------- */

#define CONNECT		"CONNECT good.example:22 HTTP/1.1\r\n" \
			"Host: good.example:22\r\n\r\n"

/* The answer in parts, and bytes of the other right behind it. */
START_TEST(tunnel)
{
	static const char	answer[] = "HTTP/1.0 200 here\r\nVia: x\r\n";
	int			l = host(3128), b = box_connect(1, 22), s, i;

	put(b, "early", 5);
	s = host_accept(l);
	get(s, CONNECT, sizeof(CONNECT) - 1);
	put(s, answer, sizeof(answer) - 1);
	for (i = 0; i < 50; i++)	/* so many turns of its loop */
		ask('S');
	ck_assert_uint_eq(sh->reads, 1);	/* there was nothing new */
	put(s, "\r\nbanner", 8);
	get(b, "banner", 6);
	get(s, "early", 5);
	ck_assert_int_eq(close(b), 0);
	is_eof(s);
}
END_TEST

/* It refuses, is none, says too much, goes, or goes within its answer. */
START_TEST(no_tunnel)
{
	static char	 long_head[UPSTREAM_MAX + 1];
	const char	*answers[] = { "HTTP/1.1 403 no\r\n\r\n",
			    "SSH-2.0-x\r\n\r\n", long_head, "",
			    "HTTP/1.1 200 ok\r\n" };
	int		 l = host(3128), b = box_connect(1, 22),
			 s = host_accept(l);

	timeout(b, 5);			/* and at once */
	memset(long_head, 'x', UPSTREAM_MAX);
	get(s, CONNECT, sizeof(CONNECT) - 1);
	put(s, answers[_i], strlen(answers[_i]));
	if (_i >= 3)
		(void)close(s);
	is_reset(b);
	ck_assert_uint_eq(sh->n, 0);
	logged(1, _i == 3 ? "good.example:22: upstream-proxy: it has hung up" :
	    "good.example:22: upstream-proxy: it does not connect to that");
}
END_TEST

/* The other is there as well, while the one has not answered. */
START_TEST(two_tunnels)
{
	static const char	answer[] = "HTTP/1.0 200 here\r\n\r\nbanner";
	struct sockaddr_in	sin = { .sin_family = AF_INET,
				    .sin_port = htons(3128) };
	int			slow = listener(SLOW, 3128, 0), l = host(3128),
				full = socket(AF_INET, SOCK_STREAM |
				    SOCK_CLOEXEC, 0), b, s;
	struct pollfd		p = { .fd = slow, .events = POLLIN };

	/* all that it has room for: who comes now comes again in a second */
	ck_assert_int_eq(inet_pton(AF_INET, SLOW, &sin.sin_addr), 1);
	ck_assert_int_eq(connect(full, (struct sockaddr *)&sin, sizeof(sin)),
	    0);
	b = box_connect(1, 22);
	s = host_accept(l);
	get(s, CONNECT, sizeof(CONNECT) - 1);
	(void)close(host_accept(slow));
	ck_assert_int_eq(poll(&p, 1, 2000), 0);
	put(s, answer, sizeof(answer) - 1);
	get(b, "banner", 6);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("relay");
	TCase	*t = tcase_create("relay");
	TCase	*named = tcase_create("named"), *numbered =
		    tcase_create("numbered"), *narrow = tcase_create("narrow");
	SRunner	*sr;
	int	 failed;

	if (geteuid() != 0) {
		printf("skip: not root, so there is no network to make\n");
		return 77;
	}
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, tls);
	tcase_add_loop_test(t, no_tls, 0, 3);
	tcase_add_test(t, tls_cut);
	tcase_add_loop_test(t, other_ports, 0, 4);
	tcase_add_test(t, server_first);
	tcase_add_test(t, silent);
	tcase_add_test(t, urgent);
	tcase_add_test(t, urgent_and_end);
	tcase_add_loop_test(t, reset_after_end, 0, 2);
	tcase_add_test(t, http);
	tcase_add_loop_test(t, http_other, 0, 2);
	tcase_add_loop_test(t, http_upgrade, 0, 2);
	tcase_add_loop_test(t, http_upgrade_cut, 0, 3);
	tcase_add_test(t, http_no_upgrade);
	tcase_add_loop_test(t, refused, 0, 3);
	tcase_add_test(t, nowhere);
	tcase_add_test(t, nobody);
	tcase_add_test(t, direct);
	tcase_add_test(t, eyeballs);
	tcase_add_test(t, two_at_a_time);
	tcase_add_test(t, unreachable);
	tcase_add_test(t, no_descriptors);
	tcase_add_loop_test(t, bulk, 0, 2);
	tcase_add_test(t, most);
	tcase_add_test(t, waits);
	tcase_add_test(t, list_changes);
	tcase_add_test(t, goes);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(narrow, setup_narrow, teardown);
	tcase_add_test(narrow, share);
	suite_add_tcase(s, narrow);
	tcase_add_checked_fixture(named, setup_named, teardown);
	tcase_add_test(named, tunnel);
	tcase_add_loop_test(named, no_tunnel, 0, 5);
	tcase_add_test(named, two_tunnels);
	suite_add_tcase(s, named);
	tcase_add_checked_fixture(numbered, setup_numbered, teardown);
	tcase_add_test(numbered, tunnel);
	suite_add_tcase(s, numbered);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
