/*
 * conf_seal.c: what `workbox serve' hands over, in sealed memfds.
 */
#include <sys/mman.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "server.h"
#include "xmalloc.h"

int
server_seal(const char *name, const void *data, size_t len)
{
	auto_close int	fd = memfd_create(name, MFD_CLOEXEC |
			    MFD_ALLOW_SEALING);

	if (fd == -1 || write(fd, data, len) != (ssize_t)len ||
	    fcntl(fd, F_ADD_SEALS, SERVER_SEALS) == -1)
		return -1;
	return steal_fd(&fd);
}

int
conf_seal(const struct conf *conf)
{
	static uint8_t	buf[WIRE_MAX];
	ssize_t		n;

	if ((n = wire_encode(&wire_conf, conf, buf, sizeof(buf))) == -1)
		return -1;
	return server_seal("conf", buf, (size_t)n);
}

void
server_now(const struct conf *c, struct server_conf *s)
{
	int	level = log_level_parse(c->log_level);

	s->log_level = level == -1 ? LOG_L_INFO : level;
	s->restart_limit = (uint32_t)c->restart_limit;
	s->most = (struct box_limits){ c->max_memory, c->max_cpu_milli,
	    c->max_pids };
	s->dflt = (struct box_limits){ c->default_memory,
	    c->default_cpu_milli, c->default_pids };
	s->disk_floor = c->disk_floor;
}

void
server_fill(const struct conf *c, struct server_conf *s)
{
	memset(s, 0, sizeof(*s));
	/* the same sizes, or larger */
	(void)str_copy(s->version, PACKAGE_VERSION, sizeof(s->version));
	(void)str_copy(s->state_dir, c->state_dir, sizeof(s->state_dir));
	(void)str_copy(s->cgroup, c->cgroup, sizeof(s->cgroup));
	(void)str_copy(s->libexec_dir, c->libexec_dir,
	    sizeof(s->libexec_dir));
	(void)str_copy(s->socket, c->socket, sizeof(s->socket));
	s->notify_fd = s->ready_fd = s->log_fd = -1;
	s->syslog = strcmp(c->log, "syslog") == 0;
	s->uid_netd = (uint32_t)c->uid_netd;
	s->gid_netd = (uint32_t)c->gid_netd;
	s->net_uid_base = (uint32_t)c->net_uid_base;
	s->uid_base = (uint32_t)c->uid_base;
	s->max_boxes = (uint32_t)c->max_boxes;
	server_now(c, s);
}
