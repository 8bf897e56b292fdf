/*
 * privd_test: what the files of the test share.
 */
#ifndef PRIVD_TEST_H
#define PRIVD_TEST_H

#include <check.h>
#include <string.h>

#include "privd_rig.h"
#include "xmalloc.h"

#define ID1	"01K8AAAAAAAAAAAAAAAAAAAAA1"
#define ID2	"01K8AAAAAAAAAAAAAAAAAAAAA2"
#define ID3	"01K8AAAAAAAAAAAAAAAAAAAAA3"

/* Bodies that are an id alone. */
#define BODY(var, s, ident)						\
	struct msg_##s	var;						\
	memset(&var, 0, sizeof(var));					\
	(void)str_copy(var.id, ident, sizeof(var.id))

extern struct rig	r;	/* of the test that runs */

void	setup(void);
void	teardown(void);
unsigned int error_of(const struct msg *);
/* BOX_LIST: how many there are, at most 4. */
unsigned int listed(char ids[4][27], int alive[4]);
/* After SIGTERM: what stored and netd have to see once apid has ended. */
void	stopped(void);
/* What nobody asks for again goes away by itself. */
void	all_gone(void);
void	kill_box(const char *id);
/* With netd's part, when it knows the box. */
void	purge_box(const char *id, int net);

/* One for each file. */
TCase	*box_case(void);
TCase	*quarantine_case(void);
TCase	*hostile_case(void);
TCase	*killed_case(void);

#endif
