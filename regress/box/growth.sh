#!/bin/sh
# growth.sh: no box, session or daemon grows: memory and descriptors of each
# daemon and of one box's runner after 10,000 sessions and 1,000 boxes that
# came and went are those after the first tenth and fifth.
. "$(dirname "$0")/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: 10,000 sessions (long lane)"; exit 77; }
PY=/usr/bin/python3
[ -x $PY ] || { echo "skip: $PY is not there"; exit 77; }
WB_DIRECT=1
box_serve
PYTHONDONTWRITEBYTECODE=1 timeout -k 5 1800 \
    $PY "$top/regress/box/growth.py" "$serve_pid" "$WB_URL" >"$work/growth" \
    2>&1 </dev/null
r=$?
cat "$work/growth"
passed=$((passed + $(grep -c '^ok - ' "$work/growth")))
failed=$((failed + $(grep -c '^not ok - ' "$work/growth")))
is "it ran to its end" "$r" 0
box_done
