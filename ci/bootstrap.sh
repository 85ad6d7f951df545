#!/bin/sh
# Prepare a machine for fabricproof: the Debian or Ubuntu packages that the virtual cluster and
# the system MPI stack need, and a Python environment in .venv from pinned versions.
#
#   ci/bootstrap.sh packages   Debian/Ubuntu packages only (root or sudo)
#   ci/bootstrap.sh python     .venv only (no root needed)
#   ci/bootstrap.sh all        both
#
# Idempotent, and instant when everything is there.  Exit status as in fabricproof.core.errors:
# 2 usage, 69 something needed is not to be had, 77 root is needed.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
venv=$root/.venv

# One need per word; where distributions name a package differently the names are joined by |
# and the first that the package lists know is taken.  mariadb-server-core and not
# mariadb-server: the server program without a service, its user or its configuration.
# libpmix-dev: Debian's Slurm opens libpmix.so by that name, which the library's own package does
# not have ("can not load PMIx library").
needs="slurmctld slurmd slurmdbd slurm-client slurm-wlm-basic-plugins slurm-wlm-mysql-plugin
libpmi2-0 munge mariadb-server-core|mariadb-server-core-10.6|mariadb-server
mariadb-client-core|mariadb-client-core-10.6|mariadb-client
lmod openmpi-bin libpmix-dev iproute2 ethtool util-linux make python3-venv
iperf3 iperf perftest hpcc iputils-ping"

# For the tests of the HTML report, and only where it is a package: Ubuntu has a snap by that name,
# which no container installs.
#
# For the tests of "fabricproof subnet": ibsim simulates InfiniBand fabrics in user space, and opensm
# and infiniband-diags are the real ones over it (libumad2sim0 stands in for the kernel's devices).
# No kernel module and no root.  Without them these tests are skipped.
#
# For the live test of a stack in a container: bubblewrap stands for the runtime.
#
# For a virtual cluster without root (ci/rootless.sh): uidmap.
wishes="chromium ibsim-utils libumad2sim0 opensm infiniband-diags bubblewrap uidmap"

# For "fabricproof vcluster up --kind rdma", whose nodes are small virtual machines: qemu-system-x86
# runs them, mmdebstrap, squashfs-tools, cpio and kmod (modprobe says what a module needs) make their
# image, openssh-client reaches them.  Wanted and not needed: the kind "namespaces" does without.
# The image is made of Debian's packages for amd64, so elsewhere they are no use.
guests="qemu-system-x86 mmdebstrap squashfs-tools cpio kmod openssh-client"

say() { printf 'bootstrap: %s\n' "$*"; }
leave() { status=$1; shift; printf 'bootstrap: %s\n' "$*" >&2; exit "$status"; }

installed() {
    case $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) in
        installed) return 0 ;;
    esac
    return 1
}

satisfied() {
    for name in $(printf '%s' "$1" | tr '|' ' '); do
        installed "$name" && return 0
    done
    return 1
}

missing_needs() {
    for need in $needs; do
        satisfied "$need" || printf '%s ' "$need"
    done
    return 0
}

can_have_guests() {
    [ "$(dpkg --print-architecture)" = amd64 ] && grep -qx 'ID=debian' /etc/os-release
}

missing_wishes() {
    can_have_guests || guests=''
    for wish in $wishes $guests; do
        installed "$wish" && continue
        apt-cache show --no-all-versions "$wish" >/dev/null 2>&1 && printf '%s ' "$wish"
    done
    return 0
}

candidate() {
    for name in $(printf '%s' "$1" | tr '|' ' '); do
        if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
            printf '%s ' "$name"
            return
        fi
    done
    leave 69 "no package '$1' in this machine's package lists; on Ubuntu enable 'universe'"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

is_root_unasked() {
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }
}

retry() {
    for pause in 3 10 0; do
        "$@" && return 0
        [ "$pause" -eq 0 ] && break
        say "failed, again in $pause s: $*"
        sleep "$pause"
    done
    return 1
}

install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
        --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@"
}

rpm_advice() {
    cat >&2 <<'ADVICE'
bootstrap: this is an RPM system; packages are not installed for you here.
With EPEL and OpenHPC enabled (openhpc.community) the names are:
  dnf install slurm-ohpc slurm-slurmctld-ohpc slurm-slurmd-ohpc slurm-slurmdbd-ohpc \
      munge-ohpc lmod-ohpc openmpi4-pmix-gnu12-ohpc
With EPEL alone:
  dnf install slurm slurm-slurmctld slurm-slurmd slurm-slurmdbd slurm-pmi munge Lmod openmpi
In both cases from the distribution:
  dnf install mariadb-server iproute iproute-tc ethtool util-linux iperf3 make python3.11
On a machine that is already a Slurm cluster none of them is needed: write a site file and
use 'ci/bootstrap.sh python'.
ADVICE
    exit 69
}

