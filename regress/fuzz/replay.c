/*
 * replay: main() of a harness that is no fuzzer: every input of its corpus.
 *
 *	X_fuzz [FILE ...]	a file is one input, as a fuzzer leaves it
 *
 * Without files: regress/fuzz/corpus/X.  An empty or broken corpus fails.
 */
#include "fuzz.h"

#ifndef WB_LIBFUZZER

#include <err.h>

#include "corpus.h"

#ifndef WB_TOP_SRCDIR
#define WB_TOP_SRCDIR	"."
#endif

extern char	*program_invocation_short_name;

static int
replay_corpus(const char *name)
{
	FILE		*f;
	uint8_t		*p;
	size_t		 n;
	unsigned int	 count = 0;
	int		 r;

	if ((f = fopen(name, "re")) == NULL)
		err(1, "%s", name);
	for (; (r = corpus_next(f, &p, &n)) == 1; count++) {
		(void)LLVMFuzzerTestOneInput(p, n);	/* always 0 */
		free(p);
	}
	(void)fclose(f);		/* was only read */
	if (r == -1 || count == 0)
		errx(1, "%s: input %u: not a corpus", name, count);
	printf("%s: %u inputs\n", name, count);
	return 0;
}

static void
replay_file(const char *name)
{
	FILE	*f;
	uint8_t	*all, *p;
	size_t	 n;

	if ((f = fopen(name, "re")) == NULL ||
	    (all = malloc(CORPUS_INPUT)) == NULL)
		err(1, "%s", name);
	n = fread(all, 1, CORPUS_INPUT, f);
	if (ferror(f) || (p = malloc(n > 0 ? n : 1)) == NULL)
		err(1, "%s", name);
	(void)fclose(f);
	memcpy(p, all, n);
	free(all);
	(void)LLVMFuzzerTestOneInput(p, n);
	free(p);
}

int
main(int argc, char *argv[])
{
	const char	*self = program_invocation_short_name;
	const char	*end = strstr(self, "_fuzz");
	char		 name[512];
	int		 i;

	for (i = 1; i < argc; i++)
		replay_file(argv[i]);
	if (argc > 1)
		return 0;
	if (end == NULL)
		errx(1, "%s: not the name of a harness", self);
	(void)snprintf(name, sizeof(name), WB_TOP_SRCDIR
	    "/regress/fuzz/corpus/%.*s", (int)(end - self), self);
	return replay_corpus(name);
}

#endif
