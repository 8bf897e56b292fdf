/*
 * http_parse: HTTP/1.1 requests (RFC 9112), incrementally, without
 * allocation, without copies, without second guesses: whoever stands before
 * or behind us must never see another message than we do, so what is odd is
 * an error, and after an error the connection is closed.
 *
 *	request line	METHOD SP origin-form SP HTTP/1.1 (or 1.0) CRLF, one
 *			SP each; no empty line before; GET HEAD POST PUT PATCH
 *			DELETE OPTIONS, else 501
 *	target		begins with `/'; RFC 3986 characters, whole
 *			%-escapes, no %00, no fragment, no `.' or `..' segment
 *			in any spelling
 *	fields		token ":" OWS value OWS CRLF; no obs-fold, no bare CR
 *			or LF, no control byte but HTAB
 *			(HTAB is white space, but not around the next three)
 *	Host		exactly one, in both versions: a name, an address or
 *			[IPv6], and perhaps a port
 *	body		Content-Length (digits, once) or Transfer-Encoding
 *			`chunked' (once, in any case; else 501), never both;
 *			no chunk extensions, no trailer fields, at most 8
 *			digits of chunk size
 *	repeated	refused where a list makes no sense
 *	HTTP/1.0	as 1.1, but no Transfer-Encoding, the connection is
 *			always closed, and Expect is ignored
 *	limits		below; 414 for the target, 431 for the rest
 */
#ifndef COMMON_HTTP_PARSE_H
#define COMMON_HTTP_PARSE_H

#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX	16384	/* bytes of a head, last CRLF included */
#define HTTP_TARGET_MAX	4096	/* bytes of a target */
#define HTTP_LINE_MAX	8000	/* bytes of a field line */
#define HTTP_FIELDS_MAX	64	/* field lines */

enum http_method {
	HTTP_M_GET, HTTP_M_HEAD, HTTP_M_POST, HTTP_M_PUT, HTTP_M_PATCH,
	HTTP_M_DELETE, HTTP_M_OPTIONS, HTTP_M_COUNT
};

enum http_body { HTTP_B_NONE, HTTP_B_LENGTH, HTTP_B_CHUNKED };

enum http_parsed {
	HTTP_P_MORE,	/* all was used, more is due */
	HTTP_P_DATA,	/* a run of body bytes */
	HTTP_P_DONE,	/* the head, or the body, is complete */
	HTTP_P_ERROR	/* answer `status' and close; every later call too */
};

/* Offsets from the first byte of the head; at most HTTP_HEAD_MAX. */
struct http_span { uint16_t off, len; };

struct http_field { struct http_span name, value; };

struct http_parse {
	/* the result; valid after HTTP_P_DONE of the head */
	enum http_method	 method;
	struct http_span	 target;	/* path and query */
	struct http_span	 path;
	struct http_span	 query;		/* without `?'; len 0: none */
	struct http_span	 host;
	unsigned int		 minor;		/* HTTP/1.minor */
	int			 close;		/* no request after this */
	int			 expect;	/* 100-continue is waited for */
	enum http_body		 body;
	uint64_t		 length;	/* HTTP_B_LENGTH */
	size_t			 head_len;
	unsigned int		 nfields;
	struct http_field	 field[HTTP_FIELDS_MAX];
	/* after HTTP_P_ERROR */
	int			 status;	/* 400, 414, 417, 431, 501, 505 */
	const char		*why;		/* static */
	/* private */
	unsigned int		 state;
	unsigned int		 digits;	/* of a chunk size */
	unsigned int		 seen;		/* fields that stand alone */
	size_t			 pos, line;
	uint64_t		 left;		/* of the body or chunk */
};

void	http_parse_init(struct http_parse *);

/*
 * The head.  buf holds every byte since the message began (it may have moved
 * since the call before; len never shrinks): MORE, DONE (the body begins at
 * head_len) or ERROR.  The result does not depend on how the bytes came.
 */
enum http_parsed http_parse_head(struct http_parse *, const char *buf,
	    size_t len);

/*
 * The body, after DONE of the head: bytes that were not yet used.  Tells in
 * ret_used how many of them are used now, and with DATA which are the body's
 * (borrowed: buf's): call again with the rest.  DONE: the message has ended,
 * the rest belongs to the next.
 */
enum http_parsed http_parse_body(struct http_parse *, const char *buf,
	    size_t len, size_t *ret_used, const char **ret_data,
	    size_t *ret_len);

/*
 * The value of the first field of that name (any case) and its length, or
 * NULL.  buf: the head.
 */
const char	*http_parse_field(const struct http_parse *, const char *buf,
		    const char *name, size_t *ret_len);
const char	*http_method_name(enum http_method);	/* "GET" */

#endif
