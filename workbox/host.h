/*
 * host: the part of workbox that works on this host: serve, doctor, rootfs,
 * runtime.  Not built with --disable-server.
 */
#ifndef WORKBOX_HOST_H
#define WORKBOX_HOST_H

#include <sys/socket.h>
#include <sys/types.h>

#include "conf.h"
#include "workbox.h"

#ifndef WB_LIBEXECDIR
#define WB_LIBEXECDIR	"/usr/local/libexec/workbox"
#endif

/* ---- config.c ---------------------------------------------------------- */

#define CONFIG_WHY	512

/*
 * Parses the len bytes at text (NUL behind them) over the defaults.  name is
 * for messages.  0, or -1 with why: "NAME:LINE: word: expected ...".  Lists
 * in *ret live as long as the process.
 */
int	config_parse(const char *name, const char *text, size_t len,
	    struct conf *ret, char why[CONFIG_WHY]);
/* What a file's words cannot say alone; 0, or -1 with why. */
int	config_check(const struct conf *, char why[CONFIG_WHY]);
/*
 * The configuration of --config, or the default file's when it is there,
 * with --state over it, checked.  0, or fail()'s code.
 */
int	config_load(const struct args *, struct conf *ret);
/* "127.0.0.1:8790", "[::1]:8790".  0 or -1. */
int	config_listen(const char *, struct sockaddr_storage *ret);
int	config_cgroup(struct conf *, const char *);	/* --cgroup */
/* Sets a word of the path kind: 0, or fail()'s code. */
int	config_path(char *dst, size_t size, const char *opt, const char *val);

/* ---- start.c: what is opened for privd --------------------------------- */

#define LISTEN_MAX	16
/* Open files that a server of this configuration may need at most. */
#define START_FILES(c)	(256 + 6 * (c)->max_boxes)

struct start {
	const char	*addr[LISTEN_MAX];	/* borrowed; config_listen()'s */
	size_t		 naddr;
	gid_t		 gid_socket;		/* group of the unix socket */
	int		 token_fd;		/* owned; sealed memfd */
	int		 ready_fd;		/* owned; -1: nobody waits */
};

/*
 * Takes the state directory, opens the listening sockets and puts every
 * descriptor in its place as enum privd_fd says, with what privd must know
 * of them.  From here on 0 and 1 are /dev/null, and nothing
 * but an exec or an exit may follow.  0, or fail()'s code.
 */
int	start(const struct conf *, struct start *);

/* ---- tree.c: directories that are built and then put in place ---------- */

/*
 * A new directory in dir under a name of its own (".build-XXXXXX"), locked
 * as long as the descriptor is open.  Its descriptor, or -1.
 */
int	tree_begin(int dirfd, char ret_name[24]);
/* Removes builds that nobody holds: an interrupted one leaves nothing. */
void	tree_sweep(int dirfd);
/* Removes name and all in it, never following a link.  0 or -1. */
int	tree_remove(int dirfd, const char *name);
/* Makes a directory, a file, a link; modes are exact.  0 or -1. */
int	tree_dir(int dirfd, const char *name, mode_t);
int	tree_file(int dirfd, const char *name, mode_t, const void *, size_t);
int	tree_link(int dirfd, const char *name, const char *target);
/* Copies a regular file; 0 or -1. */
int	tree_copy(int from, int dirfd, const char *name, mode_t);
/* Renames over what is there, a full directory too.  0 or -1. */
int	tree_place(int dirfd, const char *tmp, const char *name);
/* 1: a static ELF program; 0: another file; -1: errno. */
int	tree_static(int fd);
/* Whether only root can write the directory: 1, 0, or -1 with errno. */
int	state_safe(int fd);
/*
 * The state directory, made where it is missing; one that others can write
 * is refused.  0, or fail()'s code.
 */
int	state_take(const char *dir, int *ret_fd);
/* A part of the state directory.  A descriptor or -1. */
int	state_dir(const struct conf *, const char *part);

/* ---- runtime.c --------------------------------------------------------- */

/* 0: whole; -1: what is wrong stands in why. */
int	runtime_check(const struct conf *, char *why, size_t size);

/* ---- doctor.c, probe*.c ------------------------------------------------ */

enum verdict { V_OK, V_WARN, V_FAIL };

struct finding {
	enum verdict	 verdict;
	char		 detail[256];
	char		 cure[1024];	/* "" when there is none */
};

/* Fills a finding; formats are literal. */
void	finding_set(struct finding *, enum verdict, const char *cure,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Runs fn in a child with /dev/null as its input, for what would change the
 * caller.  fn's -1 fails with the step and errno that probe_step() was told.
 */
int	probe_child(int (*fn)(const struct conf *), const struct conf *,
	    struct finding *, const char *cure);
int	probe_step(const char *step);	/* in fn: remembers both; -1 */

/*
 * A user namespace made and mapped as a box's is; in fn.  A descriptor, or
 * -1 with probe_step() called.
 */
int	probe_userns(const struct conf *);

void	probe_namespaces(const struct conf *, struct finding *);
void	probe_nested(const struct conf *, struct finding *);
void	probe_overlay(const struct conf *, struct finding *);
void	probe_cgroup(const struct conf *, struct finding *);
void	probe_nftables(const struct conf *, struct finding *);
void	probe_seccomp(const struct conf *, struct finding *);
void	probe_landlock(const struct conf *, struct finding *);
void	probe_peerpidfd(const struct conf *, struct finding *);
void	probe_release_agent(const struct conf *, struct finding *);

#endif
