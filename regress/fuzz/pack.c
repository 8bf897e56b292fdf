/*
 * pack: a corpus to a directory of inputs, as libFuzzer wants it, and back.
 *
 *	fuzz_pack pack DIR FILE		in the order of their names
 *	fuzz_pack unpack DIR FILE	names are numbers
 */
#include <dirent.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"

static void
put_file(FILE *to, const char *dir, const char *name)
{
	static uint8_t	buf[CORPUS_INPUT];
	char		path[4096];
	FILE		*f;
	size_t		n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((f = fopen(path, "re")) == NULL)
		err(1, "%s", path);
	n = fread(buf, 1, sizeof(buf), f);
	if (ferror(f) || getc(f) != EOF)
		errx(1, "%s: larger than %zu bytes", path, sizeof(buf));
	(void)fclose(f);		/* was only read */
	if (corpus_put(to, buf, n) == -1)
		err(1, "write");
}

static int
no_dot(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void
pack(const char *dir, const char *file)
{
	struct dirent	**names;
	FILE		*to;
	int		 i, n;

	if ((n = scandir(dir, &names, no_dot, alphasort)) == -1)
		err(1, "%s", dir);
	if ((to = fopen(file, "we")) == NULL)
		err(1, "%s", file);
	for (i = 0; i < n; i++) {
		put_file(to, dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	if (fclose(to) == EOF)
		err(1, "%s", file);
}

static void
unpack(const char *dir, const char *file)
{
	char		 path[4096];
	FILE		*from, *to;
	uint8_t		*p;
	size_t		 n;
	unsigned int	 i;
	int		 r;

	if ((from = fopen(file, "re")) == NULL)
		err(1, "%s", file);
	for (i = 0; (r = corpus_next(from, &p, &n)) == 1; i++) {
		(void)snprintf(path, sizeof(path), "%s/%05u", dir, i);
		if ((to = fopen(path, "we")) == NULL ||
		    fwrite(p, 1, n, to) != n || fclose(to) == EOF)
			err(1, "%s", path);
		free(p);
	}
	if (r == -1)
		errx(1, "%s: input %u: not a corpus", file, i);
	(void)fclose(from);
}

int
main(int argc, char *argv[])
{
	if (argc == 4 && strcmp(argv[1], "pack") == 0)
		pack(argv[2], argv[3]);
	else if (argc == 4 && strcmp(argv[1], "unpack") == 0)
		unpack(argv[2], argv[3]);
	else
		errx(2, "usage: fuzz_pack pack|unpack DIR FILE");
	return 0;
}
