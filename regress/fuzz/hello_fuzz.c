/*
 * hello_fuzz: any bytes as the first of TLS.  Cut anywhere they say the same,
 * or that more is needed; and a server that takes them sees no other name.
 */
#include "../../proxyd/proxyd.h"
#include "fuzz.h"
#include "tls_judge.h"

/* From memory that ends where the bytes do. */
static enum hello
part_of(const uint8_t *data, size_t n, char name[ALLOW_NAME])
{
	uint8_t		*own = malloc(n > 0 ? n : 1);
	enum hello	 r;

	must(own != NULL);
	memcpy(own, data, n);
	memset(name, 'x', ALLOW_NAME);
	r = hello_read(own, n, name);
	must((r == HELLO_NAMED) == (memchr(name, '\0', ALLOW_NAME) != NULL));
	free(own);
	return r;
}

static void
judged(const uint8_t *data, size_t size, enum hello r, const char *name)
{
	char	its[256], canonical[ALLOW_NAME];

	if (tls_judge(data, size, its) != 1)
		return;
	must(r == HELLO_NAMED);
	must(allow_name(its, strlen(its), canonical) == 0);
	must(strcmp(canonical, name) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char		name[ALLOW_NAME], cut[ALLOW_NAME];
	enum hello	r = part_of(data, size, name), c;
	uint32_t	cuts = dice_seed(data, size);
	size_t		n;

	for (n = 0; n < size; n += size <= 512 ? 1 : 1 + dice(&cuts) % 64) {
		c = part_of(data, n, cut);
		if (c == HELLO_MORE)
			continue;
		must(c == r);
		must(c != HELLO_NAMED || strcmp(name, cut) == 0);
	}
	must(size < HELLO_MAX || r != HELLO_MORE);
	if (r != HELLO_BAD)		/* which passes nothing */
		judged(data, size, r, name);
	return 0;
}
