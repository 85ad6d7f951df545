#!/bin/bash
# Real verbs: a virtual cluster of guests with Soft-RoCE, everything tagged infiniband that is quick
# typed literally, faults made for real, and the readers of an InfiniBand fabric against ibsim.
#
#   ci/rdma.sh              every stack, every fault
#   ci/rdma.sh short        one stack in the suite, no rounds over two rails and none of all pairs (two
#                           minutes of two emulated cores each), and no test marked long, as CI does
#
# Exit status 77 with the reason where this machine cannot (no root, no qemu, no tap devices, too
# little memory); never green for what was not run.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
name=rdma
stacks=() marks="rdma or long"
[ "${1:-}" != short ] || { stacks=(-p '^openmpi4$' -x '^(OsuMultiRailBandwidth|AllPairs)') marks=rdma; }

skip() { echo "rdma: SKIPPED, $*" >&2; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "it needs root (tap devices, network namespaces)"
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
[ "$available" -ge 4000 ] || skip "$available MB of memory, 4000 are needed"

ci/bootstrap.sh all
for tool in qemu-system-x86_64 mmdebstrap mksquashfs; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null ||
        skip "no $tool on this machine, and its package could not be installed"
done
.venv/bin/fabricproof stack install >/dev/null

trap '.venv/bin/fabricproof vcluster down --name $name >/dev/null 2>&1 || true' EXIT
new_cluster() {
    .venv/bin/fabricproof vcluster down --name $name &&
        .venv/bin/fabricproof vcluster up --kind rdma --name $name
}
. ci/live.sh

began=$SECONDS
.venv/bin/fabricproof vcluster up --kind rdma --name $name
echo "rdma: up after $((SECONDS - began)) s"
export FABRICPROOF_VCLUSTER=$name
began=$SECONDS
# No --max-retries: a job looks twice itself, and what is red then is red.  ReFrame would judge by
# its last try alone, on the same cluster, also where a verdict is about the path and not the speed.
mkdir -p work
said=work/rdma.txt
(
    cd /
    . "$root/env.sh" vcluster-rdma
    reframe -r -t infiniband -t quick "${stacks[@]}"
) >"$said" 2>&1 || true # its verdict is read from what it left
grep -vE '^\[ +(RUN|SKIP) ' "$said" || true
run=$(sed -nE 's/.*\(run ([0-9TZ]+-[0-9a-f]+)\)$/\1/p' "$said" | tail -n 1)
[ -n "$run" ] || { echo "rdma: no run came to an end" >&2; exit 4; }
unless_busy vcluster-rdma .venv/bin/fabricproof report "$run" --site vcluster-rdma
echo "rdma: the quick infiniband suite took $((SECONDS - began)) s"
began=$SECONDS
live --durations=8 -m "$marks" tests/rdma
echo "rdma: faults took $((SECONDS - began)) s"
