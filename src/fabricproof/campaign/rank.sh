#!/bin/bash
# Started by the launcher once for every rank, around the benchmark:  rank.sh PROGRAM [ARG...]
# Reads every interface's counters before and after, and says where this rank runs and which MPI
# library the loader gives the program here.  Only bash's own commands and the loader's ldd, so that
# it costs a few milliseconds and needs nothing on the node.
# FABRICPROOF_LEG is this leg's folder, which all nodes share.
if [ ! -d "${FABRICPROOF_LEG:-}" ]; then
    echo "rank.sh: FABRICPROOF_LEG is no folder: '${FABRICPROOF_LEG:-}'" >&2
    exit 74
fi
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
out="$FABRICPROOF_LEG/rank.$rank.${FABRICPROOF_PART:-0}"

snapshot() { # before|after
    local folder port name value line key
    for folder in /sys/class/net/*; do
        [ -d "$folder" ] || continue # bonding_masters is a file
        line=""
        for key in tx_bytes rx_bytes tx_packets rx_packets tx_errors rx_errors tx_dropped rx_dropped; do
            { read -r value <"$folder/statistics/$key"; } 2>/dev/null && line+=" $key=$value"
        done
        echo "$1 ${folder##*/}$line"
    done
    for port in /sys/class/infiniband/*/ports/*; do
        [ -d "$port" ] || continue
        name=${port#/sys/class/infiniband/}
        line=""
        for key in port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets symbol_error \
            link_downed port_rcv_errors port_xmit_discards local_link_integrity_errors \
            excessive_buffer_overrun_errors; do
            { read -r value <"$port/counters/$key"; } 2>/dev/null && line+=" $key=$value"
        done
        echo "$1 ${name%%/*}:${name##*/}$line"
    done
}

facts() {
    local folder port name value line key
    for folder in /sys/class/net/*; do
        [ -d "$folder" ] || continue # bonding_masters is a file
        line=""
        for key in mtu speed operstate address device/numa_node; do
            { read -r value <"$folder/$key"; } 2>/dev/null && line+=" ${key##*/}=$value"
        done
        echo "fact ${folder##*/}$line"
    done
    for port in /sys/class/infiniband/*/ports/*; do
        [ -d "$port" ] || continue
        name=${port#/sys/class/infiniband/}
        line=""
        for key in state rate link_layer ../../fw_ver ../../device/numa_node; do
            { read -r value <"$port/$key"; } 2>/dev/null && line+=" ${key##*/}=${value// /_}"
        done
        echo "fact ${name%%/*}:${name##*/}$line"
    done
}

# The library as this very job's variables make it: a module or a path that somebody changed shows.
# A line of ldd:  libmpi.so.40 => PATH (0x...), or, where it is preloaded,  PATH (0x...).
libraries() {
    local line found=""
    type -P ldd >/dev/null || { echo "library unknown" && return; }
    while read -r line; do
        case "${line%% (0x*}" in
        libmpi.so.* | libmpich.so.* | */libmpi.so.*[0-9] | */libmpich.so.*[0-9])
            line=${line#* => } found+="${found:+ and }${line%% (0x*}" ;;
        esac
    done < <(ldd "$(type -P -- "$1")" 2>/dev/null)
    echo "library ${found:-none}"
}

cpus=unknown
while read -r key value; do
    [ "$key" = Cpus_allowed_list: ] && cpus=$value
done </proc/self/status
read -r kernel </proc/sys/kernel/osrelease

{
    echo "rank $rank"
    echo "node $node"
    echo "cpus $cpus"
    echo "kernel $kernel"
    libraries "$1"
    facts
    snapshot before
} >"$out" || exit 74
"$@"
status=$?
{
    snapshot after
    echo "status $status"
} >>"$out" || exit 74
exit $status
