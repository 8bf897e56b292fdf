#!/bin/sh
# init.sh: pid 1 of the User Mode Linux guest; see run.sh.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o mode=755 tmpfs /run
[ -c /dev/null ] || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -p /mnt/disk /mnt/mods
mount -t ext4 /dev/ubda /mnt/disk || echo "guest: no disk"
ip link set lo up

# modules: no modprobe here, and the tree is read-only
for m in overlay tun; do
	f=$(find /usr/lib/uml/modules -name "$m.ko" | head -n 1)
	busybox insmod "$f" 2>/dev/null || echo "guest: module $m missing"
done

# the v2 hierarchy wants its controllers given down, and nobody in the root
mkdir -p /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
echo "+cpu +io +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control

WB_WORK=/mnt/disk/work
WB_CONF='netfilter = "none"
landlock = "none"'
WB_BOXES=100
TMPDIR=/mnt/disk/tmp
mkdir -p "$WB_WORK" "$TMPDIR"
export TMPDIR WB_WORK WB_CONF WB_BOXES WB_PREFIX WB_LANE HOME=/root
cd "$WB_WORK"
sh "$WB_TOP/regress/uml/suite.sh"
echo "guest: exit $?"
sync
echo o >/proc/sysrq-trigger
read -r _ <>/dev/null
sleep 60
