#!/bin/sh
# dist.sh: what `make dist' packs is what is kept here, and nothing besides.
# WB_BUILD: a build directory.
top=$(cd "$(dirname "$0")/.." && pwd)
out=$(mktemp -d /tmp/wb-dist.XXXXXX)
trap 'rm -rf "$out"' EXIT
git -C "$top" ls-files >"$out/kept" 2>/dev/null && [ -s "$out/kept" ] ||
    { echo "skip: no git checkout to compare with"; exit 77; }
make -s -C "$WB_BUILD" distdir >"$out/log" 2>&1 || { echo "not ok - make distdir"; tail -n 5 "$out/log"; exit 1; }
for d in "$WB_BUILD"/workbox-*/; do :; done
(cd "$d" && find . -type f | sed 's,^\./,,' | sort) >"$out/packed"
rm -rf "$d"
bad=0
left=$(grep -vx '\.gitignore' "$out/kept" | while read -r f; do
	[ ! -e "$top/$f" ] || grep -qxF "$f" "$out/packed" || echo "$f"
done)
[ -z "$left" ] && echo "ok - all that is kept is packed" || { bad=1; echo "not ok - left out:"; echo "$left"; }
# made by autoreconf and by the build
more=$(git -C "$top" ls-files --others --exclude-standard | sort - "$out/kept" | comm -13 - "$out/packed" |
    grep -v -E '(^|/)Makefile\.in$|^(configure|aclocal\.m4|build-aux/.*)$')
[ -z "$more" ] && echo "ok - and nothing that is not" || { bad=1; echo "not ok - packed besides:"; echo "$more"; }
exit $bad
