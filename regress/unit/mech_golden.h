/*
 * mech_golden: what a box must be, written once more and by hand, so that a
 * table of the sources that grants more is seen.
 */
#ifndef REGRESS_MECH_GOLDEN_H
#define REGRESS_MECH_GOLDEN_H

/* Calls that no box may make, each followed by a blank, and what it gets. */
extern const char	golden_eperm[], golden_enosys[];

/* The bounding, permitted and effective set, as /proc shows it. */
#define GOLDEN_CAPS	"00000000800000fb"

/*
 * Whether a mountinfo shows these mounts, with these flags, and no other;
 * NULL, or what is wrong.
 */
const char	*golden_mounts(const char *mountinfo);

#endif
