"""Run the two scripts: on this machine, and on one node of each partition.  Keep what they print.

A recording is text in a folder, so that a cluster can be looked at on its head node and written
up elsewhere, and so that tests replay real machines.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import InputMissingError, ParseError, UnavailableError
from fabricproof.core.records import text_if_there
from fabricproof.nodes.discover.facts import ClusterSeen, HostSeen, PartitionSeen, SlurmSeen
from fabricproof.nodes.discover.read import read_host, read_slurm
from fabricproof.stacks.environment import answer_of

_HERE = Path(__file__).parent
LOOK, SLURM = _HERE / "look.sh", _HERE / "slurm.sh"

#: the scripts limit each of their own commands; these are the sums, generously
HEAD_SECONDS = 180
SLURM_SECONDS = 120
#: how long a partition may take to give away one node, and then the look at it
QUEUE_SECONDS = 30
NODE_SECONDS = QUEUE_SECONDS + HEAD_SECONDS

_NODE_FILE = "node-{}.txt"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What the scripts printed."""

    head: str
    slurm: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


def record(
    say: Callable[[str], None],
    *,
    sysfs: Path = Path("/sys"),
    only: Collection[str] = (),
    ask_nodes: bool = True,
) -> Recording:
    """Look at this machine, ask Slurm, and look at one node of each partition.

    ``only``: partitions to ask; all that take jobs where none is named.

    Raises:
        UnavailableError: not even this machine could be looked at.
    """
    say("looking at this machine")
    head = _run(["sh", str(LOOK), str(sysfs)], HEAD_SECONDS)
    if head.failure:
        raise UnavailableError(
            "this machine cannot be looked at", expected="look.sh to end", got=head.failure
        )
    slurm = _run(["sh", str(SLURM)], SLURM_SECONDS)
    troubles = [f"Slurm: {slurm.failure}"] if slurm.failure else []
    said = read_slurm(slurm.out)
    nodes: dict[str, str] = {}
    if said is not None and ask_nodes:
        nodes = _record_nodes(said, say, only, troubles)
    return Recording(head=head.out, slurm=slurm.out, nodes=nodes, troubles=tuple(troubles))


def _record_nodes(
    slurm: SlurmSeen, say: Callable[[str], None], only: Collection[str], troubles: list[str]
) -> dict[str, str]:
    """Return what one node of each partition showed; partitions of the same nodes share a look."""
    nodes: dict[str, str] = {}
    by_nodes: dict[str, str] = {}
    for partition in worth_asking(slurm, only):
        known = by_nodes.get(partition.nodes)
        if known is not None:
            nodes[partition.name] = known
            continue
        say(f"asking one node of partition {partition.name}")
        answer = _ask(partition)
        if answer.failure:
            troubles.append(f"partition {partition.name}: no node answered: {answer.failure}")
        else:
            nodes[partition.name] = by_nodes[partition.nodes] = answer.out
    return nodes


def worth_asking(slurm: SlurmSeen, only: Collection[str] = ()) -> list[PartitionSeen]:
    """Return the partitions that take jobs and have a node for one."""
    return [
        each
        for each in slurm.partitions
        if each.is_up and each.num_usable > 0 and (not only or each.name in only)
    ]


def _ask(partition: PartitionSeen) -> _Answer:
    command = [
        "srun",
        f"--partition={partition.name}",
        "--nodes=1",
        "--ntasks=1",
        "--time=5",
        f"--immediate={QUEUE_SECONDS}",
        "--job-name=site-init",
        *("sh", "-s", "--", "/sys"),
    ]
    return _run(command, NODE_SECONDS, LOOK.read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class _Answer:
    out: str = ""
    failure: str = ""


def _run(command: Sequence[str], seconds: int, text: str = "") -> _Answer:
    """Run a command outside any allocation we may be in, and say in a phrase what went wrong."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM_JOB", "SLURM_STEP", "SLURM_NTASKS", "SLURM_NNODES"))
    }
    try:
        done = answer_of(command, environment, seconds=seconds, text=text)
    except subprocess.TimeoutExpired:
        return _Answer(failure=f"{command[0]} did not end within {seconds} s")
    except OSError as error:
        return _Answer(failure=f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-200:] or f"status {done.returncode}"
        return _Answer(out=done.stdout, failure=said)
    return _Answer(out=done.stdout)


def save(recording: Recording, folder: Path) -> None:
    """Write a recording as text files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"head.txt": recording.head, "slurm.txt": recording.slurm}
    files |= {_NODE_FILE.format(name): text for name, text in recording.nodes.items()}
    files["troubles.txt"] = "".join(f"{line}\n" for line in recording.troubles)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def load(folder: Path) -> Recording:
    """Read a recording.

    Raises:
        InputMissingError: a file cannot be read, or ``head.txt`` is not there; the others may be
            absent.
    """
    texts: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        new = "fabricproof site init NAME --keep FOLDER   # keeps a new one"
        texts[path.name] = text_if_there(path, "what --keep wrote", new) or ""
    if "head.txt" not in texts:
        raise InputMissingError(
            "no recording of a cluster",
            source=str(folder),
            expected="a folder with head.txt, as --keep writes it",
        )
    before, after = _NODE_FILE.split("{}")
    return Recording(
        head=texts["head.txt"],
        slurm=texts.get("slurm.txt", ""),
        nodes={
            name.removeprefix(before).removesuffix(after): text
            for name, text in texts.items()
            if name.startswith(before)
        },
        troubles=tuple(texts.get("troubles.txt", "").splitlines()),
    )


def read_cluster(recording: Recording, source: str = "this machine") -> ClusterSeen:
    """Return what a recording shows.

    Raises:
        ParseError: the recording of the head is damaged; that of a node is a trouble.
    """
    nodes: dict[str, HostSeen] = {}
    troubles = list(recording.troubles)
    for partition, text in recording.nodes.items():
        try:
            nodes[partition] = read_host(text, f"node of {partition}")
        except ParseError as error:
            troubles.append(f"partition {partition}: {error.problem}")
    slurm = read_slurm(recording.slurm)
    if slurm is None and recording.slurm and "sinfo=/" in recording.slurm:
        troubles.append("Slurm is installed and does not answer")
    return ClusterSeen(
        head=read_host(recording.head, source),
        slurm=slurm,
        nodes=nodes,
        troubles=tuple(troubles),
    )
