#!/bin/sh
# docs.sh: the documents against the code: every configuration word, message,
# route, code and command appears in its page; pages are clean; privd is
# small enough to be read in one sitting.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
bad=0
ok() { echo "ok - $1"; }
no() { echo "not ok - $1"; bad=1; }

# each WORD on stdin appears in PAGE
appear() {	# what page
	miss= text=$(sed 's/\\-/-/g; s/\\&//g; s/^\.[A-Z][a-z] //; s/ Fl / --/g; s/^Fl /--/' "$2" 2>/dev/null)
	while read -r w; do
		case $text in *"$w"*) ;; *) miss="$miss $w" ;; esac
	done
	[ -z "$miss" ] && ok "every $1 is in ${2##*/}" || no "$1 not in ${2##*/}:$miss"
}

for m in "$top"/[a-z]*/*.[1-9] "$WB_BUILD"/common/*.7; do
	case $m in "$top"/autom4te.cache/*|*/\*.\[1-9\]) continue ;; esac
	out=$(groff -mdoc -ww -Tutf8 -z "$m" 2>&1 | head -n 5)
	[ -z "$out" ] && ok "${m##*/} is clean" || no "${m##*/}: $out"
done
sed -n 's/^C_[A-Z0-9]*("\([a-z-]*\)".*/\1/p' "$top/common/conf.def" | appear "configuration word" "$top/workbox/workbox.conf.5"
sed -n 's/^MSG([0-9]*, \([A-Z_]*\),.*/\1/p' "$top/common/proto.def" | appear "message" "$WB_BUILD/common/workbox-protocol.7"
sed -n 's/^EVENT([0-9]*, .*"\([a-z.]*\)").*/\1/p' "$top/common/events.def" | appear "record type" "$top/stored/workbox-events.7"
sed -n 's/^CODE([0-9]*, [A-Z_]*, "\([a-z-]*\)".*/\1/p' "$top/common/proto.def" | appear "error code" "$top/apid/workbox-api.7"
sed -n 's/.*"\(\/[a-z0-9{}\/._-]*\)".*/\1/p' "$top/apid/routes.def" | sort -u | appear "route" "$top/apid/workbox-api.7"
sed -n 's/^\t\.name = "\(.*\)",$/\1/p' "$top"/workbox/*.c | appear "command" "$top/workbox/workbox.1"
# rows of struct opt: a name, its argument or NULL, what it is
sed -n 's/^\t{ "\([a-z-]*\)", \("[A-Z]\|NULL\).*/\1/p' "$top"/workbox/*.c | sort -u | appear "option" "$top/workbox/workbox.1"
# The table of doctor's checks: the same rows in the same order.
rows=$(sed -n 's/^CHECK("\([a-z0-9-]*\)", C_FATAL.*/\1 fatal/p; t; s/^CHECK("\([a-z0-9-]*\)".*/\1/p' "$top/workbox/checks.def")
told=$(sed -n '/^\.Sh THE CHECKS/,/^\.El/s/^\.It Li \([a-z0-9-]*\)\( Pq \(fatal\)\)\{0,1\}$/\1 \3/p' "$top/workbox/workbox.1" | sed 's/ $//')
[ -n "$rows" ] && [ "$rows" = "$told" ] && ok "workbox.1 tells of doctor's checks" ||
    no "doctor's checks: checks.def has $(echo $rows), workbox.1 $(echo $told)"

# What an auditor reads in one sitting: lines of code, comments and blank lines
# left out, of each of the two programs that matter most, of whatever the
# linker map says is in it, and of every header of ours that these include.
MOST=4000
code() { for f in "$@"; do gcc -fpreprocessed -dD -E -P -x c "$f" 2>/dev/null; done | grep -c '[^[:space:]]'; }
for p in privd maker; do
	map=$WB_BUILD/$p/$p.map
	[ -f "$map" ] || { no "no linker map of $p"; continue; }
	c=$(echo "$top/$p"/*.c; sed -n 's/.*libcommon\.a(libcommon_a-\([a-z_]*\)\.o).*/\1/p' "$map" |
	    sort -u | sed "s,.*,$top/common/&.c,")
	h=$(for f in $c; do
		gcc -MM -D_GNU_SOURCE -DPACKAGE_VERSION='""' -I"$top/common" \
		    -I"$WB_BUILD/common" -I"$top/$p" "$f"
	done | tr ' \\' '\n\n' | grep "^$top/.*\.h$" | grep -v '_calls\.h$' | sort -u)
	# shellcheck disable=SC2086	# lists of names
	n=$(code $c $h)
	[ "$n" -gt 1000 ] && [ "$n" -lt $MOST ] &&
	    ok "$p with all of ours that is linked into it: $n lines of code" ||
	    no "$p with all of ours that is linked into it: $n lines of code ($c $h)"
	libs=$(readelf -d "$WB_BUILD/$p/$p" | grep -E 'libssl|libcrypto|liblmdb|libevent|libseccomp')
	[ -z "$libs" ] && ok "$p links no OpenSSL, LMDB, libevent or libseccomp" || no "$p links $libs"
done

# The long lane runs them; that they still say what the code says is seen here.
stale=
for m in "$top"/regress/mutants/*.patch; do
	(cd "$top" && patch --dry-run -s -f -F0 -p1 <"$m" >/dev/null 2>&1) || stale="$stale ${m##*/}"
done
[ -z "$stale" ] && ok "every mutant applies" || no "mutants that do not apply:$stale"
exit $bad
