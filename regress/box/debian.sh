#!/bin/sh
# debian.sh: what programs need of a box, in a Debian one under the default
# profile: languages, debuggers, git; B53, packages whose scripts make users.
# Builds a Debian with all that in it (2 minutes, 1.5 GB), hence long.
#
# WB_DEBIAN: a root file system that `workbox rootfs build debian' has made
# with these packages, instead.
. "$(dirname "$0")/lib.sh"
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds a Debian of 1.5 GB (long lane)"; exit 77; }
command -v mmdebstrap >/dev/null && command -v apt-get >/dev/null ||
    { echo "skip: no mmdebstrap or apt-get"; exit 77; }
. "$top/regress/box/attack/lib.sh"
packages=gcc,libc6-dev,python3,nodejs,golang-go,rustc,git,gdb,strace,iputils-ping,sudo,bubblewrap,fuse3,sqlite3
box_state
tree=$WB_STATE/rootfs/debian
if [ -n "${WB_DEBIAN-}" ]; then
	cp -a "$WB_DEBIAN" "$tree"
else
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/ca.key" \
	    -out "$work/ca.pem" -days 2 -subj '/CN=Workbox test' 2>/dev/null
	"$WB_BIN" rootfs build debian --state "$WB_STATE" --include $packages \
	    --ca "$work/ca.pem" >"$work/build.log" 2>&1 ||
	    { tail -n 5 "$work/build.log"; echo \
	    "skip: no Debian to be had (no package archive?)"; exit 77; }
fi
# packages for a box without network, as far as the tree lacks them
mkdir -p "$work/debs/partial"
apt-get -q -o Debug::NoLocking=1 \
    -o Dir::State::status="$tree/var/lib/dpkg/status" \
    -o Dir::State::extended_states=/dev/null \
    -o Dir::Cache::archives="$work/debs" \
    -o APT::Install-Recommends=0 -y -d install cron dbus openssh-server \
    >"$work/debs.log" 2>&1 ||
    { tail -n 5 "$work/debs.log"; echo "skip: no packages to be had"; exit 77; }
rmdir "$work/debs/partial" 2>/dev/null
attack_init
box_serve
ok "create d" wb create --name d --network none --rootfs debian \
    --memory 2147483648 --pids 1000
ok "create f, afresh" wb create --name f --network none --rootfs debian \
    --memory 1073741824 --pids 500
put d
long() { timeout 300 "$WB_BIN" sandbox exec "$@"; }
# prog TEXT EXPECTED COMMAND: in the box, its last line
prog() {
	is "$1" "$(long -n d -- bash -c "cd /root; $3" 2>&1 | tail -n 1)" "$2"
}

# ---- B53
tar -C "$work/debs" -cf - . | long d -- tar -C /mnt -xf -
cp -a "$work/debs" "$work/debs2"
long -n d -- bash -c \
    'cd /mnt; export DEBIAN_FRONTEND=noninteractive; apt-get install -y --no-install-recommends /mnt/*.deb' >"$work/apt.log" 2>&1 &&
    pass "B53 apt installs cron, dbus and openssh-server" ||
    fail "B53 apt" "$(tail -n 15 "$work/apt.log")"
prog "B53 the users are there" "messagebus sshd" \
    "getent passwd messagebus sshd | cut -d : -f 1 | tr '\n' ' ' | sed 's/ \$//'"
prog "B53 and the packages are" "install ok installed" \
    "dpkg-query -W -f '\${Status}\n' cron dbus openssh-server | sort -u"
prog "B53 dpkg finds nothing half done" "" "dpkg --audit"
tar -C "$work/debs2" -cf - . | long f -- tar -C /mnt -xf -
long -n f -- bash -c \
    'cd /mnt; for i in 1 2 3; do dpkg -i ./*.deb && exit 0; done; exit 1' \
    >"$work/dpkg.log" 2>&1 &&
    pass "B53 dpkg does" || fail "B53 dpkg" "$(tail -n 15 "$work/dpkg.log")"
long -n d -- apt-get purge -y cron >"$work/purge.log" 2>&1 &&
    pass "B53 and purges" || fail "B53 purge" "$(tail -n 5 "$work/purge.log")"
prog "B53 groupadd, useradd" "uid=1234(eve) gid=2345(club) groups=2345(club)" \
    "groupadd -g 2345 club && useradd -m -u 1234 -g club -s /bin/bash eve && id eve"
prog "B53 chpasswd" "P" \
    "echo eve:secret | chpasswd && passwd -S eve | cut -d ' ' -f 2"
prog "B53 usermod, userdel" "gone" \
    "usermod -aG club agent && userdel -r eve && getent passwd eve || echo gone"
prog "B53 su" "agent /home/agent" "su - agent -c 'echo \$(id -un) \$HOME'"
prog "B53 cron's and sshd's programs start" "OpenSSH" \
    "mkdir -p /run/sshd; ssh-keygen -A >/dev/null; /usr/sbin/sshd -p 2222; for i in \$(seq 100); do (: <>/dev/tcp/127.0.0.1/2222) 2>/dev/null && break; sleep 0.1; done; exec 3<>/dev/tcp/127.0.0.1/2222 && head -c 11 <&3 | cut -c 5-11 | sed 's/.*/OpenSSH/'"

# ---- shells and languages
prog "bash: jobs, pipes, process substitution" "3 done" \
    "set -m; sleep 0.1 & wait; diff <(seq 3) <(seq 3) && echo \$(seq 3 | tail -n 1) done"
