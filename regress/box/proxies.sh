#!/bin/sh
# proxies.sh: the samples for nginx and Caddy, each in front of the API: TLS,
# names, who asked, streams that wait and streams that are long.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || { echo "skip: no openssl"; exit 77; }
name=box.example.org
WB_DIRECT=1
WB_CONF_MORE="allowed-host = {\"$name\"}
trusted-proxy = {\"127.0.0.1\"}"
box_serve

mkdir "$work/tls"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
    -subj "/CN=$name" -addext "subjectAltName=DNS:$name" \
    -keyout "$work/tls/key" -out "$work/tls/cert" 2>/dev/null
# a directory that nginx's own user may walk, though not look into
chmod 711 "$work"

# By the proxy at $tls, as a client of another address, with the key $key.
key=$WB_TOKEN
ask() {		# path curl-options...
	path=$1; shift
	curl -sS --max-time 60 --cacert "$work/tls/cert" --interface 127.0.0.9 \
	    --resolve "$name:$tls:127.0.0.1" \
	    -H "Authorization: Bearer $key" \
	    -H 'Content-Type: application/json' "$@" "https://$name:$tls$path"
}
up() { [ "$(ask /healthz -o /dev/null -w '%{http_code}')" = 200 ]; }

nginx_start() {
	{
		echo 'daemon off; worker_processes 1;'
		echo "pid $work/nginx.pid; error_log $work/nginx.err;"
		echo 'events {}'
		echo "http { access_log off;"
		for d in client_body proxy fastcgi uwsgi scgi; do
			echo "${d}_temp_path $work/nginx-$d;"
		done
		sed -e "s/listen 443 ssl/listen 127.0.0.1:$tls ssl/" \
		    -e '/listen \[::\]/d' -e "s/127\.0\.0\.1:8790/127.0.0.1:$port/" \
		    -e "s,/etc/ssl/$name.pem,$work/tls/cert," \
		    -e "s,/etc/ssl/private/$name.key,$work/tls/key," \
		    "$top/etc/nginx.conf"
		echo '}'
	} >"$work/nginx.conf"
	nginx -e "$work/nginx.err" -c "$work/nginx.conf" &
}
caddy_start() {
	{
		echo '{'
		echo 'admin off'
		echo 'auto_https disable_redirects'
		echo '}'
		sed -e "s,^$name {,https://$name:$tls {\\ntls $work/tls/cert $work/tls/key," \
		    -e "s/127\.0\.0\.1:8790/127.0.0.1:$port/" "$top/etc/Caddyfile"
	} >"$work/Caddyfile"
	HOME=$work XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work caddy run \
	    --adapter caddyfile --config "$work/Caddyfile" \
	    >"$work/caddy.err" 2>&1 &
}
proxy=
box_after() { [ -z "$proxy" ] || kill -TERM "$proxy" 2>/dev/null; }

# Of the address that the clients have.
auth_failed() {
	"$WB_BIN" events export | grep '"auth.failed"' |
	    grep -c '"peer":"127.0.0.9"'
}

behind() {	# proxy
	s=$1
	tls=$(free_port $((port + 1)))
	"${s}_start"
	proxy=$!
	await up && pass "$s: it serves" ||
	    fail "$s: it does not" "$(cat "$work/$s.err")"
	failed_before=$(auth_failed)
	key=wrong
	is "$s: another key is refused" "$(ask /v1/version -o /dev/null \
	    -w '%{http_code}')" 401
	key=$WB_TOKEN
	told() { [ "$(auth_failed)" -gt "$failed_before" ]; }
	await told && pass "$s: the record has who asked" ||
	    fail "$s: it has not" "$("$WB_BIN" events export | tail -n 1)"

	# what is written comes while the command waits; in the long lane for
	# longer than nginx is patient by default
	wb run b --name "$s-slow" -- sh -c \
	    'echo first; until [ -e /tmp/go ]; do usleep 20000; done; echo last' \
	    >/dev/null
	mkfifo "$work/stream"
	ask "/v1/sandboxes/b/sessions/$s-slow/output?follow=1" -N \
	    --max-time 600 >"$work/stream" &
	reader=$!
	exec 4<"$work/stream"
	rm "$work/stream"
	read -r line <&4
	like "$s: the first line comes at once" "$line" '"data": *"first'
	[ "${WB_LANE-fast}" != long ] || sleep 80	# it gives up after 60
	wb exec b -- touch /tmp/go
	is "$s: the last one when it is written" \
	    "$(cat <&4 | grep -c -e '"data": *"last' -e '^{"end"')" 2
	exec 4<&-
	wait "$reader"
	is "$s: and the stream is whole" "$?" 0
	wb exec b -- rm /tmp/go

	wb run b --name "$s-long" -- sh -c 'seq 1000000 >/tmp/seq; cat /tmp/seq' \
	    >/dev/null
	wb wait b "$s-long" >/dev/null
	is "$s: a long one is whole" "$(ask \
	    "/v1/sandboxes/b/sessions/$s-long/output?follow=1" |
	    jq -j '.data // empty' | sha256sum)" "$(seq 1000000 | sha256sum)"

	# more than the mebibyte that nginx takes by default
	{ printf '{"argv": ["wc", "-c"], "stdin": "'
	    head -c 1048576 /dev/zero | tr '\0' x; printf '"}'; } >"$work/body"
	is "$s: a large body comes through" "$(ask /v1/sandboxes/b/exec \
	    --data-binary "@$work/body" | jq -r '.stdout // .')" 1048576

	# who goes away is gone, for the server too
	wb run b --name "$s-gone" -- sleep 1000 >/dev/null
	open_at() { ss -Htn state established "sport = :$port" | wc -l; }
	idle=$(open_at)		# what a proxy keeps for later
	readers=
	for _ in $(seq 20); do
		ask "/v1/sandboxes/b/sessions/$s-gone/output?follow=1" -N \
		    >/dev/null 2>&1 &
		readers="$readers $!"
	done
	come() { [ "$(open_at)" -ge 20 ]; }
	await come || fail "$s: the streams are not there"
	# shellcheck disable=SC2046	# a list: each one's curl
	kill $(pgrep -P "$(echo $readers | tr ' ' ,)")
	# shellcheck disable=SC2086	# a list
	wait $readers 2>/dev/null
	left() { [ "$(open_at)" -le "$idle" ]; }
	await left && pass "$s: a client that goes takes its stream along" ||
	    fail "$s: of 20 streams and $idle others $(open_at) stay"
	wb kill b "$s-gone"

	stop_serve
	start_serve "$WB_BIN" --config "$work/workbox.conf"
	await up && pass "$s: after a restart of the server it serves" ||
	    fail "$s: it does not"
	kill -TERM "$proxy"
	wait "$proxy"
	proxy=
}

ok "create" wb create --name b --network none
for s in nginx caddy; do
	if command -v $s >/dev/null; then
		behind $s
	else
		skip "no $s"
	fi
done
ok "remove" wb rm b --grace 0
box_done
