#!/bin/bash
# Started by the launcher on every node before a leg:  ask.sh QUESTION [ARG...]
# and once more beside the legs when all have answered:  ask.sh settle
# Leaves no.RANK in the leg's folder, with the reason, where the leg would mean nothing: it is then
# not run but SKIPPED.  Bash alone; FABRICPROOF_SYS and FABRICPROOF_PROC are for tests.
leg=${FABRICPROOF_LEG:?is no folder}
here=${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}
. "${here:-./}sockets.sh" || exit 74
proc=${FABRICPROOF_PROC:-/proc}
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}

no() { echo "$*" >"$leg/no.$rank"; exit 0; }

two_sockets() { # RAIL: are near and far two things here?
    local each cpu cpus key value mine="" near="" far="" count=0 home=""
    for each in "$sys"/devices/system/node/node[0-9]*; do
        cpus=""
        { read -r cpus <"$each/cpulist"; } 2>/dev/null
        [ -n "$cpus" ] && count=$((count + 1))
    done
    [ $count -gt 1 ] || no "one NUMA node on $node: near and far are the same"
    # A device that is gone is a fault, and no reason to skip: the leg runs, and is red.
    [ -e "$sys/class/net/$1" ] || [ -d "$sys/class/infiniband/${1%%:*}" ] || return 0
    home_of "$1"
    [ "${home:--1}" -ge 0 ] || no "the NUMA node of $1 on $node is not known: no slot, or a BIOS that says nothing"
    while read -r key value; do
        [ "$key" = Cpus_allowed_list: ] && mine=$value
    done <"$proc/self/status"
    for each in "$sys"/devices/system/node/node[0-9]*; do
        cpus=""
        { read -r cpus <"$each/cpulist"; } 2>/dev/null
        for cpu in $(each_cpu "$cpus"); do
            [[ $'\n'"$(each_cpu "$mine")"$'\n' == *$'\n'"$cpu"$'\n'* ]] || continue
            if [ "${each##*/node}" = "$home" ]; then near=$cpu; else far=$cpu; fi
        done
    done
    [ -n "$near" ] && [ -n "$far" ] ||
        no "the job may use CPUs $mine of $node: all on one side of $1; ask for whole nodes"
}

gpus() { # KIND: does this node show a GPU to the job?
    local dev=${FABRICPROOF_DEV:-/dev} each what
    case $1 in
    cuda) what="$dev/nvidia[0-9]*" ;;
    rocm) what="$dev/kfd" ;;
    *) what="$dev/dri/renderD*" ;;
    esac
    for each in $what; do [ ! -e "$each" ] || return 0; done
    no "$node shows this job no GPU: there is no $what; does the partition's access ask for GPUs?"
}

address() { # HEX, as /proc/net/route has it: least byte first
    echo "$((16#${1:6:2})).$((16#${1:4:2})).$((16#${1:2:2})).$((16#${1:0:2}))"
}

interface_of() { # RAIL: sets interface to it, or to what a RoCE port DEVICE:PORT has its addresses of
    local device=$sys/class/infiniband/${1%%:*}
    interface=$1
    [[ $1 == *:* ]] || return 0
    # Linux Documentation/ABI/stable/sysfs-class-infiniband: gid_attrs/ndevs; rdma_rxe has parent too.
    { read -r interface <"$device/ports/${1##*:}/gid_attrs/ndevs/0" ||
        read -r interface <"$device/parent"; } 2>/dev/null
}

reach() { # RAIL_OF_NODE_0 RAIL_OF_NODE_1: which network is my rail in?
    local rail=${*:rank + 1:1} interface="" name network gateway mask
    interface_of "$rail"
    while read -r name network gateway _ _ _ _ mask _; do
        [ "$name" = "$interface" ] && [ "$gateway" = 00000000 ] && [ "$network" != 00000000 ] || continue
        echo "$rail of $node is in $(address "$network") mask $(address "$mask")" >"$leg/net.$rank"
        return
    done <"$proc/net/route"
    # A rail without an address is a fault, and no reason to skip: the leg runs, and is red.
}

settle() { # do the networks of all nodes agree?
    local each line first=""
    rank=settled
    for each in "$leg"/net.*; do
        [ -e "$each" ] && read -r line <"$each" || continue
        [ -n "$first" ] || first=$line
        [ "${line#* is in }" = "${first#* is in }" ] ||
            no "$first, $line: one cannot reach the other unless it is routed"
    done
}

"$@"
