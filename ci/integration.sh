#!/bin/bash
# The integration run: the acceptance on a virtual cluster as a person would start it, verbs on
# guests, a night, then faults made for real, then clusters that come and go.  Needs root; everything
# comes down again.
#
#   ci/integration.sh         what CI runs: 45 minutes at most on two cores
#   ci/integration.sh long    everything: every stack over verbs, a whole night, tests marked long
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

if [ "$(id -u)" -ne 0 ]; then
    echo "integration: SKIPPED, it needs root (namespaces, Slurm's daemons)" >&2
    exit 77
fi
or_long='' of_rdma=short of_night=(-p openmpi5)
[ "${1:-}" != long ] || { or_long=' or long' of_rdma='' of_night=(); }
trap '.venv/bin/fabricproof vcluster down >/dev/null 2>&1 || true' EXIT

new_cluster() {
    .venv/bin/fabricproof vcluster down && .venv/bin/fabricproof vcluster up --rate 200mbit
}
. ci/live.sh
say() { echo "== $* ($((SECONDS / 60)) min)"; }

say "the acceptance, as make accept runs it"
unless_busy vcluster ci/accept.sh
say "real ReFrame, typed literally, from another folder"
(
    cd /
    . "$root/env.sh" vcluster
    reframe -r -t ethernet -n OsuLatency -p openmpi5
    reframe -l -t infiniband | tail -n 3
)
say "real verbs: guests with Soft-RoCE, everything infiniband"
.venv/bin/fabricproof vcluster down
ci/rdma.sh $of_rdma || { status=$?; [ $status -eq 77 ] || exit $status; }
say "an InfiniBand fabric that ibsim plays"
.venv/bin/pytest -m ibsim tests/subnet
.venv/bin/fabricproof vcluster up --rate 200mbit
say "a night"
unless_busy vcluster ci/night.sh "${of_night[@]}"
say "faults made for real"
live --durations=12 -m "slurm$or_long" tests/slurm tests/docs
say "every benchmark once, in its short form"
make bench-short
say "how often the verdict is wrong, simulated, in its short form"
make proof
say "the report in a real browser"
.venv/bin/pytest -m browser tests/report/html
say "stacks built by Spack"
ci/spack.sh || { status=$?; [ $status -eq 77 ] || exit $status; }
.venv/bin/fabricproof vcluster down
say "MPI stacks and clusters that come and go"
live --durations=12 -m "mpi or vcluster$or_long" tests/stacks tests/vcluster tests/tuning
