#!/bin/bash
# A night on the virtual cluster that is up: what it would start, `reframe -r -t nightly` typed
# literally, and then what a site's timer does: `fabricproof nightly`
# confirms the run that was typed.  Exit status: that of what is confirmed.
#
#   ci/night.sh             all of it: some 15 minutes on two cores
#   ci/night.sh -p STACK    one stack of it, as CI does
#
# Four nodes and their switches share the cores of one machine, with whatever else it does: what is
# red, after its own second look, is looked at again on the same nodes and with other partners when
# the night is over.  Both outcomes are printed and kept.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
mkdir -p work
said=work/night.txt

.venv/bin/fabricproof plan --site vcluster -t nightly "$@"
(
    . "$root/env.sh" vcluster
    cd /
    reframe -r -t nightly "$@"
) >"$said" 2>&1 || true # its verdict is read from what it left
grep -vE '^\[ +(RUN|SKIP|OK) ' "$said" || true
run=$(sed -nE 's/.*\(run ([0-9TZ]+-[0-9a-f]+)\)$/\1/p' "$said" | tail -n 1)
[ -n "$run" ] || { echo "night: no run came to an end" >&2; exit 4; }
exec .venv/bin/fabricproof nightly "$run" --site vcluster --no-notify
