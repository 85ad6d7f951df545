"""What a job finds in its stage folder, what is kept of it, and how a leg is launched there."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.core.provenance import LegPlace, StackIdentity
from fabricproof.history.baseline.file import find_baseline, path_of, write_baseline
from fabricproof.job.collective_commands import HPCC_FILE
from fabricproof.job.commands import PEER_FILE
from fabricproof.job.leg import Leg
from fabricproof.job.script import (
    ASK_FILE,
    BIND_FILE,
    EACH_NODE_FILE,
    INVENTORY_FILE,
    INVENTORY_FOLDER,
    JOB_END_FILE,
    RANK_FILE,
    SCRIPT_FILE,
    SECOND_LOOK_ERRORS,
    SOCKETS_FILE,
)
from fabricproof.nodes.inventory.read import LOOK
from fabricproof.rfm.legs.leg import LegPlanner
from fabricproof.site import PartitionSpec, Site, StackSpec
from fabricproof.stacks.container import INSIDE
from fabricproof.stacks.environment import option_words, shell_word
from fabricproof.stacks.launch import (
    TURN_FILE,
    Layout,
    layout_options,
    naming_the_nodes,
)
from fabricproof.stacks.stack import ResolvedStack, binary_digest, container_of
from fabricproof.verdict.references import STAGE_FILE, Baseline, for_legs

#: where the scripts of a job lie
JOB_FILES = Path(__file__).parents[1] / "job"

#: what of it a job may start
SCRIPTS = (
    *(ASK_FILE, BIND_FILE, SOCKETS_FILE, EACH_NODE_FILE),
    *(RANK_FILE, PEER_FILE, HPCC_FILE, INVENTORY_FILE, TURN_FILE),
)

#: what ReFrame keeps of a job that passed, beside its script and output: the raw outputs of each
#: leg, how they were made, what the nodes were; small texts all of them
KEPT_FILES = (
    *("legs", "plan.json", SCRIPT_FILE, INVENTORY_FOLDER, SECOND_LOOK_ERRORS),
    JOB_END_FILE,
)

#: A leg that takes this many times its budget, and never less than the second figure, hangs.
LEG_LIMIT_FACTOR = 10
LEG_LIMIT_SECONDS = 30


def leg_limit_seconds(partition: PartitionSpec) -> int:
    """Return after how many seconds a leg is ended: as the site says, or many times its budget."""
    usual = max(LEG_LIMIT_SECONDS, LEG_LIMIT_FACTOR * partition.leg_seconds)
    return int(partition.leg_limit_seconds or usual)


def python_on_node(partition: PartitionSpec) -> str:
    """Return the line that ends a job where the Python of its judge is not on the node."""
    python = shell_word(partition.python or sys.executable)
    where = f"python of partition {partition.name} in site.toml"
    words = shell_word(f"this node has no {partition.python or sys.executable} ({where})")
    return f"[ -x {python} ] || {{ echo {words} >&2; exit 127; }}"


def copy_scripts(folder: Path) -> None:
    """Lay every script that a job may start into its stage folder."""
    for script in (*(JOB_FILES / name for name in SCRIPTS), LOOK, INSIDE):
        shutil.copy(script, folder / script.name)


def launch_command(
    stack: ResolvedStack, name: str, layout: Layout, *, is_whole: bool = False
) -> list[str]:
    """Return launcher ``name`` with its options for the ranks of a layout, as words for a shell.

    ``is_whole``: the layout is the job's, which the launcher knows.
    """
    launch = stack.launch_by(name)
    without = [word for each in launch.hidden for word in ("-u", each)]
    number = {"mpirun": "-np", "mpiexec": "-n"}  # as ReFrame's launchers write it
    words = [name, *([number[name], str(layout.num_ranks)] if name in number else [])]
    options = [*launch.options, *option_words(stack.spec.launcher_options)]
    options += [] if is_whole else layout_options(stack.family, name, layout)
    command = [shell_word(each) for each in (*words, *options)]
    if name == "srun" and layout.nodes and not is_whole:
        command = list(naming_the_nodes(command, layout.nodes))
    return ["env", *without, *command] if without else command


def in_container(leg: Leg, stack: StackSpec) -> Leg:
    """Return ``leg`` with its program in the stack's image; unchanged where it is none of it.

    What belongs to no suite of the stack (sockets below MPI, looks at nodes) runs on the node.
    """
    if stack.container is None or leg.suite not in stack.suites:
        return leg
    return replace(leg, container=container_of(stack), library=stack.container.library)


def digest_of_program(leg: Leg) -> str:
    """Return the SHA-256 of the program that a leg runs; empty if unknown, as in an image."""
    if leg.container is not None or not leg.commands:
        return ""
    return binary_digest(leg.commands[0], leg.environment)


@functools.lru_cache(maxsize=2)
def _find(folder: Path, name: str, stamp: int) -> Baseline:  # noqa: ARG001 - a file that changed is read anew
    return find_baseline(folder, name)


def active(site: Site) -> Baseline | None:
    """Return the baseline that judges on this site; None where it has none.

    Raises:
        ConfigError: it is of another site.
        ParseError: its file is damaged.
        InputMissingError: its file is gone.
    """
    name = site.spec.baseline
    if name is None:
        return None
    path = path_of(site.folder, name)
    baseline = _find(site.folder, name, path.stat().st_mtime_ns if path.exists() else 0)
    if baseline.site != site.name:
        raise ConfigError(
            "a baseline of another site", source=str(path), expected=site.name, got=baseline.site
        )
    return baseline


def with_baseline(
    legs: Sequence[Leg],
    folder: Path,
    planner: LegPlanner,
    check: str,
    builds: Mapping[str, StackIdentity],
) -> tuple[Leg, ...]:
    """Return the legs, each knowing who judges it last; lay beside the plan what that says.

    ``builds``: suite to what is measured.
    """
    baseline = active(planner.site)
    if baseline is None:
        return tuple(legs)
    places = {
        leg.name: LegPlace(
            partition=planner.partition.name,
            fabric=planner.fabric,
            stack=planner.stack.name,
            check=check,
            build=builds[leg.suite].short,
            suite=leg.suite,
            program=leg.program,
            tool_version="",
            leg=leg.name,
            rails=",".join(leg.rails),
            nodes=",".join(sorted(leg.nodes)),
            settings="",
        )
        for leg in legs
    }
    write_baseline(folder / STAGE_FILE, for_legs(baseline, places), over=True)
    return tuple(replace(leg, baseline=baseline.name) for leg in legs)
