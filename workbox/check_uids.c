/*
 * check_uids: doctor's check that the uids of sandboxes are this server's
 * alone: nobody was given them, and no process of another has them.
 */
#include <sys/stat.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "ulid.h"
#include "xmalloc.h"

static const struct ours {
	const char	*word;		/* of the configuration */
	struct id_range	 r;
} *ours;				/* two, while the check runs */

/* Whether somebody's ids meet ours; told with the file that gives them. */
static int
meets(struct finding *f, const char *file, const char *who,
    const struct id_range *r)
{
	char	cure[128];
	int	i;

	for (i = 0; i < 2; i++) {
		if (!look_overlap(&ours[i].r, r))
			continue;
		(void)snprintf(cure, sizeof cure, "set %s to uids that nobody "
		    "has, or give %.32s others", ours[i].word, who);
		finding_set(f, V_FAIL, cure, "%s gives %" PRIu64 "-%" PRIu64
		    " to %s; %s stands for %" PRIu64 "-%" PRIu64, file,
		    r->first, r->first + r->count - 1, who, ours[i].word,
		    ours[i].r.first, ours[i].r.first + ours[i].r.count - 1);
		return 1;
	}
	return 0;
}

static int
subids(struct finding *f, const char *file)
{
	FILE		*fp = look_file(file);
	char		 line[512], who[64];
	struct id_range	 r;
	int		 bad = 0;

	while (!bad && fp != NULL && fgets(line, sizeof line, fp) != NULL)
		bad = look_subid(line, who, &r) == 0 && meets(f, file, who,
		    &r);
	if (fp != NULL)
		(void)fclose(fp);	/* read only */
	return bad;
}

static int
passwd_ids(struct finding *f)
{
	FILE			*fp = look_file("/etc/passwd");
	int			 live = look_root() == NULL, bad = 0;
	const char		*from = live ? "the user database" :
	    "/etc/passwd";
	const struct passwd	*pw;
	struct id_range		 r = { 0, 1 };

	if (live)
		setpwent();
	while (!bad && (live || fp != NULL) &&
	    (pw = live ? getpwent() : fgetpwent(fp)) != NULL) {
		r.first = pw->pw_uid;
		bad = meets(f, from, pw->pw_name, &r);
	}
	if (live)
		endpwent();
	if (fp != NULL)
		(void)fclose(fp);	/* read only */
	return bad;
}

static int
group_ids(struct finding *f)
{
	FILE			*fp = look_file("/etc/group");
	int			 live = look_root() == NULL, bad = 0;
	const char		*from = live ? "the group database" :
	    "/etc/group";
	const struct group	*gr;
	struct id_range		 r = { 0, 1 };

	if (live)
		setgrent();
	while (!bad && (live || fp != NULL) &&
	    (gr = live ? getgrent() : fgetgrent(fp)) != NULL) {
		r.first = gr->gr_gid;
		bad = meets(f, from, gr->gr_name, &r);
	}
	if (live)
		endgrent();
	if (fp != NULL)
		(void)fclose(fp);	/* read only */
	return bad;
}

/* Who is not listed, as of a large directory, may be asked for by number. */
static int
unlisted_ids(struct finding *f)
{
	const struct passwd	*pw;
	struct id_range		 r = { 0, 1 };
	int			 i;

	for (i = 0; i < 2 && look_root() == NULL; i++) {
		r.first = ours[i].r.first;
		if ((pw = getpwuid((uid_t)r.first)) != NULL)
			return meets(f, "the user database", pw->pw_name, &r);
	}
	return 0;
}

/* ---- who runs ---------------------------------------------------------- */

#define UPLINKS	"uplinks/"	/* uplinkd(8)'s part of it */

enum owner { NOBODYS, OURS, ANOTHERS };

/*
 * Whose a process is, by its cgroup in each hierarchy: below `cgroup' stands
 * the id of a sandbox, and that is in our state directory or not.
 */
static enum owner
owner_of(const struct conf *c, int boxes, const char *cgroups)
{
	auto_free char	*name = xasprintf("/%s/", c->cgroup);
	enum owner	 o = NOBODYS;
	struct stat	 st;
	char		 id[ULID_LEN + 1];
	const char	*p;

	for (p = cgroups; (p = strstr(p, name)) != NULL; p++) {
		if (strncmp(p + strlen(name), UPLINKS, strlen(UPLINKS)) == 0)
			return OURS;	/* of a box, or soon ended */
		(void)snprintf(id, sizeof id, "%s", p + strlen(name));
		if (!ulid_ok(id))
			continue;
		if (boxes != -1 && fstatat(boxes, id, &st,
		    AT_SYMLINK_NOFOLLOW) == 0)
			return OURS;
		o = ANOTHERS;
	}
	return o;
}

