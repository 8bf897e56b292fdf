/*
 * flow.c: output: how much (P9), how soon (P32), and how soon again (P33).
 * What a run has read is looked at when its clock has stopped.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"

#define ROOM	((size_t)512 << 20)	/* of an answer on the wire */
#define END	"\r\n0\r\n\r\n"		/* of a chunked one */
#define FRAMES	"application/vnd.workbox.output"
#define FRAME_HEAD	16		/* bytes; workbox-api(7) */

extern char	**environ;

static char	*wire, *bytes;		/* owned for good, ROOM each */
static size_t	 len;			/* in wire, which is terminated */
static char	 boxid[64];

/* Both are there before a clock runs: page faults are nobody's. */
static int
room_init(void)
{
	int	prot = PROT_READ | PROT_WRITE;
	int	flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;

	if (wire != NULL)
		return 0;
	wire = mmap(NULL, ROOM, prot, flags, -1, 0);
	bytes = mmap(NULL, ROOM, prot, flags, -1, 0);
	if (wire == MAP_FAILED || bytes == MAP_FAILED) {
		perror("mmap");
		return -1;
	}
	return 0;
}

/* Reads more of the answer: 0, or -1. */
static int
more(struct http *c, const char *text)
{
	ssize_t	r;

	if (len >= ROOM - 1 || (r = http_read(c, wire + len,
	    ROOM - 1 - len)) <= 0) {
		fprintf(stderr, "answer without %s: %.400s\n", text, wire);
		return -1;
	}
	len += (size_t)r;
	wire[len] = '\0';
	return 0;
}

/* Reads on until the text is there: 0, or -1. */
static int
until(struct http *c, const char *text)
{
	size_t	n = strlen(text), from;

	do {
		from = len > n ? len - n : 0;
		if (more(c, text) == -1)
			return -1;
	} while (memmem(wire + from, len - from, text, n) == NULL);
	return 0;
}

/* The same of a stream's end, which is the last thing there is. */
static int
until_end(struct http *c)
{
	size_t	n = strlen(END);

	do
		if (more(c, END) == -1)
			return -1;
	while (len < n || memcmp(wire + len - n, END, n) != 0);
	return 0;
}

static int
ask(struct http *c, const char *method, const char *path, const char *json)
{
	len = 0;
	wire[0] = '\0';
	return http_send(c, method, path, json);
}

/* ---- P9 ---------------------------------------------------------------- */

static char		 file[64];	/* in the box */
static size_t		 file_len;
static unsigned char	 file_sum[SHA256_DIGEST_LENGTH];

static int
file_init(const char *name)
{
	char	path[512];
	ssize_t	r = 0;
	int	fd;

	(void)snprintf(file, sizeof(file), "%s", name);
	(void)snprintf(path, sizeof(path), "%s%s", root, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1) {
		perror(path);
		return -1;
	}
	for (file_len = 0; file_len < ROOM && (r = read(fd, bytes + file_len,
	    ROOM - file_len)) > 0; file_len += (size_t)r)
		;
	close(fd);
	(void)SHA256((unsigned char *)bytes, file_len, file_sum);
	return r == 0 && file_len > 0 ? 0 : -1;
}

static int
same(const char *who, const char *p, size_t n)
{
	unsigned char	sum[SHA256_DIGEST_LENGTH];

	(void)SHA256((const unsigned char *)p, n, sum);
	if (n == file_len && memcmp(sum, file_sum, sizeof(sum)) == 0)
		return 0;
	fprintf(stderr, "%s: %zu bytes, not the %zu of %s\n", who, n,
	    file_len, file);
	return -1;
}

/* A chunk's bytes to out; their number, or -1 when it does not follow. */
static ssize_t
chunk(const json_t *line, json_int_t *seq, char *out)
{
	const json_t	*data = json_object_get(line, "data");
	const char	*s = json_string_value(data);
	const char	*enc = json_string_value(json_object_get(line,
			    "encoding"));
	size_t		 n = json_string_length(data);
	int		 r;

	if (json_integer_value(json_object_get(line, "seq")) != ++*seq)
		return -1;
	if (enc == NULL || strcmp(enc, "base64") != 0) {
		memcpy(out, s, n);
		return (ssize_t)n;
	}
	r = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)s,
	    (int)n);
	for (; r > 0 && n > 0 && s[n - 1] == '='; n--)
		r--;
	return r;
}

/* Lines of a stream: the bytes, or -1 at what does not follow. */
static ssize_t
lines_ok(char *p, const char *end, json_int_t *ret_seq, int *ret_ended)
{
	json_int_t	 seq = 0;
	size_t		 n, have = 0;
	char		*nl;
	ssize_t		 r = 0;

	for (; r >= 0 && p < end; p = nl + 1) {
		json_t	*line;

		r = 0;
		nl = memchr(p, '\n', (size_t)(end - p));
		n = nl == NULL ? 0 : (size_t)(nl - p);
		if ((line = json_loadb(p, n, JSON_ALLOW_NUL, NULL)) == NULL ||
		    json_object_get(line, "gap") != NULL)
			r = -1;
		else if (json_object_get(line, "seq") != NULL)
			r = chunk(line, &seq, bytes + have);
		else if (json_object_get(line, "end") != NULL)
			*ret_ended = 1;
		json_decref(line);
		have += (size_t)(r > 0 ? r : 0);
	}
	*ret_seq = seq;
	return r < 0 ? -1 : (ssize_t)have;
}

