"""Read what an attempt of a leg left: status, output, reasons, and what ``rank.sh`` wrote.

A file of ``rank.sh`` holds one fact a line: ``rank N``, ``node NAME``, ``cpus LIST``,
``kernel RELEASE``, ``library PATH`` (several joined by `` and ``, ``none``, or ``unknown`` where
nobody could look), ``machine ID`` (the kernel's boot id: nodes that share it are one machine),
``addresses IP...`` (of the node), ``neighbours DEVICE/IP=FLAGS/HARDWARE...`` and ``ttl
DEVICE/IP=NUMBER...`` (after the leg, on its rails), ``digests FILE=SHA256...``,
``root DEVICE:INODE`` (of the node, where the program is in a container: then ``inside.N.PART`` has
the library), ``fact INTERFACE key=value ...``, ``before|after INTERFACE counter=value ...``,
``status N``.
The TCP of a node stands there as an interface ``node/tcp``, by the first of its ranks; what its
CPUs did as ``node/cores``, by each rank for those that it may run on.
A line of another form is damage, never skipped.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.benchmarks.program import UNNAMED
from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.core.measure import Table
from fabricproof.core.records import text_of
from fabricproof.core.units import size_label
from fabricproof.job.collective_commands import BUS_SUITES
from fabricproof.job.leg import Leg
from fabricproof.stacks.container import Inside, parse_inside
from fabricproof.traffic import CounterSample, Evidence, Rank, in_our_names

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
_SINGLE = frozenset({"rank", "node", "cpus", "kernel", "library", "machine", "root", "status"}) | {
    "addresses", "neighbours", "ttl", "digests",
}  # fmt: skip

#: the CPUs that one rank may run on stand among the counters as an interface of this name
CORES = "node/cores"


@dataclass(frozen=True, kw_only=True)
class RankRecord:
    """What one rank's file says.

    ``before`` and ``after`` hold counters by interface; ``facts`` what the interface is;
    ``library`` is the MPI library that the loader gives the program in the job, ``none`` where it
    links none; ``status`` is the program's exit status, None where the rank did not come back;
    ``part`` is which start of its leg it was, from 0; ``machine`` tells nodes of one kernel;
    ``addresses`` are the node's own; ``neighbours``, ``ttl``, ``digests`` as in its file, by key;
    ``root`` is the node's, where the program ran in a container, and ``inside`` what that saw.
    """

    rank: int
    node: str
    part: int = 0
    cpus: str = "unknown"
    kernel: str = "unknown"
    library: str = "unknown"
    machine: str = ""
    status: int | None = None
    before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    after: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    root: str = ""
    addresses: tuple[str, ...] = ()
    neighbours: Mapping[str, str] = field(default_factory=dict)
    ttl: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    inside: Inside | None = None


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
            tables[word][interface] = dict(_pair(each, source, number) for each in pairs)
        elif word in _SINGLE and interface and word not in single:
            single[word] = rest.strip()
        else:
            raise ParseError(
                "damaged evidence", source=source, line=number, expected="a fact", got=repr(line)
            )
    if not text.endswith("\n"):
        raise ParseError("cut evidence", source=source, expected="a newline at its end")
    for due in ("rank", "node"):
        if due not in single:
            raise ParseError("damaged evidence", source=source, expected=f"a {due} line")
    return RankRecord(
        rank=_whole(single["rank"], source),
        node=single["node"],
        cpus=single.get("cpus", "unknown"),
        kernel=single.get("kernel", "unknown"),
        library=single.get("library", "unknown"),
        machine=single.get("machine", single["node"]),
        root=single.get("root", ""),
        addresses=tuple(single.get("addresses", "").split()),
        neighbours=_pairs(single, "neighbours", source),
        ttl=_pairs(single, "ttl", source),
        digests=_pairs(single, "digests", source),
        status=_whole(single["status"], source) if "status" in single else None,
        before=named_counters(tables["before"], tables["fact"], source),
        after=named_counters(tables["after"], tables["fact"], source),
        facts=tables["fact"],
    )


def _pair(text: str, source: str, line: int) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark:
        raise ParseError(
            "damaged evidence", source=source, line=line, expected="key=value", got=repr(text)
        )
    return key, value


def _pairs(single: Mapping[str, str], name: str, source: str) -> dict[str, str]:
    return dict(_pair(each, source, 0) for each in single.get(name, "").split())


def _whole(text: object, source: str) -> int:
    with contextlib.suppress(ValueError):
        number = text if type(text) is int else int(str(text))
        if abs(number) < _COUNTER_END:
            return number
    raise ParseError(
        "damaged evidence", source=source, expected="a whole number of 64 bits",
        got=repr(text)[:60],
    )  # fmt: skip


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
    """Return the link layer of a port, empty where none is said; Omni-Path says InfiniBand.

    What is said and no driver was read may be either.
    """
    if _is_omni_path(port, facts):
        return "Omni-Path"
    layer = facts.get("link_layer", "")
    return "InfiniBand or Omni-Path" if layer == "InfiniBand" and not facts.get("uevent") else layer


def _is_omni_path(port: str, facts: Mapping[str, str]) -> bool:
    """Tell whether a port is Omni-Path's: by its driver, else by the name that hfi1 gives it.

    ``facts``: its; the first line of ``uevent`` is ``DRIVER=hfi1`` (Linux drivers/base/core.c,
    dev_uevent).  Its link layer is InfiniBand's word.
    """
    driver = facts.get("uevent")
    return driver == "DRIVER=hfi1" if driver else port.startswith("hfi1_")


def gather(records: Iterable[RankRecord]) -> Evidence:
    """Join the ranks' records into the evidence of one leg.

    Several ranks of one node see the same counters, and a leg may start several times; the
    earliest before and the latest after count, so that nothing any of them moved is missed.  A
    counter that ran backwards for one of them did so for all: another that began after the reset
    must not hide it.  Nor must one that was reset between two starts look as if it had moved.
    """
    records = tuple(records)
    samples: dict[tuple[str, str], CounterSample] = {}
    for record in records:
        for interface, before in record.before.items():
            if interface == CORES:
                continue  # each rank's own
            key = (record.node, interface)
            after = record.after.get(interface, {})
            facts = record.facts.get(interface, {})
            known = samples.get(key)
            samples[key] = CounterSample(
                node=record.node,
                interface=interface,
                before=_merge(known.before if known else {}, before, min),
                after=_merge(known.after if known else {}, after, max),
                # A rank that does not say it unsays no other's word.
                address=facts.get("address", known.address if known else None),
                parent=facts.get("parent", known.parent if known else None),
                netdev=facts.get("netdev", known.netdev if known else None),
            )
    for place, names in _set_back(records).items():
        samples[place] = replace(samples[place], set_back=names)
    for record in records:
        for interface, (before, after) in _backwards(record).items():
            sample = samples[record.node, interface]
            samples[record.node, interface] = replace(
                sample, before={**sample.before, **before}, after={**sample.after, **after}
            )
    places = sorted({(each.rank, each.node) for each in records})
    return Evidence(
        ranks=tuple(Rank(rank=rank, node=node) for rank, node in places),
        samples=tuple(samples.values()),
    )


def _backwards(record: RankRecord) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Return interface -> what its counters that ran backwards were before and after."""
    found = {}
    for interface, before in record.before.items():
        if interface == CORES:
            continue
        after = record.after.get(interface, {})
        names = [name for name in before if name in after and after[name] < before[name]]
        if names:
            found[interface] = (
                {name: before[name] for name in names},
                {name: after[name] for name in names},
            )
    return found


