"""What the launches of a campaign left: rounds of values and counters, and what is left to do.

The kernel writes JSON lines, and closes each round with its end.  A round without its end is lost,
whatever stands of it: the job was killed in it.  Any other line that is none of ours is damage.
What was measured stands in these records and nowhere else, so that a campaign that was killed goes
on with what they lack.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.plain import typed, typed_at
from fabricproof.core.records import read_json, text_if_there
from fabricproof.core.units import counted, size_label
from fabricproof.job.evidence.leg_folder import RankRecord, named_counters, read_text
from fabricproof.pairs.campaign.kernel import FORMAT, Binary, Mode
from fabricproof.pairs.campaign.plan import PLAN_FILE, Campaign, PlannedRound

LAUNCH_FILE, RECORD_FILE, SCHEDULE_FILE = "launch.json", "record.jsonl", "schedule"

#: what a rank that hangs says before it ends the launch (kernel.c, too_long)
_STUCK = re.compile(r"fabricproof kernel: stuck (\S+) with (\S+) in round (\d+),")

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Value:
    """One measurement of a pair.

    Attributes:
        source: node that led: sent first, or one way.
        destination: its partner.
        warmups: unmeasured repetitions.
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
    median_us: float

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

    @cached_property
    def pairs(self) -> Mapping[Pair, tuple[Value, ...]]:
        """The values of each pair, named in either order."""
        found: dict[Pair, list[Value]] = {}
        for value in self.values:
            back = (value.destination, value.source)
            key = back if back in found else (value.source, value.destination)
            found.setdefault(key, []).append(value)
        return {pair: tuple(values) for pair, values in found.items()}


@dataclass(kw_only=True)
class KernelRecord:
    """What a launch of the kernel left.

    Attributes:
        rounds: that ended, in the order in which they ran.
        binary: what measured them; None if nothing is written yet.
        lost: rounds that began and did not end, and what else was cut, in words.
        net_path: number of the path that was measured.
        reason: why it did not come to its end; empty if it did.
        down: node -> which of its rails is not up; then no rank was started.
        stuck: pairs that hung, with the number of the round.
    """

    rounds: list[RoundRecord] = field(default_factory=list)
    binary: Binary | None = None
    is_done: bool = False
    lost: list[str] = field(default_factory=list)
    net_path: int = 0
    reason: str = ""
    down: Mapping[str, str] = field(default_factory=dict)
    stuck: frozenset[tuple[int, frozenset[str]]] = frozenset()


def read_record(text: str, source: str) -> KernelRecord:
    """Read the record of one launch, also while it is written."""
    found = KernelRecord()
    ranks: dict[str, RankRecord] = {}
    values: list[Value] = []
    nodes: dict[str, RankRecord] = {}
    *lines, tail = text.split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            fields = json.loads(line)
            kind = fields["record"]
            if found.is_done or (found.binary is None) != (kind == "campaign"):
                raise ValueError("a line that does not belong here")
            if kind == "campaign":
                found.binary = _binary(fields)
            elif kind == "rank":
                rank = _rank(fields, ranks)
                ranks[rank.node] = rank
            elif kind == "value":
                values.append(_value(fields))
            elif kind == "counters":
                node = str(fields["node"])
                nodes[node] = _with_counters(ranks[node], fields, source)
            elif kind == "end":
                found.rounds.append(_round(fields, values, nodes, found.rounds))
                values, nodes = [], {}
            elif kind == "done" and not values and not nodes:
                found.is_done = True
            else:
                raise ValueError("a record that the kernel does not write here")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ParseError(
                "damaged record of pairs",
                source=source,
                line=number,
                expected=f"the kernel's next record ({error})",
                got=repr(line)[:120],
            ) from None
    unended = f"a round did not end ({len(values)} values of it are lost)"
    cut = f"{source}:{len(lines) + 1}: a line is cut off"
    found.lost = [unended] * bool(values or nodes) + [cut] * bool(tail)
    if found.binary:
        seen = dict.fromkeys(each.library for each in ranks.values() if each.library != "unknown")
        found.binary = replace(found.binary, libraries=tuple(seen))
    return found