# Package scripts start their daemons.  policy-rc.d is the documented way to forbid it
# (invoke-rc.d(8)): 101 means "action forbidden".  An existing policy is put back.
policy=/usr/sbin/policy-rc.d
forbid_daemons() {
    [ -e $policy ] && as_root mv $policy $policy.fabricproof-saved
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
    trap allow_daemons EXIT
    trap 'exit 130' INT TERM HUP
}
allow_daemons() {
    as_root rm -f $policy
    if [ -e $policy.fabricproof-saved ]; then
        as_root mv $policy.fabricproof-saved $policy
    fi
}

# policy-rc.d keeps them from starting now; systemd would still start them at the next boot.
services="munge slurmctld slurmd slurmdbd mariadb iperf3 opensm"
enabled_services() {
    command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ] || return 0
    for service in $services; do
        systemctl is-enabled --quiet "$service" 2>/dev/null && printf '%s ' "$service"
    done
    return 0
}
disable_new_services() {
    for service in $(enabled_services); do
        case " $1 " in
            *" $service "*) ;;
            *) as_root systemctl disable --now --quiet "$service" && say "disabled $service" ;;
        esac
    done
}

packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        for tool in dnf yum zypper; do
            command -v $tool >/dev/null 2>&1 && rpm_advice
        done
        leave 69 "neither a Debian nor an RPM system; use 'ci/bootstrap.sh python'"
    fi
    missing="$(missing_needs)$(missing_wishes)"
    if [ -z "$missing" ]; then
        say "packages: all there"
        return
    fi
    # For what is only wished nobody is asked for a password.
    if [ -z "$(missing_needs)" ] && ! is_root_unasked; then
        say "packages: all there but some for tests and guests (root installs them): $missing"
        return
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        leave 77 "root or sudo is needed to install: $missing; without it: 'ci/bootstrap.sh python' and the site 'local'"
    fi
    say "packages missing: $missing"
    retry as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
        say "package lists could not all be renewed; trying with what is there"
    names=''
    for need in $(missing_needs); do
        name=$(candidate "$need") || exit $?
        names="$names $name"
    done
    wanted=$(missing_wishes)
    before=$(enabled_services)
    forbid_daemons
    # shellcheck disable=SC2086  # names are package names, one per word
    if [ -n "$names" ]; then
        retry install $names || leave 69 "apt-get could not install:$names"
    fi
    # shellcheck disable=SC2086
    if [ -n "$wanted" ]; then
        install $wanted || say "going on without: $wanted"
    fi
    allow_daemons
    trap - EXIT INT TERM HUP
    disable_new_services "$before"
    say "packages: done"
}

# The first system Python from 3.11 on that can make environments with pip.  A pyenv shim may be
# first on PATH and name a Python that the nodes of a cluster do not have: /usr comes first.
find_python() {
    for python in /usr/bin/python3 /usr/bin/python3.1[1-9] /usr/local/bin/python3 \
        /usr/local/bin/python3.1[1-9] python3 python3.14 python3.13 python3.12 python3.11; do
        command -v "$python" >/dev/null 2>&1 || continue
        if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
            2>/dev/null; then
            command -v "$python"
            return
        fi
    done
    leave 69 "no Python 3.11 or newer with the venv module; on Debian: apt-get install python3-venv"
}

python_environment() {
    stamp=$venv/.fabricproof-stamp
    want=$(cat "$root/requirements.lock" "$root/pyproject.toml" | sha256sum)
    want="${want%% *} $root"
    if [ -x "$venv/bin/fabricproof" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] &&
        "$venv/bin/python" -c '' 2>/dev/null; then
        say "python: .venv is up to date"
        return
    fi
    if ! "$venv/bin/python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' \
        2>/dev/null; then
        python=$(find_python) || exit $?
        say "python: new .venv with $python"
        "$python" -m venv --clear "$venv"
    fi
    say "python: installing the pinned packages (some 100 MB the first time)"
    retry "$venv/bin/python" -m pip install --disable-pip-version-check -q \
        -r "$root/requirements.lock" || leave 69 "pip could not install requirements.lock"
    # The lock has the build system too, so that nothing unpinned is fetched.
    retry "$venv/bin/python" -m pip install --disable-pip-version-check -q --no-deps \
        --no-build-isolation -e "$root" || leave 69 "pip could not install the project"
    printf '%s' "$want" >"$stamp"
    say "python: done"
}

case ${1:-} in
    packages) packages ;;
    python) python_environment ;;
    all)
        packages
        python_environment
        ;;
    *)
        printf 'usage: ci/bootstrap.sh packages|python|all\n' >&2
        exit 2
        ;;
esac
