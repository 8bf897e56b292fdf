/*
 * allow_canon.c: entries as people write them.  See allow.h.
 *
 * Apart from allow.c, since of all programs only apid, which takes them from
 * people, has libidn2.  What is not plainly a host with ports is refused with
 * what was expected; nothing is guessed.
 */
#include <arpa/inet.h>
#include <idn2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"

static const char	address[] = "expected the name of a host, not an "
    "address: for addresses there is the network egress, with deny and "
    "except of workbox.conf(5)";
static const char	ports[] = "expected ports from 1 to 65535, without a 0 "
    "in front, behind the colon, with commas between them and nothing else";
static const char	too_long[] = "expected a name of at most 253 bytes, "
    "in the form that the DNS has of it";
static const char	long_label[] = "expected labels of at most 63 bytes, "
    "in the form that the DNS has of them";
static const char	star[] = "expected * only as *. at the beginning, as "
    "in *.example.com";

/* ---- names ------------------------------------------------------------- */

/*
 * An address of IPv4, in any spelling, with a wrong one too: no host's last
 * label is a number.
 */
static int
is_v4(const char *s, size_t n)
{
	const char	*digits = "0123456789";
	size_t		 i;

	n -= n > 0 && s[n - 1] == '.';
	for (i = n; i > 0 && s[i - 1] != '.'; i--)
		;
	if (n - i >= 2 && s[i] == '0' && (s[i + 1] | 0x20) == 'x') {
		digits = "0123456789abcdefABCDEF";
		i += 2;
	} else if (n == i)
		return 0;
	return strspn(s + i, digits) >= n - i;
}

/* Of IPv6, with brackets or without. */
static int
is_v6(const char *s)
{
	size_t		 n = strcspn(s, "%/");
	struct in6_addr	 addr;
	char		 text[INET6_ADDRSTRLEN];

	if (*s == '[')
		return 1;
	if (n >= sizeof(text))
		return 0;
	memcpy(text, s, n);
	text[n] = '\0';
	return inet_pton(AF_INET6, text, &addr) == 1;
}

static int
is_ascii(const char *s, size_t n)
{
	while (n > 0 && (unsigned char)*s < 0x80) {
		s++;
		n--;
	}
	return n == 0;
}

/* A label begins with xn--, in whatever case. */
static int
is_coded(const char *s, size_t n)
{
	size_t	i;

	for (i = 0; i + 4 <= n; i++)
		if ((i == 0 || s[i - 1] == '.') && (s[i] | 0x20) == 'x' &&
		    (s[i + 1] | 0x20) == 'n' && s[i + 2] == '-' &&
		    s[i + 3] == '-')
			return 1;
	return 0;
}

/* Why allow_name() does not take it. */
static const char *
why_no_name(const char *s, size_t n)
{
	size_t	label, i;

	if (n == 0)
		return "expected the name of a host in front";
	if (is_v4(s, n))
		return address;
	n -= s[n - 1] == '.';
	for (i = label = 0; i <= n; i++, label++) {
		if (i < n && s[i] != '.')
			continue;
		if (label == 0)
			return "expected a label between two dots, and at "
			    "most one dot at the end";
		if (label > 63)
			return long_label;
		if (s[i - 1] == '-' || s[i - label] == '-')
			return "expected labels without a hyphen at their "
			    "begin or end";
		label = (size_t)-1;
	}
	if (n >= ALLOW_NAME)
		return too_long;
	return "expected letters, digits and hyphens (or `_'), with a dot between "
	    "labels";
}

/* A name in A-labels and lower case.  0, or -1 with why. */
static int
name_canon(const char *s, size_t n, char ret[ALLOW_NAME],
    const char **ret_why)
{
	char	 text[ALLOW_TEXT], *ascii = NULL;
	int	 rc = 0;

	memcpy(text, s, n);
	text[n] = '\0';
	if (!is_ascii(s, n) || is_coded(s, n))
		rc = idn2_lookup_u8((const uint8_t *)text, (uint8_t **)&ascii,
		    IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT);
	if (rc != IDN2_OK)
		*ret_why = rc == IDN2_TOO_BIG_DOMAIN ? too_long :
		    rc == IDN2_TOO_BIG_LABEL ||
		    rc == IDN2_PUNYCODE_BIG_OUTPUT ? long_label :
		    "expected a name that has a form in the DNS (RFC 5891, "
		    "UTS 46)";
	else if (ascii != NULL) {
		if ((rc = allow_name(ascii, strlen(ascii), ret)) == -1)
			*ret_why = why_no_name(ascii, strlen(ascii));
	} else if ((rc = allow_name(text, n, ret)) == -1)
		*ret_why = why_no_name(text, n);
	idn2_free(ascii);
	return rc == 0 ? 0 : -1;
}