prog "python3: threads, processes, asyncio, sqlite, a pty" "ok 6 49 7" 'cat >p.py <<"E"
import asyncio, multiprocessing as m, sqlite3, threading, pty, os, subprocess
def f(x): return x * x
if __name__ == "__main__":
    r = []
    t = [threading.Thread(target=r.append, args=(i,)) for i in range(4)]
    [x.start() for x in t]; [x.join() for x in t]
    with m.Pool(2) as p: sq = p.map(f, range(8))
    async def g():
        p = await asyncio.create_subprocess_exec("true"); await p.wait(); return 7
    n = asyncio.run(g())
    a, b = pty.openpty(); assert os.isatty(b)
    q = sqlite3.connect("x.db"); q.execute("create table if not exists t(x)"); q.commit()
    print("ok", sum(r), sq[7], n)
E
python3 p.py'
prog "node: workers, http, a child" "ok 42" 'cat >n.js <<"E"
const { Worker } = require("worker_threads"), http = require("http"), cp = require("child_process");
const w = new Worker("require(\"worker_threads\").parentPort.postMessage(41)", { eval: true });
w.on("message", v => {
  const s = http.createServer((q, r) => r.end("1")).listen(0, "127.0.0.1", () =>
    http.get({ port: s.address().port, host: "127.0.0.1" }, r => r.on("data", d => {
      cp.execSync("true"); console.log("ok", v + Number(d)); process.exit(0); })));
});
E
node n.js'
prog "go: builds and runs, goroutines" "sum 4950" 'mkdir -p g && cd g && cat >m.go <<"E"
package main
import ("fmt"; "sync")
func main() { c := make(chan int, 100); var w sync.WaitGroup
 for i := 0; i < 100; i++ { w.Add(1); go func(i int) { defer w.Done(); c <- i }(i) }
 w.Wait(); close(c); s := 0; for v := range c { s += v }; fmt.Println("sum", s) }
E
GO111MODULE=off GOCACHE=/tmp/gc go build -o m m.go && ./m'
prog "rustc: builds and runs, threads" "sum 45" 'cat >r.rs <<"E"
fn main() { let h: Vec<_> = (0..10).map(|i| std::thread::spawn(move || i)).collect();
 println!("sum {}", h.into_iter().map(|x| x.join().unwrap()).sum::<i32>()); }
E
rustc -O r.rs && ./r'
prog "gcc: builds and runs" "42" \
    'printf "#include <stdio.h>\nint f(int x) { return x + 1; }\nint main(void) { printf(\"%%d\\\\n\", f(41)); return 0; }\n" >c.c; gcc -g -O0 -o c c.c && ./c'
prog "gcc with sanitizers" "42" \
    'gcc -g -fsanitize=address,undefined -o ca c.c && ./ca'
prog "gdb: a breakpoint and a backtrace" "#1 main" \
    "gdb -q -batch -ex 'break f' -ex run -ex bt ./c 2>&1 | sed -n 's/^#1 .*in \(main\).*/#1 \1/p'"
prog "gdb: attaches to a running process" "attached" \
    "sleep 100 & gdb -q -batch -p \$! -ex 'info threads' 2>&1 | grep -q nanosleep && echo attached"
prog "strace" "execve" \
    "strace -f -e trace=execve true 2>&1 | sed -n 's/^\(execve\).*/\1/p'"
prog "git: commit, clone, worktree, gc" "two" \
    'git config --global user.email a@b; git config --global user.name a; git init -q r1 && cd r1 && echo one >f && git add f && git commit -qm one && cd .. && git clone -q r1 r2 && cd r2 && echo two >f && git commit -qam two && git worktree add -q ../wt && git gc -q && cat ../wt/f'
prog "apt: lists what is there" "git" \
    "apt list --installed 2>/dev/null | sed -n 's|^\(git\)/.*|\1|p'"
prog "tar keeps owners" "agent" \
    "chown agent c.c; tar -czf x.tgz c.c && rm c.c && tar -xzf x.tgz && stat -c %U c.c"

# ---- README's table, where minimal has no such program
prog "sudo does not raise" "no new privileges" \
    "su agent -c 'sudo -n true' 2>&1 | grep -o 'no new privileges'"
prog "bubblewrap makes no namespaces" "not permitted" \
    "bwrap --ro-bind / / true 2>&1 | grep -o 'not permitted'"
prog "FUSE has no device" "absent" \
    "test -e /dev/fuse && echo there || echo absent"
prog "ping reaches the box itself" "1 received" \
    "ping -c 1 127.0.0.1 | grep -o '1 received'"

# ---- the certificates of --ca
if [ -e "$work/ca.pem" ]; then
	mkdir "$work/tls"
	openssl req -newkey rsa:2048 -nodes -keyout "$work/tls/key" \
	    -out "$work/csr" -subj /CN=localhost 2>/dev/null
	echo subjectAltName=DNS:localhost >"$work/ext"
	openssl x509 -req -in "$work/csr" -CA "$work/ca.pem" -CAkey \
	    "$work/ca.key" -CAcreateserial -days 2 -extfile "$work/ext" \
	    -out "$work/tls/cert" 2>/dev/null
	tar -C "$work/tls" -cf - . | long d -- tar -C /root -xf -
	prog "--ca: python3 trusts what they have signed" "TLS hi" 'cat >t.py <<"E"
import socket, ssl, threading
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain("cert", "key")
l = socket.create_server(("127.0.0.1", 0))
def serve():
    s = c.wrap_socket(l.accept()[0], server_side=True); s.sendall(b"hi"); s.close()
threading.Thread(target=serve).start()
s = ssl.create_default_context().wrap_socket(socket.create_connection(l.getsockname()), server_hostname="localhost")
print("TLS", s.recv(9).decode())
E
python3 t.py'
else
	skip "--ca: built before"
fi

attack d fds
alive "at the end" d
attack_done
