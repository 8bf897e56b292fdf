/*
 * mech_box: boxes for mech_test, with mech_probe in the runner's place.  A
 * private state directory, a private cgroup name.
 */
#ifndef MECH_BOX_H
#define MECH_BOX_H

#include <check.h>
#include <stdint.h>
#include <string.h>

#include "box.h"
#include "ulid.h"

extern char		 state[64], cgname[32];
extern struct server_conf conf;
extern uid_t		 netns_owner;

/* One box of a test. */
struct tbox {
	char		 id[ULID_LEN + 1];
	struct box_ask	 ask;
	struct box_run	 run;
	uint8_t		 token[BOX_TOKEN];
	int		 netns, conn;
	char		 why[512];
};

/* Runs it; the program ends when that fails. */
void	sh(const char *, ...) __attribute__((format(printf, 1, 2)));
/* Until fd is ready; the test's own timeout is the only clock. */
void	wait_fd(int fd, short events);
void	reap(int pidfd);
/* In a user namespace that netns_owner made, as netd does it. */
int	netns_new(void);
/* First uid of a range of the pool. */
uint32_t slot_uid(unsigned int slot);
int	launch(const struct box_ask *, struct tbox *, struct box_run *);
/* 0, or -1 with b->why. */
int	box_start(struct tbox *, unsigned int slot);
void	box_up(struct tbox *, unsigned int slot);
/* The probe's answer; lives until the next. */
const char *ask(struct tbox *, const char *, ...)
	    __attribute__((format(printf, 2, 3)));
/* errno of a system call made in the box; -1: it worked; -2: killed. */
int	call(struct tbox *, long nr, unsigned long, unsigned long, unsigned long,
	    unsigned long);
void	box_down(struct tbox *);
void	runtime_install(void);
/* State directory, rootfs, configuration; once. */
void	world(void);
void	world_end(void);
void	init(void);		/* before each test */
/* From cgroup_events(): 1 processes live, 0 none. */
int	populated(int events);

/* A shell command in the box succeeds, or fails, and says so. */
#define box_sh_ok(b, ...) do {						\
	const char *r_ = ask(b, "sh " __VA_ARGS__);			\
	ck_assert_msg(strncmp(r_, "0\n", 2) == 0, "%s", r_);		\
} while (0)
#define box_sh_fails(b, ...) do {					\
	const char *r_ = ask(b, "sh " __VA_ARGS__);			\
	ck_assert_msg(strncmp(r_, "0\n", 2) != 0, "%s", r_);		\
} while (0)

TCase	*calls_case(void);	/* mech_calls.c */

#endif