/* ---- ports --------------------------------------------------------------- */

/* Puts v among the n that are there, in order; how many there are then. */
static size_t
port_put(unsigned int *port, size_t n, unsigned int v)
{
	size_t	i = n;

	while (i > 0 && port[i - 1] > v)
		i--;
	if (i > 0 && port[i - 1] == v)
		return n;
	memmove(port + i + 1, port + i, (n - i) * sizeof(*port));
	port[i] = v;
	return n + 1;
}

/* What stands behind the colon.  How many, or -1 with why. */
static int
ports_read(const char *s, unsigned int ret[ALLOW_PORTS],
    const char **ret_why)
{
	unsigned int	v;
	size_t		n = 0, written = 0;

	*ret_why = ports;
	for (;; s++) {
		if (*s < '1' || *s > '9')
			return -1;
		for (v = 0; *s >= '0' && *s <= '9' && v <= 65535; s++)
			v = v * 10 + (unsigned int)(*s - '0');
		if (v > 65535 || (*s != ',' && *s != '\0'))
			return -1;
		if (written++ == ALLOW_PORTS) {
			*ret_why = "expected at most 16 ports";
			return -1;
		}
		n = port_put(ret, n, v);
		if (*s == '\0')
			return (int)n;
	}
}

/* Appends them, unless they are those that no ports stand for. */
static void
ports_write(char ret[ALLOW_TEXT], const unsigned int *port, size_t n)
{
	size_t	i, len = strlen(ret);

	if (n == 2 && port[0] == 80 && port[1] == 443)
		return;
	for (i = 0; i < n; i++)
		len += (size_t)snprintf(ret + len, ALLOW_TEXT - len, "%c%u",
		    i == 0 ? ':' : ',', port[i]);
}

/* ---- entries ------------------------------------------------------------- */

/* What is no entry at first sight: the reason, or NULL. */
static const char *
refuse(const char *s)
{
	const char	*p;

	if (*s == '\0')
		return "expected HOST[:PORT[,PORT...]], where HOST may begin "
		    "with *.";
	if (strlen(s) >= ALLOW_TEXT)
		return "expected at most 383 bytes";
	for (p = s; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return "expected no blanks or control characters";
	if (strstr(s, "://") != NULL)
		return "expected the name of a host without a scheme, such "
		    "as https://, in front";
	if (strchr(s, '@') != NULL)
		return "expected the name of a host without a user in front "
		    "(@)";
	if (is_v6(s) || is_v4(s, strcspn(s, ":/")))
		return address;
	if (s[strcspn(s, "/\\?#")] != '\0')
		return "expected the name of a host without a path: a host "
		    "is allowed as a whole";
	return NULL;
}

/* *. in front, and no other star.  The reason, or NULL. */
static const char *
refuse_star(const char *s, size_t n, size_t wild)
{
	if (n == 1 && *s == '*')
		return "expected the name of a host, or *.SUFFIX: who is to "
		    "reach every host has the network egress";
	if (memchr(s + wild, '*', n - wild) != NULL)
		return star;
	return NULL;
}

int
allow_canon(const char *text, char ret[ALLOW_TEXT], const char **ret_why)
{
	unsigned int	 port[ALLOW_PORTS];
	char		 name[ALLOW_NAME];
	size_t		 n = strcspn(text, ":");
	size_t		 wild = strncmp(text, "*.", 2) == 0 ? 2 : 0;
	const char	*why = refuse(text);
	int		 nports = 0;

	if (why == NULL)
		why = refuse_star(text, n, wild);
	if (why != NULL) {
		*ret_why = why;
		return -1;
	}
	if (text[n] == ':' &&
	    (nports = ports_read(text + n + 1, port, ret_why)) == -1)
		return -1;
	if (name_canon(text + wild, n - wild, name, ret_why) == -1)
		return -1;
	if (wild != 0 && strchr(name, '.') == NULL) {
		*ret_why = "expected two labels at least behind *., as in "
		    "*.example.com";
		return -1;
	}
	if (wild + strlen(name) >= ALLOW_NAME) {
		*ret_why = too_long;
		return -1;
	}
	(void)snprintf(ret, ALLOW_TEXT, "%s%s", wild != 0 ? "*." : "", name);
	ports_write(ret, port, (size_t)nports);
	return 0;
}