def _binary(fields: Mapping[str, Any]) -> Binary:
    if fields["format"] != FORMAT:
        raise ValueError(f"format {FORMAT}, got {fields['format']}")
    return Binary(
        mpi=str(fields["mpi"]) or "unknown",
        build=str(fields.get("build", "")),
        sha256=str(fields.get("sha256", "")),
    )


def _rank(fields: Mapping[str, Any], others: Collection[str]) -> RankRecord:
    if fields["node"] in others:
        raise ValueError(f"{fields['node']} has two ranks")
    return RankRecord(
        rank=typed_at(fields, "rank", int),
        node=str(fields["node"]),
        cpus=str(fields["cpus"]),
        machine=str(fields["machine"]),
        library=str(fields.get("library", "")) or "unknown",
        status=0,
        facts={name: {key: str(fact) for key, fact in told.items()}
               for name, told in fields["facts"].items()},
    )  # fmt: skip


def _value(fields: dict[str, Any]) -> Value:
    ends = {"source": str(fields["from"]), "destination": str(fields["to"])}
    told = {name: fields[name] for name in Value.__dataclass_fields__ if name in fields}
    value = typed(Value, told | ends)
    times = (value.median_us, value.total_us)
    if value.source == value.destination or min(value.size, value.window, value.repetitions) < 1:
        raise ValueError("no message was measured")
    if not all(0 < each < math.inf for each in times):
        raise ValueError("times that cannot be")
    return value


def _with_counters(rank: RankRecord, fields: Mapping[str, Any], source: str) -> RankRecord:
    """Return a rank with its counters; ``after`` names only what changed."""
    before = {str(name): dict(told) for name, told in fields["before"].items()}
    after = {name: dict(told) for name, told in before.items()}
    for name, told in fields["after"].items():
        after.setdefault(str(name), {}).update(told)
    for interface, name in fields["gone"]:
        del after[interface][name]
    return replace(
        rank,
        before=named_counters(before, rank.facts, source),
        after=named_counters(after, rank.facts, source),
    )


