"""Look at this machine, at one node of each partition, and ask Slurm; keep it, read it again.

A recording is a folder of texts, so that a cluster can be looked at on its head node and written
up elsewhere, and so that tests replay real machines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import InputMissingError, ParseError, UnavailableError
from fabricproof.core.records import text_if_there
from fabricproof.core.units import by_key, digits_of
from fabricproof.nodes.inventory.facts import Value
from fabricproof.nodes.inventory.read import LOOK, machine_of, read_look
from fabricproof.site.scheduling import SlurmTraits, read_traits
from fabricproof.stacks.environment import answer_of, shell_word

SLURM = Path(__file__).parent / "slurm.sh"

#: the scripts limit each of their own commands; these are the sums, generously
HEAD_SECONDS = 180
SLURM_SECONDS = 120
#: how long a partition may take to give away one node, and then the look at it
QUEUE_SECONDS = 30
NODE_SECONDS = QUEUE_SECONDS + HEAD_SECONDS

Facts = Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class Host:
    """One machine, as a look with its software showed it.

    Attributes:
        facts: as an inventory has them.
        boot: the kernel's boot id; two nodes with one id are namespaces of one machine.
        system: operating system, kernel and architecture, for people.
        modules_system: as ReFrame names it; ``nomod`` if there is none.
        programs: name -> (path, what it said of its version).
        absent: tools that would have said more.
    """

    name: str
    facts: Mapping[str, Facts] = field(default_factory=dict)
    boot: str = ""
    system: str = ""
    modules: tuple[str, ...] = ()
    modules_system: str = "nomod"
    programs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    pmi2_library: str = ""
    absent: tuple[str, ...] = ()

    @property
    def cpus(self) -> int | None:
        """How many CPUs it has; None if unknown."""
        cpus = self.facts.get("node", {}).get("cpus")
        return cpus if isinstance(cpus, int) else None

    def parts(self, kind: str) -> dict[str, Facts]:
        """Return name -> facts of its parts of one kind: ``interface``, ``port``, ``numa``."""
        found = ((part.partition(" "), facts) for part, facts in self.facts.items())
        return {name: facts for (which, _, name), facts in found if which == kind}


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition, as sinfo lists it.

    Attributes:
        num_nodes: in all states.
        num_usable: nodes that are idle or busy, and not down or drained.
        cpus: of a node, the least; what Slurm gives away.
        limit_minutes: longest job, None for no limit.
    """

    name: str
    num_nodes: int
    num_usable: int
    cpus: int | None = None
    is_up: bool = True
    is_default: bool = False
    limit_minutes: int | None = None
    nodes: str = ""