static uint64_t
be(const char *p, size_t n)
{
	uint64_t	v = 0;

	while (n-- > 0)
		v = v << 8 | (uint8_t)*p++;
	return v;
}

/* The same of frames. */
static ssize_t
frames_ok(const char *p, const char *end, json_int_t *ret_seq,
    int *ret_ended)
{
	json_int_t	seq = 0;
	size_t		n, have = 0;

	for (; end - p >= FRAME_HEAD; p += n) {
		*ret_seq = seq;
		n = be(p + 4, 4);
		if (n > (size_t)(end - p) - FRAME_HEAD || (p[0] != 0 &&
		    (json_int_t)be(p + 8, 8) != ++seq))
			return -1;
		p += FRAME_HEAD;
		if (p[-FRAME_HEAD] != 0) {
			memcpy(bytes + have, p, n);
			have += n;
		} else if (memmem(p, n, "\"gap\"", 5) == p + 1)
			return -1;
		else if (memmem(p, n, "\"end\"", 5) == p + 1)
			*ret_ended = 1;
	}
	return p == end ? (ssize_t)have : -1;
}

/* The stream: no gap, each chunk in its turn, whole, the file's bytes. */
static int
stream_ok(int frames)
{
	json_int_t	 seq = 0;
	char		*p = strstr(wire, "\r\n\r\n");
	ssize_t		 n = p == NULL ? -1 : http_unchunk(p + 4,
			    len - (size_t)(p + 4 - wire), p + 4), have = -1;
	int		 ended = 0;

	if (n >= 0 && frames)
		have = frames_ok(p + 4, p + 4 + n, &seq, &ended);
	else if (n >= 0)
		have = lines_ok(p + 4, p + 4 + n, &seq, &ended);
	if (have < 0 || !ended) {
		fprintf(stderr, "stream: a gap or no end behind chunk %lld\n",
		    (long long)seq);
		return -1;
	}
	return same("exec", bytes, (size_t)have);
}

static double
ours_cat(void *arg)
{
	char	path[128], json[128];
	double	t0;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec?stream=1",
	    boxid);
	(void)snprintf(json, sizeof(json), "{\"argv\":[\"cat\",\"%s\"]}",
	    file);
	h.accept = arg;
	t0 = bench_usec();
	if (ask(&h, "POST", path, json) == -1 || until_end(&h) == -1)
		return -1;
	t0 = bench_usec() - t0;
	h.accept = NULL;
	return stream_ok(arg != NULL) == -1 ? -1 : t0;
}

/* Runs argv with its output as a pipe and reads that to its end. */
static double
peer_cat(void *arg)
{
	posix_spawn_file_actions_t	fa;
	char				**argv = arg;
	double				t0 = bench_usec();
	ssize_t				n;
	pid_t				pid;
	int				p[2], e, st = 0;

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	e = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	for (len = 0; e == 0 && (n = read(p[0], wire + len, ROOM - len)) > 0;)
		len += (size_t)n;
	close(p[0]);
	if (e != 0)
		return -1;
	while (waitpid(pid, &st, 0) == -1 && errno == EINTR)
		;
	t0 = bench_usec() - t0;
	return st != 0 || same(argv[0], wire, len) == -1 ? -1 : t0;
}

/* form: what is accepted; NULL: lines of JSON. */
static int
cat_row(long pid, const char *name, const char *form, const char *what)
{
	struct bench_stat	 a, b;
	char			*argv[NSENTER + 3] = { NULL };

	if (file_init(name) == -1)
		return -1;
	nsenter_argv(argv, pid);
	argv[NSENTER] = S("cat");
	argv[NSENTER + 1] = file;
	if (bench_pairs(ours_cat, (void *)(uintptr_t)form, peer_cat, argv, 1,
	    pairs_of(10), &a, &b) == -1)
		return -1;
	bench_rate("P9", what, (double)file_len, &a, &b,
	    "nsenter cat, a pipe", 0.5, 0.8);
	return 0;
}

int
row_p9(void)
{
	const char	*big = getenv("BENCH_BIG");
	char		 text[64];
	long		 pid;
	int		 r;

	if (big == NULL || room_init() == -1 ||
	    create(boxid, sizeof(boxid)) == -1)
		return -1;
	(void)snprintf(text, sizeof(text), "%s.txt", big);
	r = (pid = host_pid(boxid)) == -1 ||
	    cat_row(pid, big, FRAMES, "cat of 256 MiB, any bytes, MB/s") ==
	    -1 ||
	    cat_row(pid, text, FRAMES, "the same, text, MB/s") == -1 ||
	    cat_row(pid, big, NULL, "any bytes, in lines of JSON, MB/s") ==
	    -1 ||
	    cat_row(pid, text, NULL, "text, in lines of JSON, MB/s") == -1 ?
	    -1 : 0;
	return destroy(boxid) == -1 ? -1 : r;
}

