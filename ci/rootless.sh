#!/bin/sh
# Run a command as the root of a user namespace of its own, in which a virtual cluster comes up
# without an administrator:   ci/rootless.sh make accept      or, for a shell,   ci/rootless.sh bash
# The command has a /run and a /tmp of its own and no network; all that it started ends with it.
# Exit status: the command's; 77 where this machine does not allow it, with what it takes.
set -eu

leave() { printf 'rootless: %s\n' "$*" >&2; exit 77; }

if [ "${FABRICPROOF_ROOTLESS:-}" = entering ]; then
    export FABRICPROOF_ROOTLESS=inside
    mount -t tmpfs -o mode=755 fabricproof-run /run
    mount -t tmpfs -o mode=1777 fabricproof-tmp /tmp
    ip link set lo up
    exec "$@"
fi

[ "${FABRICPROOF_ROOTLESS:-}" != inside ] || exec "$@" # already there
[ $# -gt 0 ] || { printf 'usage: ci/rootless.sh COMMAND [ARGUMENT...]\n' >&2; exit 2; }
case $PWD/ in
    /tmp/* | /run/*) leave "this folder is hidden in there: keep the project outside /tmp and /run" ;;
esac
# Slurm's daemons drop groups, which a user namespace allows only where an administrator's
# newgidmap(1) has set its groups: one user alone would not do.
for program in unshare newuidmap newgidmap; do
    command -v $program >/dev/null 2>&1 ||
        leave "no $program; an administrator installs it: apt-get install util-linux uidmap"
done
user=$(id -un)
for file in /etc/subuid /etc/subgid; do
    grep -q "^\($user\|$(id -u)\):" $file 2>/dev/null ||
        leave "no ids for $user in $file; an administrator adds them: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $user"
done
apart() {
    # --map-auto came with util-linux 2.38
    exec unshare --user --map-root-user --map-auto --mount --net --pid --ipc --uts --fork \
        --kill-child --mount-proc -- "$@"
}
nl='
'
if ! why=$(apart true 2>&1); then
    why=${why%"$nl"Try *} # of an option that an older unshare does not know
    leave "${why##*"$nl"} (it takes util-linux 2.38 and, for $user, user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
fi
export FABRICPROOF_ROOTLESS=entering PATH="$PATH:/usr/sbin:/sbin"
apart "$0" "$@"
