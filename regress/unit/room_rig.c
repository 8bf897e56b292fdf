/*
 * room_rig.c: see room_rig.h.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "room_rig.h"
#include "xmalloc.h"

char			 tmp[] = WB_TOP_BUILDDIR "/regress/roomXXXXXX";
int			 top = -1, tree = -1;
FILE			*tar;
struct room_limits	 most;
struct room_report	 rep;
uint64_t		 owner_uid, owner_gid;

/* ---- the directory ------------------------------------------------------- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)f;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

int
rig_remove(const char *path)
{
	return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int
rig_make(void)
{
	owner_uid = getuid();
	owner_gid = getgid();
	if (owner_uid > 65535 || owner_gid > 65535) {
		printf("skip: ids of this user are above 65535\n");
		return 77;
	}
	if (mkdtemp(tmp) == NULL) {
		perror(tmp);
		return 1;
	}
	return 0;
}

void
rig_sweep(void)
{
	(void)rig_remove(tmp);
}

void
setup(void)
{
	/* what a test left that failed */
	rig_sweep();
	ck_assert_int_eq(mkdir(tmp, 0755), 0);
	ck_assert_int_ne(top = open(tmp, O_RDONLY | O_DIRECTORY), -1);
	ck_assert_int_eq(mkdirat(top, "tree", 0755), 0);
	ck_assert_int_eq(mkdirat(top, "outside", 0755), 0);
	ck_assert_int_ne(tree = openat(top, "tree", O_RDONLY | O_DIRECTORY),
	    -1);
	close(openat(top, "outside/file", O_WRONLY | O_CREAT, 0600));
	ck_assert_ptr_nonnull(tar = tmpfile());
	most = (struct room_limits){ 8 * MIB, 1000, 0 };
	umask(022);
}

void
teardown(void)
{
	struct stat	st;

	ck_assert_int_eq(fstatat(top, "outside/file", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(st.st_nlink, 1);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(unlinkat(top, "outside/file", 0), 0);
	ck_assert_int_eq(unlinkat(top, "outside", AT_REMOVEDIR), 0);
	fclose(tar);
	close(tree);
	close(top);
	ck_assert_int_eq(rig_remove(tmp), 0);
}

/* ---- the archive --------------------------------------------------------- */

static void
octal(char *to, size_t width, uint64_t v)
{
	snprintf(to, width, "%0*" PRIo64, (int)width - 1, v);
}

/* ustar; a name of 100 bytes has no NUL. */
void
tar_head(const struct tar_head *h)
{
	char		b[512] = "";
	unsigned int	i, sum = 0;

	strncpy(b, h->name, 100);
	octal(b + 100, 8, h->mode);
	octal(b + 108, 8, h->uid);
	octal(b + 116, 8, h->gid);
	octal(b + 124, 12, h->size);
	octal(b + 136, 12, (uint64_t)h->mtime);
	b[156] = h->type;
	if (h->link != NULL)
		strncpy(b + 157, h->link, 100);
	memcpy(b + 257, "ustar\00000", 8);
	memset(b + 148, ' ', 8);
	for (i = 0; i < sizeof b; i++)
		sum += (unsigned char)b[i];
	snprintf(b + 148, 8, "%06o", sum);
	fwrite(b, sizeof b, 1, tar);
}

void
tar_data(const void *p, size_t len)
{
	static const char	zero[512];

	fwrite(p, 1, len, tar);
	fwrite(zero, 1, (512 - len % 512) % 512, tar);
}

void
tar_end(void)
{
	static const char	zero[1024];

	fwrite(zero, sizeof zero, 1, tar);
}

void
tar_pax(const char *key, const void *val, size_t len)
{
	char	*rec;
	size_t	 n = strlen(key) + len + 3, digits = 1, all;
	int	 head;

	for (all = n + digits; all >= (digits == 1 ? 10 : digits == 2 ? 100 :
	    digits == 3 ? 1000 : 10000); all = n + ++digits)
		;
	rec = xmalloc(all + 1);
	head = snprintf(rec, all + 1, "%zu %s=", all, key);
	/* what is left is for the value and a newline */
	ck_assert_uint_eq((size_t)head + len + 1, all);
	memcpy(rec + head, val, len);
	rec[all - 1] = '\n';
	tar_head(&(struct tar_head){ .type = 'x', .name = "pax", .mode = 0644,
	    .size = all });
	tar_data(rec, all);
	free(rec);
}

void
tar_pax_text(const char *key, const char *val)
{
	tar_pax(key, val, strlen(val));
}

void
tar_pax_records(const char *all)
{
	tar_head(&(struct tar_head){ .type = 'x', .name = "pax",
	    .size = strlen(all) });
	tar_data(all, strlen(all));
}

void
tar_entry(char type, const char *name, const char *link, uint64_t mode)
{
	tar_head(&(struct tar_head){ .type = type, .name = name, .link = link,
	    .mode = mode, .uid = owner_uid, .gid = owner_gid,
	    .mtime = 1000000000 });
}

void
tar_file(const char *name, const char *text)
{
	tar_head(&(struct tar_head){ .type = '0', .name = name, .mode = 0644,
	    .uid = owner_uid, .gid = owner_gid, .size = strlen(text) });
	tar_data(text, strlen(text));
}

void
tar_pack(const char *by)
{
	FILE	*to = tmpfile();
	int	 st;
	pid_t	 pid;

	fflush(tar);
	rewind(tar);
	ck_assert_int_ne(pid = fork(), -1);
	if (pid == 0) {
		(void)dup2(fileno(tar), 0);
		(void)dup2(fileno(to), 1);
		(void)execlp(by, by, "-c", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &st, 0), pid);
	ck_assert_msg(st == 0, "%s: %#x", by, (unsigned int)st);
	fclose(tar);
	tar = to;
	fseek(tar, 0, SEEK_END);
}

/* ---- what becomes of it -------------------------------------------------- */

int
fill(void)
{
	fflush(tar);
	rewind(tar);
	return room_fill(fileno(tar), tree, &most, &rep);
}

void
refused(const char *text)
{
	ck_assert_int_eq(fill(), -1);
	ck_assert_int_eq((int)rep.ok, 0);
	ck_assert_msg(strstr(rep.why, text) != NULL, "got: %s; expected: %s",
	    rep.why, text);
}

void
taken(void)
{
	ck_assert_msg(fill() == 0, "%s", rep.why);
	ck_assert_int_eq((int)rep.ok, 1);
	ck_assert_str_eq(rep.why, "");
}

struct stat
look(const char *name)
{
	struct stat	st;

	ck_assert_msg(fstatat(tree, name, &st, AT_SYMLINK_NOFOLLOW) == 0,
	    "%s: %s", name, strerror(errno));
	return st;
}

void
absent(const char *name)
{
	struct stat	st;

	ck_assert_int_eq(fstatat(tree, name, &st, AT_SYMLINK_NOFOLLOW), -1);
}