/* ---- P32 --------------------------------------------------------------- */

static double
ours_first(void *arg)
{
	char	path[128];
	double	t0;

	(void)arg;
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec?stream=1",
	    boxid);
	t0 = bench_usec();
	if (ask(&h, "POST", path, "{\"argv\":[\"/bin/echo\",\"x\"]}") == -1 ||
	    until(&h, "\"data\"") == -1)
		return -1;
	t0 = bench_usec() - t0;
	if (strstr(wire, END) == NULL && until(&h, END) == -1)
		return -1;
	if (strstr(wire, "\"x\\n\"") != NULL)
		return t0;
	fprintf(stderr, "exec: %s\n", wire);
	return -1;
}

static double
peer_first(void *arg)
{
	pid_t	pid;
	double	t = peer_ready(arg, &pid);

	if (t >= 0)
		peer_end(pid);
	return t;
}

int
row_p32(void)
{
	struct bench_stat	 a, b;
	char			*argv[NSENTER + 3] = { NULL };
	long			 pid;
	int			 r = -1;

	if (room_init() == -1 || create(boxid, sizeof(boxid)) == -1)
		return -1;
	if ((pid = host_pid(boxid)) != -1) {
		nsenter_argv(argv, pid);
		argv[NSENTER] = S("/bin/echo");
		argv[NSENTER + 1] = S("x");
		r = bench_pairs(ours_first, NULL, peer_first, argv, 5, pairs,
		    &a, &b);
	}
	if (r == 0)
		bench_row("P32", "exec to first byte of output", &a, &b,
		    "nsenter", 0.9, 0.5);
	return destroy(boxid) == -1 ? -1 : r;
}

/* ---- P33 --------------------------------------------------------------- */

#define REPLAY	"seq 200000; echo all; exec sleep 1000"

static char	replay[300];		/* path, without the number */
static long	after;			/* in the middle of what there is */

static double
ours_again(void *arg)
{
	struct http	c;
	char		path[400], want[40];
	double		t0 = bench_usec();
	int		r;

	(void)arg;
	(void)snprintf(path, sizeof(path), "%s?follow=1&after=%ld", replay,
	    after);
	if (http_open(&c, h.host, h.token) == -1)
		return -1;
	r = ask(&c, "GET", path, NULL) == -1 || until(&c, "\"data\"") == -1;
	t0 = bench_usec() - t0;
	http_shut(&c);
	(void)snprintf(want, sizeof(want), "\"seq\":%ld,", after + 1);
	if (r == 0 && strstr(wire, want) != NULL)
		return t0;
	fprintf(stderr, "output: expected chunk %ld: %.400s\n", after + 1,
	    wire);
	return -1;
}

static double
peer_again(void *arg)
{
	struct http	c;
	char		path[128];
	double		t0 = bench_usec();
	int		st;

	(void)arg;
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", boxid);
	if (http_open(&c, h.host, h.token) == -1)
		return -1;
	st = http_call(&c, "GET", path, NULL);
	t0 = bench_usec() - t0;
	http_shut(&c);
	return st == 200 ? t0 : -1;
}

/* Starts it, and waits until all that it says is there. */
static int
replay_init(void)
{
	struct http	c;
	char		path[320];
	const char	*v;
	int		r;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/sessions",
	    boxid);
	if (http_call(&h, "POST", path, "{\"argv\":[\"sh\",\"-c\",\"" REPLAY
	    "\"]}") != 201 || (v = http_member(&h, "sessionId")) == NULL) {
		fprintf(stderr, "session: %s\n", h.body);
		return -1;
	}
	(void)snprintf(replay, sizeof(replay), "%.90s/%.26s/output", path, v);
	(void)snprintf(path, sizeof(path), "%s?follow=1", replay);
	if (http_open(&c, h.host, h.token) == -1)
		return -1;
	r = ask(&c, "GET", path, NULL) == -1 || until(&c, "all\\n") == -1;
	http_shut(&c);
	for (after = 0, v = wire; (v = strstr(v, "\"seq\":")) != NULL; v++)
		after++;
	after /= 2;
	return r || after < 2 ? -1 : 0;
}

int
row_p33(void)
{
	struct bench_stat	a, b;
	int			r;

	if (room_init() == -1 || create(boxid, sizeof(boxid)) == -1)
		return -1;
	if ((r = replay_init()) == 0)
		r = bench_pairs(ours_again, NULL, peer_again, NULL, 5, pairs,
		    &a, &b);
	if (r == 0)
		bench_row("P33", "reconnect to first replayed byte", &a, &b,
		    "one GET, new connection", 1.5, 1.1);
	return destroy(boxid) == -1 ? -1 : r;
}
