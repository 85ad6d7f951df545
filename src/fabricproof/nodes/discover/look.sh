# What one machine shows of itself, in sections: a POSIX shell script, because a compute node may
# have no Python.  Every line it prints is read by fabricproof.nodes.discover.read; "#== end" says whole.
# $1: where sysfs is, $3: where proc is (tests give other places).  Nothing is changed, no rights
# are needed; what only root may read is left out.
# $2: "cluster" (what a site file needs: software too), or "node" (what the node is made of and how
# it is tuned, for the inventory of a job: no software, and a tool gets two seconds).
sys=${1:-/sys}
what=${2:-cluster}
proc=${3:-/proc}
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin
LC_ALL=C
export PATH LC_ALL
tab=$(printf '\t')

section() { printf '#== %s\n' "$1"; }
# a hung tool (a dead file server, a stuck driver) must not hang the rest
exec 6>&1 # "#!! ..." lines: who did not answer; past the pipes that sift a tool's output
limited() {
    [ "$what" = node ] && shift && set -- 2 "$@"
    command -v timeout >/dev/null 2>&1 || { shift && "$@" && return; return; }
    timeout -k 1 "$@"
    ended=$?
    case $ended in 124 | 137) shift && printf '#!! no answer: %s\n' "$*" >&6 ;; esac
    return $ended
}
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
    [ "$what" = node ] && made_of
    printf '%s\n' "${slot##*/}" >&3
}

# of the PCI function $slot: who made it, what the slot above it could do, who takes its interrupts
made_of() {
    made=$(content "$slot/vendor"):$(content "$slot/device")
    [ "$made" = : ] || field ids "$made"
    made=$(content "$slot/subsystem_vendor"):$(content "$slot/subsystem_device")
    [ "$made" = : ] || field subsystem "$made"
    above=${slot%/*}
    field above_speed "$(content "$above/max_link_speed")"
    field above_width "$(content "$above/max_link_width")"
    module=$(readlink "$slot/driver/module" 2>/dev/null) || module=
    [ -z "$module" ] || field driver_version "$(content "$sys/module/${module##*/}/version")"
    set --
    for irq in "$slot"/msi_irqs/[0-9]*; do
        [ -e "$irq" ] && set -- "$@" "$proc/irq/${irq##*/}/smp_affinity_list"
    done
    [ $# -eq 0 ] || field irq_cpus "$(cat "$@" 2>/dev/null | sort -u | tr '\n' ' ')"
    [ $# -eq 0 ] || field irqs $#
}

# how often each of several values stands there: "performance x 126 powersave x 2"
counted() { cat "$@" 2>/dev/null | sort | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/\2 x \1/' | tr '\n' ' '; }

machine() {
    cpu=$sys/devices/system/cpu
    printf 'cpu_model=%s\n' "$(sed -n 's/^model name[^:]*: *//p' "$proc/cpuinfo" 2>/dev/null | head -n 1)"
    printf 'microcode=%s\n' "$(sed -n 's/^microcode[^:]*: *//p' "$proc/cpuinfo" 2>/dev/null | head -n 1)"
    printf 'smt=%s\n' "$(content "$cpu/smt/control")"
    printf 'governor=%s\n' "$(counted "$cpu"/cpu[0-9]*/cpufreq/scaling_governor)"
    printf 'frequency_driver=%s\n' "$(content "$cpu/cpu0/cpufreq/scaling_driver")"
    printf 'no_turbo=%s\n' "$(content "$cpu/intel_pstate/no_turbo")"
    printf 'boost=%s\n' "$(content "$cpu/cpufreq/boost")"
    printf 'huge_pages=%s\n' "$(content "$sys/kernel/mm/transparent_hugepage/enabled")"
    printf 'locked_memory=%s\n' "$(ulimit -l 2>/dev/null)"
    runs='does not run'
    grep -lsx irqbalance "$proc"/[0-9]*/comm >/dev/null && runs=runs
    printf 'irqbalance=%s\n' "$runs"
    for each in kernel/numa_balancing net/core/rmem_max net/core/wmem_max net/core/busy_poll \
        net/core/netdev_max_backlog net/ipv4/tcp_rmem net/ipv4/tcp_wmem \
        net/ipv4/tcp_congestion_control net/ipv4/tcp_mtu_probing; do
        printf '%s=%s\n' "${each##*/}" "$(content "$proc/sys/$each" | tr '\t' ' ')"
    done
    printf 'options=%s\n' "$(tr ' ' '\n' <"$proc/cmdline" 2>/dev/null | grep -E \
        '^(mitigations|isolcpus|nohz_full|rcu_nocbs|iommu|(intel|amd)_iommu|pci|pcie_aspm|nosmt|default_hugepagesz|hugepages|transparent_hugepage|(processor|intel_idle)\.max_cstate|numa_balancing|idle)(=|$)' |
        sort | tr '\n' ' ')"
}

distance() { [ "$what" = node ] && field distance "$(content "$1/distance")"; }

# of a RoCE port: the first ten of its GIDs, and by which versions of RoCE they are reached
reached_by() {
    field gids "$(cat "$1"/gids/[0-9] 2>/dev/null | tr '\n' ' ')"
    field gid_types "$(cat "$1"/gid_attrs/types/[0-9] 2>/dev/null | sort -u | tr '\n' ,)"
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
        [ -e "$each/cpulist" ] && printf '%s%s%s\n' "${each##*/}" \
            "$(field cpus "$(content "$each/cpulist")")" "$(distance "$each")"
    done
    [ "$what" = node ] && section machine && machine

    section net
    for each in "$sys"/class/net/*; do
        [ -e "$each/mtu" ] || continue
        printf '%s' "${each##*/}"
        for key in operstate speed mtu type; do field "$key" "$(content "$each/$key")"; done
        field driver "$(base "$each/device/driver")"
        field master "$(base "$each/master")"
        for name in "$each"/device/cxi/*; do # Slingshot: what libfabric calls it
            [ -e "$name" ] && field cxi "${name##*/}"
        done
        [ -e "$each/device" ] || printf '%svirtual=1' "$tab"
        [ -e "$each/bonding" ] && printf '%sbond=1' "$tab"
        [ -e "$each/bridge" ] && printf '%sbridge=1' "$tab"
        [ "$what" = node ] && [ -e "$each/device" ] && field mac "$(content "$each/address")"
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
        # only rdma_rxe has it: no HCA, but the kernel's software over the interface that it names
        [ -e "$hca/parent" ] && printf '%ssoft=1' "$tab" && field parent "$(content "$hca/parent")"
        if [ "$what" = node ]; then
            field phys_state "$(content "$each/phys_state")"
            field hardware "$(content "$hca/hw_rev")"
            field guid "$(content "$hca/node_guid")"
            for key in lid sm_lid; do field "$key" "$(content "$each/$key")"; done
            field gid "$(content "$each/gids/0")"
            [ -e "$hca/parent" ] && reached_by "$each"
        fi
        pci "$hca/device"
        echo
    done
}

