#!/bin/bash
# Around a benchmark with one rank on each node, below rank.sh:
#   each_node.sh "NAME=VALUE ..." "NAME=VALUE ..." -- PROGRAM [ARG...]
# The first words are the variables of rank 0's node, the next those of rank 1's, and so on.
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
index=0
settings=""
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    [ $index != "$rank" ] || settings=$1
    index=$((index + 1))
    shift
done
shift
[ "$rank" -lt $index ] || { echo "each_node.sh: nothing is said for rank $rank" >&2 && exit 74; }
# No value has blanks: they are names of interfaces and of transports.
# shellcheck disable=SC2086
exec env $settings "$@"
