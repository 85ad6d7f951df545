#!/bin/bash
# The kernel of a campaign over all nodes as the program of a leg, on two of them:
#   rank.sh kernel.sh STEP...
# A STEP is what stands behind that word in the kernel's schedule.  The job has built ./kernel.  The
# first rank shows the record, as other programs print their table.
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
record="$FABRICPROOF_LEG/kernel.${FABRICPROOF_PART:-0}"
{
    printf 'fabricproof-pairs 1\nnap_us %d\nround_seconds 3600\n' "${FABRICPROOF_NAP_US:-0}"
    printf 'step %s\n' "$@"
    printf 'rounds\nround 0 0 1\nend\n'
} >"$record.schedule.$rank" || exit 74
./kernel "$record.schedule.$rank" "$record" || exit
[ "$rank" != 0 ] || cat "$record"
