/*
 * sref.c: see sref.h.
 */
#include "sref.h"
#include "xmalloc.h"

int
sref_init(struct sref *f, const char *ref)
{
	size_t	n = strnlen(ref, 64);

	memset(f, 0, sizeof(*f));
	f->ref = ref;
	if (n >= SREF_PREFIX && n <= ULID_LEN &&
	    strspn(ref, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == n)
		f->prefix = n;
	return f->prefix != 0 || (n < 64 && wire_charset_ok(CS_NAME, ref,
	    n)) ? 0 : -1;
}

static void
newest(char to[ULID_LEN + 1], const char *id)
{
	if (strcmp(to, id) < 0)
		(void)str_copy(to, id, ULID_LEN + 1);	/* fits */
}

void
sref_see(struct sref *f, const char *id, const char *name, int ended)
{
	if (f->prefix != 0 && strncmp(id, f->ref, f->prefix) == 0) {
		if (f->begins[0] != '\0' && strcmp(f->begins, id) != 0)
			f->many = 1;
		newest(f->begins, id);
	}
	if (strcmp(name, f->ref) == 0)
		newest(ended ? f->ended : f->runs, id);
}

const char *
sref_id(const struct sref *f)
{
	if (f->many)
		return NULL;
	if (f->begins[0] != '\0')
		return f->begins;
	if (f->runs[0] != '\0')
		return f->runs;
	return f->ended[0] != '\0' ? f->ended : NULL;
}
