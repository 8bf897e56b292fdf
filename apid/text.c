/*
 * text.c: bytes as JSON, lists of strings, names.
 *
 * A line of output is written here by hand and not through a JSON value:
 * this is where all that a command prints passes, and a copy more per byte
 * is what a reader of 256 MiB would wait for.
 *
 * Must never: put bytes that are not UTF-8 into a JSON string.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include "apid.h"
#include "log.h"
#include "xmalloc.h"

/* ---- lists -------------------------------------------------------- */

struct wire_list
list_dup(const struct wire_list *l)
{
	struct wire_list	 ret = { NULL, 0 };
	struct wire_bin		*v;
	uint8_t			*p;
	size_t			 i, bytes = list_bytes(l);

	if (l->n == 0)
		return ret;
	v = xmalloc(l->n * sizeof(*v) + bytes);
	p = (uint8_t *)(v + l->n);
	for (i = 0; i < l->n; i++) {
		if (l->v[i].len != 0)
			memcpy(p, l->v[i].data, l->v[i].len);
		v[i].data = p;
		v[i].len = l->v[i].len;
		p += l->v[i].len;
	}
	ret.v = v;
	ret.n = l->n;
	return ret;
}

void
list_free(struct wire_list *l)
{
	free((void *)(uintptr_t)l->v);
	l->v = NULL;
	l->n = 0;
}

size_t
list_bytes(const struct wire_list *l)
{
	size_t	i, n = 0;

	for (i = 0; i < l->n; i++)
		n += l->v[i].len;
	return n;
}

struct wire_list
list_from_object(const json_t *o)
{
	struct wire_list	 ret = { NULL, 0 };
	struct wire_bin		*v;
	const char		*key;
	const json_t		*val;
	uint8_t			*p;
	size_t			 bytes = 0, klen;

	if (json_object_size(o) == 0)
		return ret;
	json_object_foreach((json_t *)(uintptr_t)o, key, val)
		bytes += strlen(key) + 1 + json_string_length(val);
	v = xmalloc(json_object_size(o) * sizeof(*v) + bytes);
	p = (uint8_t *)(v + json_object_size(o));
	json_object_foreach((json_t *)(uintptr_t)o, key, val) {
		klen = strlen(key);
		v[ret.n].data = p;
		v[ret.n].len = klen + 1 + json_string_length(val);
		memcpy(p, key, klen);
		p[klen] = '=';
		memcpy(p + klen + 1, json_string_value(val),
		    json_string_length(val));
		p += v[ret.n++].len;
	}
	ret.v = v;
	return ret;
}

struct wire_list
list_from_array(const json_t *a)
{
	struct wire_list	 ret = { NULL, 0 }, l;
	struct wire_bin		*v;
	const json_t		*s;
	size_t			 i, n = json_array_size(a);

	if (n == 0)
		return ret;
	v = xcalloc(n, sizeof(*v));
	for (i = 0; i < n; i++) {
		s = json_array_get(a, i);
		v[i].data = (const uint8_t *)json_string_value(s);
		v[i].len = json_string_length(s);
	}
	l.v = v;
	l.n = n;
	ret = list_dup(&l);
	free(v);
	return ret;
}

json_t *
list_to_object(const struct wire_list *l)
{
	json_t		*o = json_object();
	const uint8_t	*eq;
	char		 key[1024];
	size_t		 i, klen;

	for (i = 0; i < l->n; i++) {
		eq = memchr(l->v[i].data, '=', l->v[i].len);
		klen = eq == NULL ? 0 : (size_t)(eq - l->v[i].data);
		if (klen == 0 || klen >= sizeof(key))
			continue;	/* cannot be: we wrote it */
		memcpy(key, l->v[i].data, klen);
		key[klen] = '\0';
		(void)json_object_set_new(o, key,	/* NULL only w/o memory */
		    text_json(eq + 1, l->v[i].len - klen - 1));
	}
	return o;
}

json_t *
list_to_array(const struct wire_list *l)
{
	json_t	*a = json_array();
	size_t	 i;

	for (i = 0; i < l->n; i++)
		(void)json_array_append_new(a,
		    text_json(l->v[i].data, l->v[i].len));
	return a;
}

const char *
list_value(const struct wire_list *l, const char *key, size_t keylen,
    size_t *ret_len)
{
	const struct wire_bin	*b;
	size_t			 i;

	for (i = 0; i < l->n; i++) {
		b = &l->v[i];
		if (b->len <= keylen || b->data[keylen] != '=' ||
		    memcmp(b->data, key, keylen) != 0)
			continue;
		*ret_len = b->len - keylen - 1;
		return (const char *)b->data + keylen + 1;
	}
	return NULL;
}

/* ---- UTF-8 -------------------------------------------------------- */

