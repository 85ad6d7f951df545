"""The cluster as seen from the machine outside: Slurm's commands and the shell lines for them."""

from __future__ import annotations

import shlex

from vcluster import errors
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.processes import find_program

COMMANDS = (
    "sacct",
    "sacctmgr",
    "salloc",
    "sattach",
    "sbatch",
    "sbcast",
    "scancel",
    "scontrol",
    "sdiag",
    "sinfo",
    "sprio",
    "squeue",
    "sreport",
    "srun",
    "sshare",
    "sstat",
    "strigger",
)


def render_wrapper(program: str, paths: Paths, head: Space) -> str:
    """Return the shell script that stands for one of Slurm's commands.

    Args:
        program: full path of the real command.
        paths: of the cluster.
        head: where the controller is.

    Only the network namespace is changed: working folder, files and environment are the caller's.
    Field 22 of ``/proc/PID/stat`` (20 from the state on) tells whether PID is still the head's
    init; the shell reads it without another program, for every call costs the caller time.
    """
    pid, start = head.init.pid, head.init.start
    down = f'the virtual cluster "{paths.name}" is down; next: {errors.program()} up'
    return f"""#!/bin/sh
# Runs {program} in the network of the virtual cluster "{paths.name}".
head_is_alive() {{
    read -r stat 2>/dev/null </proc/{pid}/stat || return 1
    set -f
    set -- ${{stat##*) }}
    [ "${{20}}" = {start} ] && [ "$1" != Z ]
}}
if ! head_is_alive; then
    echo {shlex.quote(down)} >&2
    exit 69
fi
SLURM_CONF={paths.slurm_conf}
export SLURM_CONF
if [ -e /proc/{pid}/ns/net ]; then
    exec nsenter --net=/proc/{pid}/ns/net -- {program} "$@"
fi
exec sudo --preserve-env nsenter --net=/proc/{pid}/ns/net \\
    --setuid "$(id -u)" --setgid "$(id -g)" -- {program} "$@"
"""


def write_wrappers(paths: Paths, head: Space) -> None:
    """Write a script for each of Slurm's commands that this machine has."""
    paths.bin.mkdir(exist_ok=True)
    for command in COMMANDS:
        program = find_program(command)
        if program is not None:
            script = paths.bin / command
            script.write_text(render_wrapper(program, paths, head))
            script.chmod(0o755)


def render_environment(paths: Paths) -> str:
    """Return the shell lines that put the cluster's commands first."""
    return (
        f"export FABRICPROOF_VCLUSTER={paths.name}\n"
        f"export SLURM_CONF={paths.slurm_conf}\n"
        f'case ":$PATH:" in *:{paths.bin}:*) ;; *) export PATH="{paths.bin}:$PATH" ;; esac\n'
    )
