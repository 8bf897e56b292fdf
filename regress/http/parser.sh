#!/bin/sh
# parser.sh: http_parse against nginx, node and h11; see judge.py.
# WB_BUILD: the build directory; WB_LANE=long: more mutations, other ones
# each time (the seed is told).
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/regress/http
PATH=$PATH:/usr/sbin
for p in nginx node; do
	command -v $p >/dev/null || { echo "skip: no $p"; exit 77; }
done
/usr/bin/python3 -c 'import h11' 2>/dev/null || { echo "skip: no python3-h11"; exit 77; }
make -s -C "$WB_BUILD/regress" http_check || exit 1
if [ "${WB_LANE-}" = long ]; then
	n=100000 seed=$(date +%s)
else
	n=2000 seed=1
fi
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$here/judge.py" "$WB_BUILD/regress/http_check" "$here/corpus" $n $seed
