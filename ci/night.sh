#!/bin/bash
# A night on the virtual cluster that is up: what it would cost, `reframe -r -t nightly` typed
# literally, and how far the plan was off.  Exit status: 0 only where nothing was red twice.
#
# Four nodes and their switches share the cores of one machine, with whatever else it does: a check
# that is red, after its own second look, runs once more by itself when the night is over.  Both
# verdicts are printed.
set -euo pipefail
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
mkdir -p work
said=work/night.txt

.venv/bin/fabricproof plan --site vcluster -t nightly
status=0
(
    . "$root/env.sh" vcluster
    cd /
    reframe -r -t nightly
) >"$said" 2>&1 || status=$?
grep -vE '^\[ +(RUN|SKIP|OK) ' "$said" || true
run=$(sed -nE 's/.*\(run ([0-9TZ]+-[0-9a-f]+)\)$/\1/p' "$said" | tail -n 1)
[ -n "$run" ] || { echo "night: no run came to an end" >&2; exit 4; }
.venv/bin/fabricproof plan --site vcluster --against "$run" --within 25 ||
    echo "night: the plan was off by more than 25 % (shared cores, or legs that ran again)"
[ $status -ne 0 ] || exit 0

red=$(.venv/bin/python - "perflogs/reports/$run.json" <<'PYTHON'
import json, sys
cases = [case for each in json.load(open(sys.argv[1]))["runs"] for case in each["testcases"]]
print("|".join(sorted({case["name"].split()[0] for case in cases if case["result"] == "fail"})))
PYTHON
)
[ -n "$red" ] || exit $status
echo "night: red at first, once more by itself: $red"
.venv/bin/fabricproof run --site vcluster -t nightly -n "$red"
