#!/bin/bash
# Stacks built by Spack, on the virtual cluster: build (or reuse) Open MPI, MPICH and Intel MPI's
# OSU and IMB, then the quick checks on them beside mpi4py's ports.
# Needs a Spack ($SPACK_ROOT, or spack on PATH); where a machine has none, this
# says so and ends with 77: skipped, not passed.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
site=vcluster-spack

if [ -z "${SPACK_ROOT:-}" ] && ! command -v spack >/dev/null 2>&1; then
    echo "stacks by Spack: SKIPPED (3 stacks, their checks, tests marked spack):" \
        "no Spack (SPACK_ROOT, PATH) on this machine" >&2
    exit 77
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "stacks by Spack: SKIPPED, the virtual cluster needs root" >&2
    exit 77
fi

echo "== stacks by Spack"
.venv/bin/fabricproof stack install openmpi5 mpich5 intelmpi
.venv/bin/fabricproof stack build --site $site
.venv/bin/fabricproof stack list --site $site
echo "== the same checks on what Spack built and on the ports"
.venv/bin/fabricproof vcluster up --rate 200mbit
.venv/bin/fabricproof run --site $site -t quick -t ethernet "$@"