def _set_back(records: Sequence[RankRecord]) -> dict[tuple[str, str], frozenset[str]]:
    """Return node and interface -> counters that a later start found lower than one left them.

    The starts of a leg come one after the other, its ranks of one start at the same time.
    """
    left: dict[tuple[str, str, str], int] = {}
    found: dict[tuple[str, str], set[str]] = {}
    for part in sorted({each.part for each in records}):
        now = [each for each in records if each.part == part]
        for node, interface, name, value in _readings(now, "before"):
            if value < left.get((node, interface, name), value):
                found.setdefault((node, interface), set()).add(name)
        for node, interface, name, value in _readings(now, "after"):
            key = (node, interface, name)
            left[key] = max(value, left.get(key, value))
    return {place: frozenset(names) for place, names in found.items()}


def _readings(
    records: Iterable[RankRecord], when: Literal["before", "after"]
) -> Iterator[tuple[str, str, str, int]]:
    for record in records:
        for interface, counters in (record.before if when == "before" else record.after).items():
            if interface == CORES:
                continue
            for name, value in counters.items():
                yield record.node, interface, name, value


def as_one_path(evidence: Evidence, net_path: str, interfaces: Sequence[str]) -> Evidence:
    """Return ``evidence`` with each node's own interface under the one name of their path.

    Args:
        evidence: of one leg.
        net_path: the name, which no interface has.
        interfaces: of each node, in the order of their lowest ranks; one too few for the nodes that
            ran leaves a node without the path, which then is not proven.
    """
    mine = dict(zip(evidence.nodes, interfaces, strict=False))
    return replace(
        evidence,
        samples=tuple(
            replace(
                sample,
                interface=net_path if own == sample.interface else sample.interface,
                # A device over it stays over it, and its verbs are told from sockets.
                parent=net_path if own and own == sample.parent else sample.parent,
            )
            for sample in evidence.samples
            for own in (mine.get(sample.node),)
        ),
    )


def _merge(
    first: Mapping[str, int], second: Mapping[str, int], pick: Callable[..., int]
) -> dict[str, int]:
    return {
        key: pick(mapping[key] for mapping in (first, second) if key in mapping)
        for key in {*first, *second}
    }


