/*
 * server: what privd and its maker know of the configuration, as it lies in
 * memory: `workbox serve', privd and maker are built and installed together.
 * Everyone else gets struct conf.
 */
#ifndef COMMON_SERVER_H
#define COMMON_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "boxfd.h"

/*
 * What privd inherits from `workbox serve', beside /dev/null as 0 and 1 and
 * the log as 2; behind the listeners those of notify_fd and ready_fd.
 */
enum privd_fd {
	PRIVD_FD_SERVER = 3,	/* sealed memfd: struct server_conf */
	PRIVD_FD_CONF,		/* sealed memfds, for the daemons */
	PRIVD_FD_TOKEN,
	PRIVD_FD_MAKER,		/* socket: maker_ask.h */
	PRIVD_FD_BOXES,		/* O_PATH of STATE/sandboxes and rootfs: names */
	PRIVD_FD_ROOTFS,	/* are looked up there, nothing is opened */
	PRIVD_FD_LOCK,		/* STATE/lock with the BSD lock */
	PRIVD_FD_HELD,		/* the same with the lock of fcntl(2), privd's */
	PRIVD_FD_READER,	/* socket: who reads the file at SIGHUP */
	PRIVD_FD_LISTENER	/* nlisteners of them */
};

struct server_conf {
	char		 version[32];		/* PACKAGE_VERSION of serve */
	char		 state_dir[256], cgroup[256], libexec_dir[256];
	char		 socket[101];		/* or "none" */
	uint8_t		 nlisteners;
	uint8_t		 listener_kind[17];	/* as in DAEMON_LISTENER */
	int		 notify_fd, ready_fd;	/* -1: nobody waits */
	int		 log_level, syslog;
	int		 log_fd;	/* privd's syslog socket, -1: none */
	uint32_t	 uid_netd, gid_netd, net_uid_base, uid_base;
	uint32_t	 max_boxes, restart_limit, beat_ms; /* may be 0 */
	struct box_limits most, dflt;
	uint64_t	 disk_floor;		/* bytes; 0: the default */
};

/*
 * The reader (workbox/reader.c) is asked by a byte.  It answers, when the file
 * is good, by a byte with sealed memfds in place of those of PRIVD_FD_SERVER,
 * PRIVD_FD_CONF and PRIVD_FD_TOKEN.
 */
enum { READER_SERVER, READER_CONF, READER_TOKEN, READER_FDS };

#define SERVER_SEALS	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | \
			    F_SEAL_WRITE)

#endif
