/*
 * room_escape.c: room_test, ways out of the tree and onto what is there.
 */
#include <stdio.h>

#include "room_rig.h"

/* ---- archives that are refused ------------------------------------------- */

struct entry {
	char		 type;
	const char	*name, *link;
	uint64_t	 mode;
	const char	*text;		/* of a file */
};

#define DIRECTORY(name, mode)	{ '5', name, NULL, mode, NULL }
#define TEXT(name, text)	{ '0', name, NULL, 0644, text }
#define LINK(name, to)		{ '2', name, to, 0777, NULL }
#define HARD(name, to, mode)	{ '1', name, to, mode, NULL }

/* Each is a test of this name. */
static const struct {
	const char	*test, *why;
	struct entry	 entries[3];	/* up to one without a type */
} escapes[] = {
	{ "absolute", "\"/etc/x\" has an absolute name", {
	    TEXT("/etc/x", "") } },
	{ "dots", "has `..' in its name", {
	    TEXT("a/../../outside/file", "evil") } },
	{ "through_link",
	    "\"l/file\" leads through something that is not a directory", {
	    LINK("l", "../outside"),
	    TEXT("l/file", "evil") } },
	/* also where the link leads nowhere bad */
	{ "through_link_within", "leads through something", {
	    DIRECTORY("d/deep", 0755),
	    LINK("l", "d"),
	    TEXT("l/deep/f", "x") } },
	{ "through_chain", "leads through something", {
	    LINK("a", "."),
	    LINK("a/b", ".."),
	    TEXT("b/outside/file", "x") } },
	{ "onto_link", "\"l\" is in the archive twice", {
	    LINK("l", "../outside/file"),
	    TEXT("l", "evil") } },
	{ "directory_onto_link", "\"l\" is in the archive twice", {
	    LINK("l", "../outside"),
	    DIRECTORY("l", 0777),
	    TEXT("l/file", "evil") } },
	{ "link_onto_directory", "\"d\" is in the archive twice", {
	    DIRECTORY("d", 0755),
	    LINK("d", "../outside"),
	    TEXT("d/file", "evil") } },
	{ "file_onto_directory", "\"d\" is in the archive twice", {
	    DIRECTORY("d", 0755),
	    TEXT("d/x", ""),
	    TEXT("d", "") } },
	{ "directory_onto_file", "\"d\" is in the archive twice", {
	    TEXT("d", ""),
	    DIRECTORY("d", 0755) } },
	{ "below_file", "leads through something", {
	    TEXT("d", ""),
	    TEXT("d/x", "") } },
	{ "file_twice", "is in the archive twice", {
	    TEXT("d/x", "1"),
	    TEXT("./d//x", "2") } },
	{ "root_is_file", "is the root, and not a directory", {
	    TEXT("./", ""),
	    LINK(".", "/") } },
	{ "hard_outside", "is a hard link to what has `..' in its name", {
	    HARD("h", "../outside/file", 0777) } },
	{ "hard_absolute", "is a hard link to what has an absolute name", {
	    HARD("h", "/etc/passwd", 0777) } },
	{ "hard_through_link", "is a hard link to what is not there", {
	    LINK("l", "../outside"),
	    HARD("h", "l/file", 0777) } },
	{ "hard_to_link_written", "\"h\" is in the archive twice", {
	    LINK("l", "../outside/file"),
	    HARD("h", "l", 0666),
	    TEXT("h", "evil") } },
	{ "hard_missing", "is a hard link to what is not there, or not yet", {
	    HARD("h", "later", 0644),
	    TEXT("later", "") } },
	{ "hard_directory", "is a hard link to a directory", {
	    DIRECTORY("d", 0755),
	    HARD("h", "d", 0644) } },
	{ "hard_root", "is a hard link to", {
	    HARD("h", ".", 0644) } },
	{ "mount_point_link", "expected directories", {
	    DIRECTORY("opt", 0755),
	    LINK("opt/workbox", "/etc") } },
	{ "mount_point_parent", "expected directories", {
	    LINK("proc", "/") } },
};
#define NESCAPES	(sizeof escapes / sizeof escapes[0])
#define NENTRIES	(sizeof escapes[0].entries / \
	sizeof escapes[0].entries[0])

START_TEST(escape)
{
	const struct entry	*e = escapes[_i].entries, *end = e + NENTRIES;

	for (; e < end && e->type != 0; e++)
		if (e->text != NULL)
			tar_file(e->name, e->text);
		else
			tar_entry(e->type, e->name, e->link, e->mode);
	tar_end();
	refused(escapes[_i].why);
}
END_TEST

/* ---- with names of this host, and what is no way out --------------------- */

START_TEST(absolute_by_pax)
{
	char	path[300];

	snprintf(path, sizeof path, "%s/outside/file", tmp);
	tar_pax_text("path", path);
	tar_file("fine", "evil");
	tar_end();
	refused("has an absolute name");
}
END_TEST

START_TEST(through_absolute_link)
{
	char	path[300];

	snprintf(path, sizeof path, "%s/outside", tmp);
	tar_pax_text("linkpath", path);
	tar_entry('2', "l", "x", 0777);
	tar_file("l/new", "evil");
	tar_end();
	refused("leads through something");
}
END_TEST

/* a link to a link is one, and writes nowhere */
START_TEST(hard_to_link)
{
	tar_entry('2', "l", "../outside/file", 0777);
	tar_entry('1', "h", "l", 0666);
	tar_end();
	taken();
	ck_assert_int_eq(look("h").st_ino, look("l").st_ino);
}
END_TEST

TCase *
escape_case(void)
{
	static TTest	 named[NESCAPES];
	TCase		*t = tcase_create("escape");
	int		 i;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	for (i = 0; i < (int)NESCAPES; i++) {
		named[i] = *escape;
		named[i].name = escapes[i].test;
		tcase_add_loop_test(t, &named[i], i, i + 1);
	}
	tcase_add_test(t, absolute_by_pax);
	tcase_add_test(t, through_absolute_link);
	tcase_add_test(t, hard_to_link);
	return t;
}
