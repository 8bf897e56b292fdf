/*
 * allow.c: lists of names with ports, and what is held against them.  See
 * allow.h.
 *
 * What comes here was canonical when it was sent; what is not is refused
 * again.  Names that are asked for are a box's: any bytes.  Nothing here may
 * call the kernel but for memory, or take longer for a list that was written
 * to be slow.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "sort.h"
#include "xmalloc.h"

/*
 * An entry in text: its key and a NUL, the number of its ports and they, in
 * order, two bytes each; none stands for 80 and 443.  The key is the name, or
 * of *.SUFFIX ".SUFFIX", so that every key that can match a name is the name
 * or ends it at a dot.  at: where entries begin, after allow_done() in the
 * order of keys.
 */
struct allow {
	char		*text;		/* owned */
	size_t		 len, room;
	uint32_t	*at;		/* owned */
	size_t		 n, nroom;
	int		 done;
};

static const uint16_t	standard[] = { 80, 443 };

/* ---- names ------------------------------------------------------------- */

static int
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || c == '_';
}

/*
 * Digits alone, or 0x and what of hexadecimal follows: no such name stands at
 * the end of a host's (RFC 1123, 2.1), and inet_aton(3) takes nothing else.
 */
static int
is_number(const char *label, size_t n)
{
	size_t	i, hex = n >= 2 && label[0] == '0' && label[1] == 'x';

	for (i = hex ? 2 : 0; i < n; i++)
		if (!is_digit(label[i]) &&
		    !(hex && label[i] >= 'a' && label[i] <= 'f'))
			return 0;
	return 1;
}

static int
label_ok(const char *label, size_t n)
{
	size_t	i;

	if (n == 0 || n > 63 || label[0] == '-' || label[n - 1] == '-')
		return 0;
	for (i = 0; i < n; i++)
		if (!is_letter(label[i]) && !is_digit(label[i]) &&
		    label[i] != '-')
			return 0;
	return 1;
}

int
allow_name(const char *text, size_t n, char ret[ALLOW_NAME])
{
	char	name[ALLOW_NAME] = "";
	size_t	i, end;

	if (n > 0 && text[n - 1] == '.')
		n--;
	if (n >= sizeof(name))
		return -1;
	for (i = 0; i < n; i++) {
		name[i] = text[i];
		if (text[i] >= 'A' && text[i] <= 'Z')
			name[i] = (char)(text[i] - 'A' + 'a');
	}
	for (i = 0;; i = end + 1) {
		for (end = i; end < n && name[end] != '.'; end++)
			;
		if (!label_ok(name + i, end - i))
			return -1;
		if (end == n)
			break;
	}
	if (is_number(name + i, n - i))
		return -1;
	memcpy(ret, name, n + 1);
	return 0;
}

/* ---- entries ------------------------------------------------------------ */

/* Ports in order, to the end of the text.  How many, or -1. */
static int
ports_parse(const char *s, uint16_t ret[ALLOW_PORTS])
{
	unsigned int	v, last = 0;
	int		n = 0;

	do {
		if (n == ALLOW_PORTS || *s < '1' || *s > '9')
			return -1;
		for (v = 0; is_digit(*s) && v <= UINT16_MAX; s++)
			v = v * 10 + (unsigned int)(*s - '0');
		if (v > UINT16_MAX || v <= last)
			return -1;
		ret[n++] = (uint16_t)(last = v);
	} while (*s == ',' && *++s != '\0');
	return *s == '\0' && s[-1] != ',' ? n : -1;
}

static int
is_standard(const uint16_t *port, size_t n)
{
	return n == 2 && port[0] == standard[0] && port[1] == standard[1];
}

/*
 * The key of an entry and its ports, none for the standard ones.  How many
 * ports, or -1: it is not canonical.
 */
static int
entry_parse(const char *text, char key[ALLOW_NAME],
    uint16_t ret[ALLOW_PORTS])
{
	size_t	 n = strcspn(text, ":"), wild = text[0] == '*';
	char	 name[ALLOW_NAME];
	int	 nports = 0;

	if (n >= ALLOW_NAME || (wild && text[1] != '.') ||
	    allow_name(text + 2 * wild, n - 2 * wild, name) == -1 ||
	    strlen(name) != n - 2 * wild ||
	    memcmp(name, text + 2 * wild, strlen(name)) != 0 ||
	    (wild && strchr(name, '.') == NULL))
		return -1;
	if (text[n] == ':' && (nports = ports_parse(text + n + 1, ret)) == -1)
		return -1;
	if (is_standard(ret, (size_t)nports))
		return -1;
	memcpy(key, text + wild, n - wild);
	key[n - wild] = '\0';
	return nports;
}

struct allow *
allow_new(void)
{
	return xcalloc(1, sizeof(struct allow));
}

void
allow_free(struct allow *a)
{
	if (a == NULL)
		return;
	free(a->text);
	free(a->at);
	free(a);
}

size_t
allow_count(const struct allow *a)
{
	return a->n;
}

