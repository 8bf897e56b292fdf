/*
 * ready.c: says that it runs, then waits to be ended.  Static; put into the
 * root file system that all peers share.
 */
#include <unistd.h>

int
main(int argc, char **argv)
{
	(void)argv;
	if (write(1, "r", 1) != 1)
		return 1;
	if (argc == 1)
		for (;;)
			pause();
	return 0;
}
