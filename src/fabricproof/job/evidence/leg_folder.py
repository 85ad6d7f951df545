"""Read what an attempt of a leg left: status, output, reasons, and what ``rank.sh`` wrote.

A file of ``rank.sh`` holds one fact a line, as :class:`RankRecord` names them, ``fact INTERFACE
key=value ...`` and ``before|after INTERFACE counter=value ...``.  The TCP of a node stands there as
an interface ``node/tcp``, by the first of its ranks; what its CPUs did as ``node/cores``, by each
rank for those that it may run on.  A line of another form is damage, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.benchmarks.program import UNNAMED
from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.measure import Table
from fabricproof.core.records import text_of
from fabricproof.core.units import by_key, size_label
from fabricproof.job.leg import Leg
from fabricproof.stacks.container import Inside, parse_inside
from fabricproof.traffic import CounterSample, Evidence, Rank, in_our_names

#: Lmod's last line is advice on all modules; what it says first is why.
_LMOD = "Lmod has detected the following error"

#: srun's line about a task whose status is known anyhow, or that was ended after another
_EXITED = re.compile(r"srun: error: .*: (?:Exited with exit code \d+|Killed|Terminated)")

#: a launcher's word of a rank that was killed: srun's, that of Open MPI's mpirun and hydra's
_KILLED = re.compile(r"tasks? [\d,-]+: Killed|exited on signal 9|KILLED BY SIGNAL: 9")

#: signals of a program's own fault (signal(7)), and a launcher's word of them
_CRASHES = {4: "Illegal instruction", 6: "Aborted", 7: "Bus error", 8: "Floating point exception",
            11: "Segmentation fault"}  # fmt: skip
_CRASHED = re.compile(
    rf"srun: error: (\S+): tasks? ([\d,-]+): ({'|'.join(_CRASHES.values())})"
    r"|exited on signal (?:4|6|7|8|11) .*|KILLED BY SIGNAL: (?:4|6|7|8|11) .*"
)

#: no counter of the kernel is as large: it has 64 bits
_COUNTER_END = 2**64

#: facts that stand once in a rank's file; twice means that two ranks wrote into one
_WORDS, _MAPS = ("cpus", "kernel", "library", "root"), ("neighbours", "ttl", "digests")
_SINGLE = frozenset({*_WORDS, *_MAPS, "rank", "node", "machine", "status", "addresses"})

#: the CPUs that one rank may run on stand among the counters as an interface of this name
CORES = "node/cores"


@dataclass(frozen=True, kw_only=True)
class RankRecord:
    """What one rank's file says."""

    rank: int
    node: str
    part: int = 0  # which start of its leg it was
    cpus: str = "unknown"
    kernel: str = "unknown"
    library: str = "unknown"  # MPI libraries that the loader gives the program; or ``none``
    machine: str = ""  # the kernel's boot id: nodes that share it are one machine
    status: int | None = None  # of the program; None if the rank did not come back
    before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by interface, counter
    after: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what an interface is
    root: str = ""  # DEVICE:INODE of the node's, if the program ran in a container
    addresses: tuple[str, ...] = ()  # of the node
    neighbours: Mapping[str, str] = field(default_factory=dict)  # DEVICE/IP -> FLAGS/HARDWARE
    ttl: Mapping[str, str] = field(default_factory=dict)  # DEVICE/IP -> of what came from there
    digests: Mapping[str, str] = field(default_factory=dict)  # library's file -> SHA-256
    inside: Inside | None = None  # what it saw in its container

    @property
    def place(self) -> str:
        """The rank and its node, for a person."""
        return f"rank {self.rank} on {self.node}"


def parse_rank(text: str, source: str) -> RankRecord:
    """Read one rank's file.

    Raises:
        ParseError: a line of unknown form or one that repeats a fact, a counter that is no
            number, a cut last line, no rank or no node.
    """
    single: dict[str, str] = {}
    tables: dict[str, dict[str, dict[str, str]]] = {"before": {}, "after": {}, "fact": {}}
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.partition(" ")
        interface, *pairs = rest.split() or [""]
        if word in tables and interface and interface not in tables[word]:
            tables[word][interface] = _pairs(pairs, source, number)
        elif word in _SINGLE and interface and word not in single:
            single[word] = rest.strip()
        else:
            raise _damaged(source, "a fact", line, number)
    if not text.endswith("\n"):
        raise ParseError("cut evidence", source=source, expected="a newline at its end")
    if not {"rank", "node"} <= single.keys():
        raise _damaged(source, "a rank and a node", "neither or one")
    facts: dict[str, Any] = {word: single[word] for word in _WORDS if word in single}
    facts |= {word: _pairs(single[word].split(), source) for word in _MAPS if word in single}
    return RankRecord(
        **facts,
        rank=_whole(single["rank"], source),
        node=single["node"],
        machine=single.get("machine", single["node"]),
        addresses=tuple(single.get("addresses", "").split()),
        status=_whole(single["status"], source) if "status" in single else None,
        before=named_counters(tables["before"], tables["fact"], source),
        after=named_counters(tables["after"], tables["fact"], source),
        facts=tables["fact"],
    )


