# What one machine shows of itself, in sections: a POSIX shell script, because a compute node may
# have no Python.  Every line it prints is read by fabricproof.discover.host; "#== end" says whole.
# $1: where sysfs is (tests give another place).  Nothing is changed, no rights are needed; what
# only root may read is left out.
sys=${1:-/sys}
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
LC_ALL=C
export PATH LC_ALL
tab=$(printf '\t')

section() { printf '#== %s\n' "$1"; }
# a hung tool (a dead file server, a stuck driver) must not hang the rest
limited() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }
content() { cat "$1" 2>/dev/null | head -n 1; }
field() { [ -z "$2" ] || printf '%s%s=%s' "$tab" "$1" "$2"; }
base() { target=$(readlink "$1" 2>/dev/null) && printf '%s' "${target##*/}"; }

# the PCI function behind a device folder, with what its link trained to
pci() {
    slot=$(cd "$1" 2>/dev/null && pwd -P) || return 0
    while [ -n "$slot" ] && [ ! -e "$slot/current_link_speed" ]; do
        case ${slot##*/} in
            [0-9a-f]*:[0-9a-f]*:[0-9a-f]*.[0-7]) break ;;
        esac
        slot=${slot%/*}
    done
    [ -n "$slot" ] || return 0
    field pci "${slot##*/}"
    for each in current_link_speed current_link_width max_link_speed max_link_width numa_node; do
        field "$each" "$(content "$slot/$each")"
    done
    printf '%s\n' "${slot##*/}" >&3
}

looked() {
    section host
    printf 'name=%s\n' "$(uname -n)"
    printf 'boot=%s\n' "$(content /proc/sys/kernel/random/boot_id)"
    printf 'cpus=%s\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
    printf 'arch=%s\n' "$(uname -m)"
    printf 'kernel=%s\n' "$(uname -r)"
    printf 'os=%s\n' "$(. /etc/os-release 2>/dev/null && printf '%s' "$PRETTY_NAME")"
    printf 'user=%s\n' "$(id -u)"

    section numa
    for each in "$sys"/devices/system/node/node[0-9]*; do
        [ -e "$each/cpulist" ] && printf '%s%s\n' "${each##*/}" "$(field cpus "$(content "$each/cpulist")")"
    done

    section net
    for each in "$sys"/class/net/*; do
        [ -e "$each/mtu" ] || continue
        printf '%s' "${each##*/}"
        for key in operstate speed mtu type; do field "$key" "$(content "$each/$key")"; done
        field driver "$(base "$each/device/driver")"
        field master "$(base "$each/master")"
        [ -e "$each/device" ] || printf '%svirtual=1' "$tab"
        [ -e "$each/bonding" ] && printf '%sbond=1' "$tab"
        [ -e "$each/bridge" ] && printf '%sbridge=1' "$tab"
        [ -e "$each/device" ] && pci "$each/device"
        echo
    done

    section infiniband
    for each in "$sys"/class/infiniband/*/ports/[0-9]*; do
        [ -e "$each/state" ] || continue
        hca=${each%/ports/*}
        printf '%s' "${hca##*/}"
        field port "${each##*/}"
        for key in state rate link_layer; do field "$key" "$(content "$each/$key")"; done
        field firmware "$(content "$hca/fw_ver")"
        field type "$(content "$hca/hca_type")"
        field board "$(content "$hca/board_id")"
        field driver "$(base "$hca/device/driver")"
        field netdev "$(content "$each/gid_attrs/ndevs/0")"
        pci "$hca/device"
        echo
    done
}

# descriptor 3 collects the PCI functions that matter
addresses=$({ looked >&4; } 3>&1 4>&5) 5>&1

section lspci
for each in $(printf '%s\n' "$addresses" | sort -u); do
    command -v lspci >/dev/null 2>&1 || break
    limited 10 lspci -vv -s "$each" 2>/dev/null | grep -E '^[0-9a-f]|DevCtl:|MaxPayload|LnkSta:|denied'
