#!/bin/bash
# Started on each node around the kernel of a soak:  optics.sh RAIL... -- COMMAND...
# Leaves in seen.NODE what the optics of each rail say before and after it, a line WHEN RAIL KEY:
# VALUE each.  ethtool may read them for root alone, as a rule: then the file is empty.
PATH=$PATH:/usr/sbin:/sbin
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
rails=()
while [ "$1" != -- ]; do
    rails+=("$1")
    shift
done
shift
look() {
    local rail each name
    for rail in "${rails[@]}"; do
        name=$rail
        case $rail in *:*)
            name=
            for each in "/sys/class/infiniband/${rail%%:*}/device/net/"*; do name=${each##*/}; done
            ;;
        esac
        timeout -k 1 3 ethtool -m "$name" 2>/dev/null |
            grep -E 'Module temperature|optical power|alarm' |
            sed "s/^[[:space:]]*/$1 $rail /"
    done >>"seen.$node"
}
look before
"$@"
status=$?
look after
exit $status
