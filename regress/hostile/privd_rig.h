/*
 * privd_rig: the real privd in a directory and a cgroup of its own, with the
 * test in the place of all four daemons (privd_fake gives it their channels).
 */
#ifndef REGRESS_PRIVD_RIG_H
#define REGRESS_PRIVD_RIG_H

#include <sys/types.h>

#include "chan.h"
#include "conf.h"

enum { R_NETD, R_STORED, R_APID, R_UPLINKD, R_PROXYD, R_N };

struct rig_daemon {
	pid_t		 pid;
	int		 sock;		/* to the fake */
	struct chan	 chan;		/* its end of the channel to privd */
	int		 other[4];	/* its other descriptors */
	int		 nother;
};

struct rig {
	char		 dir[64];	/* STATE */
	char		 cgroup[32];
	struct conf	 conf;
	pid_t		 pid;		/* privd; 0: does not run */
	int		 listen;
	int		 notify;	/* NOTIFY_SOCKET, bound */
	int		 ready;		/* our end of the ready pipe */
	int		 reader;	/* we are who reads at SIGHUP */
	int		 open;		/* of the last NET_ADOPT */
	int		 refuse;	/* what comes of them */
	uint64_t	 network;	/* of boxes that are made */
	uint8_t		 nonce[64];	/* of the last rig_box() */
	struct rig_daemon d[R_N];
};

/* Directory, configuration, rootfs `tiny' and link `default', runtime. */
void	 rig_make(struct rig *);
/* Ends what runs, removes everything. */
void	 rig_free(struct rig *);
/* The same for tests of this process that were ended in the middle. */
void	 rig_sweep(void);
/* Starts privd alone. */
void	 rig_privd(struct rig *);
/* Takes the channels of a new set. */
void	 rig_set(struct rig *);
/* READY of all, GO; the number of NET_ADOPT that came and were answered. */
unsigned int	 rig_go(struct rig *);
/* All three. */
void	 rig_start(struct rig *);
/* The status of privd's end. */
int	 rig_wait(struct rig *);
void	 rig_kill(struct rig *);	/* SIGKILL, and waits */
/* Our ends of all channels. */
void	 rig_hangup(struct rig *);

/* The next message of privd's to this daemon, within a minute; 0: end. */
unsigned int	 rig_next(struct rig *, int kind, struct msg *);
/* No message is there for this daemon. */
int		 rig_quiet(struct rig *, int kind);
/* As apid: sends, and waits for the answer.  Its type. */
unsigned int	 rig_ask(struct rig *, unsigned int type, const void *,
		    struct msg *);
/* A network namespace as netd makes it. */
int		 rig_netns(struct rig *);
/* A create for this id, by apid and netd; its answer. */
unsigned int	 rig_create(struct rig *, const char *id, unsigned int k,
		    struct msg *);
/* The same up to READY in apid's eyes; the control connection. */
int		 rig_box(struct rig *, const char *id, unsigned int k);
/* Whether a file below STATE (or, with a slash, anywhere) exists. */
int		 rig_file(struct rig *, const char *fmt, ...)
		    __attribute__((format(printf, 2, 3)));
/* Whether a server holds STATE/lock. */
int	 rig_locked(struct rig *);
/* A word of /proc/<pid>/status, as a number of that base. */
unsigned long long rig_status(pid_t, const char *word, int base);
/* privd's second process. */
pid_t		 rig_maker(struct rig *);
/* Whether privd's log holds this text. */
int		 rig_logged(struct rig *, const char *);

#endif
