/*
 * filter: the two system-call filters of every box.  filter.def says what is
 * in them; mkfilter made programs of it when this was built.
 *
 * Why this is safe when the asker is hostile: nothing a peer says reaches
 * this file.
 */

#include "box.h"
#include "box_calls.h"
#include "confine_load.h"

int
filter_load(void)
{
	if (confine_load(box_args, sizeof(box_args) / sizeof(box_args[0])) ==
	    -1)
		return -1;
	return confine_load(box_lists, sizeof(box_lists) /
	    sizeof(box_lists[0]));
}

const char *
filter_hash(void)
{
	return box_sha256;
}
