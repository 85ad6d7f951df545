# What Slurm says of its cluster, in sections, read by fabricproof.nodes.discover.cluster.  Asked on the
# head node only.  A controller that does not answer costs ten seconds a question, not for ever.
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL

section() { printf '#== %s\n' "$1"; }
limited() { if command -v timeout >/dev/null 2>&1; then timeout -k 2 "$@"; else shift; "$@"; fi; }

section where
printf 'sinfo=%s\n' "$(command -v sinfo 2>/dev/null)"
printf 'conf=%s\n' "$SLURM_CONF"
printf 'version=%s\n' "$(limited 10 sinfo --version 2>/dev/null)"
section partitions
limited 10 sinfo -h -o '%R|%a|%l|%D|%c|%t|%N' || { echo "status=$?"; exit 0; }
section default
limited 10 sinfo -h -o '%P' | sed -n 's/\*$//p' | sort -u
section config
limited 10 scontrol show config |
    grep -E '^ *(AccountingStorageType|ClusterName|MpiDefault|SelectType|TaskPlugin|TopologyPlugin) *='
section sharing
limited 10 scontrol -o show partition 2>/dev/null |
    grep -oE '(PartitionName|OverSubscribe)=[^ ]*' | paste -d ' ' - -
section topology
limited 10 scontrol show topology 2>/dev/null | head -n 200
section licenses
limited 10 scontrol show licenses 2>/dev/null
section mpi
limited 10 srun --mpi=list 2>&1
section end
