/*
 * sref: which of a box's sessions somebody means who wrote its id, the
 * beginning of its id, or its name.
 *
 * Ids are upper case and names lower, so a word is both only when it is all
 * digits; then the beginning of an id is looked for first, as with boxes.  A
 * name may have been used again and again: the newest session of that name
 * that runs is meant, else the newest that has ended.
 */
#ifndef COMMON_SREF_H
#define COMMON_SREF_H

#include "ulid.h"

#define SREF_PREFIX	12	/* characters of an id, at least */

struct sref {
	const char	*ref;		/* borrowed: the caller's */
	size_t		 prefix;	/* its length; 0: it cannot be one */
	int		 many;		/* it fits more than one */
	char		 begins[ULID_LEN + 1];	/* "": none; so below */
	char		 runs[ULID_LEN + 1];
	char		 ended[ULID_LEN + 1];
};

/* 0, or -1: ref is neither an id, nor the beginning of one, nor a name. */
int		 sref_init(struct sref *, const char *ref);
/* Shows it a session, in any order; one that is shown twice counts once. */
void		 sref_see(struct sref *, const char *id, const char *name,
		    int ended);
/* The id that is meant of those seen, or NULL; see also many. */
const char	*sref_id(const struct sref *);

#endif
