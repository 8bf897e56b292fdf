/*
 * apid_start: the process that becomes the apid of apid_world.h.
 */
#ifndef APID_START_H
#define APID_START_H

/* apid's descriptors, then the program. */
void	apid_exec(int privd, int stored, int netd, int log)
	    __attribute__((noreturn));

#endif