missing() {
    section missing
    for each in ip tc ethtool lspci ibv_devinfo "$@"; do
        command -v "$each" >/dev/null 2>&1 || echo "$each"
    done
}

# descriptor 3 collects the PCI functions that matter
addresses=$({ looked >&4; } 3>&1 4>&5) 5>&1

# what a cut-off look must not lose comes first
[ "$what" = node ] && missing ibstat

section lspci
for each in $(printf '%s\n' "$addresses" | sort -u); do
    command -v lspci >/dev/null 2>&1 || break
    limited 10 lspci -vv -s "$each" 2>/dev/null | grep -E '^[0-9a-f]|DevCap:|DevCtl:|MaxPayload|LnkSta:|denied'
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
verbose=
[ "$what" = node ] && verbose=-v
command -v ibv_devinfo >/dev/null 2>&1 && limited 10 ibv_devinfo $verbose 2>/dev/null |
    grep -vE 'GID\[|^[[:space:]]*$'

if [ "$what" = node ]; then
    section ibstat
    command -v ibstat >/dev/null 2>&1 && limited 2 ibstat 2>/dev/null
    # which switch each interface hangs on, where lldpd runs and lets us ask
    section lldp
    command -v lldpctl >/dev/null 2>&1 && limited 2 lldpctl -f keyvalue 2>/dev/null |
        grep -E '^lldp\..+\.(rid|chassis\.(mac|ip|local|ifname|name))='
    section nic
    owned=" $(ip -o -4 addr show 2>/dev/null | sed 's/^[0-9]*: *\([^ @]*\).*/\1/' | tr '\n' ' ')"
    command -v ethtool >/dev/null 2>&1 && for each in "$sys"/class/net/*; do
        name=${each##*/}
        # virtual interfaces without an address are those of containers and bridges
        [ -e "$each/device" ] || [ -e "$each/bonding" ] || case $owned in *" $name "*) ;; *) continue ;; esac
        [ "$name" = lo ] && continue
        for option in '' -i -k -g -l -a -c --show-fec; do
            limited 2 ethtool $option "$name" 2>/dev/null |
                sed "s/^[[:space:]]*//; s/^/$name$tab$option$tab/"
        done
    done
    # last, because some cards take long to read a cable's memory; the rest is kept if it hangs
    section transceiver
    command -v ethtool >/dev/null 2>&1 && for each in "$sys"/class/net/*; do
        [ -e "$each/device" ] || continue
        limited 2 ethtool -m "${each##*/}" 2>/dev/null |
            grep -E 'Identifier|Vendor (name|PN|SN|rev)|Transceiver type|[Ll]ength|Connector' |
            sed "s/^[[:space:]]*//; s/^/${each##*/}$tab-m$tab/"
    done
    section end
    exit 0
fi

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
for each in mpirun mpiexec osu_bw IMB-MPI1; do
    where=$(command -v "$each" 2>/dev/null) || continue
    case $each in
        mpi*) said=$(limited 5 "$each" --version 2>/dev/null | grep -E '[0-9]+\.[0-9]' | head -n 1) ;;
        *) said= ;;
    esac
    printf '%s%s%s\n' "$each" "$(field path "$where")" "$(field said "$said")"
done

section pmi2
for each in /usr/lib/*/libpmi2.so.0 /usr/lib64/libpmi2.so.0 /usr/lib64/libpmi2.so /opt/slurm/lib/libpmi2.so.0; do
    [ -e "$each" ] && echo "$each"
done

missing
section end