done
section addresses
command -v ip >/dev/null 2>&1 && limited 5 ip -o -4 addr show 2>/dev/null
section qdisc
command -v tc >/dev/null 2>&1 && limited 5 tc qdisc show 2>/dev/null | grep -E '^qdisc (tbf|htb|cake|netem)'
section ethtool
for each in "$sys"/class/net/*; do
    [ -e "$each/device" ] && command -v ethtool >/dev/null 2>&1 || continue
    firmware=$(limited 5 ethtool -i "${each##*/}" 2>/dev/null |
        sed -n 's/^firmware-version: \(..*\)/\1/p')
    # the fastest of the modes that the port supports (25000baseCR/Full), in Mb/s
    best=$(limited 5 ethtool "${each##*/}" 2>/dev/null | tr -c '[:alnum:]' '\n' |
        sed -n 's/^\([0-9][0-9]*\)base.*/\1/p' | sort -n | tail -n 1)
    printf '%s%s%s\n' "${each##*/}" "$(field firmware "$firmware")" "$(field best "$best")"
done
section ibv_devinfo
command -v ibv_devinfo >/dev/null 2>&1 && limited 10 ibv_devinfo 2>/dev/null

section modules
if [ -n "$LMOD_CMD" ] && [ -x "$LMOD_CMD" ]; then lmod=$LMOD_CMD; else
    for lmod in /usr/share/lmod/lmod/libexec/lmod /opt/ohpc/admin/lmod/lmod/libexec/lmod ''; do
        [ -x "$lmod" ] && break
    done
fi
if [ -n "$lmod" ]; then
    echo "system=lmod"
    LMOD_PAGER=none limited 30 "$lmod" sh -t avail 2>&1 >/dev/null
    LMOD_PAGER=none limited 60 "$lmod" sh -t spider 2>&1 >/dev/null
elif [ -n "$MODULES_CMD" ] && [ -e "$MODULES_CMD" ]; then
    echo "system=tmod4"
    limited 30 "$MODULES_CMD" sh avail -t 2>&1 >/dev/null
fi

section programs
for each in gcc gfortran clang icx mpirun mpiexec mpicc osu_bw IMB-MPI1 ucx_info fi_info \
    pmix_info sinfo srun make spack ibv_devinfo; do
    where=$(command -v "$each" 2>/dev/null) || continue
    case $each in
        osu_bw | IMB-MPI1 | srun | mpicc | spack | ibv_devinfo) said= ;;
        sinfo) said=$(limited 5 sinfo --version 2>/dev/null | head -n 1) ;;
        ucx_info) said=$(limited 5 ucx_info -v 2>/dev/null | head -n 1) ;;
        gcc) said=$(limited 5 gcc -dumpfullversion -dumpversion 2>/dev/null) ;;
        *) said=$(limited 5 "$each" --version 2>/dev/null | grep -E '[0-9]+\.[0-9]' | head -n 1) ;;
    esac
    printf '%s%s%s\n' "$each" "$(field path "$where")" "$(field said "$said")"
done
where=$(command -v g++ 2>/dev/null) && printf 'g++%s\n' "$(field path "$where")"
said=$(dpkg-query -W -f='${Version}' rdma-core 2>/dev/null) ||
    said=$(rpm -q --qf '%{VERSION}' rdma-core 2>/dev/null) || said=
[ -n "$said" ] && printf 'rdma-core%s%s\n' "$(field path /usr/bin/rdma)" "$(field said "$said")"

section headers
for each in slurm/slurm.h pmix.h ucp/api/ucp.h rdma/fabric.h infiniband/verbs.h; do
    for prefix in /usr /opt/slurm /opt/pmix /opt/ohpc/admin/pmix /opt/amazon/efa; do
        [ -e "$prefix/include/$each" ] && printf '%s%s\n' "$each" "$(field prefix "$prefix")"
    done
done

section pmi2
for each in /usr/lib/*/libpmi2.so.0 /usr/lib64/libpmi2.so.0 /usr/lib64/libpmi2.so /opt/slurm/lib/libpmi2.so.0; do
    [ -e "$each" ] && echo "$each"
done

section missing
for each in ip tc ethtool lspci ibv_devinfo; do
    command -v "$each" >/dev/null 2>&1 || echo "$each"
done
section end
