/*
 * head_test.c: requests of plain HTTP, one after another, each of which must
 * be for the host that its connection is to: what clients send, how one could
 * try to have another host understood, and that it does not matter how the
 * bytes come.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../proxyd/proxyd.h"

#define NAME	"www.example.org"
#define H	"Host: " NAME "\r\n"
#define GET	"GET / HTTP/1.1\r\n"
#define ONE	GET H "\r\n"			/* a good one */
#define EVIL	GET "Host: evil.example\r\n\r\n"

struct seen {
	enum head_is	 is;
	size_t		 passed;
	unsigned int	 requests;
	int		 upgrade;
	char		 host[ALLOW_NAME];
};

/* One more piece: all of at[0..n) that has not passed.  0: it goes on. */
static int
piece(struct head *h, const char *at, size_t n, unsigned int port,
    struct seen *s)
{
	uint8_t	*own;
	size_t	 pass;

	do {
		own = malloc(n - s->passed + 1);
		ck_assert_ptr_nonnull(own);
		memcpy(own, at + s->passed, n - s->passed);
		pass = SIZE_MAX;
		memset(s->host, 'x', sizeof(s->host));
		s->is = head_read(h, own, n - s->passed, NAME, port, &pass,
		    s->host);
		free(own);
		ck_assert_int_eq(s->is == HEAD_HOST,
		    memchr(s->host, '\0', sizeof(s->host)) != NULL);
		if (s->is != HEAD_GO) {
			ck_assert_uint_eq(pass, SIZE_MAX);
			return 1;
		}
		ck_assert_uint_le(pass, n - s->passed);
		s->passed += pass;
	} while (pass > 0 && s->passed < n);
	return 0;
}

/* In pieces of so many bytes; the first of another size. */
static void
run(const char *p, size_t n, size_t first, size_t step, unsigned int port,
    struct seen *s)
{
	struct head	h = { 0 };
	size_t		at = first;

	memset(s, 0, sizeof(*s));
	for (;;) {
		if (at > n)
			at = n;
		if (piece(&h, p, at, port, s) || at == n)
			break;
		at += step;
	}
	s->requests = h.requests;
	s->upgrade = h.upgrade;
}

/* In all ways that there are, up to a point. */
static struct seen
judge(const char *p, size_t n, unsigned int port)
{
	struct seen	want, s;
	size_t		i;

	run(p, n, n, 1, port, &want);
	run(p, n, 1, 1, port, &s);
	for (i = 0;; i++) {
		ck_assert_int_eq(s.is, want.is);
		ck_assert_uint_eq(s.passed, want.passed);
		ck_assert_uint_eq(s.requests, want.requests);
		ck_assert_int_eq(s.upgrade, want.upgrade);
		if (s.is == HEAD_HOST)
			ck_assert_str_eq(s.host, want.host);
		if (i == n || i == 700)
			break;
		run(p, n, i, n, port, &s);
	}
	return want;
}

/* ---- what clients send -------------------------------------------------- */

