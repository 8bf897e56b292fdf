/*
 * apid_start: the process that becomes the apid of apid_world.h.
 */
#ifndef APID_START_H
#define APID_START_H

/*
 * Under sanitizers: what is freed is not kept, so that memory can be counted;
 * but then what is used after it was freed is not found.
 */
extern int	apid_lean;

/* apid's descriptors, then the program. */
void	apid_exec(int privd, int stored, int netd, int log)
	    __attribute__((noreturn));

#endif
