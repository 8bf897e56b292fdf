/*
 * bundle: members in memory, and the archive that they become.
 */
#ifndef WORKBOX_BUNDLE_H
#define WORKBOX_BUNDLE_H

#include <stddef.h>

#include <jansson.h>

#define BUNDLE_MEMBERS	64
#define BUNDLE_BYTES	(256UL * 1024 * 1024)	/* of a member */

struct bundle {
	const char	*dir;			/* before each name */
	struct member {
		char	*name, *data;		/* owned */
		size_t	 len;
	}		 member[BUNDLE_MEMBERS];
	size_t		 n;
	json_t		*missing;		/* owned: name to why */
};

void	bundle_init(struct bundle *, const char *dir);
void	bundle_free(struct bundle *);
void	bundle_text(struct bundle *, const char *name, const char *);
/* Both take what they add. */
void	bundle_add(struct bundle *, const char *name, char *data, size_t len);
void	bundle_json(struct bundle *, const char *name, json_t *);
/* What should be a member and cannot. */
void	bundle_miss(struct bundle *, const char *name, const char *fmt, ...)
	    __attribute__((format(printf, 3, 4)));
/*
 * Adds manifest.json (head, taken, with `members': bytes and SHA-256 of each,
 * and `missing') and writes a tar to a new file, readable by its owner alone,
 * or to standard output ("-"); gzip 1: compressed.  0 or fail()'s code; no
 * part of a file stays.
 */
int	bundle_write(struct bundle *, json_t *head, const char *path,
	    int gzip);

/* ---- changes.c --------------------------------------------------------- */

/*
 * What a box has changed, one line of JSON for each file, read by a process
 * with no more rights than the box's own root has.  upper and lower (the image,
 * or -1: unknown): directories, borrowed.  The caller frees; NULL: errno.
 */
char	*changes_read(int upper, int lower, size_t *ret_len);

#endif