@dataclass(frozen=True, kw_only=True)
class Slurm:
    """Slurm, as its commands on the head node say it; ``settings`` are those of its config."""

    version: str = ""
    sinfo: str = ""
    conf: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    num_switches: int = 0
    licenses: tuple[str, ...] = ()
    mpi_types: tuple[str, ...] = ()
    traits: SlurmTraits = field(default_factory=SlurmTraits)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """All that was seen.

    Attributes:
        head: the machine that the command ran on.
        slurm: None if there is none, or if it does not answer.
        nodes: partition -> one node of it.
        troubles: what could not be seen and why, one sentence each.
    """

    head: Host
    slurm: Slurm | None = None
    nodes: Mapping[str, Host] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What the looks and ``slurm.sh`` printed; ``nodes`` by partition."""

    head: str
    slurm: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


def record(
    say: Callable[[str], None], *, only: Collection[str] = (), ask_nodes: bool = True
) -> Recording:
    """Look at this machine, ask Slurm, and look at one node of each partition.

    ``only``: partitions to ask; all that take jobs if empty.

    Raises:
        UnavailableError: not even this machine could be looked at.
    """
    say("looking at this machine")
    head, failure = _run([sys.executable, "-IS", str(LOOK), "--software"], HEAD_SECONDS)
    if failure:
        raise UnavailableError(
            "this machine cannot be looked at", expected=f"{LOOK.name} to end", got=failure
        )
    slurm, failure = _run(["sh", str(SLURM)], SLURM_SECONDS)
    troubles = [f"Slurm: {failure}"] if failure else []
    said = read_slurm(slurm)
    nodes: dict[str, str] = {}
    by_nodes: dict[str, str] = {}
    for partition in said.partitions if said is not None and ask_nodes else ():
        if not partition.is_up or not partition.num_usable or (only and partition.name not in only):
            continue
        if partition.nodes not in by_nodes:  # partitions of the same nodes share a look
            say(f"asking one node of partition {partition.name}")
            options = ("--nodes=1", "--ntasks=1", "--time=5", "--job-name=site-init")
            where = (f"--partition={partition.name}", f"--immediate={QUEUE_SECONDS}")
            script = (
                f"for each in {shell_word(sys.executable)} python3; do command -v $each >/dev/null "
                "&& exec $each -IS - --software; done; echo no python3 there >&2; exit 1"
            )
            look = LOOK.read_text(encoding="utf-8")
            out, failure = _run(["srun", *where, *options, "sh", "-c", script], NODE_SECONDS, look)
            if failure:
                troubles.append(f"partition {partition.name}: no node answered: {failure}")
                continue
            by_nodes[partition.nodes] = out
        nodes[partition.name] = by_nodes[partition.nodes]
    return Recording(head=head, slurm=slurm, nodes=nodes, troubles=tuple(troubles))


def _run(command: Sequence[str], seconds: float, text: str = "") -> tuple[str, str]:
    """Return what a command printed outside any allocation of ours, and what went wrong."""
    ours = ("SLURM_JOB", "SLURM_STEP", "SLURM_NTASKS", "SLURM_NNODES")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    try:
        done = answer_of(command, environment, seconds=seconds, text=text)
    except subprocess.TimeoutExpired:
        return "", f"{command[0]} did not end within {seconds} s"
    except OSError as error:
        return "", f"{command[0]}: {error.strerror}"
    words = " ".join(done.stderr.split())[-200:] or f"status {done.returncode}"
    return done.stdout, words if done.returncode else ""


def save(recording: Recording, folder: Path) -> None:
    """Write a recording into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"head.json": recording.head, "slurm.txt": recording.slurm}
    files |= {f"node-{name}.json": text for name, text in recording.nodes.items()}
    files["troubles.txt"] = "".join(f"{line}\n" for line in recording.troubles)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def load(folder: Path) -> Recording:
    """Read a recording.

    Raises:
        InputMissingError: a file cannot be read, or ``head.json`` is not there; the others may be
            absent.
    """
    texts: dict[str, str] = {}
    for path in sorted([*folder.glob("*.txt"), *folder.glob("*.json")]):
        new = "fabricproof site init NAME --keep FOLDER   # keeps a new one"
        texts[path.name] = text_if_there(path, "what --keep wrote", new) or ""
    if "head.json" not in texts:
        raise InputMissingError(
            "no recording of a cluster",
            source=str(folder),
            expected="a folder with head.json, as --keep writes it",
        )
    return Recording(
        head=texts["head.json"],
        slurm=texts.get("slurm.txt", ""),
        nodes={
            name.removeprefix("node-").removesuffix(".json"): text
            for name, text in texts.items()
            if name.startswith("node-")
        },
        troubles=tuple(texts.get("troubles.txt", "").splitlines()),
    )


def read_cluster(recording: Recording, source: str = "this machine") -> Cluster:
    """Return what a recording shows.

    Raises:
        ParseError: the look at the head is damaged; that at a node is a trouble.
    """
    nodes: dict[str, Host] = {}
    troubles = list(recording.troubles)
    for partition, text in recording.nodes.items():
        try:
            nodes[partition] = read_host(text, f"node of {partition}")
        except ParseError as error:
            troubles.append(f"partition {partition}: {error.problem}")
    slurm = read_slurm(recording.slurm)
    if slurm is None and "sinfo=/" in recording.slurm:
        troubles.append("Slurm is installed and does not answer")
    head = read_host(recording.head, source)
    return Cluster(head=head, slurm=slurm, nodes=nodes, troubles=tuple(troubles))


