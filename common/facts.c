/*
 * facts: what the kernel tells of a process under /proc/<pid>.
 *
 * Reads text that the kernel wrote, of which no part is the process's own
 * choice (its name is escaped by the kernel); must never follow a path out
 * of the directory it was given but the links of ns/.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "facts.h"
#include "xmalloc.h"

static const struct {
	const char	*name;
	int		 base;
	size_t		 off;
} status_lines[] = {
	{ "CapInh",	16, offsetof(struct row_facts, cap_inh) },
	{ "CapPrm",	16, offsetof(struct row_facts, cap_prm) },
	{ "CapEff",	16, offsetof(struct row_facts, cap_eff) },
	{ "CapBnd",	16, offsetof(struct row_facts, cap_bnd) },
	{ "CapAmb",	16, offsetof(struct row_facts, cap_amb) },
	{ "NoNewPrivs",	10, offsetof(struct row_facts, no_new_privs) },
	{ "Seccomp",	10, offsetof(struct row_facts, seccomp_mode) },
	{ "Seccomp_filters", 10, offsetof(struct row_facts,
	    seccomp_filters) },
}, ns_links[] = {
	{ "ns/user",	0, offsetof(struct row_facts, ns_user) },
	{ "ns/mnt",	0, offsetof(struct row_facts, ns_mnt) },
	{ "ns/pid",	0, offsetof(struct row_facts, ns_pid) },
	{ "ns/net",	0, offsetof(struct row_facts, ns_net) },
	{ "ns/ipc",	0, offsetof(struct row_facts, ns_ipc) },
	{ "ns/uts",	0, offsetof(struct row_facts, ns_uts) },
	{ "ns/cgroup",	0, offsetof(struct row_facts, ns_cgroup) },
};

#define FACT(f, off)	((uint64_t *)(void *)((char *)(f) + (off)))

ssize_t
facts_file(int dirfd, const char *name, char *buf, size_t size)
{
	auto_close int	 fd = -1;
	size_t		 len = 0;
	ssize_t		 n;

	if ((fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	do {
		if (len + 1 >= size) {
			errno = EMSGSIZE;
			return -1;
		}
		n = read(fd, buf + len, size - 1 - len);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 || (n == -1 && errno == EINTR));
	if (n == -1)
		return -1;
	buf[len] = '\0';
	return (ssize_t)len;
}

/* Single blanks, and "; " between lines. */
static int
read_map(int procfd, const char *name, char *ret, size_t size)
{
	char	 buf[1024], *line, *word, *lsave, *wsave;
	size_t	 len = 0;
	int	 n, first;

	if (facts_file(procfd, name, buf, sizeof(buf)) == -1)
		return -1;
	ret[0] = '\0';
	for (line = strtok_r(buf, "\n", &lsave); line != NULL;
	    line = strtok_r(NULL, "\n", &lsave)) {
		first = 1;
		for (word = strtok_r(line, " \t", &wsave); word != NULL;
		    word = strtok_r(NULL, " \t", &wsave), first = 0) {
			n = snprintf(ret + len, size - len, "%s%s",
			    len == 0 ? "" : first ? "; " : " ", word);
			if (n < 0 || (size_t)n >= size - len) {
				errno = EMSGSIZE;
				return -1;
			}
			len += (size_t)n;
		}
	}
	return 0;
}

/* The text after "\nname:", or NULL. */
static const char *
status_find(const char *buf, const char *name)
{
	size_t	 len = strlen(name);

	while ((buf = strchr(buf, '\n')) != NULL) {
		buf++;
		if (strncmp(buf, name, len) == 0 && buf[len] == ':')
			return buf + len + 1;
	}
	return NULL;
}

static int
read_status(int procfd, struct row_facts *f)
{
	char		 buf[8192];
	const char	*p;
	char		*end;
	size_t		 i;

	if (facts_file(procfd, "status", buf, sizeof(buf)) == -1)
		return -1;
	errno = EBADMSG;
	for (i = 0; i < sizeof(status_lines) / sizeof(*status_lines); i++) {
		if ((p = status_find(buf, status_lines[i].name)) == NULL)
			return -1;
		*FACT(f, status_lines[i].off) =
		    strtoull(p, &end, status_lines[i].base);
		if (end == p || *end != '\n')
			return -1;
	}
	/* One number per namespace from the reader's to its own. */
	if ((p = status_find(buf, "NSpid")) == NULL)
		return -1;
	do {
		f->nspid = strtoull(p, &end, 10);
		if (end == p)
			return -1;
		p = end;
	} while (*p != '\n');
	return 0;
}

int
facts_ns(int procfd, struct row_facts *f)
{
	char	 link[64];
	char	*p;
	size_t	 i;
	ssize_t	 n;

	for (i = 0; i < sizeof(ns_links) / sizeof(*ns_links); i++) {
		n = readlinkat(procfd, ns_links[i].name, link,
		    sizeof(link) - 1);
		if (n == -1)
			return -1;
		link[n] = '\0';
		if ((p = strchr(link, '[')) == NULL) {
			errno = EBADMSG;
			return -1;
		}
		*FACT(f, ns_links[i].off) = strtoull(p + 1, NULL, 10);
	}
	return 0;
}

static int
read_link(int procfd, const char *name, char *ret, size_t size)
{
	ssize_t	 n = readlinkat(procfd, name, ret, size);

	if (n == -1)
		return -1;
	ret[(size_t)n < size ? (size_t)n : size - 1] = '\0';
	return 0;
}

int
facts_read(int procfd, char *buf, struct row_facts *ret)
{
	struct row_facts	 f = { 0 };
	ssize_t			 n;

	if (read_map(procfd, "uid_map", f.uid_map, sizeof(f.uid_map)) == -1 ||
	    read_map(procfd, "gid_map", f.gid_map, sizeof(f.gid_map)) == -1 ||
	    read_map(procfd, "setgroups", f.setgroups,
	    sizeof(f.setgroups)) == -1 ||
	    read_status(procfd, &f) == -1 || facts_ns(procfd, &f) == -1 ||
	    read_link(procfd, "root", f.root, sizeof(f.root)) == -1 ||
	    read_link(procfd, "cwd", f.cwd, sizeof(f.cwd)) == -1)
		return -1;
	if ((n = facts_file(procfd, "mountinfo", buf, FACTS_MOUNTS)) == -1)
		return -1;
	f.mounts.data = (const uint8_t *)buf;
	f.mounts.len = (size_t)n;
	*ret = f;
	return 0;
}
