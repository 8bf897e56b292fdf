#!/bin/sh
# hostile.sh: B45 and B46 under the real server: runners that answer wrong,
# late, twice, or with nonsense, that lie about their box, or never stop
# talking.  Each costs its own box, which is then sealed; the neighbour works.
# The runner is regress/hostile/runner_evil.c, as the name of its box says.
. "$(dirname "$0")/lib.sh"
build=${WB_BUILD:-$top/build/test}
[ -d "$build/regress" ] || { echo "skip: no build tree (WB_BUILD)"; exit 77; }
make -s -C "$build/regress" runner_evil >"$work/make.log" 2>&1 || { cat \
    "$work/make.log"; echo "not ok - runner_evil does not build"; exit 1; }
. "$top/regress/box/attack/lib.sh"
box_state
# it stands for the runner, and the runner for wb
r=$WB_STATE/runtime
cp "$r/runner" "$work/real"
cp "$build/regress/runner_evil" "$r/runner"
cp "$work/real" "$r/wb"
(cd "$r" && sha256sum runner wb >SHA256SUMS)
attack_init
box_serve

api() {
	curl -s -o "$work/body" -w '%{http_code}' -H \
	    "Authorization: Bearer $WB_TOKEN" \
	    -H 'Content-Type: application/json' "$@"
}
make_box() {
	api -d "{\"name\": \"$1\", \"network\": \"none\"}" \
	    "$WB_URL/v1/sandboxes"
}
neighbour() {
	is "$1: the neighbour works" "$(run good-n -- echo alive 2>&1)" alive
}
# sealed NAME FIELD: QUARANTINED for that, frozen, and of no use but for rm
sealed() {
	wb inspect "$1" >"$work/inspect" 2>&1
	is "$1: state" "$(field state <"$work/inspect")" QUARANTINED
	like "$1: why" "$(field stateReason <"$work/inspect")" "^($2)$"
	id=$(field id <"$work/inspect")
	g=$(find /sys/fs/cgroup \
	    -path "*/$WB_CGROUP/$id/cgroup.freeze" 2>/dev/null)
	is "$1: frozen" "$(cat "$g" 2>/dev/null)" 1
	like "$1: nothing runs in it" "$(run "$1" -- true 2>&1)" quarantined
	like "$1: on the record" "$("$WB_BIN" events export | grep "$id" |
	    grep -c '"QUARANTINED"')" '^[1-9]'
	ok "$1: removed" wb rm "$1" --grace 0
}

is "a runner that does as it should" "$(make_box good-n)" 201
neighbour "at first"

# ---- B45: the nonce
for n in guess:nonce none:nonce short:nonce partial:protocol longer:protocol \
    rid:protocol; do
	like "B45 ${n%%:*}: no box" "$(make_box "${n%%:*}-1")" '^4'
	sealed "${n%%:*}-1" "${n#*:}"
done
like "B45 empty, which reads as an end: no box" "$(make_box empty-1)" '^500'
like "B45 empty: it is removed" "$(wb inspect empty-1 2>&1)" not-found
for n in twice again forge; do		# READY or not, it was too late
	make_box $n-1 >/dev/null
	quarantined() { [ "$(state $n-1)" = QUARANTINED ]; }
	await quarantined
	sealed $n-1 protocol
done
neighbour B45

# ---- B45: late, together
for n in stall stallgo late; do
	api -d "{\"name\": \"$n-1\", \"network\": \"none\"}" \
	    "$WB_URL/v1/sandboxes?wait=0" >/dev/null
done
neighbour "B45 while three stall"
for n in stall stallgo late; do
	quarantined() { [ "$(state $n-1)" = QUARANTINED ]; }
	await quarantined || await quarantined
	sealed $n-1 stall
done

# ---- B46: nonsense, and lies
for n in garbage huge privd; do
	like "B46 $n: no box" "$(make_box $n-1)" '^4'
	sealed $n-1 protocol
done
# Linux 6.16 lets it pass none, so that it has said nothing
like "B46 fd: no box" "$(make_box fd-1)" '^[45]'
sealed fd-1 'protocol|stall'
for n in uids:uid_map:uidMap caps:cap_bnd:capBnd \
    filters:seccomp_filters:seccompFilters; do
	b=${n%%:*}-1 f=${n#*:}
	like "B46 $b: no box" "$(make_box "$b")" '^4'
	api "$WB_URL/v1/sandboxes/$b/proof" >/dev/null
	like "B46 $b: the proof names it" "$(cat "$work/body")" \
	    "\"verdict\": *\"failed\", *\"field\": *\"${f#*:}\""
	api -d '{}' "$WB_URL/v1/sandboxes/$b/release" >/dev/null
	is "B46 $b: a refused release has the table's name" \
	    "$(jq -r '.code + " " + .field' <"$work/body")" \
	    "never-released ${f%:*}"
	sealed "$b" "${f%:*}"
done
neighbour B46

# ---- B46: a flood, and one who never reads
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$(daemon_pids apid)/status"; }
was=$(rss)
size=$("$WB_BIN" events export | wc -c)
make_box flood-1 >/dev/null
make_box deaf-1 >/dev/null
for i in 1 2 3 4 5 6 7 8; do
	(run deaf-1 --timeout 2 -- true >/dev/null 2>&1) &
	neighbour "B46 flood and deaf, $i"
done
[ $(($(rss) - was)) -lt 32768 ] &&
    pass "B46 apid holds $(($(rss) - was)) KiB more" ||
    fail "B46 apid holds $(($(rss) - was)) KiB more"
grew=$(($("$WB_BIN" events export | wc -c) - size))
[ $grew -lt 2000000 ] && pass "B46 the record grows by $grew bytes" ||
    fail "B46 the record grows by $grew bytes"
ok "B46 both are removed" wb rm flood-1 deaf-1 --grace 0
neighbour "at the end"
attack_done
