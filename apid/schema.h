/*
 * schema: the objects of the API (schemas.json), and values held against
 * them.  The part of JSON Schema 2020-12 that schemas.json uses, and only
 * that: what the served document says is what is checked.
 */
#ifndef APID_SCHEMA_H
#define APID_SCHEMA_H

#include <jansson.h>

/* Long enough for what a person reads; both are UTF-8. */
struct schema_fault {
	char	field[192];	/* "limits.pids", "argv[3]", "" for all */
	char	why[320];	/* "Expected: 128 or more." */
};

/*
 * Parses and compiles once; fatal when schemas.json is not what this file
 * knows, which a test sees.
 */
void		 schema_init(void);
/* components.schemas of the document; borrowed. */
const json_t	*schema_all(void);
/* By name; fatal when there is none. */
const json_t	*schema_find(const char *name);
/*
 * What this server allows of a number, where it is less than the schema does
 * (reference taken).  It is served and named to who was out of the bounds;
 * what lies between is not refused here.
 */
void		 schema_ceiling(const char *name, const char *member,
		    json_t *max);
/* 0, or -1 with *ret_fault filled.  Neither allocates nor logs. */
int		 schema_check(const json_t *schema, const json_t *value,
		    struct schema_fault *ret_fault);

#endif
