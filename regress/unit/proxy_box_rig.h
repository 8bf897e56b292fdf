/*
 * proxy_box_rig: netd, stored, the name service and the relay, as box.c of
 * proxyd sees them.
 */
#ifndef REGRESS_PROXY_BOX_RIG_H
#define REGRESS_PROXY_BOX_RIG_H

#include <sys/types.h>

#include <event2/event.h>

#include "proxyd.h"

#define ID		"01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OTHER		"01ARZ3NDEKTSV4RRFFQ69G5FAW"
#define TAKE		256		/* box.c */
#define ASKS		2048

/* What stored was asked. */
struct asked {
	unsigned int	 type;
	struct msg_allow_read read;
	struct msg_names_take take;
	void		(*cb)(void *, const struct msg *);
	void		*arg;
};

struct rig {
	struct event_base	*base;
	struct asked		 asked[ASKS];
	unsigned int		 nasked, answered;
	struct box		*last;		/* that was served */
	unsigned int		 served, ended, judged;
	size_t			 judged_n;	/* entries at that time */
	ino_t			 given[BOX_NSOCKETS], got[BOX_NSOCKETS];
	int			 far[BOX_NSOCKETS];
	struct msg		 heard;		/* by netd, last */
};

extern struct rig	rig;

void	 rig_setup(void);
void	 rig_teardown(void);

/* ---- netd: each answers with the number of the request ---------------- */

uint32_t rig_ask(unsigned int type, const void *body, int fd);
/* A socket of a box's; the other end of it is kept. */
uint32_t rig_give(const char *id, unsigned int which);
uint32_t rig_list(const char *id);
uint32_t rig_end(const char *id);
/* The next message that netd gets; 0: none is there. */
int	 rig_next(void);
/* That is this answer. */
void	 rig_is_ok(uint32_t rid);
void	 rig_is_error(uint32_t rid, unsigned int code, const char *what);
/* Whether the socket that was given lives here. */
int	 rig_lives(unsigned int which);
/* A box that is served, with one entry. */
void	 rig_serve(const char *id);

/* ---- stored: what the question that is due, of that type, is told ------- */

void	 rig_page(uint64_t generation, uint64_t more, size_t n,
	    const char *const *entries);
void	 rig_one_page(const char *entry);
void	 rig_fails(unsigned int type, unsigned int code);
void	 rig_taken(uint64_t first, uint64_t count);
void	 rig_silent(unsigned int type);

#endif
