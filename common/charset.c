/*
 * charset.c: which bytes a string may hold.  See wire.h.
 */
#include <string.h>

#include "wire.h"

size_t
wire_utf8_len(const uint8_t *s, size_t left)
{
	uint32_t	c;
	size_t		i, n;

	if (left == 0)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	c = s[0] & (0xff >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) ||
	    c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

static int
text_ok(const uint8_t *s, size_t len)
{
	size_t	i, n;

	for (i = 0; i < len; i += n) {
		if (s[i] < 0x20 || s[i] == 0x7f)
			return 0;
		if ((n = wire_utf8_len(s + i, len - i)) == 0)
			return 0;
		if (n == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0)
			return 0;	/* C1 controls */
	}
	return 1;
}

int
wire_charset_ok(enum wire_charset cs, const void *p, size_t len)
{
	if (cs == CS_BYTES)
		return len == 0 || memchr(p, '\0', len) == NULL;
	return cs == CS_TEXT ? text_ok(p, len) : wire_ascii_ok(cs, p, len);
}
