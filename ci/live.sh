# shellcheck shell=bash
# Sourced by the scripts beside it.  live PYTEST-WORDS...: run live tests.
#
# What is measured on a shared machine may be red once: the tests that failed (status 1, and no
# other) run once more, by themselves, on a cluster that is new.  Both outcomes are printed; red
# twice is red, and so is what was red and then skipped.  The caller's function new_cluster replaces
# the cluster.
live() {
    local status=0 second
    .venv/bin/pytest "$@" || status=$?
    [ "$status" -eq 1 ] || return "$status"
    echo "== what failed, once more on a new cluster"
    new_cluster || return
    second=$(mktemp)
    status=0
    .venv/bin/pytest --last-failed --last-failed-no-failures none --junit-xml="$second" "$@" ||
        status=$?
    if [ "$status" -eq 0 ] && ! grep -q 'skipped="0"' "$second"; then
        echo "== red once, and skipped on a new cluster: that is red"
        status=1
    fi
    rm -f "$second"
    [ "$status" -eq 0 ] || return "$status"
    echo "== red once and green on a new cluster: both are above"
}

# unless_busy SITE COMMAND...: run it, which measures on SITE; its exit status.
#
# Status 5 says that something is UNJUDGED and nothing is worse.  Where others hold the cores, and
# each quantity that is open says that this is why, that is what the judge has to say, and no reason
# for red: it is printed, and counts as 0.  On a quiet machine it is red.
unless_busy() {
    local status=0 site=$1
    shift
    "$@" || status=$?
    [ "$status" -eq 5 ] || return "$status"
    .venv/bin/python tests/busy_machine.py "$site" || return "$status"
}
