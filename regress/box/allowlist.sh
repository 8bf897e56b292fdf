#!/bin/sh
# allowlist.sh: a box with the network `allowlist' in a small internet.
. "$(dirname "$0")/inet.sh"

inet_up
inet_serve egress_net.py
box_serve
from_box() { timeout 20 "$WB_BIN" sandbox exec -n "${2-out}" -- wget -q -O - "http://$1/" 2>&1; }
out=$(wb create --name out --network allowlist --allow www.example.org) && pass "create" || fail "create" "$out"
from_box www.example.org
wb exec out -- nslookup www.example.org
wb exec out -- ip addr
wb exec out -- ip route
from_box nowhere.example.org
from_box 198.51.100.10
wb denials out
wb inspect out
wb exec out -- wb denials
"$WB_BIN" sandbox proof out | tail -5
cat "$work/serve.log"
ok "rm" wb rm out --grace 0
inet_done
