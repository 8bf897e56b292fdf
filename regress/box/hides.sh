#!/bin/sh
# hides.sh: boxes that fill the disk by what no count of the kernel tells:
# children that nobody waits for, also few of them, and inodes. They are
# frozen, others go on
# or are let go on, and all of it can be removed.
. "$(dirname "$0")/lib.sh"
MIB=1048576
field() {
	sed -n 's/.*"'"$1"'": "\{0,1\}\([^",]*\).*/\1/p' | sed 's/^null$//' |
	    head -n 1
}
box_disk 800M -N 24000
WB_FLOOR=134217728
box_state
cc -O1 -static -o "$WB_STATE/rootfs/minimal/hide" "$top/regress/box/hide.c" ||
    exit 1
box_serve
free() { echo $(($(stat -f -c '%a * %S' "$WB_STATE") / MIB)); }
inodes() { stat -f -c %d "$WB_STATE"; }
is_frozen() { [ "$(wb inspect "$1" | field healthReason)" = disk-floor ]; }
fine() {
	[ -z "$(wb inspect "$1" | field healthReason)" ] &&
	    wb exec -n "$1" -- true
}
# the word of the log for one that is no suspect any more
is_found() { grep -q "box $1 is frozen: " "$work/serve.log" && is_frozen "$1"; }
# the rounds of a slow one are longer: what is lost must first be seen
found() {
	await is_found "$2" || { [ "$1" = slowly ] && { await is_found "$2" ||
	    await is_found "$2"; }; }
}

ok "create good" wb create --name good --network none
ok "create idle" wb create --name idle --network none
drip() {
	wb run good --name drip -- sh -c \
	    "while :; do head -c $1 /dev/zero >>/root/drip; sleep 0.2; done" \
	    >/dev/null
}
drip 100000
for how in children inodes slowly; do
	if [ $how = slowly ]; then
		# an eighth of the loss is no little any more
		ok "good writes less" wb kill good drip
		drip 10000
		fallocate -l $((($(free) - 160) * MIB)) "$WB_STATE/room"
	fi
	ok "create evil" wb create --name evil --network none
	a=$(free) i=$(inodes) id=$(wb inspect evil | field id)
	wb run evil -- /hide $how /root >/dev/null
	found $how "$id" && pass "$how: who hides what it writes is frozen" ||
	    fail "$how: not frozen" \
	    "$a MiB and $i inodes, then $(free) and $(inodes)" \
	    "$(wb inspect evil)"
	[ "$(free)" -ge 32 ] && [ "$(inodes)" -ge 1000 ] &&
	    pass "  before the disk is full" ||
	    fail "  $(free) MiB and $(inodes) inodes are left"
	await fine good && pass "  one that writes a little goes on" ||
	    fail "  good does not" "$(wb inspect good)"
	if [ $how = slowly ]; then
		await fine idle && pass "  and one that does nothing" ||
		    fail "  idle does not" "$(wb inspect idle)"
	else
		ok "  one that does nothing was never stopped" sh -c \
		    "! '$WB_BIN' events export | grep 'sandbox.frozen' | grep -q '$(wb inspect idle | field id)'"
	fi
	ok "  it can be removed" wb rm evil --grace 0
	back() {
		[ "$(free)" -ge $((a - 100)) ] &&
		    [ "$(inodes)" -ge $((i - 2000)) ]
	}
	await back && pass "  and all of it is free again" ||
	    fail "  not freed" \
	    "$a MiB and $i inodes, then $(free) and $(inodes)"
done
rm "$WB_STATE/room"
# no inode at all is left: what is removed needs none
ok "create full" wb create --name full --network none
mkdir -p "$WB_STATE/sandboxes/$(wb inspect full | field id)/upper/root/many"
(cd "$WB_STATE/sandboxes/$(wb inspect full | field id)/upper/root/many" &&
    seq $(($(inodes) + 10)) | xargs touch 2>/dev/null)
is "no inode is left" "$(inodes)" 0
like "creates are refused" "$(wb create --network none 2>&1)" 'disk-floor'
ok "removal needs none" wb rm full --grace 0
back() { [ "$(inodes)" -ge 5000 ]; }
await back && pass "  and frees them" || fail "  $(inodes) inodes are free"
box_done
