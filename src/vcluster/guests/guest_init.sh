# What a guest does once its file systems are there:  guest-init NODE RUN
# RUN is the cluster's folder, the machine's own through 9p; RUN/etc/NODE.guest says what the node is.
node=$1 run=$2
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
HOME=/root
SLURM_CONF=$run/etc/slurm.conf
export PATH LC_ALL HOME SLURM_CONF
ulimit -l unlimited
ulimit -c 0

stop() {
    echo "fabricproof-guest: FAILED $*"
    sync
    echo o >/proc/sysrq-trigger
    sleep 60
}

[ -r "$run/etc/$node.guest" ] || stop "$run/etc/$node.guest cannot be read"
. "$run/etc/$node.guest"

mount -t devpts devpts /dev/pts 2>/dev/null || { mkdir -p /dev/pts && mount -t devpts devpts /dev/pts; }
ln -sfn /proc/self/fd /dev/fd
for each in 0:stdin 1:stdout 2:stderr; do ln -sfn "/proc/self/fd/${each%:*}" "/dev/${each#*:}"; done
mkdir -p /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs "$run/munge"
# The wrappers in it are for the machine outside; jobs bring its PATH along.
if [ -d "$run/bin" ]; then mount -t tmpfs -o mode=755 tmpfs "$run/bin"; fi
mkdir -p /run/slurm/spool /run/lock /run/sshd /root/.ssh
echo "$node" >/proc/sys/kernel/hostname
cp "$run/etc/hosts" /etc/hosts
ln -sfn "$run/etc" /etc/slurm
number=0
for share in $shares; do
    mkdir -p "$share"
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=none "share$number" "$share" ||
        stop "the folder $share of the machine outside cannot be mounted"
    number=$((number + 1))
done

interface_of() { # MAC: what the kernel called it
    for each in /sys/class/net/*; do
        read -r address <"$each/address"
        [ "$address" != "$1" ] || { echo "${each##*/}"; return; }
    done
    stop "no interface with address $1"
}

# As an idle rail's counters must stand still.
for each in all default; do echo 1 >"/proc/sys/net/ipv6/conf/$each/disable_ipv6"; done
ip link set lo up
ip link set "$(interface_of "$management_mac")" name mgmt0
ip addr add "$management_address/24" dev mgmt0
ip link set mgmt0 up
rail=0
for mac in $rail_macs; do
    ip link set "$(interface_of "$mac")" name "rail$rail" mtu "$mtu"
    ip addr add "198.19.$rail.$host_number/24" dev "rail$rail"
    ip link set "rail$rail" up
    rdma link add "rxe$rail" type rxe netdev "rail$rail" || stop "no Soft-RoCE device over rail$rail"
    rail=$((rail + 1))
done
tc -batch "$run/etc/$node.tc" || stop "the rails could not be shaped"

mkdir -p /run/fabricproof-ssh
cp "$run/etc/ssh/host_key" /run/fabricproof-ssh/host_key
cp "$run/etc/ssh/client_key.pub" /run/fabricproof-ssh/authorized_keys
chmod 600 /run/fabricproof-ssh/*
/usr/sbin/sshd -f "$run/etc/ssh/sshd_config" -o "ListenAddress=$management_address" || stop "sshd does not start"
munged --foreground --force --key-file="$run/etc/munge.key" --socket="$run/munge/munge.socket.2" \
    --pid-file="$run/munge/munged.pid" --seed-file="$run/munge/munged.seed" \
    >>"$run/log/munged-$node.log" 2>&1 </dev/null &
tries=0
while [ ! -S "$run/munge/munge.socket.2" ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || stop "munged does not start"
    sleep 0.1
done
setsid slurmd -D -N "$node" >>"$run/log/slurmd-$node.log" 2>&1 </dev/null &
read -r seconds _ </proc/uptime
echo "fabricproof-guest: UP after $seconds s"
cd /
trap '' HUP INT TERM
while :; do sleep 2147483 & wait; done
