#!/bin/sh
# ux.sh: what a person at the command line has: a client file, https with a CA
# of one's own, completion in bash, times, and rm --all.  What needs a server
# that lies is in unit/client_test.c.
. "$(dirname "$0")/lib.sh"
nginx=
trap '[ -z "$nginx" ] || kill "$nginx"; box_cleanup; exit 1' INT TERM HUP
trap '[ -z "$nginx" ] || kill "$nginx"; box_cleanup' EXIT
box_serve
json() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1; }
conf=$XDG_CONFIG_HOME/workbox/config
mkdir -p "${conf%/*}"

# ---- the client file
url=$WORKBOX_SERVER
(umask 077; printf '%s\n' "$WORKBOX_TOKEN" >"$work/key")
cat >"$conf" <<END
# all that a client needs
server = $url
token-file = "$work/key"
default-rootfs = minimal
END
alone() { env -u WORKBOX_SERVER -u WORKBOX_TOKEN "$@"; }
out=$(alone "$WB_BIN" sandbox create --name one --network none 2>&1)
is "the client file says server, key and root file system" \
    "$(printf '%s' "$out" | json rootfs)" minimal
chmod 602 "$conf"
no "one that others can write" 125 alone "$WB_BIN" sandbox list
is "is refused, with the cure" "$out" \
    "workbox sandbox list: $conf: others than its owner can write it: chmod go-w $conf"
eval "${out##*: }"
ok "which cures" alone "$WB_BIN" sandbox list
chown 65534 "$conf"
no "one of another user" 125 alone "$WB_BIN" sandbox list
is "is refused" "$out" \
    "workbox sandbox list: $conf: expected a file of this user or of root"
chown 0 "$conf"
echo 'default-rootfs = nothing' >"$conf"
no "a root file system that is not there" 125 wb create --name two \
    --network none
like "is told by the server" "$out" '\(rootfs-unknown\)$'
ok "an option comes first" wb create --name two --network none --rootfs minimal
echo 'token-file = relative' >"$conf"
no "a wrong line" 125 wb list
is "is told by file, line and key" "$out" \
    "workbox sandbox list: $conf:1: token-file: expected an absolute path, or one that begins with ~/, not \"relative\""
ok "which does not matter on the host" "$WB_BIN" rootfs list --state "$WB_STATE"
rm "$conf"
mkdir -p "$work/home/.config/workbox"
echo "server = unix:$work/nowhere" >"$work/home/.config/workbox/config"
no "it is below HOME as well" 125 env -u XDG_CONFIG_HOME -u WORKBOX_SERVER \
    HOME="$work/home" "$WB_BIN" sandbox list
like "and read" "$out" "reach unix:$work/nowhere"

# ---- times and forms
when=$(wb list --name one --format json | json createdAt)
like "JSON has times of RFC 3339" "$when" \
    '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z$'
is "a table has local ones" \
    "$(TZ=XST-5:30 wb list --name one | awk 'NR == 2 { print $7, $8 }')" \
    "$(TZ=XST-5:30 date -d "$when" '+%Y-%m-%d %H:%M:%S')"
is "no colour into a pipe" \
    "$(TERM=xterm wb list | grep -c "$(printf '\033')")" 0
is "ls is list" "$(wb ls)" "$(wb list)"

# ---- the network
ok "a network is told" wb network one
is "by its kind" "$out" '# none'
is "and as JSON" "$(wb network one --format json | tr -d ' \n')" \
    '{"network":"none","allow":null}'
no "a list for another kind" 125 wb network one none --allow a.example
like "is refused by the option" "$out" '--allow goes with the network allowlist'
ok "a list means its kind" wb network one --allow a.example
is "which it has then" "$(wb network one | tr '\n' ' ')" \
    '# allowlist, 1 entry a.example '
ok "and the kind alone leaves it" wb network one allowlist
is "as it is" "$(wb network one | tail -n 1)" a.example
ok "back to none" wb network one none
no "to add to no list" 125 wb network one --add a.example
like "is refused by the option" "$out" '--add: the network of one is none'

