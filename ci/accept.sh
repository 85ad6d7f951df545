#!/bin/sh
# From a fresh machine to the verdict table of the quick acceptance on the virtual cluster.
# Exit status: that of `fabricproof run`; without root 77, after what can still be done.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

say() { printf '== %s\n' "$*"; }

if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        exec sudo --preserve-env=PIP_INDEX_URL,PIP_CONFIG_FILE,FABRICPROOF_SITE \
            "$root/ci/accept.sh" "$@"
    fi
    if ! ci/rootless.sh true; then # it says why not
        say "no root here: the virtual cluster needs it (namespaces, Slurm's daemons)."
    elif ci/bootstrap.sh packages; then
        say "no root here: in a user namespace of its own, which ends with this command"
        ci/bootstrap.sh python
        .venv/bin/fabricproof stack install
        exec ci/rootless.sh "$root/ci/accept.sh" "$@"
    else
        say "the virtual cluster lacks packages that only root can install."
    fi
    say "what this machine can still do: two ranks on it, without Slurm (site 'local')."
    ci/bootstrap.sh python
    .venv/bin/fabricproof stack install openmpi5 mpich5
    .venv/bin/fabricproof run --site local -t quick || true
    say "no fabric was proven here; run this as root, or on a cluster of your own (README)."
    exit 77
fi

# Ctrl-C leaves nothing running: fabricproof cancels its jobs, and a cluster that this run brought
# up comes down again.
brought_up=no
interrupted() {
    trap '' INT TERM
    if [ $brought_up = yes ]; then
        .venv/bin/fabricproof vcluster down || true
    fi
    say "interrupted; what had finished is kept in perflogs/. Next: make accept"
    exit 130
}
trap interrupted INT TERM

if [ -z "${FABRICPROOF_ROOTLESS:-}" ]; then # in there is no network, and all is there
    say "1/4 packages and Python environment"
    ci/bootstrap.sh all
    say "2/4 MPI stacks"
    .venv/bin/fabricproof stack install
elif ! [ -x .venv/bin/fabricproof ]; then
    echo "accept: first, outside: ci/bootstrap.sh python; .venv/bin/fabricproof stack install" >&2
    exit 69
fi
say "3/4 virtual cluster"
[ -d /run/fabricproof/vcluster/vcluster ] || brought_up=yes
.venv/bin/fabricproof vcluster up --rate 200mbit
say "4/4 quick Ethernet acceptance through ReFrame and Slurm"
status=0
.venv/bin/fabricproof run --site vcluster -t quick -t ethernet "$@" || status=$?
if [ -n "${FABRICPROOF_ROOTLESS:-}" ]; then
    say "the cluster ends with the command or shell that ci/rootless.sh started"
else
    say "the cluster stays up for you: . env.sh; reframe -r -t ethernet; make down ends it"
fi
exit $status