/* Length of the character at p, or 0; Unicode 15, table 3-7. */
static size_t
utf8_char(const uint8_t *p, size_t len)
{
	uint8_t	lo = 0x80, hi = 0xbf;
	size_t	n, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (len < n || p[1] < lo || p[1] > hi)
		return 0;
	for (i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

size_t
utf8_prefix(const uint8_t *p, size_t len)
{
	uint64_t	w;
	size_t		i = 0, n;

	while (i < len) {
		if (p[i] < 0x80 && len - i >= sizeof(w)) {
			memcpy(&w, p + i, sizeof(w));
			if ((w & UINT64_C(0x8080808080808080)) == 0) {
				i += sizeof(w);
				continue;
			}
		}
		if ((n = utf8_char(p + i, len - i)) == 0)
			break;
		i += n;
	}
	return i;
}

json_t *
text_json(const void *data, size_t len)
{
	const uint8_t	*p = data;
	char		*buf, *q;
	json_t		*j;
	size_t		 n;

	if (len == 0)
		return json_string("");
	if (utf8_prefix(p, len) == len)
		return json_stringn(data, len);
	q = buf = xmalloc(len * 3);
	while (len != 0) {
		n = utf8_prefix(p, len);
		memcpy(q, p, n);
		q += n;
		p += n;
		len -= n;
		if (len == 0)
			break;
		memcpy(q, "\xef\xbf\xbd", 3);
		q += 3;
		p++;
		len--;
	}
	j = json_stringn(buf, (size_t)(q - buf));
	free(buf);
	return j;
}

json_t *
text_json_or_null(const char *s)
{
	return s[0] == '\0' ? json_null() : text_json(s, strlen(s));
}

/* ---- base64, RFC 4648 --------------------------------------------- */

static const char	b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz0123456789+/";

/* Two characters for each twelve bits: half as many look-ups. */
static const char *
b64_pairs(void)
{
	static char	pair[4096][2];
	unsigned int	i;

	if (pair[0][0] == '\0')
		for (i = 0; i < 4096; i++) {
			pair[i][0] = b64[i >> 6];
			pair[i][1] = b64[i & 63];
		}
	return pair[0];
}

size_t
base64(char *dst, const uint8_t *p, size_t len)
{
	const char	*pair = b64_pairs();
	char		*q = dst;
	uint32_t	 w;

	for (; len >= 3; len -= 3, p += 3, q += 4) {
		w = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
		memcpy(q, pair + (size_t)2 * (w >> 12), 2);
		memcpy(q + 2, pair + (size_t)2 * (w & 4095), 2);
	}
	if (len == 0)
		return (size_t)(q - dst);
	w = (uint32_t)p[0] << 16 | (len == 2 ? (uint32_t)p[1] << 8 : 0);
	*q++ = b64[w >> 18];
	*q++ = b64[w >> 12 & 63];
	*q++ = len == 2 ? b64[w >> 6 & 63] : '=';
	*q++ = '=';
	return (size_t)(q - dst);
}

json_t *
bytes_json(const uint8_t *p, size_t len, const char **ret_enc)
{
	char	*buf;
	json_t	*j;

	if (len == 0 || utf8_prefix(p, len) == len) {
		*ret_enc = "utf-8";
		return len == 0 ? json_string("") :
		    json_stringn((const char *)p, len);
	}
	buf = xmalloc(4 * ((len + 2) / 3));
	j = json_stringn_nocheck(buf, base64(buf, p, len));
	free(buf);
	*ret_enc = "base64";
	return j;
}

/* ---- a line of output --------------------------------------------- */

#define ONES	UINT64_C(0x0101010101010101)

/* Not 0: a byte of w is below n, which is at most 0x80. */
static uint64_t
below(uint64_t w, uint8_t n)
{
	return (w - ONES * n) & ~w & ONES * 0x80;
}

/* Whether all eight bytes at p stand for themselves in a string of JSON. */
static int
plain8(const uint8_t *p)
{
	uint64_t	w;

	memcpy(&w, p, sizeof(w));
	return (below(w, 0x20) | below(w ^ ONES * '"', 1) |
	    below(w ^ ONES * '\\', 1)) == 0;
}

/* A byte that RFC 8259 wants escaped; what is behind it. */
static char *
escape_one(char *q, uint8_t c)
{
	static const char	hex[] = "0123456789abcdef";

	*q++ = '\\';
	switch (c) {
	case '"':
	case '\\':
		*q++ = (char)c;
		return q;
	case '\n':
		*q++ = 'n';
		return q;
	case '\t':
		*q++ = 't';
		return q;
	case '\r':
		*q++ = 'r';
		return q;
	default:
		memcpy(q, "u00", 3);
		q[3] = hex[c >> 4];
		q[4] = hex[c & 15];
		return q + 5;
	}
}

/* UTF-8 as the inside of a string; NULL: longer than max. */
static char *
escape(char *q, const uint8_t *p, size_t len, size_t max)
{
	const uint8_t	*end = p + len;
	const char	*stop = q + max;

	while (p < end) {
		if (stop - q < 8)
			return NULL;
		if (end - p >= 8 && plain8(p)) {
			memcpy(q, p, 8);
			q += 8;
			p += 8;
			continue;
		}
		if (*p >= 0x20 && *p != '"' && *p != '\\')
			*q++ = (char)*p++;
		else
			q = escape_one(q, *p++);
	}
	return q;
}

size_t
chunk_line(char *dst, uint64_t seq, unsigned int stream, const uint8_t *p,
    size_t len)
{
	char	*q = dst, *end = NULL;
	int	 n;

	n = snprintf(q, 96, "{\"seq\":%llu,\"stream\":\"%s\",\"data\":\"",
	    (unsigned long long)seq,
	    stream == STREAM_STDERR ? "stderr" : "stdout");
	q += n;
	/* a large chunk of control characters is shorter in base64 */
	if (utf8_prefix(p, len) == len)
		end = escape(q, p, len, 65536);
	q = end != NULL ? end : q + base64(q, p, len);
	n = snprintf(q, 32, "\",\"encoding\":\"%s\"}\n",
	    end != NULL ? "utf-8" : "base64");
	return (size_t)(q + n - dst);
}

/* ---- a frame of output -------------------------------------------- */

void
frame_head(uint8_t dst[FRAME_HEAD], unsigned int kind, uint64_t seq,
    size_t len)
{
	int	i;

	memset(dst, 0, FRAME_HEAD);
	dst[0] = (uint8_t)kind;
	for (i = 0; i < 4; i++)
		dst[4 + i] = (uint8_t)(len >> (24 - 8 * i));
	for (i = 0; i < 8; i++)
		dst[8 + i] = (uint8_t)(seq >> (56 - 8 * i));
}

/* ---- names and numbers -------------------------------------------- */

void
text_camel(char *s)
{
	char	*d = s;

	for (; *s != '\0'; s++) {
		if (*s == '_' && s[1] >= 'a' && s[1] <= 'z')
			*d++ = (char)(*++s - 'a' + 'A');
		else
			*d++ = *s;
	}
	*d = '\0';
}

json_t *
time_json(uint64_t ms)
{
	char	t[25];

	time_rfc3339(ms, t);
	return json_string_nocheck(t);
}

void
text_name(char ret[64])
{
	static const char *const	first[] = {
		"amber", "brave", "brisk", "bright", "calm", "candid",
		"clear", "clever", "cosy", "crisp", "deft", "eager",
		"early", "fair", "fleet", "fond", "gentle", "glad",
		"golden", "happy", "hardy", "keen", "kind", "light",
		"lively", "lucid", "lucky", "mellow", "merry", "mild",
		"modest", "neat", "nimble", "noble", "patient", "placid",
		"plucky", "polite", "proud", "quick", "quiet", "rapid",
		"ready", "serene", "sharp", "silver", "sincere", "smooth",
		"snug", "steady", "still", "sunny", "swift", "tidy",
		"trusty", "upbeat", "vivid", "warm", "wise", "witty",
	};
	static const char *const	second[] = {
		"acorn", "alder", "aspen", "badger", "beaver", "birch",
		"brook", "cedar", "clover", "comet", "coral", "crane",
		"dolphin", "dune", "falcon", "fern", "finch", "fjord",
		"forest", "fox", "garnet", "glade", "grove", "harbor",
		"hare", "hazel", "heron", "island", "ivy", "jasper",
		"kestrel", "lagoon", "lark", "lynx", "maple", "marten",
		"meadow", "moss", "oak", "opal", "orchid", "osprey",
		"otter", "owl", "panda", "pearl", "pine", "plover",
		"poplar", "quartz", "raven", "reed", "river", "robin",
		"rowan", "sparrow", "spruce", "swan", "tern", "thistle",
		"tulip", "willow", "wren", "yarrow",
	};
	uint8_t				r[3];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		fatal("getrandom");	/* cannot be with three bytes */
	(void)snprintf(ret, 64, "%s-%s-%02u",
	    first[r[0] % (sizeof(first) / sizeof(first[0]))],
	    second[r[1] % (sizeof(second) / sizeof(second[0]))],
	    r[2] % 100U);
}

unsigned int
text_signal(const char *s)
{
	const char	*name, *end;
	long		 n;
	int		 i;

	if (strncmp(s, "SIG", 3) == 0)
		s += 3;
	for (i = 1; i < 32; i++)
		if ((name = sigabbrev_np(i)) != NULL && strcmp(name, s) == 0)
			return (unsigned int)i;
	/* the box's own numbers: glibc's and musl's ranges differ */
	if (strncmp(s, "RTMIN", 5) != 0)
		return 0;
	if (s[5] == '\0')
		return 34;
	if (s[5] != '+')
		return 0;
	errno = 0;
	n = strtol(s + 6, (char **)(uintptr_t)&end, 10);
	return errno == 0 && s[6] >= '0' && s[6] <= '9' && *end == '\0' &&
	    n <= 30 ? (unsigned int)(34 + n) : 0;
}
