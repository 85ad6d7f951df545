#!/bin/bash
# The integration run: the acceptance on a virtual cluster as a person would start it, verbs on
# guests, a night, then faults made for real, then clusters that come and go.  Needs root; everything
# comes down again.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

if [ "$(id -u)" -ne 0 ]; then
    echo "integration: SKIPPED, it needs root (namespaces, Slurm's daemons)" >&2
    exit 77
fi
trap '.venv/bin/fabricproof vcluster down >/dev/null 2>&1 || true' EXIT

new_cluster() {
    .venv/bin/fabricproof vcluster down && .venv/bin/fabricproof vcluster up --rate 200mbit
}
. ci/live.sh

echo "== the acceptance, as make accept runs it"
ci/accept.sh
echo "== real ReFrame, typed literally, from another folder"
(
    cd /
    . "$root/env.sh" vcluster
    reframe -r -t ethernet -n OsuLatency -p openmpi5
    reframe -l -t infiniband | tail -n 3
)
echo "== real verbs: guests with Soft-RoCE, everything infiniband"
.venv/bin/fabricproof vcluster down
ci/rdma.sh || { status=$?; [ $status -eq 77 ] || exit $status; }
echo "== an InfiniBand fabric that ibsim plays"
.venv/bin/pytest -m ibsim tests/subnet
.venv/bin/fabricproof vcluster up --rate 200mbit
echo "== a night"
ci/night.sh -p openmpi5
echo "== faults made for real"
live --durations=12 -m slurm tests/slurm tests/docs
echo "== the report in a real browser"
.venv/bin/pytest -m browser tests/report/html
echo "== stacks built by Spack"
ci/spack.sh || { status=$?; [ $status -eq 77 ] || exit $status; }
.venv/bin/fabricproof vcluster down
echo "== MPI stacks and clusters that come and go"
live --durations=12 -m 'mpi or vcluster' tests/stack tests/vcluster tests/tuning
