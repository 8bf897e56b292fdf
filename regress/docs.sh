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
sed -n 's/^SEALED[A-Z_]*("\([^"]*\)".*/\1/p' "$top/common/sealed.def" | appear "sealed prefix" "$top/netd/workbox-network.7"
sed -n 's/^MSG([0-9]*, \([A-Z_]*\),.*/\1/p' "$top/common/proto.def" | appear "message" "$WB_BUILD/common/workbox-protocol.7"
sed -n 's/^EVENT([0-9]*, .*"\([a-z.]*\)").*/\1/p' "$top/common/events.def" | appear "record type" "$top/stored/workbox-events.7"
sed -n 's/^CODE([0-9]*, [A-Z_]*, "\([a-z-]*\)".*/\1/p' "$top/common/proto.def" | appear "error code" "$top/apid/workbox-api.7"
sed -n 's/.*"\(\/[a-z0-9{}\/._-]*\)".*/\1/p' "$top/apid/routes.def" | sort -u | appear "route" "$top/apid/workbox-api.7"

# ---- workbox(1) and the table of commands, both ways: each command, each of
# its options with its argument, and its operands, in this order.
page=$top/workbox/workbox.1
out=$(mktemp -d /tmp/wb-docs.XXXXXX)
trap 'rm -rf "$out"' EXIT
awk '
function flat(first,	i, text, glue, close_) {
	text = close_ = ""
	glue = 1
	gsub(/\\&/, "")
	for (i = first; i <= NF; i++) {
		if ($i ~ /^(Cm|Ar|Li)$/)
			continue
		if ($i == "Ns") { glue = 1; continue }
		if ($i == "Oc") { text = text "]"; continue }
		if (!glue) text = text " "
		glue = 0
		if ($i == "Oo") { text = text "["; glue = 1 }
		else if ($i == "Op") { text = text "["; glue = 1; close_ = close_ "]" }
		else if ($i == "Fl") text = text "-" $(++i)
		else text = text $i
	}
	return tolower(text close_)
}
/^\.It Cm / && sect !~ /CLIENT FILE/ { print "command " flat(3) }
/^\.It Fl / { print "option " flat(2) }
/^\.Sh / { sect = $0 }
' "$page" | sort >"$out/page"
# Options of its own stand first in --help, after an empty line those that
# many commands have.
sed -n 's/^\t\.name = "\(.*\)",$/\1/p' "$top"/workbox/*.c | while read -r c; do
	# shellcheck disable=SC2086	# two words
	"$WB_PREFIX/bin/workbox" $c --help
done | awk '
function end(	i) {
	if (name == "") return
	text = name
	if (blocks == 2)
		for (i = 1; i <= n[1]; i++) text = text " " opt[1, i]
	print "command " tolower(text operands)
	for (i = 1; i <= n[blocks]; i++) {
		o = opt[blocks, i]
		gsub(/^\[|\]$/, "", o)
		print "option " tolower(o)
	}
}
/^usage: workbox / {
	end()
	blocks = n[1] = n[2] = 0
	name = substr($0, 16, index($0, " [OPTION ...]") - 16)
	operands = substr($0, index($0, " [OPTION ...]") + 13)
	gsub(/\|/, " | ", operands)
	next
}
/^  / {
	if (!open) blocks++
	open = 1
	match($0, /--[a-z0-9-]+( [^ ]+)?/)
	o = substr($0, RSTART, RLENGTH)
	gsub(/\|/, " | ", o)
	if ($1 ~ /^-.,$/) o = substr($1, 1, 2) " | " o
	opt[blocks, ++n[blocks]] = "[" o "]" (/\(may be repeated\)$/ ? " ..." : "")
	next
}
{ open = 0 }
END { end() }' | sort -u >"$out/help"
d=$(diff "$out/page" "$out/help" | sed -n 's/^</in the page:  /p; s/^>/in the table: /p')
[ "$(grep -c '^command ' "$out/help")" -ge 20 ] && [ -z "$d" ] &&
    ok "workbox.1 has every command with its options and operands, and no others" ||
    no "workbox.1 and the table of commands differ:
$d"
sed -n 's/^\t\[SET_[A-Z_]*\] = "\([a-z-]*\)",$/\1/p' "$top/workbox/settings.c" | appear "key of the client file" "$page"
grep -ho 'getenv("[A-Z_]*")\|"WORKBOX_[A-Z]*"' "$top"/workbox/*.c | sed 's/.*"\(.*\)".*/\1/' | sort -u | appear "variable" "$page"

# What of the configuration SIGHUP takes up: each word, now or at the next start.
def=$(sed -n 's/^C_[STRU64BOLI]*("\([a-z0-9-]*\)",.*/\1/p' "$top/common/conf.def" | while read -r w; do
	grep -q "^C_NOW(\"$w\"," "$top/common/conf.def" && echo "$w now" || echo "$w next start"
done | sort)
told=$(sed -n '/^\.Ss Reload/,/^\.El/s/^\.It Li \([a-z0-9-]*\) Ta \(.*\)/\1 \2/p' "$top/workbox/workbox.conf.5" | sort)
[ "$(echo "$def" | grep -c ' now$')" -ge 5 ] && [ "$def" = "$told" ] &&
    ok "workbox.conf.5 tells what a reload takes up" ||
    no "what a reload takes up: conf.def has $(echo $def), workbox.conf.5 $(echo $told)"

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