/* A doctor that tries something has uids of a sandbox for as long. */
static int
is_doctor(const char *dir)
{
	auto_free char	*exe = xasprintf("%s/exe", dir);
	struct stat	 st, own;

	return stat(exe, &st) == 0 && stat("/proc/self/exe", &own) == 0 &&
	    st.st_dev == own.st_dev && st.st_ino == own.st_ino;
}

/* What is to be seen of a cgroup: of v2, whose line comes last. */
static const char *
cgroup_seen(char *text)
{
	char	*line = text, *p;

	if ((p = strrchr(text, '\n')) != NULL)
		*p = '\0';
	if ((p = strrchr(text, '\n')) != NULL)
		line = p + 1;
	return (p = strchr(line, '/')) != NULL ? p : "none";
}

static int
lies_in_ours(const struct conf *c, const char *pid, char *cgroups,
    struct finding *f)
{
	char	cure[256];

	(void)snprintf(cure, sizeof cure, "set cgroup to a name that no other "
	    "server has, or end process %.32s: kill -KILL %.32s", pid, pid);
	finding_set(f, V_FAIL, cure, "process %s lies in cgroup %s, and %s has "
	    "no such sandbox", pid, cgroup_seen(cgroups), c->state_dir);
	return 1;
}

static int
has_ours(uint64_t uid, const char *pid, char *cgroups, struct finding *f)
{
	char	cure[256];
	int	i;

	for (i = 0; i < 2 && uid - ours[i].r.first >= ours[i].r.count; i++)
		;
	if (i == 2)
		return 0;
	(void)snprintf(cure, sizeof cure, "set %s to uids that no other "
	    "server has, or end process %.32s: kill -KILL %.32s", ours[i].word,
	    pid, pid);
	finding_set(f, V_FAIL, cure, "process %s in cgroup %s has uid %" PRIu64
	    "; %s stands for %" PRIu64 "-%" PRIu64, pid, cgroup_seen(cgroups),
	    uid, ours[i].word, ours[i].r.first,
	    ours[i].r.first + ours[i].r.count - 1);
	return 1;
}

/* The real uid of one that has not ended; 0 or -1. */
static int
uid_of(const char *dir, uint64_t *ret)
{
	auto_free char	*path = xasprintf("%s/status", dir);
	char		 text[4096];
	const char	*p;

	if (look_text(path, text, sizeof text) <= 0 ||
	    strstr(text, "\nState:\tZ") != NULL ||
	    (p = strstr(text, "\nUid:")) == NULL)
		return -1;
	*ret = strtoull(p + 5, NULL, 10);
	return 0;
}

/*
 * Whether a process that is none of ours has uids of ours, or lies in our
 * cgroup.  Only its real uid counts: for a moment the others are also those
 * of whoever makes a sandbox or its network.
 */
static int
stranger(const struct conf *c, int boxes, const char *pid, struct finding *f)
{
	auto_free char	*dir = xasprintf("/proc/%s", pid);
	auto_free char	*path = xasprintf("%s/cgroup", dir);
	char		 cgroups[8192];
	uint64_t	 uid;

	if (uid_of(dir, &uid) == -1 ||
	    look_text(path, cgroups, sizeof cgroups) <= 0)
		return 0;		/* it has ended */
	switch (owner_of(c, boxes, cgroups)) {
	case OURS:
		return 0;
	case ANOTHERS:
		return lies_in_ours(c, pid, cgroups, f);
	case NOBODYS:
	default:
		return !is_doctor(dir) && has_ours(uid, pid, cgroups, f);
	}
}

static int
strangers(const struct conf *c, struct finding *f)
{
	auto_close int	 boxes = look_state(c, "sandboxes");
	struct dirent	*e;
	DIR		*d;
	int		 bad = 0;

	/* another system's are not here to be seen */
	if (look_root() != NULL || (d = opendir("/proc")) == NULL)
		return 0;
	while (!bad && (e = readdir(d)) != NULL)
		bad = isdigit((unsigned char)e->d_name[0]) &&
		    stranger(c, boxes, e->d_name, f);
	(void)closedir(d);		/* read only */
	return bad;
}

/* ---- all of it --------------------------------------------------------- */

void
check_uid_ranges(const struct conf *c, struct finding *f)
{
	const struct ours	both[2] = {
		{ "uid-base", { c->uid_base, 65536 * c->max_boxes } },
		{ "net-uid-base", { c->net_uid_base, 65535 } },
	};

	ours = both;
	if (!subids(f, "/etc/subuid") && !subids(f, "/etc/subgid") &&
	    !passwd_ids(f) && !group_ids(f) && !unlisted_ids(f) &&
	    !strangers(c, f))
		finding_set(f, V_OK, "", "nobody else has %" PRIu64 "-%" PRIu64
		    " and %" PRIu64 "-%" PRIu64, both[0].r.first,
		    both[0].r.first + both[0].r.count - 1, both[1].r.first,
		    both[1].r.first + both[1].r.count - 1);
	ours = NULL;
}
