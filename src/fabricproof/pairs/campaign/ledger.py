"""A campaign on disk: what it is to measure, what it has measured, and what is left.

The plan is a file that is written whole; what was measured is in the records of the launches, and
nowhere else, so that a campaign that was killed goes on with what they lack.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fabricproof.core.errors import ExitStatus, FabricproofError, InputMissingError, ParseError
from fabricproof.core.records import read_json, text_if_there
from fabricproof.core.units import counted, size_label
from fabricproof.core.whole_file import write_whole
from fabricproof.pairs.campaign.path import pairs_of
from fabricproof.pairs.campaign.plan import FORMAT, Binary, Mode
from fabricproof.pairs.campaign.record import KernelRecord, RoundRecord, read_record

PLAN_FILE, LAUNCH_FILE = "campaign.json", "launch.json"
RECORD_FILE, SCHEDULE_FILE = "record.jsonl", "schedule"

NodePair = tuple[int, int]


class CampaignRunsError(FabricproofError):
    """Another program goes on with this campaign."""

    exit_status = ExitStatus.BUSY


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """A round of the campaign.

    Attributes:
        pairs: numbers of nodes; nobody twice.
        is_adaptive: whether it was added for suspects.
        is_again: whether it is a second look at pairs that were low.
        part: its place in a round that is measured in turns, from 0.
    """

    number: int
    pairs: tuple[NodePair, ...]
    net_paths: tuple[int, ...]
    is_adaptive: bool = False
    is_again: bool = False
    part: int = 0


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What a campaign is to measure.

    Attributes:
        id: the name of its folder; of a check's, the folder itself.
        site: folder that finds the site again.
        leaf_of: name of the leaf of each, empty where nobody knows.
        out: nodes of the partition that take no part -> their state in Slurm.
        skipped: nodes that the site leaves out by its own choice -> why.
        net_paths: interfaces of each way to be measured, one or several.
        size: of the large message, in bytes.
        seconds: budget of one measurement of a pair.
        both_ways: both ways at once, too.
        is_full: every pair; else the ladder.
        at_once: pairs of a round that measure at the same time at most; 0: all of it.
    """

    id: str
    site: str
    site_name: str
    partition: str
    fabric: str
    stack: str
    nodes: tuple[str, ...]
    leaf_of: tuple[str, ...]
    out: Mapping[str, str]
    skipped: Mapping[str, str]
    net_paths: tuple[tuple[str, ...], ...]
    rounds: tuple[PlannedRound, ...]
    size: int
    seconds: float
    both_ways: bool
    is_full: bool
    seed: int = 0
    at_once: int = 0
    format: int = FORMAT
    __pydantic_config__ = ConfigDict(extra="forbid")

    @property
    def resume(self) -> str:
        """The command that measures what is lacking."""
        return f"fabricproof pairs run --resume {shlex.quote(self.id)}"

    def path_name(self, net_path: int) -> str:
        """``rail0+rail1``."""
        return "+".join(self.net_paths[net_path])

    def modes(self) -> Counter[Mode]:
        """Return how many values each pair has of each mode."""
        return Counter({Mode.PINGPONG: 1, Mode.UNI: 2} | ({Mode.BI: 1} if self.both_ways else {}))

    @property
    def num_adaptive(self) -> int:
        """Rounds that were added for suspects."""
        return sum(each.is_adaptive and each.part == 0 for each in self.rounds)

    @property
    def again(self) -> frozenset[int]:
        """Numbers of the rounds that are second looks."""
        return frozenset(each.number for each in self.rounds if each.is_again)

    def with_round(
        self, pairs: tuple[NodePair, ...], net_paths: tuple[int, ...], *, is_again: bool = False
    ) -> Campaign:
        """Return the campaign with a further round: for suspects, or as a second look."""
        kind = {"is_adaptive": not is_again, "is_again": is_again}
        parts = in_turns(pairs, self.at_once)
        number = max((each.number for each in self.rounds), default=-1) + 1
        added = (
            PlannedRound(number=number + part, pairs=own, net_paths=net_paths, part=part, **kind)
            for part, own in enumerate(parts)
        )
        return replace(self, rounds=(*self.rounds, *added))


def in_turns(pairs: tuple[NodePair, ...], at_once: int) -> tuple[tuple[NodePair, ...], ...]:
    """Return the parts of a round of which each has ``at_once`` pairs at most; 0: it is one."""
    size = at_once or max(len(pairs), 1)
    return tuple(pairs[begin : begin + size] for begin in range(0, len(pairs), size))


def save(folder: Path, campaign: Campaign) -> None:
    """Write the plan of a campaign, whole."""
    write_whole(folder / PLAN_FILE, json.dumps(asdict(campaign), indent=1) + "\n")


_PLAN = TypeAdapter(Campaign)


