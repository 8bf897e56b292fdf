/*
 * wire: structs to and from msgpack maps, by tables, within bounds.
 *
 * Encoding: a map with one entry per field, in the table's order; unsigned
 * integers, str, bin, arrays of str or bin.  Decoding takes any order of
 * keys; missing, duplicate and unknown keys, other types, floats, nesting
 * deeper than 4, values out of bounds, bad character sets and bytes left
 * over are EBADMSG.  Nothing is allocated from what a peer claims.
 * Encoding source: the msgpack specification.
 */
#ifndef COMMON_WIRE_H
#define COMMON_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define WB_U63		INT64_MAX
#define WIRE_MAX	65536		/* bytes of one packet */
#define WIRE_ITEMS	2048		/* list items in one body */

/* Character sets of strings; none may contain NUL. */
enum wire_charset {
	CS_BYTES,	/* any byte but NUL */
	CS_TEXT,	/* UTF-8 without control characters */
	CS_PRINT,	/* printable ASCII */
	CS_PATH,	/* printable ASCII without blanks, quotes, backslash */
	CS_NAME,	/* [a-z0-9][a-z0-9._-]* */
	CS_NAME0,	/* the same or empty */
	CS_ULID,	/* 26 of Crockford's base 32, upper case */
	CS_ULID0,	/* the same or empty */
};

enum wire_kind { WIRE_U64, WIRE_STR, WIRE_BIN, WIRE_STRS, WIRE_BINS };

struct wire_bin {
	const uint8_t	*data;		/* borrowed: packet or caller */
	size_t		 len;
};

struct wire_list {
	const struct wire_bin	*v;	/* borrowed: decoder or caller */
	size_t			 n;
};

struct wire_field {
	const char	*key;
	enum wire_kind	 kind;
	enum wire_charset cs;
	size_t		 off;		/* in the struct */
	uint64_t	 lo, hi;	/* value, or length in bytes */
	size_t		 count;		/* items of a list */
};

struct wire_desc {
	const char		*name;
	const struct wire_field	*field;
	size_t			 nfields;
	size_t			 size;	/* of the struct */
};

/*
 * Encodes body into buf of cap bytes.  Values are held against the table's
 * bounds.  Returns the length, or -1 with errno EINVAL (a value is out of
 * bounds; wire_error() names it) or EMSGSIZE.
 */
ssize_t	wire_encode(const struct wire_desc *, const void *body,
	    uint8_t *buf, size_t cap);

/*
 * Decodes exactly len bytes into ret_body, untouched on failure.  Pointers
 * in it lead into buf and into a table of this module that the next decode
 * of the process overwrites (wire_decode_into: into the caller's table).
 * Returns 0, or -1 with errno EBADMSG; wire_error() says what and where.
 * Not for threads: one decode at a time in a process, but for _into.
 */
int	wire_decode(const struct wire_desc *, const uint8_t *buf, size_t len,
	    void *ret_body);
int	wire_decode_into(const struct wire_desc *, const uint8_t *buf,
	    size_t len, struct wire_bin *items, size_t nitems,
	    void *ret_body);

/* What both are made of: with a msgpack_zone and d->size bytes at body. */
int	wire_decode_zone(void *zone, const struct wire_desc *,
	    const uint8_t *buf, size_t len, struct wire_bin *items,
	    size_t nitems, uint8_t *body, void *ret_body);

/*
 * The head of a packet: array of 4 with version, type and request number;
 * the body map follows.  Returns the head's length, or -1 with errno.
 */
ssize_t	wire_head_encode(const uint32_t head[3], uint8_t *buf, size_t cap);
ssize_t	wire_head_decode(const uint8_t *buf, size_t len, uint32_t ret[3]);

/* Why the last call of this thread failed; a static string of its own. */
const char	*wire_error(void);

/* Whether the len bytes at s belong to cs (length 0 only where allowed). */
int	wire_charset_ok(enum wire_charset cs, const void *s, size_t len);
/* The same for those of plain ASCII: neither CS_BYTES nor CS_TEXT. */
int	wire_ascii_ok(enum wire_charset cs, const void *s, size_t len);

/* Length of the UTF-8 sequence (RFC 3629) at s, or 0 where there is none. */
size_t	wire_utf8_len(const uint8_t *s, size_t left);

/* The name of the first field in which two bodies differ, or NULL. */
const char	*wire_differs(const struct wire_desc *, const void *,
		    const void *);

/* Convenience: a bin or list item from a C string. */
static inline struct wire_bin
wire_cstr(const char *s)
{
	return (struct wire_bin){ (const uint8_t *)s, strlen(s) };
}

/*
 * A NULL-terminated vector of C strings from a list: one allocation, freed
 * with free().  For lists of strings, which hold no NUL.  NULL: ENOMEM.
 */
char	**wire_list_argv(const struct wire_list *);

#endif