def _damaged(source: str, expected: str, got: object, line: int | None = None) -> ParseError:
    return ParseError(
        "damaged evidence", source=source, line=line, expected=expected, got=repr(got)[:60]
    )


def _pairs(texts: Iterable[str], source: str, line: int | None = None) -> dict[str, str]:
    found = {}
    for text in texts:
        key, mark, found[key] = text.partition("=")
        if not mark:
            raise _damaged(source, "key=value", text, line)
    return found


def _whole(text: object, source: str) -> int:
    try:
        number = text if type(text) is int else int(str(text))
    except ValueError:
        number = _COUNTER_END
    if abs(number) >= _COUNTER_END:
        raise _damaged(source, "a whole number of 64 bits", text)
    return number


def named_counters(
    tables: Mapping[str, Mapping[str, str]], facts: Mapping[str, Mapping[str, str]], source: str
) -> dict[str, dict[str, int]]:
    """Return counters by interface under the names, and in the bytes, that all else here has.

    Args:
        tables: interface -> the kernel's name of a counter -> its number.
        facts: interface -> what it is; the driver of a port decides what its words are.
        source: whose they are, for messages.

    Raises:
        ParseError: a counter that is no whole number.
    """
    return {
        interface: in_our_names(
            interface,
            {name: _whole(value, source) for name, value in pairs.items()},
            is_omni_path=_is_omni_path(interface, facts.get(interface, {})),
        )
        for interface, pairs in tables.items()
    }


def layer_of(port: str, facts: Mapping[str, str]) -> str:
    """Return the link layer of a port, empty if unknown; Omni-Path calls itself InfiniBand."""
    if _is_omni_path(port, facts):
        return "Omni-Path"
    layer = facts.get("link_layer", "")
    return "InfiniBand or Omni-Path" if layer == "InfiniBand" and not facts.get("uevent") else layer


def _is_omni_path(port: str, facts: Mapping[str, str]) -> bool:
    # The first line of uevent is the driver (Linux drivers/base/core.c, dev_uevent).
    driver = facts.get("uevent")
    return driver == "DRIVER=hfi1" if driver else port.startswith("hfi1_")


def gather(records: Iterable[RankRecord]) -> Evidence:
    """Join the ranks' records into the evidence of one leg."""
    records = tuple(records)
    seen = by_key(
        ((each.node, interface), each)
        for each in records
        for interface in each.before
        if interface != CORES  # each rank's own
    )
    places = sorted({(each.rank, each.node) for each in records})
    return Evidence(
        ranks=tuple(Rank(rank=rank, node=node) for rank, node in places),
        samples=tuple(_sample(*place, ranks) for place, ranks in seen.items()),
    )


def _sample(node: str, interface: str, records: Sequence[RankRecord]) -> CounterSample:
    """Return what all ranks of a node, in all starts of the leg, saw of one interface.

    The earliest before and the latest after count, so that nothing any of them moved is missed.  A
    counter that ran backwards for one of them did so for all: another that began after the reset
    must not hide it.  Nor must one that a later start found lower than an earlier one left it.
    """
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    set_back: set[str] = set()
    for part in sorted({each.part for each in records}):  # ranks of one start ran at the same time
        now = [each for each in records if each.part == part]
        left = dict(after)
        for name, value in (pair for each in now for pair in each.before[interface].items()):
            before[name] = min(value, before.get(name, value))
            set_back |= {name} if value < left.get(name, value) else set()
        for each in now:
            for name, value in each.after.get(interface, {}).items():
                after[name] = max(value, after.get(name, value))
    facts: dict[str, str] = {}
    for each in records:
        facts |= each.facts.get(interface, {})
        ends = each.after.get(interface, {})
        for name, value in each.before[interface].items():
            if ends.get(name, value) < value:
                before[name], after[name] = value, ends[name]
    return CounterSample(
        node=node,
        interface=interface,
        before=before,
        after=after,
        address=facts.get("address"),
        parent=facts.get("parent"),
        netdev=facts.get("netdev"),
        set_back=frozenset(set_back),
    )


def as_one_path(evidence: Evidence, net_path: str, interfaces: Sequence[str]) -> Evidence:
    """Return ``evidence`` with each node's own interface under the one name of their path.

    ``interfaces`` are of each node, in the order of their lowest ranks; one too few leaves a node
    without the path, which then is not proven.
    """
    own = dict(zip(evidence.nodes, interfaces, strict=False))

    def named(sample: CounterSample) -> CounterSample:
        mine = own.get(sample.node)
        # A device over it stays over it, and its verbs are told from sockets.
        return replace(
            sample,
            interface=net_path if mine == sample.interface else sample.interface,
            parent=net_path if mine and mine == sample.parent else sample.parent,
        )

    return replace(evidence, samples=tuple(map(named, evidence.samples)))


def evidence_of(leg: Leg, ranks: Sequence[RankRecord]) -> Evidence:
    """Return what the ranks of ``leg`` saw, under the names of its rails."""
    evidence = gather(ranks)
    return as_one_path(evidence, leg.rails[0], leg.node_rails) if leg.node_rails else evidence


