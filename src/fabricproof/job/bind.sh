#!/bin/bash
# Around a benchmark, below rank.sh:  bind.sh near|far|as_launched RAIL PROGRAM [ARG...]
# Moves itself to a CPU of the NUMA node that RAIL's slot belongs to, to one of another, or nowhere;
# and leaves in the leg's folder bind.RANK.PART: what was asked, what the node has, and on which
# CPUs the program could run while it ran.  An MPI may move its ranks once more in MPI_Init: only the
# program's own list counts.
bind=$1 rail=$2
shift 2
here=${BASH_SOURCE[0]%"${BASH_SOURCE[0]##*/}"}
. "${here:-./}sockets.sh" || exit 74
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
out="$FABRICPROOF_LEG/bind.$rank.${FABRICPROOF_PART:-0}"

allowed() { # PID
    local key value
    while read -r key value; do
        [ "$key" = Cpus_allowed_list: ] && echo "$value"
    done 2>/dev/null <"/proc/$1/status"
}

home_of "$rail"
{
    echo "bind $bind"
    echo "rail $rail"
    echo "home ${home:--1}"
} >"$out" || exit 74
mine=" $(each_cpu "$(allowed $$)" | tr '\n' ' ')"
chosen=""
for folder in "$sys"/devices/system/node/node[0-9]*; do
    cpus=""
    { read -r cpus <"$folder/cpulist"; } 2>/dev/null
    [ -n "$cpus" ] || continue
    number=${folder##*/node}
    echo "numa $number $cpus" >>"$out"
    [ -z "$chosen" ] || continue
    case $bind in
    near) [ "$number" = "$home" ] || continue ;;
    far) [ "$number" != "$home" ] || continue ;;
    *) continue ;;
    esac
    # The last one that the job may use: the first of a node takes interrupts as a rule.
    for cpu in $(each_cpu "$cpus"); do
        [[ "$mine" == *" $cpu "* ]] && chosen=$cpu
    done
done
if [ -n "$chosen" ]; then
    echo "chosen $chosen" >>"$out"
    taskset -cp "$chosen" $$ >/dev/null || exit 74
fi

"$@" &
program=$!
trap 'kill -TERM $program 2>/dev/null' TERM INT
while kill -0 $program 2>/dev/null; do
    now=$(allowed $program)
    [ -z "$now" ] || seen=$now
    read -rt 0.2 <> <(:)
done
wait $program
status=$?
echo "ran ${seen:-unknown}" >>"$out"
exit $status
