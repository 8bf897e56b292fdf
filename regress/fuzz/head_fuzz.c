/*
 * head_fuzz: any bytes as what a client sends to a host without TLS, and to
 * its answer.
 *
 * input: a byte that chooses the port, a piece: the answer, and the stream of
 * requests.  In pieces of any size the same must pass; and what has passed,
 * read by the reader here, which knows nothing of head.c, is requests for that
 * host and no other.
 */
#include "../../proxyd/proxyd.h"
#include "fuzz.h"

#define NAME	"www.example.org"

struct result {
	enum head_is	 is;
	size_t		 passed, judged;	/* judged: before 101 */
	int		 all;
	unsigned int	 requests;
	char		 host[ALLOW_NAME];
};

static unsigned int	port;
static struct bytes	answer, stream;

static enum head_is
read_own(struct head *h, size_t at, size_t n, size_t *pass, char *host)
{
	uint8_t		*own = malloc(n > 0 ? n : 1);
	enum head_is	 r;

	must(own != NULL);
	if (n > 0)
		memcpy(own, stream.p + at, n);
	r = head_read(h, own, n, NAME, port, pass, host);
	free(own);
	return r;
}

/* Whether it is looked at no more: so no request begins. */
static int
passes_all(struct head h)
{
	char	host[ALLOW_NAME];
	size_t	pass = 0;

	return head_read(&h, (const uint8_t *)"\n", 1, NAME, port, &pass,
	    host) == HEAD_GO && pass == 1;
}

/* Once a request has asked: all of the answer there is.  1: it goes on. */
static int
decide(struct head *h, struct result *r)
{
	switch (head_answer(h, answer.p, answer.n)) {
	case 1:
		must(h->upgrade == 0);
		r->all = passes_all(*h);
		must(!r->all || h->requests == 1);
		must(!r->all || memmem(answer.p, answer.n, " 101", 4) !=
		    NULL);
		r->judged = r->passed;
		return 1;
	case 0:
		must(h->upgrade != 0);
		return 0;
	default:
		r->is = HEAD_BAD;
		return 0;
	}
}

static void
run(int whole, struct result *r)
{
	struct head	h = { 0 };
	uint32_t	cuts = dice_seed(stream.p, stream.n);
	size_t		at = 0, pass;

	memset(r, 0, sizeof(*r));
	for (;;) {
		pass = 0;
		r->is = read_own(&h, r->passed, at - r->passed, &pass,
		    r->host);
		if (r->is != HEAD_GO)
			break;
		must(pass <= at - r->passed);
		r->passed += pass;
		if (h.upgrade != 0 && !decide(&h, r))
			break;
		if (pass > 0 && r->passed < at)
			continue;
		if (at == stream.n)
			break;
		at = whole ? stream.n : at + 1 + dice(&cuts) % 23;
		if (at > stream.n)
			at = stream.n;
	}
	if (!r->all)
		r->judged = r->passed;
	r->requests = h.requests;
}

/* ---- another reader ------------------------------------------------------ */

static char	text[1 << 20];

static char *
lower(const char *from, size_t n)
{
	size_t	i;

	must(n < sizeof(text));
	for (i = 0; i < n; i++)
		text[i] = from[i] >= 'A' && from[i] <= 'Z' ?
		    (char)(from[i] + 32) : from[i];
	text[n] = '\0';
	return text;
}

/* The value of the only field of that name in a head, or NULL. */
static char *
only(char *head, const char *name)
{
	char	*at = strstr(head, name), *end;

	if (at == NULL)
		return NULL;
	must(strstr(at + 1, name) == NULL);
	at += strlen(name);
	at += strspn(at, " ");
	must((end = strstr(at, "\r\n")) != NULL);
	while (end > at && end[-1] == ' ')
		end--;
	*end = '\0';
	return at;
}

static void
is_ours(char *host)
{
	char	*colon;

	must(host != NULL);
	must(strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-:") ==
	    strlen(host));
	if ((colon = strchr(host, ':')) != NULL)
		*colon++ = '\0';
	must(strcmp(host, NAME) == 0 || strcmp(host, NAME ".") == 0);
	must((colon != NULL ? strtoul(colon, NULL, 10) : 80) == port);
}

/* How long chunks are that begin there; up to n when they do not end. */
static size_t
chunks(const char *p, size_t n)
{
	size_t	at = 0, size;
	char	*end;

	do {
		if (memmem(p + at, n - at, "\r\n", 2) == NULL)
			return n;
		size = strtoul(p + at, &end, 16);
		must(memcmp(end, "\r\n", 2) == 0 && end > p + at);
		at = (size_t)(end + 2 - p);
		if (n - at < size + 2)
			return n;
		must(memcmp(p + at + size, "\r\n", 2) == 0);
		at += size + 2;
	} while (size > 0);
	return at;
}

/* One request at p; how long it is. */
static size_t
one_request(const char *p, size_t n)
{
	const char	*end = memmem(p, n, "\r\n\r\n", 4);
	char		*head, *v;
	size_t		 len, k;

	must(end != NULL);
	len = (size_t)(end + 4 - p);
	must(memchr(p, '\0', len) == NULL);
	for (k = 0; k < len; k++)		/* all ends are the same */
		must((p[k] == '\n') == (k > 0 && p[k - 1] == '\r'));
	head = lower(p, len - 2);
	must((v = strstr(head, " http/1.")) != NULL && v[9] == '\r');
	must(strchr(head, ' ') != v && strchr(head, ' ')[1] != 'h');
	must(strncmp(head, "connect", 7) != 0 || head[7] != ' ');
	must(strstr(head, "\r\n ") == NULL && strstr(head, "\r\n\t") == NULL);
	if (only(head, "\r\ntransfer-encoding:") != NULL) {
		must(memmem(p, len, "chunked", 7) != NULL ||
		    strcasestr(lower(p, len), "chunked") != NULL);
		head = lower(p, len - 2);
		must(only(head, "\r\ncontent-length:") == NULL);
		is_ours(only(lower(p, len - 2), "\r\nhost:"));
		return len + chunks(p + len, n - len);
	}
	v = only(lower(p, len - 2), "\r\ncontent-length:");
	k = v == NULL ? 0 : strtoul(v, NULL, 10);
	is_ours(only(lower(p, len - 2), "\r\nhost:"));
	return k > n - len ? n : len + k;
}

static void
walk(size_t n, unsigned int requests)
{
	char		*own = calloc(1, n + 4);
	size_t		 at = 0;
	unsigned int	 seen = 0;

	must(own != NULL);
	memcpy(own, stream.p, n);
	while (at < n) {
		at += one_request(own + at, n - at);
		seen++;
	}
	must(seen == requests);
	free(own);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result	a, b;

	stream = (struct bytes){ data, size };
	port = take_u8(&stream) % 4 == 3 ? 8080 : 80;
	answer = take_piece(&stream);
	run(1, &a);
	run(0, &b);
	must(a.is == b.is && a.passed == b.passed && a.judged == b.judged);
	must(a.requests == b.requests);
	must(a.is != HEAD_HOST || strcmp(a.host, b.host) == 0);
	if (a.judged > 0)
		walk(a.judged, a.requests);
	return 0;
}