def read_status(folder: Path) -> int | None:
    """Return the launcher's exit status; None if the leg never ended."""
    text = read_text(folder / "status").strip()
    return int(text) if text.removeprefix("-").isdecimal() else None


def failed_rank(ranks: Sequence[RankRecord]) -> str | None:
    """Return what a rank's own status says against a launcher that said 0."""
    ended = (f"{each.place} ended with exit status {each.status}" for each in ranks if each.status)
    return next(ended, None)


def first_death(folder: Path, ranks: Sequence[RankRecord]) -> str:
    """Return which rank died of its own, or else that one was killed; empty if nobody saw that.

    A launcher kills the other ranks of one that died, and its last words are of these.
    """
    for each in ranks:
        if (number := (each.status or 0) - 128) in _CRASHES:
            return f"{each.place} died of signal {number} ({_CRASHES[number]})"
    said = read_text(folder / "stderr")
    if crash := _CRASHED.search(said):
        node, task, word = crash.groups()
        return f"rank {task} on {node} died: {word}" if node else f"a rank {crash[0]}"
    killed = "a rank was killed (signal 9), at the time limit or before"
    return killed if _KILLED.search(said) else ""


def read_reason(folder: Path) -> str:
    """Return the reason that a script of ours left: the launcher may have stderr's last line."""
    texts = (read_text(path).strip() for path in sorted(folder.glob("reason.*")))
    return next(filter(None, texts), "")


def read_refusal(folder: Path) -> str:
    """Return why the nodes said that this leg means nothing; empty if they did not."""
    reasons = dict.fromkeys(read_text(path).strip() for path in sorted(folder.glob("no.*")))
    return "; ".join(filter(None, reasons))


def last_words(path: Path) -> str:
    """Return the last line of a file that says something; that srun saw a task end says less."""
    lines = [line.strip() for line in read_text(path).splitlines()]
    lines = [each for each in lines if not _EXITED.fullmatch(each)] or lines
    if lmod := next((each for each in lines if each.startswith(_LMOD)), ""):
        return lmod[:160]
    # Of a long line the end says what went wrong, the beginning is paths; rulers say nothing.
    return next((line[-160:] for line in reversed(lines) if any(map(str.isalnum, line))), "")


def read_text(path: Path) -> str:
    """Return what a file of a leg or a job holds; empty if it is not there."""
    try:
        return text_of(path, errors="replace")
    except OSError:
        return ""


def read_ranks(folder: Path) -> tuple[tuple[RankRecord, ...], str | None]:
    """Return what the ranks wrote, as far as it is whole, and what is wrong with the rest."""
    records: list[RankRecord] = []
    for path in sorted(folder.glob("rank.*")):
        part = path.suffix.removeprefix(".")
        in_container = folder / path.name.replace("rank", "inside", 1)
        try:
            record = parse_rank(read_text(path), str(path))
            record = replace(record, part=int(part) if part.isdecimal() else 0)
            if in_container.is_file():
                inside = parse_inside(read_text(in_container), str(in_container))
                record = replace(record, inside=inside, library=inside.library)
        except FabricproofError as error:
            return tuple(records), str(error)
        records.append(record)
    return tuple(records), None


def read_table(folder: Path, leg: Leg) -> tuple[Table | None, str | None]:
    """Return the table that the leg was to print, or why there is none."""
    source = folder / "stdout"
    try:
        tables = parse_text(read_text(source), str(source))
    except FabricproofError as error:
        return None, str(error)
    # Of nccl-tests what is in place is left out; before 2.17 they do not print their name.
    placed = [each for each in tables if each.attributes.get("placement") == "out-of-place"]
    wanted = [each for each in placed or tables if each.program in {leg.program, UNNAMED}]
    if len(wanted) != len(leg.commands):
        due = len(leg.commands)
        return None, f"{len(wanted)} tables of {leg.program} in the output, expected {due}"
    if any(table.columns != wanted[0].columns for table in wanted):
        return None, f"the {len(wanted)} tables of {leg.program} have unlike columns"
    # OSU's multi-pair programs do not always print how many pairs ran, and never how often.
    planned = {"num_pairs": max(1, leg.num_ranks // 2)}
    if leg.traffic.repetitions is not None:
        planned["least_repetitions"] = leg.traffic.repetitions
    whole = replace(
        wanted[0],
        program=leg.program,
        attributes={**planned, **wanted[0].attributes},
        rows=tuple(row for table in wanted for row in table.rows),
        row_lines=tuple(line for table in wanted for line in table.row_lines),
    )
    sizes = tuple(map(int, whole.column("message_size"))) if leg.expected_sizes else ()
    if sizes == leg.expected_sizes:
        return whole, None
    asked, got = (
        f"{size_label(each[0])} to {size_label(each[-1])} ({len(each)})" if each else "none"
        for each in (leg.expected_sizes, sizes)
    )
    return None, f"message sizes {asked} were asked for, got {got}"
