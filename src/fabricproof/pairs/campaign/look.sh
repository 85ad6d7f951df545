#!/bin/bash
# Started once on each node before the kernel:  look.sh RAIL...
# Prints NODE RAIL STATE: an MPI does not start where a rail is down, and does not say whose it is.
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
for rail in "$@"; do
    state=absent
    case $rail in
    *:*)
        { read -r state <"/sys/class/infiniband/${rail%%:*}/ports/${rail#*:}/state"; } 2>/dev/null
        [ "$state" != "4: ACTIVE" ] || state=up
        ;;
    *)
        if [ ! -d "/sys/class/net/$rail" ] && [ -d "/sys/class/infiniband/$rail" ]; then
            state=up # a device without its port: the MPI will say
        else
            { read -r state <"/sys/class/net/$rail/operstate"; } 2>/dev/null
            [ "$state" != unknown ] || state=up # a driver that does not tell
        fi
        ;;
    esac
    echo "$node $rail ${state//[^A-Za-z0-9]/}"
done