#define S(s)	s, sizeof(s) - 1
#define CHUNKED	"POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static const struct good {
	const char	*p;
	size_t		 n;
	unsigned int	 requests;
} good[] = {
	{ S(ONE), 1 },
	{ S(ONE ONE ONE), 3 },
	{ S("GET / HTTP/1.0\r\n" H "\r\n"), 1 },
	{ S(GET "hOsT:" NAME "\r\n\r\n"), 1 },
	{ S(GET "Host:   WWW.Example.ORG   \r\n\r\n"), 1 },
	{ S(GET "Host: " NAME ".\r\n\r\n"), 1 },
	{ S(GET "Host: " NAME ":80\r\n\r\n"), 1 },
	{ S(GET "Host: " NAME ".:80\r\n\r\n"), 1 },
	{ S("OPTIONS * HTTP/1.1\r\n" H "\r\n"), 1 },
	{ S("OPTIONS / HTTP/1.1\r\n" H "\r\n"), 1 },
	{ S("HEAD /x HTTP/1.1\r\n" H "\r\n"), 1 },
	{ S("PROPFIND /x HTTP/1.1\r\n" H "Depth: 0\r\n\r\n"), 1 },
	{ S("M-SEARCH /x HTTP/1.1\r\n" H "\r\n"), 1 },
	{ S("DELETE /x?a=b&c=%20;{|} HTTP/1.1\r\n" H "\r\n"), 1 },
	{ S("GET /debian/./InRelease HTTP/1.1\r\n" H
	    "Cache-Control: max-age=0\r\nAccept: text/*\r\n"
	    "User-Agent: Debian APT-HTTP/1.3 (2.6.1)\r\n\r\n"
	    "GET /debian//dists/../x HTTP/1.1\r\n" H "\r\n"), 2 },
	{ S(GET "Accept: text/html, image/gif, *; q=.2, */*; q=.2\r\n" H
	    "Connection: keep-alive\r\n\r\n"), 1 },
	{ S(GET H "User-Agent: Java/17.0.8\r\n"
	    "Connection: close\r\n\r\n" ONE), 2 },
	{ S(GET H "Empty:\r\nOther: \t \r\nBytes: \303\251\ta\r\n\r\n"), 1 },
	{ S(GET H "X_Y: 1\r\nX.Y: 2\r\nX-Forwarded-Host: a\r\n\r\n"), 1 },
	{ S(GET H "Content-Length: 0\r\n\r\n" ONE), 2 },
	{ S("PUT / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" ONE), 2 },
	{ S("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n" ONE), 2 },
	{ S("POST / HTTP/1.1\r\n" H "content-length:5\r\n"
	    "Expect: 100-continue\r\n\r\n12345" ONE), 2 },
	{ S("POST / HTTP/1.0\r\n" H "Content-Length: 4\r\n\r\nabcd"), 1 },
	/* a request that is a body */
	{ S("POST / HTTP/1.1\r\n" H "Content-Length: 39\r\n\r\n"
	    "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n\n" ONE), 2 },
	{ S(CHUNKED "0\r\n\r\n" ONE), 2 },
	{ S(CHUNKED "5\r\nhello\r\nA\r\n0123456789\r\n00\r\n\r\n" ONE), 2 },
	{ S(CHUNKED "00000001\r\n\r\r\n0\r\n\r\n"), 1 },
	{ S("POST / HTTP/1.1\r\n" H "transfer-encoding: Chunked\r\n"
	    "Expect: 100-continue\r\n\r\n1\r\na\r\n0\r\n\r\n"), 1 },
	/* git, as it fetches */
	{ S("GET /r.git/info/refs?service=git-upload-pack HTTP/1.1\r\n" H
	    "User-Agent: git/2.39.5\r\nAccept: */*\r\n"
	    "Accept-Encoding: deflate, gzip, br, zstd\r\n"
	    "Pragma: no-cache\r\nGit-Protocol: version=2\r\n\r\n"
	    "POST /r.git/git-upload-pack HTTP/1.1\r\n" H
	    "Content-Type: application/x-git-upload-pack-request\r\n"
	    "Content-Length: 4\r\n\r\n0000"), 2 },
	/* the second that asks is one like all */
	{ S(ONE GET H "Connection: Upgrade, HTTP2-Settings\r\n"
	    "Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n" ONE), 3 },
	{ S("POST / HTTP/1.1\r\n" H "Connection: Upgrade\r\n"
	    "Upgrade: h2c\r\nContent-Length: 1\r\n\r\n." ONE), 2 },
};

START_TEST(what_passes)
{
	const struct good	*g = &good[_i];
	struct seen		 s = judge(g->p, g->n, 80);

	ck_assert_int_eq(s.is, HEAD_GO);
	ck_assert_uint_eq(s.passed, g->n);
	ck_assert_uint_eq(s.requests, g->requests);
	ck_assert_int_eq(s.upgrade, 0);
}
END_TEST

/* ---- other hosts -------------------------------------------------------- */

