#!/bin/sh
# suite.sh: what runs in the guest, one line per check.
box=$WB_TOP/regress/box
WB_DIRECT=1 WB_OWN_HOST=1
export WB_DIRECT WB_OWN_HOST
fail=0 work=$WB_WORK
run() {
	echo "guest: $*"
	# a state directory each: a box may still be on its way out
	mkdir -p "$work/${1##*/}"
	WB_WORK=$work/${1##*/} sh "$@" || fail=1
}
run "$box/limits.sh"
WB_COUNT=10 run "$box/leak.sh"
run "$box/core.sh"
if [ "$WB_LANE" = long ]; then
	run "$box/restart.sh"
	run "$box/attacks_mem.sh"
fi
exit $fail
