/*
 * charset_ascii.c: the sets of bytes that are plain ASCII.  See wire.h.
 */
#include <string.h>

#include "wire.h"

static int
name_ok(const uint8_t *s, size_t len)
{
	size_t	i;

	for (i = 0; i < len; i++) {
		if ((s[i] >= 'a' && s[i] <= 'z') ||
		    (s[i] >= '0' && s[i] <= '9'))
			continue;
		if (i == 0 || (s[i] != '.' && s[i] != '_' && s[i] != '-'))
			return 0;
	}
	return 1;
}

static int
ulid_chars_ok(const uint8_t *s, size_t len)
{
	size_t	i;

	if (len != 26 || s[0] > '7')
		return 0;
	for (i = 0; i < len; i++)
		if (strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", s[i]) == NULL)
			return 0;
	return 1;
}

static int
print_ok(const uint8_t *s, size_t len, int path)
{
	size_t	i;

	for (i = 0; i < len; i++)
		if (s[i] < 0x20 || s[i] > 0x7e ||
		    (path && strchr(" \"'\\", s[i]) != NULL))
			return 0;
	return 1;
}

int
wire_ascii_ok(enum wire_charset cs, const void *p, size_t len)
{
	const uint8_t	*s = p;

	if (len > 0 && memchr(s, '\0', len) != NULL)
		return 0;
	switch (cs) {
	case CS_PRINT:
		return print_ok(s, len, 0);
	case CS_PATH:
		return print_ok(s, len, 1);
	case CS_NAME:
		return len > 0 && name_ok(s, len);
	case CS_NAME0:
		return name_ok(s, len);
	case CS_ULID:
		return ulid_chars_ok(s, len);
	case CS_ULID0:
		return len == 0 || ulid_chars_ok(s, len);
	case CS_BYTES:
	case CS_TEXT:
		break;
	}
	return 0;
}
