#!/bin/sh
# client.sh: the client alone (configure --disable-server): built here, with
# no library but libcurl and jansson and no function that POSIX has not, and
# used against a running server.
. "$(dirname "$0")/lib.sh"
command -v make >/dev/null && command -v pkg-config >/dev/null ||
    { echo "skip: no make or pkg-config"; exit 77; }
[ -x "$top/configure" ] || { echo "skip: no configure"; exit 77; }

b=$work/client
mkdir "$b"
# What the server's part needs and the client's does not is not there.
cat >"$work/pkg-config" <<'END'
#!/bin/sh
for a in "$@"; do
	case $a in
	*[!a-z-]*|-*|libcurl|jansson) ;;
	*) exit 1 ;;
	esac
done
exec pkg-config "$@"
END
chmod 755 "$work/pkg-config"
ok "configure --disable-server" sh -c \
    "cd '$b' && '$top/configure' -q --disable-server --enable-werror --prefix='$b/inst' PKG_CONFIG='$work/pkg-config'"
ok "make" sh -c "cd '$b' && make -s -j2 && make -s install"
is "what is installed" \
    "$(cd "$b/inst" && find . ! -type d | sort | tr '\n' ' ')" \
    "./bin/workbox ./share/bash-completion/completions/workbox ./share/fish/vendor_completions.d/workbox.fish ./share/man/man1/workbox.1 ./share/workbox/presets/crates ./share/workbox/presets/debian ./share/workbox/presets/github ./share/workbox/presets/go ./share/workbox/presets/npm ./share/workbox/presets/pypi ./share/zsh/site-functions/_workbox "
is "what it links" "$(readelf -d "$b/inst/bin/workbox" |
    sed -n 's/.*(NEEDED).*\[\(lib[a-z]*\)[.-].*/\1/p' | sort | tr '\n' ' ')" \
    'libc libcurl libjansson '
# Where POSIX alone is declared, what is beyond it is an error.
posix() {
	for o in "$b"/workbox/*.o; do
		o=${o##*/}
		# shellcheck disable=SC2046	# flags
		cc -std=c17 -D_XOPEN_SOURCE=700 -DPACKAGE_VERSION='""' -Wall \
		    -Werror -fsyntax-only \
		    -I"$top/common" $(pkg-config --cflags libcurl jansson) \
		    "$top/workbox/${o%.o}.c" || return 1
		n=$((n + 1))
	done
}
n=0
posix >"$work/posix" 2>&1
is "it asks for nothing beyond POSIX: all $n files" \
    "$(cat "$work/posix") $([ $n -gt 10 ] || echo few)" ' '
ok "make uninstall" make -s -C "$b" uninstall
is "takes all of it back" "$(find "$b/inst" ! -type d)" ''
ok "make install, again" make -s -C "$b" install

c=$b/inst/bin/workbox
like "it has no command for a host" \
    "$("$c" --help | grep -c -E '^  (serve|doctor|rootfs|runtime|sandbox evidence) ')" '^0$'
no "and says so of one" 125 "$c" doctor
like "in one line" "$out" \
    '^workbox: there is no command "doctor"; try workbox --help$'
is "its commands are the others" "$("$c" --help | grep '^  ')" "$("$WB_BIN" \
    --help | grep -v -E '^  (serve|doctor|rootfs|runtime|sandbox evidence) ' | grep '^  ')"

box_serve
like "version" "$("$c" version)" '^server .* at http'
ok "create" "$c" sandbox create --name alone --network none
like "list" "$("$c" sandbox list)" '^alone +[0-9A-Z]{26} +READY '
is "exec, with input" "$(echo hi | "$c" sandbox exec alone -- cat)" hi
no "its exit code" 42 "$c" sandbox exec alone -- sh -c 'exit 42'
"$c" sandbox run alone --name later -- sh -c 'echo out; exit 3' >/dev/null
no "wait" 3 "$c" sandbox wait alone later
is "logs" "$("$c" sandbox logs alone later)" out
is "a sandbox is completed" "$("$c" complete -- sandbox rm a | cut -f1)" alone
is "by the socket too" "$("$c" sandbox list --server "unix:$WB_STATE/api.sock" \
    --name alone | wc -l)" 2
like "the record" "$("$c" events export --limit 1)" '^\{"seq":1,'
ok "rm" "$c" sandbox rm --all --yes --grace 0
none_left "$c"
box_done
