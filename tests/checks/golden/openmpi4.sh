# OsuMultiRailBandwidth on openmpi4: the job, then its legs.
#!/bin/bash
#SBATCH --job-name="rfm_OsuMultiRailBandwidth_863c220a"
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=rfm_job.out
#SBATCH --error=rfm_job.err
#SBATCH --time=0:5:0
#SBATCH --partition=compute
#SBATCH --licenses=fabric:1
#SBATCH --no-requeue

_onerror()
{
    exitcode=$?
    echo "-reframe: command \`$BASH_COMMAND' failed (exit code: $exitcode)"
    exit $exitcode
}

trap _onerror ERR

fabricproof_end=$PWD/job_end fabricproof_reached=no
export SLURM_EXPORT_ENV=ALL
rm -f "$fabricproof_end"
fabricproof_ends() { # how this job ended, for who judges it
    local status=$?
    printf 'job %s\nnodes %s\nreached %s\nstatus %s\n' \
        "${SLURM_JOB_ID:-none}" "${SLURM_JOB_NODELIST:-none}" \
        "$fabricproof_reached" "$status" >"$fabricproof_end.part" &&
        mv -f "$fabricproof_end.part" "$fabricproof_end"
}
trap fabricproof_ends EXIT
for each in /usr/share/lmod/lmod/init/bash /opt/ohpc/admin/lmod/lmod/init/bash /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/modules/init/bash /usr/share/Modules/init/bash; do type module >/dev/null 2>&1 && break; [ ! -r "$each" ] || . "$each"; done
module use {STACKS}/modulefiles
module load openmpi4
export OMPI_MCA_btl_tcp_links=2
[ -x {PYTHON} ] || { echo 'this node has no {PYTHON} (python of partition compute in site.toml)' >&2; exit 127; }
bash legs.sh
fabricproof_reached=yes
#!/bin/bash
# Written by fabricproof for this job.  To repeat a leg by hand: allocate the same nodes, load the
# same modules as the job script does, and run   bash legs.sh LEG
# Every leg leaves legs/LEG.ATTEMPT/: stdout, stderr, status, and rank.N.PART with where each rank
# ran and all interface counters before and after it (a leg may need several starts, its parts).
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 74
here=$PWD

attempt() { # LEG ATTEMPT: run once, keep everything
    export FABRICPROOF_LEG="$here/legs/$1.$2"
    mkdir -p "$FABRICPROOF_LEG" || exit 74
    echo "== $1, attempt $2"
    local begin end from=$SECONDS
    printf -v begin '%(%s)T' -1
    "leg_$1" >"$FABRICPROOF_LEG/stdout" 2>"$FABRICPROOF_LEG/stderr"
    echo $? >"$FABRICPROOF_LEG/status"
    printf -v end '%(%s)T' -1
    ran+=("$FABRICPROOF_LEG|$begin $end")
    [ $((SECONDS - told)) -lt 60 ] || neighbours
    longest=$((SECONDS - from + 1 > ${longest:-1} ? SECONDS - from + 1 : ${longest:-1}))
    cat "$FABRICPROOF_LEG/stdout"
    cat "$FABRICPROOF_LEG/stderr" >&2
}

ran=() told=0 # attempts whose neighbours were not asked for; when that was done last
neighbours() { # to each of them: the jobs on our nodes since it began; squeue knows the ended ones
    local each jobs=
    [ -n "${SLURM_JOB_ID:-}" ] && [ ${#ran[@]} -gt 0 ] || return 0
    # of a job that ended squeue knows for MinJobAge (slurm.conf(5)), 300 s by default
    jobs=$(
        exec 2>/dev/null </dev/null
        env -u SQUEUE_USERS -u SQUEUE_PARTITION -u SQUEUE_ACCOUNT -u SQUEUE_QOS -u SQUEUE_NAMES             SLURM_TIME_FORMAT=%s timeout -k 1 5             squeue -h -t all -w "$SLURM_JOB_NODELIST" -o '%A|%u|%S|%e|%N' && echo answered
    )
    for each in "${ran[@]}"; do
        printf '%s
' "$SLURM_JOB_ID ${each##*|}" ${jobs:+"$jobs"} >"${each%|*}/jobs"
    done
    ran=() told=$SECONDS
}

ask_judge() { # [LEGS]: the legs to run next, to $again; LEGS still fit in the job's time
    again=
    neighbours
    [ $# = 0 ] || printf '%s\n' "$1" >&"${JUDGE[1]}" || return
    IFS= read -r again <&"${JUDGE[0]}" || { again= && return 1; }
} 2>/dev/null

means_nothing() { # whether a node said, or all of them together show, that the leg means nothing
    bash "$here/ask.sh" settle
    for each in "$FABRICPROOF_LEG"/no.*; do [ ! -e "$each" ] || return 0; done
    return 1
}

leg_rail0() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}

leg_rail1() { # osu_bw over rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail1 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}

leg_rail0_rail1() { # osu_bw over rail0+rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS='rail0 rail1' \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0,rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024:19:2:64 &&
    env FABRICPROOF_PART=1 FABRICPROOF_RAILS='rail0 rail1' \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0,rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 2048,4096,8192:19:2:64 &&
    env FABRICPROOF_PART=2 FABRICPROOF_RAILS='rail0 rail1' \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0,rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 16384,32768,65536,131072,262144,524288,1048576:6:2:4
}

leg_rail0_turn() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 262144,524288,1048576:3:2:4
}

leg_rail1_turn() { # osu_bw over rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail1 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 262144,524288,1048576:3:2:4
}

leg_rail0_rail1_turn() { # osu_bw over rail0+rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS='rail0 rail1' \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0,rail1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi4/venv/bin/python -EsP {FABRICPROOF}/stacks/portrunner.py {STACKS}/openmpi4/share/osu-mpi4py/osu_bw.py 262144,524288,1048576:6:2:4
}

inventory() { # what each node is made of, to inventory/NODE.txt; no measurement depends on it
    rm -rf inventory && mkdir inventory || return
    env \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_osc=pt2pt \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 1 12 \
    srun --mpi=pmix "$here/inventory.sh" "$here/inventory" 5 >inventory/stdout 2>inventory/stderr </dev/null
}

if [ $# -gt 0 ]; then
    for leg in "$@"; do attempt "$leg" "hand.$$"; done
    neighbours
    exit
fi
# A job that is started again must not be judged by what its first start left.
rm -rf legs second_look.err
# The judge lives as long as this script, so that it starts once, before anything is measured.  It
# may die: a write to it must not end the script.
trap : PIPE
coproc JUDGE { exec {PYTHON} -E -m fabricproof.job.second_look "$here" 2>>second_look.err; }
inventory
ask_judge || [ -s second_look.err ] || echo "the judge in the job did not start" >>second_look.err
for leg in rail0 rail1 rail0_rail1; do attempt "$leg" 1; done
# A second look, on the same nodes, before anything is called red; then rounds of what is related,
# in turn, until each relation is decided or has had its share.
for ((look = 0; look < 25; look++)); do
    ask_judge "$(((300 - 30 - SECONDS) / ${longest:-1}))" || [ -s second_look.err ] || echo "the judge in the job died" >>second_look.err
    [ -n "$again" ] || break
    longest=1 # of what is run last: rounds are as long as the rounds before
    for leg in $again; do
        for ((number = 1; ; number++)); do [ -d "legs/$leg.$number" ] || break; done
        attempt "$leg" "$number"
    done
done
exit 0
