# inet_debian.sh: a Debian, and who answers its programs in the small internet
# of inet.sh: for black-box scripts, sourced in the place of inet.sh, which it
# sources.  Builds a Debian (3 minutes, 800 MB), hence for the long lane.
#
# When it returns the internet is up, and box_serve can be called; the root file
# system is `debian', the box is to be `d'.
#
# WB_DEBIAN: a root file system that `workbox rootfs build debian' has made
# with these packages and with --ca WB_DEBIAN_CA/ca.pem, whose key is there as
# ca.key, instead.
[ "${WB_LANE-fast}" = long ] ||
    { echo "skip: builds a Debian of 800 MB (long lane)"; exit 77; }
for c in curl dpkg-deb git openssl; do
	command -v $c >/dev/null || { echo "skip: no $c"; exit 77; }
done
[ -x "$(git --exec-path)/git-http-backend" ] ||
    { echo "skip: no git-http-backend"; exit 77; }
. "$(dirname "$0")/inet.sh"
packages=nodejs,npm,openssh-client,openssh-server,python3,python3-pip,wget,bind9-dnsutils
box_state
tree=$WB_STATE/rootfs/debian
if [ -n "${WB_DEBIAN-}" ]; then
	cp -a "$WB_DEBIAN" "$tree"
	cp "$WB_DEBIAN_CA/ca.pem" "$WB_DEBIAN_CA/ca.key" "$work"
else
	command -v mmdebstrap >/dev/null ||
	    { echo "skip: no mmdebstrap"; exit 77; }
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/ca.key" \
	    -out "$work/ca.pem" -days 2 -subj '/CN=Workbox test' 2>/dev/null
	outside "$WB_BIN" rootfs build debian --state "$WB_STATE" \
	    --include $packages --ca "$work/ca.pem" >"$work/build.log" 2>&1 ||
	    { tail -n 5 "$work/build.log"; echo \
	    "skip: no Debian to be had (no package archive?)"; exit 77; }
fi

# ---- what the internet has: certificates
srv=$work/srv
mkdir -p "$srv/www" "$srv/git"
openssl req -newkey rsa:2048 -nodes -keyout "$srv/key" -out "$work/csr" \
    -subj /CN=example.org 2>/dev/null
echo 'subjectAltName=DNS:*.example.org' >"$work/ext"
openssl x509 -req -in "$work/csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" \
    -CAcreateserial -days 2 -extfile "$work/ext" -out "$srv/cert" 2>/dev/null
cat "$srv/key" "$srv/cert" >"$srv/good.pem"
openssl x509 -req -in "$work/csr" -signkey "$srv/key" -days 2 \
    -extfile "$work/ext" -out "$srv/cert" 2>/dev/null
cat "$srv/key" "$srv/cert" >"$srv/bad.pem"

# ---- packages for apt, npm and pip
deb() {	# name depends
	mkdir -p "$work/deb/$1/DEBIAN" "$work/deb/$1/usr/bin" "$srv/www/apt"
	printf 'Package: %s\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <a@example.org>\nDescription: test\n%s' "$1" "${2:+Depends: $2
}" >"$work/deb/$1/DEBIAN/control"
	printf '#!/bin/sh\necho %s runs\n' "$1" >"$work/deb/$1/usr/bin/$1"
	printf '#!/bin/sh\nuseradd -r %s-user\n' "$1" \
	    >"$work/deb/$1/DEBIAN/postinst"
	chmod 755 "$work/deb/$1/usr/bin/$1" "$work/deb/$1/DEBIAN/postinst"
	dpkg-deb --root-owner-group -b "$work/deb/$1" "$srv/www/apt/$1.deb" \
	    >/dev/null
	{
		dpkg-deb -f "$srv/www/apt/$1.deb"
		echo "Filename: ./$1.deb"
		echo "Size: $(stat -c %s "$srv/www/apt/$1.deb")"
		echo "SHA256: $(sha256sum "$srv/www/apt/$1.deb" |
		    cut -d ' ' -f 1)"
		echo
	} >>"$srv/www/apt/Packages"
}
deb wbdemo wbneeds
deb wbneeds
npm_package() {	# name text-of-its-dependencies index.js
	mkdir -p "$work/npm/$1/package" "$srv/www/npm/-"
	printf '{"name": "%s", "version": "1.0.0", "main": "index.js", "dependencies": {%s}}' "$1" "$2" >"$work/npm/$1/package/package.json"
	echo "$3" >"$work/npm/$1/package/index.js"
	tar -C "$work/npm/$1" -czf "$srv/www/npm/-/$1.tgz" package
	printf '{"name": "%s", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "%s", "version": "1.0.0", "dependencies": {%s}, "dist": {"tarball": "https://npm.example.org/npm/-/%s.tgz", "integrity": "sha512-%s"}}}}' \
	    "$1" "$1" "$2" "$1" "$(openssl dgst -sha512 -binary \
	    "$srv/www/npm/-/$1.tgz" | base64 -w 0)" >"$srv/www/npm/$1"
}
npm_package wbdemo '"wbneeds": "^1.0.0"' \
    'module.exports = "demo and " + require("wbneeds");'
