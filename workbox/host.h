/*
 * host: the part of workbox that works on this host: serve, doctor, rootfs,
 * runtime.  Not built with --disable-server.
 */
#ifndef WORKBOX_HOST_H
#define WORKBOX_HOST_H

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
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
/* The same of a text, NULL: of nothing; name is for messages. */
int	config_load_text(const struct args *, const char *name,
	    const char *text, size_t len, struct conf *ret);
/*
 * Takes the words of C_NOW rows from fresh into c; tells of each word that is
 * another there, and whether it was taken.  Lists are then those of fresh.
 */
void	config_take(struct conf *c, struct conf *fresh,
	    void (*told)(const char *word, int now));
#define CONFIG_MAX	(1024UL * 1024)	/* bytes of a text */
/* "127.0.0.1:8790", "[::1]:8790".  0 or -1. */
int	config_listen(const char *, struct sockaddr_storage *ret);
int	config_cgroup(struct conf *, const char *);	/* --cgroup */
/* Sets a word of the path kind: 0, or fail()'s code. */
int	config_path(char *dst, size_t size, const char *opt, const char *val);

/* ---- support.c: doctor --bundle ---------------------------------------- */

/* Saves doctor's results (taken) and the rest.  0, or fail()'s code. */
int	support_write(const struct args *, const struct conf *,
	    json_t *results, const char *path);

/* ---- start.c: what is opened for privd --------------------------------- */

#define LISTEN_MAX	16
/* Open files that a server of this configuration may need at most. */
#define START_FILES(c)	(256 + 6 * (c)->max_boxes + 4 * (c)->egress_pool)
/*
 * Raises the limit of open files, soft and hard, where it is less: 0, or -1.
 * *ret_most is the hard one that there is then.
 */
int	start_files(rlim_t want, rlim_t *ret_most);