def load(folder: Path) -> Campaign:
    """Return the campaign in ``folder``."""
    path = folder / PLAN_FILE
    found = None
    try:
        with contextlib.suppress(ValidationError):
            found = _PLAN.validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise InputMissingError(
            f"no campaign: {error.strerror}",
            source=str(path),
            next_step=f"ls {folder.parent}",
        ) from None
    if found is None or found.format != FORMAT:
        raise ParseError(
            "damaged plan of a campaign", source=str(path), expected=f"one of format {FORMAT}"
        )
    return found


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep a second program away from the campaign in ``folder``."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignRunsError(
                "this campaign is going on already",
                source=str(folder),
                next_step="wait for it, or end the other one",
            ) from None
        except OSError:
            # A file system without locks (Lustre without "flock") keeps nobody away.
            pass
        yield


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the launches of a campaign left.

    Attributes:
        rounds: path, and a round that ended over it, in the order of the launches.
        binaries: kernels and the MPIs that they ran with.
    """

    rounds: tuple[tuple[int, RoundRecord], ...]
    lost: tuple[str, ...]
    binaries: tuple[Binary, ...]


def launches(folder: Path) -> list[Path]:
    """Return the folders of the launches of a campaign, oldest first."""
    found = [path for path in folder.glob("launch.*") if path.suffix[1:].isdecimal()]
    return sorted(found, key=lambda path: int(path.suffix[1:]))


def read_launch(folder: Path) -> KernelRecord:
    """Return what one launch has measured so far; nothing where it has not begun."""
    path = folder / RECORD_FILE
    text = text_if_there(
        path,
        "the record of a launch",
        "make it readable: without it its rounds would be measured again",
        what="cannot read what was measured",
    )
    return KernelRecord() if text is None else read_record(text, str(path))


class Readings:
    """What the launches of a campaign left: each is read and checked once, and again if it grew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[tuple[int, int], Measured]] = {}

    def measured(self, campaign: Campaign) -> Measured:
        """Return what the campaign has measured.

        Args:
            campaign: always the same one, which may have got further rounds.
        """
        found = [self._of_launch(place, campaign) for place in launches(self.folder)]
        return Measured(
            rounds=tuple(each for one in found for each in one.rounds),
            lost=tuple(why for one in found for why in one.lost),
            binaries=tuple(dict.fromkeys(each for one in found for each in one.binaries)),
        )

    def _of_launch(self, place: Path, campaign: Campaign) -> Measured:
        # The job of a program that was killed may still write.
        state = _state_of(place / RECORD_FILE)
        known = self._known.get(place)
        if known is None or known[0] != state:
            known = self._known[place] = state, _read_and_checked(place, campaign)
        return known[1]


def measured(folder: Path, campaign: Campaign) -> Measured:
    """Return what the campaign in ``folder`` has measured, read anew."""
    return Readings(folder).measured(campaign)


def _state_of(path: Path) -> tuple[int, int]:
    """Return size and time of change of a file; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _read_and_checked(place: Path, campaign: Campaign) -> Measured:
    net_path = _path_of(place)
    if net_path is None:
        return Measured(rounds=(), lost=(), binaries=())
    record = read_launch(place)
    planned = {each.number: each for each in campaign.rounds if net_path in each.net_paths}
    for each in record.rounds:
        _check(campaign, planned.get(each.number), each, place)
    return Measured(
        rounds=tuple((net_path, each) for each in record.rounds),
        lost=tuple(f"{place.name}: {why}" for why in record.lost),
        binaries=(record.binary,) if record.binary else (),
    )


def _path_of(place: Path) -> int | None:
    """Return the path of a launch; None of one that was cut off before it was planned."""
    try:
        return int(read_json(place / LAUNCH_FILE)["net_path"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise ParseError("damaged plan of a launch", source=str(place / LAUNCH_FILE)) from None


def _check(
    campaign: Campaign, planned: PlannedRound | None, record: RoundRecord, place: Path
) -> None:
    """Refuse a round that was not planned, and one in which a measurement is lacking."""
    nodes = campaign.nodes
    pairs = {frozenset((nodes[one], nodes[two])) for one, two in (planned.pairs if planned else ())}
    for pair, values in pairs_of(record).items():
        seen = Counter(value.mode for value in values)
        ways = {value.source for value in values if value.mode is Mode.UNI}
        sizes = {value.size for value in values if value.mode is not Mode.PINGPONG}
        is_whole = seen == campaign.modes() and ways == set(pair) and sizes == {campaign.size}
        if frozenset(pair) not in pairs or not is_whole:
            raise ParseError(
                "a round that is none of this campaign's",
                source=str(place / RECORD_FILE),
                expected=f"the pairs of round {record.number} in {PLAN_FILE}, all measured, with "
                f"messages of {size_label(campaign.size)}",
                got=f"{pair[0]} - {pair[1]}: {counted(seen.total(), 'value')}, messages of "
                f"{', '.join(size_label(size) for size in sorted(sizes)) or 'no size'}",
            )


def left_over(campaign: Campaign, done: Measured) -> dict[int, tuple[PlannedRound, ...]]:
    """Return path -> what is planned over it and not measured; nothing that was measured."""
    left = {
        net_path: left_on(net_path, campaign, done) for net_path in range(len(campaign.net_paths))
    }
    return {net_path: rounds for net_path, rounds in left.items() if rounds}


def left_on(net_path: int, campaign: Campaign, done: Measured) -> tuple[PlannedRound, ...]:
    """Return what is planned over one path and not measured."""
    nodes = campaign.nodes
    seen = {
        (record.number, frozenset(pair))
        for own, record in done.rounds
        if own == net_path
        for pair in pairs_of(record)
    }
    cut = (
        replace(
            each,
            pairs=tuple(
                (one, two)
                for one, two in each.pairs
                if (each.number, frozenset((nodes[one], nodes[two]))) not in seen
            ),
        )
        for each in campaign.rounds
        if net_path in each.net_paths
    )
    return tuple(each for each in cut if each.pairs)
