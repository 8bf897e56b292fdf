/*
 * room_rig: what the files of room_test share: a directory with a tree to be
 * filled and one file `outside' of it, and an archive that is written byte by
 * byte.  One of each at a time.
 */
#ifndef REGRESS_ROOM_RIG_H
#define REGRESS_ROOM_RIG_H

#include <sys/stat.h>

#include <stdint.h>
#include <stdio.h>

#include "../../workbox/room.h"

/* After room.h: it has a macro fail. */
#include <check.h>

#define MIB	(1024UL * 1024)

extern char			 tmp[];		/* above all of it */
extern int			 top, tree;	/* the test's, its tree */
extern FILE			*tar;		/* the archive, at its end */
extern struct room_limits	 most;
extern struct room_report	 rep;
extern uint64_t			 owner_uid, owner_gid;	/* of entries */

/*
 * The directory of all tests and the user's ids, which must be ones that
 * archives may have: 0; or, when that is told, an exit status.
 */
int	rig_make(void);
void	rig_sweep(void);		/* what failed tests left, too */
int	rig_remove(const char *path);	/* a tree; 0, or -1 with errno */

void	setup(void);
void	teardown(void);			/* sees that `outside' is as it was */

/* ---- the archive --------------------------------------------------------- */

struct tar_head {
	char		 type;
	const char	*name, *link;	/* link: or NULL */
	uint64_t	 mode, uid, gid, size;
	int64_t		 mtime;
};

/* The 512 bytes of a header; the caller adds what follows. */
void	tar_head(const struct tar_head *);
void	tar_data(const void *, size_t len);	/* and up to a whole block */
void	tar_end(void);
/* Extended headers, about the entry that comes next. */
void	tar_pax(const char *key, const void *val, size_t len);
void	tar_pax_text(const char *key, const char *val);
void	tar_pax_records(const char *all);
/* Entries of the user; all but the last have no data. */
void	tar_entry(char type, const char *name, const char *link,
	    uint64_t mode);
void	tar_file(const char *name, const char *text);
/* Replaces all of it by what this program makes of it. */
void	tar_pack(const char *by);

/* ---- what becomes of it -------------------------------------------------- */

int	fill(void);
/* It is refused, and why has the text in it. */
void	refused(const char *text);
void	taken(void);
/* A name in the tree, links not followed. */
struct stat look(const char *name);
void	absent(const char *name);

/* One for each file. */
TCase	*escape_case(void);
TCase	*bounds_case(void);
TCase	*ends_case(void);
TCase	*packed_case(void);

#endif
