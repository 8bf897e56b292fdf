/*
 * runner_case: what the cases of runner_test share.  One box at a time.
 */
#ifndef RUNNER_CASE_H
#define RUNNER_CASE_H

#include <check.h>
#include <poll.h>

#include "boxfd.h"
#include "runner_box.h"
#include "ulid.h"
#include "xmalloc.h"

#define MIB	(1024UL * 1024)

extern struct box	b;

void	setup(void);			/* started, nobody attached */
void	setup_attached(void);
void	setup_small(void);		/* 2 MiB of rings */
void	teardown(void);

void	ping(void);
/* Output of a shell command that must exit 0; to be freed. */
char	*sh(const char *script);
void	expect_sh(const char *script, const char *expected);
/* RUN, READ, WAIT in one go: this code, then not-found twice. */
void	run_error(const char *const *argv, const char *cwd,
	    unsigned int code);
unsigned int signal_session(const char *id, int sig);	/* code, or 0 */
int	row_of(const char *id, struct row_rsession *ret);	/* 0: none */
unsigned int rows(void);
int	cgroup_there(const char *id);
int	dial_wb(void);			/* to runner.sock, as root */
void	expect_closed(int fd);

/* Polls a condition of the kernel's that has no descriptor to wait for. */
#define EVENTUALLY(cond) do {						\
	uint64_t	ev_end = mono_ms() + 10000;			\
	while (!(cond)) {						\
		ck_assert_msg(mono_ms() < ev_end, "never: %s", #cond);	\
		(void)poll(NULL, 0, 5);					\
	}								\
} while (0)

TCase	*case_hello(void);
TCase	*case_session(void);
TCase	*case_flow(void);
TCase	*case_small(void);
TCase	*case_end(void);
TCase	*case_wb(void);
TCase	*case_storm(void);

#endif