static void
append(struct allow *a, const char *key, const uint16_t *port, size_t nports)
{
	size_t		 len = strlen(key) + 1, all;
	uint16_t	 n = (uint16_t)nports;

	all = len + sizeof(n) + nports * sizeof(*port);
	if (a->text == NULL || a->room - a->len < all) {
		a->room = (a->len + all) * 2;
		a->text = xreallocarray(a->text, a->room, 1);
	}
	if (a->n == a->nroom) {
		a->nroom = a->nroom * 2 + 16;
		a->at = xreallocarray(a->at, a->nroom, sizeof(*a->at));
	}
	a->at[a->n++] = (uint32_t)a->len;
	memcpy(a->text + a->len, key, len);
	memcpy(a->text + a->len + len, &n, sizeof(n));
	if (nports > 0)
		memcpy(a->text + a->len + len + sizeof(n), port,
		    nports * sizeof(*port));
	a->len += all;
}

int
allow_add(struct allow *a, const char *canonical)
{
	char		key[ALLOW_NAME];
	uint16_t	port[ALLOW_PORTS];
	int		n;

	if (a->done || (n = entry_parse(canonical, key, port)) == -1) {
		errno = EINVAL;
		return -1;
	}
	if (a->n == ALLOW_MAX) {
		errno = E2BIG;
		return -1;
	}
	append(a, key, port, (size_t)n);
	return 0;
}

/* ---- in order ------------------------------------------------------------ */

/* Two of allow.at, of which arg is the list. */
static int
order(const void *x, const void *y, const void *arg)
{
	const struct allow	*a = arg;

	return strcmp(a->text + *(const uint32_t *)x,
	    a->text + *(const uint32_t *)y);
}

/* The ports of the entry at p, and how many, copied: they are not aligned. */
static size_t
ports_of(const char *p, const char **ret_ports)
{
	uint16_t	n;

	p += strlen(p) + 1;
	memcpy(&n, p, sizeof(n));
	*ret_ports = n == 0 ? (const char *)standard : p + sizeof(n);
	return n == 0 ? sizeof(standard) / sizeof(standard[0]) : n;
}

static uint16_t
port_at(const char *ports, size_t i)
{
	uint16_t	v;

	memcpy(&v, ports + i * sizeof(v), sizeof(v));
	return v;
}

/* A bit for each port. */
struct ports {
	uint64_t	word[(UINT16_MAX + 1) / 64];
};

static void
ports_set(struct ports *s, const char *entry)
{
	const char	*ports;
	size_t		 n = ports_of(entry, &ports);
	unsigned int	 p;

	while (n-- > 0) {
		p = port_at(ports, n);
		s->word[p / 64] |= (uint64_t)1 << p % 64;
	}
}

/* They in order; none is set any more. */
static size_t
ports_take(struct ports *s, uint16_t *ret)
{
	size_t	i, n = 0;

	for (i = 0; i < sizeof(s->word) / sizeof(s->word[0]); i++)
		for (; s->word[i] != 0; s->word[i] &= s->word[i] - 1)
			ret[n++] = (uint16_t)(i * 64 +
			    (unsigned int)__builtin_ctzll(s->word[i]));
	return n;
}

/* Exactly as long as they are. */
static void
fit(struct allow *a)
{
	if (a->n == 0)
		return;
	a->text = xreallocarray(a->text, a->room = a->len, 1);
	a->at = xreallocarray(a->at, a->nroom = a->n, sizeof(*a->at));
}

void
allow_done(struct allow *a)
{
	auto_free struct ports	*set = NULL;
	auto_free uint16_t	*port = NULL;
	struct allow		 to = { .done = 1 };
	size_t			 i, n;

	if (a->done)
		return;
	set = xcalloc(1, sizeof(*set));
	port = xcalloc(UINT16_MAX, sizeof(*port));
	sort(a->at, a->n, sizeof(*a->at), order, a);
	for (i = 0; i < a->n; i++) {
		ports_set(set, a->text + a->at[i]);
		if (i + 1 < a->n && order(a->at + i, a->at + i + 1, a) == 0)
			continue;	/* one more of the same name */
		n = ports_take(set, port);
		append(&to, a->text + a->at[i], port,
		    is_standard(port, n) ? 0 : n);
	}
	fit(&to);
	free(a->text);
	free(a->at);
	*a = to;
}

/* ---- questions ----------------------------------------------------------- */

/* The entry with this key, or NULL. */
static const char *
find(const struct allow *a, const char *key)
{
	size_t	lo = 0, hi = a->n, mid;
	int	c;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		c = strcmp(key, a->text + a->at[mid]);
		if (c == 0)
			return a->text + a->at[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

static int
has_port(const char *entry, unsigned int port)
{
	const char	*ports;
	size_t		 lo = 0, hi = ports_of(entry, &ports), mid;

	if (port == 0)
		return 1;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (port_at(ports, mid) == port)
			return 1;
		if (port < port_at(ports, mid))
			hi = mid;
		else
			lo = mid + 1;
	}
	return 0;
}

enum allow_is
allow_find(const struct allow *a, const char *name, unsigned int port)
{
	enum allow_is	 is = ALLOW_NOT;
	const char	*key, *entry;

	if (!a->done || *name == '\0' || *name == '.')
		return ALLOW_NOT;
	for (key = name; key != NULL; key = strchr(key + 1, '.')) {
		if ((entry = find(a, key)) == NULL)
			continue;
		if (has_port(entry, port))
			return ALLOW_YES;
		is = ALLOW_OTHER;
	}
	return is;
}
