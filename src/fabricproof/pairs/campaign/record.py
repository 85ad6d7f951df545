"""Read what the kernel wrote: JSON lines, each round closed by its end.

A round without its end is lost, whatever stands of it: the job was killed in it.  A last line
without its newline is such a loss too.  Any other line that is none of ours is damage, and refused.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from fabricproof.core.errors import ParseError
from fabricproof.core.plain import typed, typed_at
from fabricproof.job.evidence.leg_folder import RankRecord, named_counters
from fabricproof.pairs.campaign.plan import FORMAT, Binary, Build, Mode

#: the times of a few repetitions stand singly, and their sum is what is said; rounding allowed
_ROUNDING_US = 0.01


@dataclass(frozen=True, kw_only=True)
class Value:
    """One measurement of a pair.

    Attributes:
        source: node that led: sent first, or one way.
        destination: its partner.
        warmups: unmeasured repetitions.
        times_us: of each, where they were few.
    """

    round: int
    mode: Mode
    source: str
    destination: str
    size: int
    window: int
    warmups: int
    repetitions: int
    total_us: float
    least_us: float
    median_us: float
    most_us: float
    times_us: tuple[float, ...] = ()

    @property
    def bandwidth_mb_s(self) -> float:
        """All bytes over all time, as osu_bw and osu_bibw have it; of a ping-pong one way."""
        ways = 1 if self.mode is Mode.UNI else 2
        return ways * self.size * self.window * self.repetitions / self.total_us

    @property
    def median_latency_us(self) -> float:
        """Half of the middle time there and back: one stall does not change it."""
        return self.median_us / 2

    @property
    def sent_bytes(self) -> tuple[int, int]:
        """Payload that source and destination sent, warm-up included."""
        forth = self.size * self.window * (self.repetitions + self.warmups)
        return forth, 0 if self.mode is Mode.UNI else forth

    @property
    def sent_messages(self) -> int:
        """Messages of either side that waited for an answer each; 0 where they shared packets."""
        return self.repetitions + self.warmups if self.mode is Mode.PINGPONG else 0


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """A round that ended.

    Attributes:
        nodes: node -> what its rank saw, counters before and after the round.
    """

    number: int
    values: tuple[Value, ...]
    nodes: Mapping[str, RankRecord] = field(repr=False)
    begin: float
    end: float


@dataclass(frozen=True, kw_only=True)
class KernelRecord:
    """What a launch of the kernel left.

    Attributes:
        rounds: that ended, in the order in which they ran.
        binary: what measured them; None where nothing is written yet.
        lost: rounds that began and did not end, and what else was cut, in words.
    """

    rounds: tuple[RoundRecord, ...] = ()
    binary: Binary | None = None
    is_done: bool = False
    lost: tuple[str, ...] = ()


def read_record(text: str, source: str) -> KernelRecord:
    """Read the record of one launch, also while it is written."""
    reader = _Reader(source)
    tail = reader.take_all(text)
    return reader.record([f"{source}:{reader.line + 1}: a line is cut off"] if tail else [])


class GrowingRecord:
    """A record that is being written: each look reads what is new in it, once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = _Reader(str(path))
        self._tail = b""
        self._offset = 0

    def look(self) -> KernelRecord:
        """Return what stands in it by now; nothing before it is there."""
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
            self._offset += len(new)
            whole, newline, tail = (self._tail + new).rpartition(b"\n")
            self._tail = tail
            self._reader.take_all((whole + newline).decode(errors="replace"))
        return self._reader.record(())


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.line = 0
        self.binary: Binary | None = None
        self.is_done = False
        self.facts: dict[str, RankRecord] = {}
        self.rounds: dict[int, RoundRecord] = {}
        self.values: dict[tuple[Mode, int, str, str], Value] = {}
        self.nodes: dict[str, RankRecord] = {}
        self.round: int | None = None

    def refuse(self, problem: str, expected: str, got: object) -> NoReturn:
        raise ParseError(
            problem, source=self.source, line=self.line, expected=expected, got=repr(got)[:120]
        )

    def take_all(self, text: str) -> str:
        """Take the lines of ``text``; return what stands behind the last one."""
        *lines, tail = text.split("\n")
        for line in lines:
            self._take(line)
        return tail

    def _take(self, line: str) -> None:
        self.line += 1
        try:
            fields = json.loads(line)
        except ValueError:
            self.refuse("damaged record of pairs", "a JSON object", line)
        if not isinstance(fields, dict):
            self.refuse("damaged record of pairs", "a JSON object", line)
        kind = str(fields.get("record"))
        takers = {
            "campaign": self._campaign,
            "rank": self._rank,
            "value": self._value,
            "counters": self._counters,
            "end": self._end,
            "done": self._done,
        }
        if kind not in takers or self.is_done or (self.binary is None) != (kind == "campaign"):
            self.refuse("a line that does not belong here", "the kernel's next record", line)
        try:
            takers[kind](fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ParseError):
                raise
            self.refuse("damaged record of pairs", f"a whole {kind} record", line)

    def _campaign(self, fields: dict[str, Any]) -> None:
        if fields["format"] != FORMAT:
            self.refuse("a record of another version", f"format {FORMAT}", fields["format"])
        told = str(fields.get("build", ""))
        self.binary = Binary(
            mpi=str(fields["mpi"]) or "unknown",
            build=Build(told) if told else None,
            sha256=str(fields.get("sha256", "")),
        )

    def _rank(self, fields: dict[str, Any]) -> None:
        node = str(fields["node"])
        if node in self.facts:
            self.refuse("a node has two ranks", "one each", node)
        facts = {
            str(interface): {str(name): str(value) for name, value in told.items()}
            for interface, told in fields["facts"].items()
        }
        self.facts[node] = RankRecord(
            rank=typed_at(fields, "rank", int),
            node=node,
            cpus=str(fields["cpus"]),
            machine=str(fields["machine"]),
            library=str(fields.get("library", "")) or "unknown",
            status=0,
            before={},
            after={},
            facts=facts,
        )

    def _in_round(self, fields: dict[str, Any]) -> int:
        number = typed_at(fields, "round", int)
        if number in self.rounds or self.round not in {None, number}:
            self.refuse("a record of another round", f"round {self.round}", number)
        self.round = number
        return number

    def _node(self, name: object) -> str:
        if name not in self.facts:
            self.refuse("a node without a rank", "one that had a rank", name)
        return str(name)

    def _value(self, fields: dict[str, Any]) -> None:
        self._in_round(fields)
        ends = {"source": self._node(fields["from"]), "destination": self._node(fields["to"])}
        # The kernel prints more of the times than is read: 95 and 99 % of them.
        told = {name: fields[name] for name in Value.__dataclass_fields__ if name in fields}
        value = typed(Value, told | ends)
        why = _contradiction(value)
        key = (value.mode, value.size, value.source, value.destination)
        if why or key in self.values:
            self.refuse("a value that cannot be", "one that agrees", why or "a second of a pair")
        self.values[key] = value

    def _counters(self, fields: dict[str, Any]) -> None:
        self._in_round(fields)
        node = self._node(fields["node"])
        if node in self.nodes:
            self.refuse("the counters of a node stand twice", "once in a round", node)
        before = {str(name): dict(told) for name, told in fields["before"].items()}
        after = {name: dict(told) for name, told in before.items()}
        for name, told in fields["after"].items():
            after.setdefault(str(name), {}).update(told)
        for interface, name in fields["gone"]:
            del after[interface][name]
        known = self.facts[node]
        self.nodes[node] = replace(
            known,
            before=named_counters(before, known.facts, self.source),
            after=named_counters(after, known.facts, self.source),
        )

    def _end(self, fields: dict[str, Any]) -> None:
        number = self._in_round(fields)
        named = {name for each in self.values.values() for name in (each.source, each.destination)}
        if named != set(self.nodes):
            self.refuse("a round ends without all its counters", "those of each node", number)
        begin, end = (typed_at(fields, name, float) for name in ("begin", "end"))
        self.rounds[number] = RoundRecord(
            number=number,
            values=tuple(self.values.values()),
            nodes=self.nodes,
            begin=begin,
            end=end,
        )
        self.values, self.nodes, self.round = {}, {}, None

    def _done(self, fields: dict[str, Any]) -> None:
        del fields
        self.is_done = self.round is None
        if not self.is_done:
            self.refuse("an end within a round", f"the end of round {self.round}", "done")

    def record(self, lost: Iterable[str]) -> KernelRecord:
        unended = [] if self.round is None else [f"round {self.round} did not end"]
        seen = dict.fromkeys(each.library for each in self.facts.values())
        libraries = tuple(each for each in seen if each != "unknown")
        return KernelRecord(
            rounds=tuple(self.rounds.values()),
            binary=replace(self.binary, libraries=libraries) if self.binary else None,
            is_done=self.is_done,
            lost=(*unended, *lost),
        )


def _contradiction(value: Value) -> str:
    if value.source == value.destination:
        return "a node with itself"
    if min(value.size, value.window, value.repetitions) < 1:
        return "no message was measured"
    if (
        not 0
        < value.least_us
        <= value.median_us
        <= value.most_us
        <= value.total_us * 1.001
        < math.inf
    ):
        return "times that contradict each other"
    few = value.times_us
    off = _ROUNDING_US * (value.repetitions + 1)
    if few and (len(few) != value.repetitions or abs(sum(few) - value.total_us) > off):
        return "times that are not their sum"
    return ""
