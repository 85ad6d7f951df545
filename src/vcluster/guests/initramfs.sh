#!/bin/busybox sh
# First program of a guest: load the modules, put the read-only image below a file system in memory,
# take the cluster's own folder from the machine outside, and hand over to what lies there.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev

stop() { # one line that is looked for on the console; the machine ends, it does not hang
    echo "fabricproof-guest: FAILED $*"
    sync
    echo o >/proc/sysrq-trigger
    sleep 60
}

setting() { # NAME: its value on the kernel's command line
    for word in $(cat /proc/cmdline); do
        case $word in "fabricproof.$1="*) echo "${word#*=}" ;; esac
    done
}

echo "fabricproof-guest: kernel $(uname -r) runs"
[ "$(setting probe)" != yes ] || { echo o >/proc/sysrq-trigger; sleep 60; }
while read -r module; do
    insmod "/modules/$module" || stop "module $module cannot be loaded"
done </modules/order
mount -t squashfs -o ro /dev/vda /image || stop "the image cannot be mounted"
mount -t tmpfs -o mode=755 tmpfs /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/image,upperdir=/memory/upper,workdir=/memory/work overlay /new ||
    stop "no overlay over the image"
run=$(setting run)
node=$(setting node)
mkdir -p "/new$run"
mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=none run "/new$run" ||
    stop "the cluster's folder cannot be mounted"
for each in dev proc sys; do mount --move "/$each" "/new/$each"; done
exec switch_root /new /bin/sh "$run/etc/guest-init" "$node" "$run"