def read_host(text: str, source: str) -> Host:
    """Return what one machine showed.

    Raises:
        ParseError: the look was cut off, or is none.
    """
    look = read_look(text)
    if look is None or look.reached != "end" or "name" not in look.host:
        raise ParseError(
            "not a whole look at a machine",
            source=source,
            expected=f"what {LOOK.name} prints",
            got=f"a look up to {look.reached!r}" if look else repr(text[:40]),
            next_step="look again",
        )
    name, software = look.host["name"], look.software
    words = (line.strip() for line in software.get("modules", "").splitlines())
    modules = [
        re.sub(r"\([^)]*\)$", "", word)  # Lmod's marks: (default), (D)
        for word in words
        if re.fullmatch(r"[\w+.][\w+./@-]*[\w+](?:\([\w:@=]*\))?", word) and "/" in word
    ]
    folders = {module.rpartition("/")[0] for module in modules}
    programs: dict[str, tuple[str, str]] = {}
    for program in ("mpirun", "mpiexec", "osu_bw", "IMB-MPI1"):
        if program in software:
            lines = look.lines(f"{program} --version")
            said = next((each.strip() for each in lines if re.search(r"\d\.\d", each)), "")
            programs[program] = (software[program], said)
    return Host(
        name=name,
        facts=machine_of(look, name).facts,
        boot=look.host.get("boot", ""),
        system=", ".join(filter(None, map(look.host.get, ("os", "kernel", "arch")))),
        modules=tuple(dict.fromkeys(each for each in modules if each not in folders)),
        modules_system=software.get("modules_system", "nomod"),
        programs=programs,
        pmi2_library=software.get("pmi2", ""),
        absent=look.absent,
    )


#: states of sinfo's %t in which a node runs jobs, or will; a mark after it (``*`` does not answer,
#: ``~`` powered down, ``#`` powering up) is cut off (sinfo(1), NODE STATE CODES)
_USABLE = frozenset({"idle", "mix", "alloc", "comp", "resv", "plnd"})
_SILENT = "*"


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines below each ``#== NAME``; without ``end`` the script was cut off."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("#== "):
            current = sections.setdefault(line.removeprefix("#== ").strip(), [])
        else:
            current.append(line)
    return sections


def _settings(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def read_slurm(text: str) -> Slurm | None:
    """Return what ``slurm.sh`` printed; None without Slurm, or if it did not answer."""
    said = _sections(text)
    where = _settings(said.get("where", []))
    if not where.get("sinfo") or "end" not in said:
        return None
    version = re.search(r"\d+\.\d+\.\d+\S*", where.get("version", ""))
    split = (line.strip().split("|") for line in said.get("partitions", []))
    rows = by_key((fields[0], fields) for fields in split if len(fields) == 7)
    config = "\n".join(line.strip() for line in said.get("config", []))
    # one a line after a heading, or (before Slurm 21) ``srun: NAME``
    types = (line.strip().removeprefix("srun: ").strip() for line in said.get("mpi", []))
    return Slurm(
        version=version[0] if version else "",
        sinfo=where["sinfo"],
        conf=where.get("conf", ""),
        settings=_settings(said.get("config", [])),
        partitions=tuple(
            _partition(name, found, is_default=name in said.get("default", []))
            for name, found in rows.items()
        ),
        traits=read_traits(config, "\n".join(said.get("sharing", []))),
        num_switches=sum(line.startswith("SwitchName=") for line in said.get("topology", [])),
        licenses=tuple(
            line.partition("=")[2].split()[0]
            for line in said.get("licenses", [])
            if line.startswith("LicenseName=")
        ),
        mpi_types=tuple(word for word in types if re.fullmatch(r"[a-z][\w]*", word)),
    )


def _partition(name: str, rows: list[list[str]], *, is_default: bool) -> Partition:
    """Return a partition; sinfo prints a line for each state that its nodes are in."""
    counts = [(digits_of(row[3]) or 0, row[5]) for row in rows]
    cpus = [found for row in rows if (found := digits_of(row[4].rstrip("+")))]
    # [days-]hours:minutes:seconds, or ``infinite``
    limit = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d+)", rows[0][2])
    days, hours, minutes = (int(part or 0) for part in limit.groups()[:3]) if limit else (0, 0, 0)
    return Partition(
        name=name,
        num_nodes=sum(count for count, _ in counts),
        num_usable=sum(
            count
            for count, state in counts
            if not state.endswith(_SILENT) and re.sub(r"\W+$", "", state) in _USABLE
        ),
        cpus=min(cpus) if cpus else None,
        is_up=rows[0][1] == "up",
        is_default=is_default,
        limit_minutes=(days * 24 + hours) * 60 + minutes if limit else None,
        nodes=",".join(sorted(row[6] for row in rows if row[6])),
    )