npm_package wbneeds '' 'module.exports = "needs";'
mkdir -p "$srv/www/simple/wbdemo"
python3 - "$srv/www/simple/wbdemo" <<'P'
import hashlib, sys, zipfile
wheel, info = 'wbdemo-1.0-py3-none-any.whl', 'wbdemo-1.0.dist-info/'
with zipfile.ZipFile(sys.argv[1] + '/' + wheel, 'w') as z:
    z.writestr('wbdemo.py', 'text = "pip demo"\n')
    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: wbdemo\nVersion: 1.0\n')
    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    z.writestr(info + 'RECORD', 'wbdemo.py,,\n' + ''.join(info + f + ',,\n' for f in ('METADATA', 'WHEEL', 'RECORD')))
data = open(sys.argv[1] + '/' + wheel, 'rb').read()
with open(sys.argv[1] + '/index.html', 'w') as f:
    f.write('<!DOCTYPE html><a href="%s#sha256=%s">%s</a>\n' % (wheel, hashlib.sha256(data).hexdigest(), wheel))
P

# ---- a repository for git
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$work/gitconfig"
git config --global user.email a@example.org
git config --global user.name a
git config --global init.defaultBranch main
git init -q --bare "$srv/git/repo.git"
git -C "$srv/git/repo.git" config http.receivepack true
git clone -q "$srv/git/repo.git" "$work/clone" 2>/dev/null
echo one >"$work/clone/file"
git -C "$work/clone" add file
git -C "$work/clone" commit -qm one
git -C "$work/clone" push -q origin main 2>/dev/null
cp -a "$srv/git/repo.git" "$work/ssh.git"

# ---- the internet, and in it a machine for ssh: the same Debian, written to
# nowhere; its mounts are of a namespace that ends with its sshd
inet_up 64:ff9b::a9fe:a9fe/128 64:ff9b::cb00:7102/128 64:ff9b::c633:640a/128 \
    2002:a01:203::1/128
inet_serve egress_debian_net.py "$srv"
mkdir "$work/there"
cat >"$work/sshd.sh" <<'S'
set -e
mount -t tmpfs there "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay there -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
cp -a "$3" "$1/root/home/agent/repo.git"
exec chroot "$1/root" /bin/sh -ec '
	ssh-keygen -q -t ed25519 -N "" -f /root/host
	ssh-keygen -q -t ed25519 -N "" -C test -f /root/user
	mkdir -p /run/sshd /home/agent/.ssh
	cp /root/user.pub /home/agent/.ssh/authorized_keys
	chown -R agent:agent /home/agent
	usermod -p "*" agent
	printf "%s\n" "HostKey /root/host" "UsePAM no" "PasswordAuthentication no" "Subsystem sftp internal-sftp" >/root/sshd_config
	cp /root/user /root/host.pub /tmp
	exec /usr/sbin/sshd -D -e -f /root/sshd_config'
S
nsenter -t "$inet" -n unshare -m --propagation private sh "$work/sshd.sh" \
    "$work/there" "$tree" "$work/ssh.git" >"$work/sshd.log" 2>&1 &
sshd_pid=$!
inet_pids="$inet_pids $sshd_pid"
listens() { grep -q 'listening on :: port 22' "$work/sshd.log"; }
await listens || fail "no sshd" "$(cat "$work/sshd.log")"

# ---- in the box
in_box() {
	timeout 300 "$WB_BIN" sandbox exec -n d -- bash -c "cd /root; $1" 2>&1
}
# prog TEXT EXPECTED COMMAND: in the box, its last line
prog() {
	out=$(in_box "$3")
	[ "$(printf '%s\n' "$out" | tail -n 1)" = "$2" ] && pass "$1" ||
	    fail "$1" "expected: $2" "$(printf '%s\n' "$out" | tail -n 12)"
}
four="reached 198.51.100.10" six="reached 2001:db8:1::10"

# before a source list of one line
apt="rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; export DEBIAN_FRONTEND=noninteractive"

# the key of who may log in at git.example.org, and whom to trust there
ssh_files() {
	for f in user host.pub; do
		nsenter -t "$sshd_pid" -m cat "$work/there/root/tmp/$f" |
		    wb exec d -- sh \
		    -c "mkdir -p /root/.ssh; umask 077; cat >/root/.ssh/$f"
	done
	prog "ssh's files are there" \
	    ok "mv .ssh/user .ssh/id_ed25519 && sed 's/^/git.example.org,inside.example.org /' .ssh/host.pub >.ssh/known_hosts && echo ok"
}
ssh="ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=20"

# git over http and https, in d: what is there comes, what is pushed arrives
git_both() {
	in_box 'git config --global user.email a@example.org; git config --global user.name a' >/dev/null
	head -c 3000000 /dev/urandom >"$work/blob"
	wb exec d -- sh -c 'cat >/root/blob' <"$work/blob"
	for s in http https; do
		prog "git clone by $s" one \
		    "rm -rf repo; git clone -q $s://git.example.org/git/repo.git && cat repo/file"
		prog "  push, 3 MB" pushed \
		    "cd repo && cat ../blob ../blob >$s && echo $s >>file && git add . && git commit -qm $s && git push -q && echo pushed"
		is "  which is there" \
		    "$(git -C "$srv/git/repo.git" log -1 --format=%s main) $(git \
		    -C "$srv/git/repo.git" cat-file -s "main:$s")" "$s 6000000"
		git -C "$srv/git/repo.git" update-ref refs/heads/main \
		    "$(git -C "$work/clone" rev-parse main)"
	done
}