def read_status(folder: Path) -> int | None:
    """Return the launcher's exit status; None where the leg never ended."""
    try:
        return int(text_of(folder / "status"))
    except (OSError, ValueError):
        return None


def failed_rank(ranks: Sequence[RankRecord]) -> str | None:
    """Return what a rank's own status says against a launcher that said 0."""
    for each in ranks:
        if each.status not in {0, None}:
            return f"rank {each.rank} on {each.node} ended with exit status {each.status}"
    return None


def first_death(folder: Path, ranks: Sequence[RankRecord]) -> str:
    """Return which rank died of its own, or else that one was killed; empty if nobody saw that.

    A launcher kills the other ranks of one that died, and its last words are of these.
    """
    for each in ranks:
        if (number := (each.status or 0) - 128) in _CRASHES:
            return f"rank {each.rank} on {each.node} died of signal {number} ({_CRASHES[number]})"
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


def last_words(path: Path) -> str:
    """Return the last line of a file that says something, rulers left out.

    That srun saw a task end says less than whatever the task said.
    """
    lines = [line.strip() for line in read_text(path).splitlines()]
    lines = [each for each in lines if not _EXITED.fullmatch(each)] or lines
    # Of a long line the end says what went wrong, the beginning is paths.
    return next((line[-160:] for line in reversed(lines) if any(map(str.isalnum, line))), "")


def read_text(path: Path) -> str:
    """Return what a file of a leg or a job holds; empty where it is not there."""
    try:
        return text_of(path, errors="replace")
    except OSError:
        return ""


def read_ranks(folder: Path) -> tuple[tuple[RankRecord, ...], str | None]:
    """Return what the ranks wrote, as far as it is whole, and what is wrong with the rest."""
    records = []
    for path in sorted(folder.glob("rank.*")):
        try:
            part = path.suffix.removeprefix(".")
            record = parse_rank(read_text(path), str(path))
            record = replace(record, part=int(part) if part.isdecimal() else 0)
            records.append(_with_inside(record, folder / path.name.replace("rank", "inside", 1)))
        except FabricproofError as error:
            return tuple(records), str(error)
    return tuple(records), None


def _with_inside(record: RankRecord, path: Path) -> RankRecord:
    """Return the record with what its container showed, where there was one and it said so."""
    if not path.is_file():
        return record
    inside = parse_inside(read_text(path), str(path))
    return replace(record, inside=inside, library=inside.library)


def read_table(folder: Path, leg: Leg) -> tuple[Table | None, str | None]:
    """Return the table that the leg was to print, or why there is none."""
    source = folder / "stdout"
    try:
        tables = parse_text(read_text(source), str(source))
    except FabricproofError as error:
        return None, str(error)
    if leg.suite in BUS_SUITES.values():
        tables = _out_of_place(tables, leg.program)
    wanted = [table for table in tables if table.program == leg.program]
    if len(wanted) != len(leg.commands):
        due = len(leg.commands)
        return None, f"{len(wanted)} tables of {leg.program} in the output, expected {due}"
    if any(table.columns != wanted[0].columns for table in wanted):
        return None, f"the {len(wanted)} tables of {leg.program} have unlike columns"
    whole = _joined(wanted, leg)
    if not leg.expected_sizes:
        return whole, None
    sizes = tuple(int(size) for size in whole.column("message_size"))
    if sizes != leg.expected_sizes:
        return None, f"message sizes {_span(leg.expected_sizes)} were asked for, got {_span(sizes)}"
    return whole, None


def _out_of_place(tables: Sequence[Table], program: str) -> tuple[Table, ...]:
    """Return nccl-tests' tables out of place, or those in place where it prints no others.

    Before 2.17 it does not print its name: the leg knows what it started.
    """
    placed = [each for each in tables if each.attributes["placement"] == "out-of-place"]
    return tuple(
        replace(each, program=program) if each.program == UNNAMED else each
        for each in placed or tables
    )


def _joined(tables: Sequence[Table], leg: Leg) -> Table:
    """Return the parts of one leg as the one table they are."""
    # OSU's multi-pair programs do not always print how many pairs ran, and never how often.
    planned = {"num_pairs": max(1, leg.num_ranks // 2)}
    if leg.traffic.repetitions is not None:
        planned["least_repetitions"] = leg.traffic.repetitions
    return replace(
        tables[0],
        attributes={**planned, **tables[0].attributes},
        rows=tuple(row for table in tables for row in table.rows),
        row_lines=tuple(line for table in tables for line in table.row_lines),
    )


def _span(sizes: Sequence[int]) -> str:
    return f"{size_label(sizes[0])} to {size_label(sizes[-1])} ({len(sizes)})" if sizes else "none"


def read_refusal(folder: Path) -> str:
    """Return why the nodes said that this leg means nothing; empty where they did not."""
    reasons = dict.fromkeys(read_text(path).strip() for path in sorted(folder.glob("no.*")))
    return "; ".join(reason for reason in reasons if reason)
