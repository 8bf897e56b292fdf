#!/bin/sh
# core.sh: B54, the host has a core handler, and no crash in a box starts it.
# Sets kernel.core_pattern, hence only on a host that is the test's own.
. "$(dirname "$0")/lib.sh"
[ -n "${WB_OWN_HOST-}" ] || { echo \
    "skip: changes the host's core_pattern (regress/uml runs it)"; exit 77; }
. "$top/regress/box/attack/lib.sh"
handled=$work/handled
: >"$handled"
printf '#!/bin/sh\necho "$@" >>%s\nexec cat >/dev/null\n' "$handled" \
    >"$work/handler"
chmod 755 "$work/handler"
echo "|$work/handler %P %u" >/proc/sys/kernel/core_pattern
attack_init
box_serve
ok "create a" wb create --name a --network none --memory 134217728 --pids 128 \
    --cpus 1

crashed() { [ "$(wc -l <"$handled")" -ge "$1" ]; }
sh -c 'ulimit -c 0; kill -SEGV $$' 2>/dev/null
await crashed 1 &&
    pass "control: B54 on the host it runs, though the limit is 0" ||
    fail "B54 the handler never runs"
for l in 'ulimit -c 0' 'ulimit -c unlimited' 'ulimit -Sc 0' 'ulimit -Hc 0' \
    'true'; do
	out=$(run a -- sh \
	    -c "$l; sh -c 'kill -SEGV \$\$'; echo \$?" 2>/dev/null)
	like "B54 a crash after '$l'" "$out" 139
done
run a -- su agent -c 'ulimit -c 0; sh -c "kill -QUIT \$\$"' >/dev/null 2>&1
run a -- sh -c 'kill -ABRT $$' >/dev/null 2>&1
# a crash of the host's is handled after those before it
sh -c 'kill -SEGV $$' 2>/dev/null
await crashed 2
is "B54 the handler ran for the host's crashes alone" "$(wc -l <"$handled")" 2
alive B54 a
attack_done