# ---- bash
comp_file=$WB_PREFIX/share/bash-completion/completions/workbox
# Words as bash splits them; the last one is completed.
comp() {
	bash --norc --noprofile -c '
		. "$0" || exit 1
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_workbox "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>&1
		((${#COMPREPLY[@]} == 0)) || printf "%s\n" "${COMPREPLY[@]}"
	' "$comp_file" "$WB_BIN" "$@" | sort | tr '\n' ' '
}
if command -v bash >/dev/null; then
	is "bash: commands" "$(comp sandbox l)" 'launch-log list logs '
	is "bash: a family" "$(comp ev)" 'events '
	is "bash: sandboxes" "$(comp sandbox inspect '')" 'one two '
	is "bash: their beginning" "$(comp sandbox rm one t)" 'two '
	wb run one --name build -- true >/dev/null
	is "bash: sessions" "$(comp sandbox wait one b)" 'build '
	like "bash: options" \
	    "$(comp sandbox create --n)" '^--name --network --no-wait $'
	is "bash: those that are left" \
	    "$(comp sandbox create --name x --n)" '--network --no-wait '
	is "bash: formats" "$(comp sandbox list --format '')" 'json table '
	is "bash: behind =, which bash splits at" \
	    "$(comp sandbox list --format = j)" 'json '
	is "bash: with nothing behind it" "$(comp sandbox list --format =)" \
	    'json table '
	is "bash: networks" "$(comp sandbox create --network '')" \
	    'allowlist egress none '
	is "bash: a network's options" "$(comp sandbox network one --a)" \
	    '--add --add-file --allow --allow-file '
	is "bash: presets" "$(comp sandbox network one --preset p)" 'pypi '
	is "bash: a network's kind" "$(comp sandbox network one a)" 'allowlist '
	is "bash: states" "$(comp sandbox list --state QUA)" 'QUARANTINED '
	is "bash: root file systems" \
	    "$(comp sandbox create --config "$work/workbox.conf" \
	    --rootfs '')$(comp rootfs rm --state "$WB_STATE" '')" 'minimal '
	is "bash: files" "$(comp sandbox list --token-file "$work/ke")" \
	    "$work/key "
	is "bash: directories" "$(comp rootfs list --state "$work/ho")" \
	    "$work/home "
	is "bash: the server of the line is asked" \
	    "$(comp sandbox inspect --server unix : "$work/nowhere" '')" ''
	is "bash: nothing for what runs in a box" \
	    "$(comp sandbox exec one -- k)" ''
	ok "bash: it registers" bash \
	    --norc --noprofile -c '. "$0"; complete -p workbox' "$comp_file"
else
	skip "no bash"
fi
# The others ask the same; that they can read their file is seen where they are.
for s in zsh fish; do
	case $s in
	zsh)	f=zsh/site-functions/_workbox ;;
	fish)	f=fish/vendor_completions.d/workbox.fish ;;
	esac
	if command -v $s >/dev/null; then
		ok "$s can read its file" $s -n "$WB_PREFIX/share/$f"
	else
		[ -s "$WB_PREFIX/share/$f" ] &&
		    skip "$s is not here: its file is unread" || fail "no $f"
	fi
done

# ---- https
certificate() {	# name subject-alternative-name
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
	    -nodes -days 2 -subj "/CN=$1" \
	    -addext "subjectAltName=$2" -keyout "$work/$1.key" \
	    -out "$work/$1.pem" 2>/dev/null
}
if command -v nginx >/dev/null && command -v openssl >/dev/null &&
    certificate here IP:127.0.0.1 && certificate other IP:127.0.0.1; then
	tls=$(free_port $((WB_PORT + 20)))
	cat >"$work/nginx.conf" <<END
pid $work/nginx.pid;
daemon off;
worker_processes 1;
user root;
error_log $work/nginx.log;
events { }
http {
	access_log off;
	client_body_temp_path $work/ngx-body;
	proxy_temp_path $work/ngx-proxy;
	fastcgi_temp_path $work/ngx-fastcgi;
	uwsgi_temp_path $work/ngx-uwsgi;
	scgi_temp_path $work/ngx-scgi;
	server {
		listen 127.0.0.1:$tls ssl;
		ssl_certificate $work/here.pem;
		ssl_certificate_key $work/here.key;
		location / {
			proxy_pass $url;
			proxy_http_version 1.1;
			proxy_buffering off;
		}
	}
}
END
	nginx -c "$work/nginx.conf" -p "$work" >"$work/nginx.out" 2>&1 \
	    </dev/null &
	nginx=$!
	await test -s "$work/nginx.pid"
	WORKBOX_SERVER=https://127.0.0.1:$tls
	no "https: who is not trusted" 125 wb list
	like "is refused, and what to do is said" "$out" \
	    '^workbox sandbox list: ask https:.*certificate.*: --cacert FILE says whom to trust$'
	for c in 'sandbox exec one -- true' 'sandbox create --network none' \
	    'events tail' 'sandbox logs -f one x'; do
		# shellcheck disable=SC2086	# words
		no "https: $c, at once" 125 timeout 10 "$WB_BIN" $c
		like "is refused" "$out" \
		    'certificate.*: --cacert FILE says whom to trust'
	done
	ok "https: --cacert" wb list --cacert "$work/here.pem"
	no "https: another one" 125 wb list --cacert "$work/other.pem"
	no "https: another name" 125 wb list --cacert "$work/here.pem" \
	    --server "https://localhost:$tls"
	no "https: a file that is not there" 125 wb list --cacert "$work/nothing"
	is "is named" "$out" \
	    "workbox sandbox list: --cacert $work/nothing: No such file or directory"
	no "https: a file that has none" 125 wb list --cacert "$work/key"
	ok "https: WORKBOX_CACERT" env WORKBOX_CACERT="$work/here.pem" "$WB_BIN" \
	    sandbox list
	no "https: the option comes first" 125 env WORKBOX_CACERT="$work/here.pem" \
	    "$WB_BIN" sandbox list --cacert "$work/other.pem"
	printf 'server = %s\ncacert = %s\n' "$WORKBOX_SERVER" "$work/here.pem" \
	    >"$conf"
	ok "https: by the client file" env -u WORKBOX_SERVER "$WB_BIN" sandbox \
	    list
	no "https: the environment comes before it" 125 env \
	    WORKBOX_CACERT="$work/other.pem" "$WB_BIN" sandbox list
	is "https: exec, with input" "$(seq 20000 | wb exec one -- sha256sum)" \
	    "$(seq 20000 | sha256sum)"
	rm "$conf"
	WORKBOX_SERVER=$url
	kill "$nginx"
	wait "$nginx"
	nginx=
else
	skip "no nginx or openssl: no https"
fi

# ---- all at once
no "rm --all with nobody to ask" 125 sh \
    -c "'$WB_BIN' sandbox rm --all --grace 0 </dev/null"
like "says so" "$out" \
    'expected --yes, or a terminal to ask on; nothing was removed$'
is "and removes nothing" "$(wb list | wc -l)" 3
ok "rm --all --yes" wb rm --all --yes --grace 0
is "says nothing" "$out" ''
none_left "$WB_BIN"
ok "again there are none" wb rm --all
is "which it says" "$out" "workbox sandbox rm: there are no sandboxes"
box_done