static const struct other {
	const char	*p;
	size_t		 n;
	const char	*host;
	size_t		 passed;
} others[] = {
	{ S(EVIL), "evil.example", 0 },
	{ S(ONE EVIL), "evil.example", sizeof(ONE) - 1 },
	{ S(ONE ONE EVIL ONE), "evil.example", 2 * (sizeof(ONE) - 1) },
	{ S(GET "\r\n"), "", 0 },
	{ S("GET / HTTP/1.0\r\n\r\n"), "", 0 },
	{ S(GET "Host:\r\n\r\n"), "", 0 },
	{ S(GET "Host: Evil.Example.:81\r\n\r\n"), "evil.example", 0 },
	{ S(GET "Host: " NAME ":81\r\n\r\n"), NAME ":81", 0 },
	{ S(GET "Host: " NAME ".:443\r\n\r\n"), NAME ".:443", 0 },
	{ S(GET "Host: example.org\r\n\r\n"), "example.org", 0 },
	{ S(GET "Host: x" NAME "\r\n\r\n"), "x" NAME, 0 },
	{ S(GET "Host: x." NAME "\r\n\r\n"), "x." NAME, 0 },
	{ S(GET "Host: " NAME "x\r\n\r\n"), NAME "x", 0 },
	{ S(GET "Host: " NAME ".x\r\n\r\n"), NAME ".x", 0 },
	{ S(GET "Host: 127.0.0.1\r\n\r\n"), "127.0.0.1", 0 },
	{ S(GET "Host: 127.0.0.1:80\r\n\r\n"), "127.0.0.1:80", 0 },
	{ S(GET "Host: 0x7f.1\r\n\r\n"), "0x7f.1", 0 },
	{ S(GET "Host: [::1]\r\n\r\n"), "[::1]", 0 },
	{ S(GET "Host: [::ffff:1.2.3.4]:80\r\n\r\n"), "[::ffff:1.2.3.4]:80",
	    0 },
	{ S(GET "Host: " NAME "..\r\n\r\n"), NAME "..", 0 },
	{ S(GET "Host: ." NAME "\r\n\r\n"), "." NAME, 0 },
	{ S(GET "Host: www..example.org\r\n\r\n"), "www..example.org", 0 },
	{ S(GET "Host: -\r\n\r\n"), "-", 0 },
	{ S("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" EVIL),
	    "evil.example", sizeof("POST / HTTP/1.1\r\n" H
	    "Content-Length: 3\r\n\r\nabc") - 1 },
	{ S(CHUNKED "1\r\na\r\n0\r\n\r\n" EVIL), "evil.example",
	    sizeof(CHUNKED "1\r\na\r\n0\r\n\r\n") - 1 },
	{ S("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n" EVIL),
	    "evil.example", sizeof("GET / HTTP/1.1\r\n" H
	    "Connection: close\r\n\r\n") - 1 },
	{ S("HEAD / HTTP/1.1\r\n" H "\r\n" EVIL), "evil.example",
	    sizeof("HEAD / HTTP/1.1\r\n" H "\r\n") - 1 },
	{ S("OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
	    "evil.example", 0 },
};

START_TEST(other_hosts)
{
	const struct other	*o = &others[_i];
	struct seen		 s = judge(o->p, o->n, 80);

	ck_assert_int_eq(s.is, HEAD_HOST);
	ck_assert_str_eq(s.host, o->host);
	ck_assert_uint_eq(s.passed, o->passed);
}
END_TEST

/* A port is 80 when none is said, wherever the connection goes. */
START_TEST(other_ports)
{
	struct seen	s = judge(S(ONE), 8080);

	ck_assert_int_eq(s.is, HEAD_HOST);
	ck_assert_str_eq(s.host, NAME);
	s = judge(S(GET "Host: " NAME ":8080\r\n\r\n"), 8080);
	ck_assert_int_eq(s.is, HEAD_GO);
	ck_assert_uint_gt(s.passed, 0);
	s = judge(S(GET "Host: " NAME ":80\r\n\r\n"), 8080);
	ck_assert_int_eq(s.is, HEAD_HOST);
}
END_TEST

START_TEST(long_hosts)
{
	char		text[1200];
	struct seen	s;
	size_t		n;

	for (n = 250; n < 300; n++) {
		memset(text, 0, sizeof(text));
		(void)snprintf(text, sizeof(text), GET "Host: ");
		memset(text + strlen(text), 'a', n);
		memcpy(text + strlen(text), "\r\n\r\n", 5);
		run(text, strlen(text), strlen(text), 1, 80, &s);
		ck_assert_int_eq(s.is, HEAD_HOST);
		ck_assert_uint_eq(strlen(s.host), n < 253 ? n : 253);
	}
}
END_TEST

/* ---- what is not safe to judge ------------------------------------------ */

#define POST	"POST / HTTP/1.1\r\n" H
#define BAD(s)	{ s, sizeof(s) - 1, 0 }
#define THEN(a, s) { a s, sizeof(a s) - 1, sizeof(a) - 1 }

static const struct bad {
	const char	*p;
	size_t		 n, passed;
} bad[] = {
	/* the request line */
	BAD("GET http://" NAME "/ HTTP/1.1\r\n" H "\r\n"),
	BAD("GET http://evil.example/ HTTP/1.1\r\n" H "\r\n"),
	BAD("GET http://" NAME "/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
	BAD("GET http://" NAME "@evil.example/ HTTP/1.1\r\n" H "\r\n"),
	BAD("CONNECT " NAME ":80 HTTP/1.1\r\n" H "\r\n"),
	BAD("CONNECT / HTTP/1.1\r\n" H "\r\n"),
	BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	BAD("PRI * HTTP/1.1\r\n" H "\r\n"),
	BAD("GET * HTTP/1.1\r\n" H "\r\n"),
	BAD("OPTIONS ** HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /\r\n"), BAD("GET\r\n"), BAD("GET / \r\n"),
	BAD("GET / HTTP/0.9\r\n" H "\r\n"), BAD("GET / HTTP/1.2\r\n" H "\r\n"),
	BAD("GET / HTTP/2.0\r\n" H "\r\n"), BAD("GET / HTTP/1.10\r\n" H "\r\n"),
	BAD("GET / http/1.1\r\n" H "\r\n"), BAD("GET / HTTP/1.1 \r\n" H "\r\n"),
	BAD("GET / HTTP/01.1\r\n" H "\r\n"), BAD("GET / HTTP/1.\r\n" H "\r\n"),
	BAD("GET  / HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /  HTTP/1.1\r\n" H "\r\n"),
	BAD("GET\t/ HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /\tHTTP/1.1\r\n" H "\r\n"),
	BAD(" GET / HTTP/1.1\r\n" H "\r\n"), BAD("\r\n" ONE), BAD("\n" ONE),
	BAD("get / HTTP/1.1\r\n" H "\r\n"), BAD("G(T / HTTP/1.1\r\n" H "\r\n"),
	BAD("GET x HTTP/1.1\r\n" H "\r\n"), BAD("GET ?x HTTP/1.1\r\n" H "\r\n"),
	BAD("GET @evil.example/ HTTP/1.1\r\n" H "\r\n"),
	BAD("GET :80/ HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /a#b HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /\303\251 HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /\0 HTTP/1.1\r\n" H "\r\n"),
	BAD("GET /\177 HTTP/1.1\r\n" H "\r\n"),
	BAD("GET / HTTP/1.1\n" H "\r\n"), BAD("GET / HTTP/1.1\r" H "\r\n"),
	BAD("AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDD / HTTP/1.1\r\n" H "\r\n"),
	BAD("\x16\3\1\2\0\1\0\1\xfc\3\3"),
	/* Host */
	BAD(GET H H "\r\n"), BAD(GET H "Host: evil.example\r\n\r\n"),
	BAD(GET "Host: evil.example\r\n" H "\r\n"),
	BAD(GET H "hOST:\r\n\r\n"),
	BAD(GET "Host : " NAME "\r\n\r\n"), BAD(GET H "Host : evil\r\n\r\n"),
	BAD(GET "Host\t: " NAME "\r\n\r\n"), BAD(GET " Host: " NAME "\r\n\r\n"),
	BAD(GET "Host:\t" NAME "\r\n\r\n"), BAD(GET "Host: " NAME "\t\r\n\r\n"),
	BAD(GET "Host: " NAME ", evil.example\r\n\r\n"),
	BAD(GET "Host: evil.example," NAME "\r\n\r\n"),
	BAD(GET "Host: " NAME " evil.example\r\n\r\n"),
	BAD(GET "Host: a@" NAME "\r\n\r\n"),
	BAD(GET "Host: " NAME "@evil.example\r\n\r\n"),
	BAD(GET "Host: a:b@" NAME "\r\n\r\n"),
	BAD(GET "Host: http://" NAME "\r\n\r\n"),
	BAD(GET "Host: " NAME "/\r\n\r\n"), BAD(GET "Host: " NAME "?\r\n\r\n"),
	BAD(GET "Host: " NAME "#\r\n\r\n"), BAD(GET "Host: " NAME "\\\r\n\r\n"),
	BAD(GET "Host: " NAME ":\r\n\r\n"), BAD(GET "Host: " NAME ":0\r\n\r\n"),
	BAD(GET "Host: " NAME ":080\r\n\r\n"),
	BAD(GET "Host: " NAME ":+80\r\n\r\n"),
	BAD(GET "Host: " NAME ":80:80\r\n\r\n"),
	BAD(GET "Host: " NAME ":65616\r\n\r\n"),
	BAD(GET "Host: " NAME ":4294967376\r\n\r\n"),
	BAD(GET "Host: www%2eexample.org\r\n\r\n"),
	BAD(GET "Host: \"" NAME "\"\r\n\r\n"),
	BAD(GET "Host: \303\251.example\r\n\r\n"),
	BAD(GET "Host: " NAME "\0\r\n\r\n"),
	BAD(GET "Host: " NAME "\0.evil.example\r\n\r\n"),
	BAD(GET "Host: [::1\r\n\r\n"), BAD(GET "Host: []\r\n\r\n"),
	BAD(GET "Host: [::1]x\r\n\r\n"), BAD(GET "Host: [" NAME "]\r\n\r\n"),
	BAD(GET "Host: :80\r\n\r\n"),
	BAD(GET "Host: evil.example\r\n " NAME "\r\n\r\n"),
	BAD(GET "Host:\r\n " NAME "\r\n\r\n"),
	BAD(GET H "\tevil.example\r\n\r\n"),
	/* fields */
	BAD(GET H "X: a\r\n b\r\n\r\n"), BAD(GET H "X: a\r\n\tb\r\n\r\n"),
	BAD(GET H "X: a\nHost: evil.example\r\n\r\n"),
	BAD(GET H "X: a\rHost: evil.example\r\n\r\n"),
	BAD(GET H "X: a\0b\r\n\r\n"), BAD(GET H "X\0: a\r\n\r\n"),
	BAD(GET H "X: a\177\r\n\r\n"), BAD(GET H "X: \x0b\r\n\r\n"),
	BAD(GET H "X\r\n\r\n"), BAD(GET H ": a\r\n\r\n"),
	BAD(GET H "X Y: a\r\n\r\n"), BAD(GET H "X(Y: a\r\n\r\n"),
	BAD(GET H "\303\251: a\r\n\r\n"), BAD(GET H "\n" EVIL),
	BAD(GET H "\r\r\n" EVIL), BAD(GET "Host: " NAME "\n\n"),
	BAD(GET H "Connection: close, Host\r\n\r\n"),
	BAD(GET H "Connection: x,\tcontent-length ,y\r\n\r\n"),
	BAD(GET H "Connection: Transfer-Encoding\r\n\r\n"),
	/* bodies, of those that have none as well */
	BAD(GET H "Content-Length: 39\r\n\r\n"
	    "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n\n"),
	BAD(GET H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD("HEAD / HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\na"),
	BAD(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
	BAD(POST "Content-Length: 1\r\ncontent-length: 2\r\n\r\na"),
	BAD(POST "Content-Length: 1, 1\r\n\r\na"),
	BAD(POST "Content-Length: +1\r\n\r\na"),
	BAD(POST "Content-Length: -1\r\n\r\na"),
	BAD(POST "Content-Length: 0x1\r\n\r\na"),
	BAD(POST "Content-Length: 1 1\r\n\r\na"),
	BAD(POST "Content-Length: 1\t\r\n\r\na"),
	BAD(POST "Content-Length:\r\n\r\na"),
	BAD(POST "Content-Length: 1;\r\n\r\na"),
	BAD(POST "Content-Length: 1000000000000000000\r\n\r\na"),
	BAD(POST "Content-Length: 18446744073709551617\r\n\r\na"),
	BAD(POST "Content_Length: 1\r\n\r\na"),
	BAD(POST "CONTENT_length: 1\r\nContent-Length: 1\r\n\r\na"),
	BAD(POST "Transfer_Encoding: chunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Content-Length : 1\r\n\r\na"),
	BAD(POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na"),
	BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na"),
	BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"
	    "\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: identity\r\n\r\n"),
	BAD(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
	BAD(POST "Transfer-Encoding:\r\n\r\n"),
	BAD("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
	    "0\r\n\r\n"),
	/* chunks */
	THEN(CHUNKED, "\r\n"), THEN(CHUNKED, "x\r\n"), THEN(CHUNKED, " 1\r\n"),
	THEN(CHUNKED, "1 \r\na"), THEN(CHUNKED, "1;a=b\r\na"),
	THEN(CHUNKED, "0x1\r\na"), THEN(CHUNKED, "+1\r\na"),
	THEN(CHUNKED, "-1\r\na"), THEN(CHUNKED, "1\na"),
	THEN(CHUNKED, "1\r\r\na"), THEN(CHUNKED, "1:\r\n"),
	THEN(CHUNKED, "000000001\r\na"), THEN(CHUNKED, "100000001\r\na"),
	THEN(CHUNKED "1\r\na", "b\r\n"), THEN(CHUNKED "1\r\na", "\n"),
	THEN(CHUNKED "1\r\na", "0\r\n\r\n"),
	THEN(CHUNKED "0\r\n", "X: trailer\r\n\r\n"),
	THEN(CHUNKED "0\r\n", "Host: evil.example\r\n\r\n"),
	THEN(CHUNKED "0\r\n", "\n"), THEN(CHUNKED "0\r\n", "0\r\n\r\n"),
	/* later */
	THEN(ONE, "\r\n"), THEN(ONE, "\n"), THEN(ONE, "PRI * HTTP/2.0\r\n"),
	THEN(ONE, "GET /\r\n"), THEN(ONE, "\x81\x85""1234"),
	THEN(POST "Content-Length: 2\r\n\r\nab", "c"
	    "GET / HTTP/1.1\r\n" H "\r\n"),
};

START_TEST(what_is_bad)
{
	struct seen	s = judge(bad[_i].p, bad[_i].n, 80);

	ck_assert_msg(s.is == HEAD_BAD, "it is %d: %s", (int)s.is, bad[_i].p);
	ck_assert_uint_eq(s.passed, bad[_i].passed);
}
END_TEST

/* No byte of a head passes before the last. */
START_TEST(not_whole)
{
	static const char	head[] = ONE;
	struct seen		s;
	size_t			n;

	for (n = 0; n < sizeof(head) - 1; n++) {
		run(head, n, n, 1, 80, &s);
		ck_assert_int_eq(s.is, HEAD_GO);
		ck_assert_uint_eq(s.passed, 0);
	}
}
END_TEST

/* A head of HEAD_MAX bytes, and one of one more. */
START_TEST(longest)
{
	static char	text[HEAD_MAX + 200];
	struct seen	s;
	size_t		n;

	for (n = HEAD_MAX; n <= HEAD_MAX + 1; n++) {
		memset(text, 'x', sizeof(text));
		memcpy(text, GET H "X: ", sizeof(GET H "X: ") - 1);
		memcpy(text + n - 4, "\r\n\r\n" ONE, sizeof("\r\n\r\n" ONE));
		run(text, n + sizeof(ONE) - 1, 1000, 999, 80, &s);
		ck_assert_int_eq(s.is, n == HEAD_MAX ? HEAD_GO : HEAD_BAD);
		ck_assert_uint_eq(s.passed, n == HEAD_MAX ?
		    n + sizeof(ONE) - 1 : 0);
		run(text, n - 1, n, 1, 80, &s);
		ck_assert_int_eq(s.is, n == HEAD_MAX ? HEAD_GO : HEAD_BAD);
		ck_assert_uint_eq(s.passed, 0);
	}
}
END_TEST

/* More than 4 GiB, none of them looked at. */
START_TEST(large_body)
{
	static const char	head[] = "PUT /x HTTP/1.1\r\n" H
				    "Content-Length: 5368709120\r\n\r\n";
	static uint8_t		data[1 << 20];
	struct head		h = { 0 };
	char			host[ALLOW_NAME];
	size_t			pass, i;

	memcpy(data, head, sizeof(head) - 1);
	ck_assert_int_eq(head_read(&h, data, sizeof(head) - 1, NAME, 80, &pass,
	    host), HEAD_GO);
	ck_assert_uint_eq(pass, sizeof(head) - 1);
	for (i = 0; i < 5120; i++) {
		ck_assert_int_eq(head_read(&h, data, sizeof(data), NAME, 80,
		    &pass, host), HEAD_GO);
		ck_assert_uint_eq(pass, sizeof(data));
	}
	memcpy(data, EVIL, sizeof(EVIL) - 1);
	ck_assert_int_eq(head_read(&h, data, sizeof(EVIL) - 1, NAME, 80, &pass,
	    host), HEAD_HOST);
}
END_TEST

/* ---- upgrades ----------------------------------------------------------- */

#define ASKS(what) GET H "Connection: Upgrade\r\n" what "\r\n"
#define WS	ASKS("Upgrade: websocket\r\n")
#define H2C	ASKS("Upgrade: h2c\r\n")

/* Answers byte by byte: nothing passes before it is decided. */
static int
answered(struct head *h, const char *a, size_t n)
{
	uint8_t	*own;
	char	 host[ALLOW_NAME];
	size_t	 i, pass = 7;
	int	 r = 0;

	for (i = 0; i <= n && r == 0; i++) {
		ck_assert_int_ne(h->upgrade, 0);
		ck_assert_int_eq(head_read(h, (const uint8_t *)EVIL,
		    sizeof(EVIL) - 1, NAME, 80, &pass, host), HEAD_GO);
		ck_assert_uint_eq(pass, 0);
		own = malloc(i + 1);
		ck_assert_ptr_nonnull(own);
		memcpy(own, a, i);
		r = head_answer(h, own, i);
		free(own);
	}
	return r;
}

static void
asked(struct head *h, const char *p, size_t n)
{
	struct seen	s = { 0 };

	memset(h, 0, sizeof(*h));
	ck_assert_int_eq(piece(h, p, n, 80, &s), 0);
	ck_assert_uint_eq(s.passed, n);
	ck_assert_int_ne(h->upgrade, 0);
}

/* What passes after it: the verdict on a request for another host. */
static enum head_is
after(struct head *h)
{
	char	host[ALLOW_NAME];
	size_t	pass;

	return head_read(h, (const uint8_t *)EVIL, sizeof(EVIL) - 1, NAME, 80,
	    &pass, host);
}

static const struct answer {
	const char	*p;
	size_t		 n;
	int		 websocket, other; /* 2: all passes */
} answers[] = {
	{ S("HTTP/1.1 101"), 2, -1 },
	{ S("HTTP/1.1 101 Switching Protocols\r\n"), 2, -1 },
	{ S("HTTP/1.1 200 OK\r\n"), 1, 1 },
	{ S("HTTP/1.0 404 Not Found\r\n"), 1, 1 },
	{ S("HTTP/1.1 426 "), 1, 1 },
	{ S("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101"), 2, -1 },
	{ S("HTTP/1.1 103 Hints\r\nLink: HTTP/1.1 101\r\n\r\nHTTP/1.1 200"),
	    1, 1 },
	{ S("HTTP/1.1 100\r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\nHTTP/1.1 101"),
	    2, -1 },
	{ S("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 1"), 0, 0 },
	{ S("HTTP/1.1 103 x\r\nHTTP/1.1 101 y\r\n"), 0, 0 },
	{ S("HTTP/1.1 10"), 0, 0 },
	{ S("SSH-2.0-x\r\nHTTP/1.1 101"), 1, 1 },
	{ S("HTTP/2.0 101"), 1, 1 },
	{ S(""), 0, 0 },
};

START_TEST(upgrades)
{
	const struct answer	*a = &answers[_i];
	struct head		 h;

	asked(&h, S(WS));
	ck_assert_int_eq(answered(&h, a->p, a->n),
	    a->websocket == 2 ? 1 : a->websocket);
	if (a->websocket > 0) {
		ck_assert_int_eq(h.upgrade, 0);
		ck_assert_int_eq(after(&h), a->websocket == 2 ? HEAD_GO :
		    HEAD_HOST);
	} else
		ck_assert_int_ne(h.upgrade, 0);
	asked(&h, S(H2C));
	ck_assert_int_eq(answered(&h, a->p, a->n), a->other);
	if (a->other == 1)
		ck_assert_int_eq(after(&h), HEAD_HOST);
	else
		ck_assert_int_ne(h.upgrade, 0);
}
END_TEST

/* All these ask, and for none of them may 101 open the way. */
static const struct { const char *p; size_t n; } no_websocket[] = {
	{ S(ASKS("Upgrade: h2c, websocket\r\n")) },
	{ S(ASKS("Upgrade: websocket, h2c\r\n")) },
	{ S(ASKS("Upgrade: websocket,\r\n")) },
	{ S(ASKS("Upgrade: websocket\r\nUpgrade: h2c\r\n")) },
	{ S(ASKS("Upgrade: h2c\r\nUpgrade: websocket\r\n")) },
	{ S(ASKS("Upgrade: websocket\r\nUpgrade: websocket\r\n")) },
	{ S(ASKS("Upgrade: websocket/13\r\n")) },
	{ S(ASKS("Upgrade: \twebsocket\r\n")) },
	{ S(ASKS("Upgrade: TLS/1.0\r\n")) },
	{ S(ASKS("Upgrade:\r\n")) },
	{ S("GET / HTTP/1.0\r\n" H "Upgrade: websocket\r\n\r\n") },
};

START_TEST(no_upgrades)
{
	struct head	h;

	asked(&h, no_websocket[_i].p, no_websocket[_i].n);
	ck_assert_int_eq(answered(&h, S("HTTP/1.1 101 ")), -1);
}
END_TEST

/* After 101 nothing is looked at. */
START_TEST(websocket)
{
	struct head	h;
	char		host[ALLOW_NAME];
	size_t		pass;

	asked(&h, S(GET H "UPGRADE:  WebSocket \r\n\r\n"));
	ck_assert_int_eq(answered(&h, S("HTTP/1.1 101 ")), 1);
	ck_assert_int_eq(head_read(&h, (const uint8_t *)"\x81\x85\0\r\n", 5,
	    NAME, 80, &pass, host), HEAD_GO);
	ck_assert_uint_eq(pass, 5);
}
END_TEST

/* What is sent behind it waits, and is judged when the server declines. */
START_TEST(pipelined_upgrade)
{
	struct seen	s = judge(S(WS EVIL), 80);

	ck_assert_int_eq(s.is, HEAD_GO);
	ck_assert_uint_eq(s.passed, sizeof(WS) - 1);
	ck_assert_int_ne(s.upgrade, 0);
	/* not the first: the answer could be another's */
	s = judge(S(ONE WS EVIL), 80);
	ck_assert_int_eq(s.is, HEAD_HOST);
	ck_assert_int_eq(s.upgrade, 0);
	s = judge(S(ONE WS "\x81\x85""1234"), 80);
	ck_assert_int_eq(s.is, HEAD_BAD);
	s = judge(S(ONE H2C "PRI * HTTP/2.0\r\n\r\n"), 80);
	ck_assert_int_eq(s.is, HEAD_BAD);
}
END_TEST

int
main(void)
{
	Suite	*s = suite_create("head");
	TCase	*t = tcase_create("all");
	SRunner	*r;
	int	 failed;

#define N(a)	((int)(sizeof(a) / sizeof((a)[0])))
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, what_passes, 0, N(good));
	tcase_add_loop_test(t, other_hosts, 0, N(others));
	tcase_add_test(t, other_ports);
	tcase_add_test(t, long_hosts);
	tcase_add_loop_test(t, what_is_bad, 0, N(bad));
	tcase_add_test(t, not_whole);
	tcase_add_test(t, longest);
	tcase_add_test(t, large_body);
	tcase_add_loop_test(t, upgrades, 0, N(answers));
	tcase_add_loop_test(t, no_upgrades, 0, N(no_websocket));
	tcase_add_test(t, websocket);
	tcase_add_test(t, pipelined_upgrade);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
