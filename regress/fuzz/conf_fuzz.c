/*
 * conf_fuzz: the configuration as the daemons get it, out of a memfd.
 *
 * input: a byte, of which bit 0 leaves the seals away; the body
 */
#include <sys/mman.h>

#include <fcntl.h>
#include <unistd.h>

#include "conf.h"
#include "fuzz.h"
#include "server.h"
#include "xmalloc.h"

/* conf_read() has one struct for the process: what was read is kept here. */
static void
taken(const struct conf *c)
{
	static uint8_t		 buf[WIRE_MAX];
	static struct wire_bin	 items[512];
	static struct conf	 was;
	auto_close int		 fd = -1;
	ssize_t			 n;

	n = wire_encode(&wire_conf, c, buf, sizeof(buf));
	must(n > 0);
	must(wire_decode_into(&wire_conf, buf, (size_t)n, items, 512,
	    &was) == 0);
	must((fd = conf_seal(&was)) != -1);
	must((c = conf_read(fd)) != NULL);
	must(wire_differs(&wire_conf, c, &was) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes		 b = { data, len };
	auto_close int		 fd = memfd_create("conf", MFD_ALLOW_SEALING);
	int			 bare = take_u8(&b) & 1;
	const struct conf	*c;

	must(fd != -1 && write(fd, b.p, b.n) == (ssize_t)b.n);
	if (!bare)
		must(fcntl(fd, F_ADD_SEALS, SERVER_SEALS) == 0);
	c = conf_read(fd);
	must(c == NULL || !bare);
	if (c != NULL)
		taken(c);
	return 0;
}
