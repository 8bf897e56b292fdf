/*
 * allow: what a box of `allowlist' may reach: hosts by name, with ports.
 *
 * An entry is HOST[:PORT[,PORT...]], or *.SUFFIX with the same behind.  HOST
 * and SUFFIX are names of RFC 1123 (`_' passes as well, which is in use),
 * SUFFIX of two labels at least; *.SUFFIX stands for every name below SUFFIX,
 * at any depth, not for SUFFIX itself.  Without ports it is for 443 and 80.
 *
 * The canonical form of an entry has its name in lower case, without a dot at
 * the end, in A-labels (RFC 5891), and its ports in order, each once, none
 * where they are 80 and 443.  Equal entries have equal canonical forms.
 */
#ifndef COMMON_ALLOW_H
#define COMMON_ALLOW_H

#include <stddef.h>
#include <stdint.h>

#define ALLOW_MAX	10000		/* entries of a list */
#define ALLOW_PORTS	16		/* ports of an entry */
#define ALLOW_NAME	254		/* bytes of a name, with its NUL */
#define ALLOW_TEXT	384		/* bytes of an entry, with its NUL */

/* ---- allow_canon.c: from what people write ---------------------------- */

/*
 * The canonical form.  text: UTF-8.  0, or -1: *ret_why (static) says what
 * was expected instead, as the end of a sentence "ENTRY: ...".
 */
int		 allow_canon(const char *text, char ret[ALLOW_TEXT],
		    const char **ret_why);

/* ---- allow.c: lists, and names that are held against them -------------- */

/* A list that is compiled.  7 bytes an entry beside its name, 2 a port. */
struct allow;

enum allow_is {
	ALLOW_NOT,			/* no entry has the name */
	ALLOW_OTHER,			/* one has, but not the port */
	ALLOW_YES
};

struct allow	*allow_new(void);
/*
 * Adds an entry in canonical form, before allow_done().  0, or -1: EINVAL: it
 * is not canonical; E2BIG: they would be more than ALLOW_MAX.
 */
int		 allow_add(struct allow *, const char *canonical);
/*
 * All have come: sorts, and makes one of those with the same name, with the
 * ports of all.  Until then nothing is found.
 */
void		 allow_done(struct allow *);
void		 allow_free(struct allow *);		/* NULL too */
/* How many were added; after allow_done(), how many names that are. */
size_t		 allow_count(const struct allow *);
/* Of a name as allow_name() gives it; port 0: whatever port. */
enum allow_is	 allow_find(const struct allow *, const char *name,
		    unsigned int port);
/*
 * A name as programs ask for it, of n bytes: in lower case, without the dot
 * at its end.  0, or -1: it is no name of RFC 1123 (`_' passes as well), or
 * too long, or its last label is a number, as of an address of IPv4 in any
 * spelling that inet_aton(3) takes.
 */
int		 allow_name(const char *text, size_t n, char ret[ALLOW_NAME]);

#endif