struct start {
	const char	*addr[LISTEN_MAX];	/* borrowed; config_listen() */
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

/* ---- serve.c, reader.c: the configuration ------------------------------- */

/* What the file and the options say, and the key: 0, or fail()'s code. */
int	serve_conf(const struct args *, struct conf *, struct start *);
/*
 * With all descriptors in place but PRIVD_FD_MAKER: starts who reads the file
 * again at SIGHUP, and puts the socket to it in its place.  0, or fail()'s
 * code.
 */
int	reader_start(const struct args *, const struct conf *);

/* ---- tree.c: directories that are built and then put in place ---------- */

/*
 * A new directory in dir under a name of its own (".build-XXXXXX"), locked
 * as long as the descriptor is open.  Its descriptor, or -1.
 */
int	tree_begin(int dirfd, char ret_name[24]);
/* Locks the directory, still of this name; its descriptor, or -1. */
int	tree_take(int dirfd, const char *name);
/* Removes builds that nobody holds: an interrupted one leaves nothing. */
void	tree_sweep(int dirfd);
/*
 * Calls fn for what is in a directory until it is not 0; that, or -1 with
 * errno.  fd is the directory's.
 */
#define TREE_DEPTH	256		/* of what is walked through */
int	tree_each(int dirfd, const char *name, int (*fn)(int fd,
	    const char *name, void *arg), void *arg);
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
/* Bytes of a disk that stay free: below it no sandbox is made. */
uint64_t state_floor(const struct conf *, const struct statvfs *);

/* ---- rootfs.c ---------------------------------------------------------- */

/*
 * STATE/rootfs, made where it is missing, root's alone from then on; what
 * interrupted builds and imports left in it is removed.  0, or fail()'s code.
 */
int	rootfs_take(int state, int *ret_fd);
/* The name of the default one in that directory, or "". */
void	rootfs_default(int dir, char ret[64]);

/* ---- tls.c ------------------------------------------------------------- */

struct cert;
struct finding;

/* Whether TCP is served in TLS. */
int	tls_wanted(const struct conf *);
/* Whether what goes over this address needs TLS, and there is none. */
int	tls_lacks(const struct conf *, const char *addr);
#define TLS_LACKS	"%s: expected a loopback address for plain HTTP"
#define TLS_CURE	"tls-certificate and tls-key, or, where the network " \
    "is to see the key of the API, plain-http-beyond-loopback = yes"
/*
 * The certificate and the key of the configuration, which wants TLS; 0, or
 * -1 and what is wrong.
 */
int	tls_take(const struct conf *, struct cert *ret, struct finding *);

/* ---- serve.c ----------------------------------------------------------- */

/* Takes what surrounds a key in a file off; its length. */
size_t	token_trim(char *, size_t len);
/* As serve takes it. */
int	token_ok(const char *, size_t len);
#define TOKEN_MIN	16
#define TOKEN_MAX	255

/* ---- runtime.c --------------------------------------------------------- */

/* 0: whole; -1: what is wrong stands in why. */
int	runtime_check(const struct conf *, char *why, size_t size);

/* ---- look.c: what checks read ------------------------------------------ */

/* Files below dir instead of this system's; 0 or -1. */
int	look_at(const char *dir);
const char *look_root(void);		/* that dir, or NULL */
/* Absolute paths; with a dir no link leads out of it.  -1: errno. */
int	look_open(const char *path, int flags);
/* The same of a regular file, to be read; what is not one is EINVAL. */
int	look_read(const char *path);
FILE	*look_file(const char *path);
/* A name in a directory, no link. */
int	look_read_in(int dirfd, const char *name);
/*
 * For reading, what an O_PATH descriptor (taken; -1 is one, too) refers to: a
 * regular file, as for look_read().
 */
int	look_regular(int fd);
/* What stands behind that dir in a path of this system; NULL: it is outside. */
const char *look_behind(const char *path);
/* The same of a path of the configuration, which doctor has seen inside. */
const char *look_path(const char *path);
/* A part of the state directory.  A descriptor or -1. */
int	look_state(const struct conf *, const char *part);
/* As much as there is room for, and a NUL; its length or -1. */
ssize_t	look_text(const char *path, char *buf, size_t size);
ssize_t	look_line(const char *path, char *buf, size_t size);	/* the first */
/* The number behind the word that a line begins with; 0 or -1. */
int	look_number(const char *path, const char *word, uint64_t *ret);
/* Whether a line of words, with blanks between, has this one. */
int	look_word(const char *list, const char *word);
/* Type of the file system at a path, by a table of mounts; 0 or -1. */
int	look_fstype(FILE *mounts, const char *path, char *ret, size_t size);

struct id_range {
	uint64_t	first, count;
};
int	look_overlap(const struct id_range *, const struct id_range *);
/* A line of subuid(5); 0, or -1 for one that gives nothing by number. */
int	look_subid(const char *line, char name[64], struct id_range *ret);

enum clock_is { CLOCK_GOOD, CLOCK_FREE, CLOCK_UNSET };
enum clock_is	look_clock(int64_t now, int synchronised);

/* ---- doctor.c, check_*.c, probe*.c: see checks.def --------------------- */

enum verdict { V_OK, V_WARN, V_FAIL, V_SKIP };

struct finding {
	enum verdict	 verdict;
	char		 detail[512];
	char		 cure[1024];	/* "" when there is none */
};

/* What of the command line the checks need; all borrowed. */
struct doctor {
	const char	*given;		/* args_host()'s, for cures */
	const char	*config;	/* file of the configuration */
	int		 named;		/* it was named: not below --root */
};
extern struct doctor	doctor;

/*
 * Fills a finding; formats are literal.  It passes text_show(): names of
 * another system's files end up on a terminal and in JSON.
 */
void	finding_set(struct finding *, enum verdict, const char *cure,
	    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Runs the checks without which no sandbox can be made or served (or only
 * one, by name), and tells each that failed as doctor does.  0, or fail()'s
 * code.
 */
int	doctor_serve(const struct args *, const struct conf *,
	    const char *only);

/*
 * Runs fn in a child with /dev/null as its input, for what would change the
 * caller.  fn's -1 fails with the step and errno that probe_step() was told
 * (0: the step says it all); its 1, that it could not try, warns so.
 */
int	probe_child(int (*fn)(const struct conf *), const struct conf *,
	    struct finding *, const char *cure);
/* The same for what only some need: a warning, or ok with that text. */
void	probe_some(int (*fn)(const struct conf *), const struct conf *,
	    struct finding *, const char *cure, const char *ok);
int	probe_step(const char *step);	/* in fn: remembers both; -1 */
/* In a child of fn: ends with its parent, also when that is killed. */
void	probe_mortal(pid_t parent);

/*
 * A user namespace made and mapped as a box's is; in fn.  A descriptor, or
 * -1 with probe_step() called.
 */
int	probe_userns(const struct conf *);

/*
 * A setting of this host that keeps user namespaces from being made: 1 with
 * what it is and what mends it, 0 when there is none.
 */
int	userns_cause(const struct conf *, char why[256], char cure[256]);

#define CHECK(name, flags, fn)						\
	void	fn(const struct conf *, struct finding *);
#include "checks.def"

#endif