def _round(
    fields: Mapping[str, Any],
    values: Sequence[Value],
    nodes: Mapping[str, RankRecord],
    before: Iterable[RoundRecord],
) -> RoundRecord:
    number = typed_at(fields, "round", int)
    named = {name for each in values for name in (each.source, each.destination)}
    if named != set(nodes):
        raise ValueError("a round ends without the counters of each of its nodes")
    if any(each.number == number for each in before) or {each.round for each in values} - {number}:
        raise ValueError("values of another round")
    return RoundRecord(
        number=number,
        values=tuple(values),
        nodes=nodes,
        begin=typed_at(fields, "begin", float),
        end=typed_at(fields, "end", float),
    )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the launches of a campaign left.

    Attributes:
        rounds: path, and a round that ended over it, in the order of the launches.
        lost: what was cut, and why launches did not come to their end, in words.
        binaries: kernels and the MPIs that they ran with.
    """

    rounds: tuple[tuple[int, RoundRecord], ...]
    lost: tuple[str, ...] = ()
    binaries: tuple[Binary, ...] = ()


def launches(folder: Path) -> list[Path]:
    """Return the folders of the launches of a campaign, oldest first."""
    found = [path for path in folder.glob("launch.*") if path.suffix[1:].isdecimal()]
    return sorted(found, key=lambda path: int(path.suffix[1:]))


def read_launch(folder: Path) -> KernelRecord | None:
    """Return what one launch has left so far; None if it was cut off before it was planned."""
    try:
        net_path = int(read_json(folder / LAUNCH_FILE)["net_path"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise ParseError("damaged plan of a launch", source=str(folder / LAUNCH_FILE)) from None
    record = replace(_record_of(folder / RECORD_FILE), net_path=net_path)
    if record.is_done:
        return record
    seen = (line.partition(" ") for line in read_text(folder / "down").splitlines())
    record.down = {node: rail for node, _, rail in seen if rail}
    stderr = read_text(folder / "stderr")
    record.stuck = frozenset(
        (int(number), frozenset((one, other))) for one, other, number in _STUCK.findall(stderr)
    )
    if record.down:
        named = ", ".join(f"{node} {rail}" for node, rail in sorted(record.down.items()))
        record.reason = f"not up: {named}"
        return record
    status = read_text(folder / "status").strip()
    why = f"the kernel ended with status {status}" if status else "its script was ended"
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("fabricproof kernel")]
    record.reason = ": ".join(filter(None, (why, (own or lines[-1:] or [""])[0][:300])))
    return record


def _record_of(path: Path) -> KernelRecord:
    try:
        found = path.stat()
    except OSError:
        return KernelRecord()
    return _read(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, _size: int, _mtime: int) -> KernelRecord:
    """Read a record once, and again if it grew: the job of a killed program may still write."""
    text = text_if_there(
        path,
        "the record of a launch",
        "make it readable: without it its rounds would be measured again",
        what="cannot read what was measured",
    )
    return KernelRecord() if text is None else read_record(text, str(path))


def measured(folder: Path, campaign: Campaign) -> Measured:
    """Return what the campaign in ``folder`` has measured.

    Raises:
        ParseError: a record is damaged, or of another campaign.
    """
    rounds: list[tuple[int, RoundRecord]] = []
    lost: list[str] = []
    binaries: dict[Binary, None] = {}
    for place in launches(folder):
        launch = read_launch(place)
        if launch is None:
            continue
        at = launch.net_path
        planned = {each.number: each for each in campaign.rounds if at in each.net_paths}
        for record in launch.rounds:
            _check(campaign, planned.get(record.number), record, str(place))
            rounds.append((at, record))
        lost += [f"{place.name}: {why}" for why in (launch.reason, *launch.lost) if why]
        if launch.binary:
            binaries[launch.binary] = None
    return Measured(rounds=tuple(rounds), lost=tuple(lost), binaries=tuple(binaries))


def _check(
    campaign: Campaign, planned: PlannedRound | None, record: RoundRecord, source: str
) -> None:
    """Refuse a round that was not planned, and one in which a measurement is lacking."""
    pairs = {campaign.names(pair) for pair in (planned.pairs if planned else ())}
    for pair, values in record.pairs.items():
        seen = Counter(value.mode for value in values)
        ways = {value.source for value in values if value.mode is Mode.UNI}
        sizes = {value.size for value in values if value.mode is not Mode.PINGPONG}
        is_whole = seen == campaign.modes and ways == set(pair) and sizes == {campaign.size}
        if frozenset(pair) not in pairs or not is_whole:
            raise ParseError(
                "a round that is none of this campaign's",
                source=f"{source}/{RECORD_FILE}",
                expected=f"the pairs of round {record.number} in {PLAN_FILE}, all measured, with "
                f"messages of {size_label(campaign.size)}",
                got=f"{pair[0]} - {pair[1]}: {counted(seen.total(), 'value')}, messages of "
                f"{', '.join(size_label(size) for size in sorted(sizes)) or 'no size'}",
            )


def left_on(net_path: int, campaign: Campaign, done: Measured) -> tuple[PlannedRound, ...]:
    """Return what is planned over one path and not measured."""
    seen = {
        (record.number, frozenset(pair))
        for own, record in done.rounds
        if own == net_path
        for pair in record.pairs
    }
    cut = (
        replace(
            each,
            pairs=tuple(
                pair for pair in each.pairs if (each.number, campaign.names(pair)) not in seen
            ),
        )
        for each in campaign.rounds
        if net_path in each.net_paths
    )
    return tuple(each for each in cut if each.pairs)


def left_over(campaign: Campaign, done: Measured) -> dict[int, tuple[PlannedRound, ...]]:
    """Return path -> what is planned over it and not measured; nothing that was measured."""
    paths = range(len(campaign.net_paths))
    return {at: rounds for at in paths if (rounds := left_on(at, campaign, done))}
