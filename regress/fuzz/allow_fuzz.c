/*
 * allow_fuzz: entries of a list of names, as people and daemons send them,
 * and names that a box asks for.
 *
 * input: lines; each is taken as an entry and as a name that is asked for
 */
#include <arpa/inet.h>

#include "allow.h"
#include "fuzz.h"

#define LINES	64

static char	canon[LINES][ALLOW_TEXT], name[LINES][ALLOW_NAME];
static size_t	ncanon, nname;

/* Whether an entry stands for a name, told the slow way. */
static int
stands_for(const char *entry, const char *asked)
{
	size_t	n = strcspn(entry, ":"), len = strlen(asked);

	if (*entry != '*')
		return len == n && memcmp(entry, asked, n) == 0;
	return len > n - 1 && memcmp(asked + len - (n - 1), entry + 1,
	    n - 1) == 0;
}

static int
has_port(const char *entry, unsigned int port)
{
	const char	*s = strchr(entry, ':');

	if (s == NULL)
		return port == 80 || port == 443;
	while (s != NULL && strtoul(s + 1, NULL, 10) != port)
		s = strchr(s + 1, ',');
	return s != NULL;
}

static enum allow_is
model(const char *asked, unsigned int port)
{
	enum allow_is	is = ALLOW_NOT;
	size_t		i;

	for (i = 0; i < ncanon; i++) {
		if (!stands_for(canon[i], asked))
			continue;
		if (port == 0 || has_port(canon[i], port))
			return ALLOW_YES;
		is = ALLOW_OTHER;
	}
	return is;
}

static void
one_name(const uint8_t *p, size_t n)
{
	char		again[ALLOW_NAME];
	struct in_addr	addr;

	if (allow_name((const char *)p, n, name[nname]) == -1)
		return;
	must(strlen(name[nname]) < ALLOW_NAME);
	must(inet_aton(name[nname], &addr) == 0);
	must(allow_name(name[nname], strlen(name[nname]), again) == 0);
	must(strcmp(name[nname], again) == 0);
	nname++;
}

static void
one_entry(const uint8_t *p, size_t n)
{
	char		*text = malloc(n + 1), again[ALLOW_TEXT];
	const char	*why = NULL;
	struct allow	*a = allow_new();

	must(text != NULL);
	memcpy(text, p, n);
	text[n] = '\0';
	if (allow_canon(text, canon[ncanon], &why) == -1) {
		must(why != NULL && strncmp(why, "expected ", 9) == 0);
		/* allow.c does not know what A-labels stand for */
		must(allow_add(a, text) == -1 || strstr(text, "xn--") != NULL);
	} else {
		must(strlen(canon[ncanon]) < ALLOW_TEXT);
		must(allow_canon(canon[ncanon], again, &why) == 0);
		must(strcmp(canon[ncanon], again) == 0);
		must(allow_add(a, text) == -1 ||
		    strcmp(text, canon[ncanon]) == 0);
		ncanon++;
	}
	allow_free(a);
	free(text);
}

/* What an entry stands for is found, with each of its ports. */
static void
found(const struct allow *a, const char *entry)
{
	char	 one[ALLOW_TEXT];
	char	*s = strchr(entry, ':');

	(void)snprintf(one, sizeof(one), "%.*s", (int)strcspn(entry, ":"),
	    entry);
	if (*one == '*') {
		must(allow_find(a, one + 2, 0) == model(one + 2, 0));
		*one = 'x';
	}
	must(allow_find(a, one, 0) == ALLOW_YES);
	if (s == NULL) {
		must(allow_find(a, one, 80) == ALLOW_YES);
		must(allow_find(a, one, 443) == ALLOW_YES);
	}
	for (; s != NULL; s = strchr(s + 1, ','))
		must(allow_find(a, one, (unsigned int)strtoul(s + 1, NULL,
		    10)) == ALLOW_YES);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const unsigned int	ports[] = { 0, 1, 22, 80, 443, 65535 };
	const uint8_t			*end;
	struct allow			*a = allow_new();
	size_t				 n, i, k;

	for (ncanon = nname = 0; len > 0 && ncanon < LINES && nname < LINES;
	    data += n, len -= n) {
		end = memchr(data, '\n', len);
		n = end == NULL ? len : (size_t)(end - data);
		one_name(data, n);
		one_entry(data, n);
		n += end != NULL;
	}
	for (i = 0; i < ncanon; i++)
		must(allow_add(a, canon[i]) == 0);
	allow_done(a);
	must(allow_count(a) <= ncanon);
	for (i = 0; i < ncanon; i++)
		found(a, canon[i]);
	for (i = 0; i < nname; i++)
		for (k = 0; k < sizeof(ports) / sizeof(ports[0]); k++)
			must(allow_find(a, name[i], ports[k]) ==
			    model(name[i], ports[k]));
	allow_free(a);
	return 0;
}
