/*
 * stored_hostile: what the files of stored_hostile_test share.
 */
#ifndef STORED_HOSTILE_H
#define STORED_HOSTILE_H

#include <check.h>
#include <lmdb.h>

#include "../proto/storedrig.h"
#include "xmalloc.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

extern struct rig	r;	/* of the test that runs */

/* The log is whole and has n records. */
void	whole(uint64_t n);
/* stored serves privd although apid is cut off. */
void	lives(void);
void	must_not_start(void);

/* ---- the database of a stored that is stopped -------------------- */

/* Opens the table for a change, which db_done commits. */
MDB_env	*db_edit(const char *table, unsigned int flags, MDB_txn **txn,
	    MDB_dbi *dbi);
void	db_done(MDB_env *, MDB_txn *);
/* A number at this offset of a value of `meta'. */
void	meta_patch(const char *key, size_t off, uint64_t);
/* Makes every deletion, or a key, `ms' older than it is. */
void	expiry_age(uint64_t ms);
void	key_age(const char *key, uint64_t ms);
/* How many rows a table has. */
size_t	rows_of(const char *table);

/* ---- cases ------------------------------------------------------- */

/* stored runs when a test of it begins, and is gone afterwards. */
TCase	*rig_case(const char *name);
TCase	*crash_case(void);
TCase	*start_case(void);
TCase	*database_case(void);
TCase	*full_case(void);

#endif
