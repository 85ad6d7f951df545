"""Which runs a person means by ``latest~3``, ``firmware=28.39`` or ``2026-11-01..2026-11-10``."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.project import site_option
from fabricproof.core.units import counted
from fabricproof.history.compare.facts import AskedFact, Having, Machines, runs_having
from fabricproof.history.compare.model import NothingComparedError, Side, SideError
from fabricproof.history.known_good import samples_of
from fabricproof.history.store import Key, Run, Store
from fabricproof.history.store.label_file import no_samples

#: baseline -> run -> value, of each quantity that it holds
Samples = Mapping[Key, Mapping[str, float]]

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
_LAST = re.compile(r"last:(\d{1,9})(?:@(.+))?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?")

#: what is printed of the grammar, by ``--help`` and by every refusal
GRAMMAR = (
    "a run id or its beginning, latest, latest~3, last:5, last:5@2026-11-10, a date, "
    "2026-11-01..2026-11-10, a label, baseline:NAME, or a value of the "
    "inventory such as firmware=28.39, rail1.speed=100, vc2:mtu=1400; several joined by commas"
)


@dataclass(frozen=True, kw_only=True)
class History:
    """What sides are chosen from.

    Attributes:
        runs: oldest first.
        labels: label to its runs.
        machines: the inventories.
        baseline: returns the samples of the baseline of that name, or raises.
        site: of the runs; empty where nobody says.
    """

    runs: Sequence[Run]
    machines: Machines
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: Callable[[str], Samples] | None = None
    site: str = ""

    @classmethod
    def of(cls, store: Store, perflogs: Path, site_folder: Path) -> History:
        """Return all that sides are chosen from."""
        return cls(
            runs=store.runs,
            labels=store.labels,
            machines=Machines.of_site(perflogs, store.site),
            baseline=lambda name: samples_of(site_folder, name),
            site=store.site,
        )

    @property
    def next_step(self) -> str:
        """What says how runs are called, for a refusal."""
        return f"fabricproof runs {self.option}".rstrip()

    @property
    def option(self) -> str:
        """``--site`` and the word that finds the site again, with a blank behind it."""
        return f"{site_option(self.site)} " if self.site else ""

    @property
    def of_samples(self) -> History:
        """The same without looks of a night and admissions, which are no sample of the site."""
        apart = no_samples(self.labels)
        return replace(self, runs=[each for each in self.runs if each.run_id not in apart])


@dataclass(frozen=True, kw_only=True)
class ChosenSide:
    """A side, and what must be said about the choice.

    Attributes:
        notes: runs that were passed over, and why.
        samples: of a baseline; None where the side is runs.
    """

    side: Side
    notes: tuple[str, ...] = ()
    samples: Samples | None = None


@dataclass(frozen=True, kw_only=True)
class _Part:
    runs: Sequence[Run]
    notes: tuple[str, ...] = ()


def choose_side(words: str, history: History) -> ChosenSide:
    """Return the side that ``words`` mean.

    Raises:
        SideError: nothing, or more than one thing, is called so; the nearest are named.
        NothingComparedError: the words are clear and no run is meant by them.
    """
    if words.startswith("baseline:"):
        return _baseline(words, history)
    atoms = [each.strip() for each in words.split(",")]
    if not all(atoms):
        raise SideError(
            f"{words!r} has an empty name",
            expected=GRAMMAR,
            got=None if words else "nothing",
            next_step=history.next_step,
        )
    parts = [_part(each, history) for each in atoms]
    ids = {run.run_id for part in parts for run in part.runs}
    runs = tuple(run for run in history.runs if run.run_id in ids)
    return ChosenSide(
        side=Side(words=words, runs=runs),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _part(word: str, history: History) -> _Part:
    """Return what one word means: forms that can be nothing else first, then names."""
    nights = history.of_samples
    for read in (_latest, _last, _range, _date):
        found = read(word, nights)
        if found is not None:
            return found
    if "=" in word:
        return _fact(word, nights)
    return _named(word, history)


def _latest(word: str, history: History) -> _Part | None:
    match = _LATEST.fullmatch(word)
    if match is None:
        return None
    back = int(match[1] or 0)
    if back >= len(history.runs):
        raise _empty(word, f"{len(history.runs)} runs", history)
    return _Part(runs=[history.runs[-1 - back]])


def _last(word: str, history: History) -> _Part | None:
    match = _LAST.fullmatch(word)
    if match is None:
        return None
    end = _moment(match[2], end=True) if match[2] else None
    runs = [each for each in history.runs if end is None or each.start < end]
    count = int(match[1])
    if not runs or not count:
        raise _empty(word, "no run" + f" before the end of {match[2]}" * bool(match[2]), history)
    notes = () if len(runs) >= count else (f"{word}: there are {len(runs)} runs only",)
    return _Part(runs=runs[-count:], notes=notes)


def _range(word: str, history: History) -> _Part | None:
    if ".." not in word or "=" in word:
        return None
    first, _, last = word.partition("..")
    begin = _moment(first, end=False) if first else None
    end = _moment(last, end=True) if last else None
    if begin and end and begin >= end:
        raise SideError(f"{word!r} ends before it begins", expected="FROM..TO, both included")
    runs = [
        each
        for each in history.runs
        if (begin is None or each.start >= begin) and (end is None or each.start < end)
    ]
    if not runs:
        raise _empty(word, "no run then", history)
    return _Part(runs=runs)


def _date(word: str, history: History) -> _Part | None:
    return _range(f"{word}..{word}", history) if _DATE.fullmatch(word) else None


def _moment(text: str, *, end: bool) -> datetime.datetime:
    """Return a date in UTC; with ``end`` the moment after all that it names."""
    form = {10: "%Y-%m-%d", 16: "%Y-%m-%dT%H:%M", 19: "%Y-%m-%dT%H:%M:%S"}
    step = {10: {"days": 1}, 16: {"minutes": 1}, 19: {"seconds": 1}}
    plain = text.removesuffix("Z")
    try:
        found = datetime.datetime.strptime(plain, form[len(plain)]).replace(tzinfo=datetime.UTC)
        return found + datetime.timedelta(**step[len(plain)]) if end else found
    except (KeyError, ValueError, OverflowError):
        raise SideError(
            "no date", expected="2026-11-01 or 2026-11-01T21:30 (UTC)", got=repr(text)
        ) from None


def _fact(word: str, history: History) -> _Part:
    asked = AskedFact.of(word)
    if asked is None:
        raise _unknown(word, history, "value of the inventory")
    having = runs_having(asked, history.runs, history.machines)
    if not having.known:
        raise _no_such_fact(word, asked, history)
    if not having.runs:
        raise _no_such_value(word, asked, having)
    return _Part(runs=having.runs, notes=tuple(_passed_over(word, having)))


def _passed_over(word: str, having: Having) -> Iterable[str]:
    if having.mixed:
        why = next(iter(having.mixed.values()))
        runs = counted(len(having.mixed), "run")
        yield f"{word}: {runs} passed over, its nodes were unlike ({why})"
    if having.unseen:
        runs = counted(len(having.unseen), "run")
        yield f"{word}: {runs} passed over, nobody looked at the nodes"


def _no_such_fact(word: str, asked: AskedFact, history: History) -> SideError:
    nodes = {node for run in history.runs for node in run.inventory}
    machines = [
        machine for run in history.runs[-20:] for machine in history.machines.of(run).values()
    ]
    facts = {fact for each in machines if each for part in each.facts.values() for fact in part}
    parts = {part.split(" ")[-1] for each in machines if each for part in each.facts}
    if asked.node and asked.node not in nodes:
        return _unknown(word, history, f"node {asked.node!r}", sorted(nodes))
    if asked.part and asked.part not in parts:
        return _unknown(word, history, f"part {asked.part!r}", sorted(parts))
    near = difflib.get_close_matches(asked.fact, sorted(facts), n=5, cutoff=0.4)
    return _unknown(word, history, f"fact {asked.fact!r}", near or sorted(facts))


def _no_such_value(word: str, asked: AskedFact, having: Having) -> NothingComparedError:
    known = ", ".join(f"{value} ({node})" for value, node in list(having.known.items())[:8])
    mixed, several = next(iter(having.mixed.values()), ""), counted(len(having.mixed), "run")
    node = next(
        (each.split()[0] for each in mixed.split("; ") if asked.value in each.split()), "NODE"
    )
    return NothingComparedError(
        f"no run has {word!r} on all its nodes",
        expected=f"a value that was seen: {known}",
        got=f"nodes unlike each other in {several}: {mixed}" if mixed else None,
        next_step=f"name the node: {node}:{word}" if mixed else "fabricproof inventory show",
    )


def _named(word: str, history: History) -> _Part:
    """Return the runs of a label, or the one run that begins so."""
    plain = word.removeprefix("label:")
    labelled = history.labels.get(plain)
    begun = [each for each in history.runs if each.run_id.startswith(word)]
    exact = [each for each in begun if each.run_id == word]
    if labelled and not begun:
        ids = set(labelled)
        runs = [each for each in history.runs if each.run_id in ids]
        if not runs:
            raise _empty(word, "a label of runs without records", history)
        gone = sorted(ids - {run.run_id for run in runs})
        told = f"{word}: {len(gone)} of {counted(len(ids), 'run')} have no records"
        return _Part(runs=runs, notes=(told,) if gone else ())
    if len(exact or begun) == 1 and not labelled:
        return _Part(runs=exact or begun)
    if not begun:
        raise _unknown(word, history, f"{word!r}")
    some = ", ".join(each.run_id for each in begun[-5:])
    raise SideError(
        f"{word!r} is more than one thing",
        expected="one run, or label:NAME",
        got=f"{len(begun)} runs begin so: {some}" + ", and a label" * bool(labelled),
        next_step=f"{history.next_step}   # say more of it",
    )


def _baseline(words: str, history: History) -> ChosenSide:
    name = words.removeprefix("baseline:")
    if history.baseline is None:
        raise SideError(f"no baselines can be read here: {words!r}", next_step=history.next_step)
    samples = history.baseline(name)
    ids = {run_id for values in samples.values() for run_id in values}
    runs = tuple(each for each in history.runs if each.run_id in ids)
    if not ids:
        raise _empty(words, "a baseline without samples", history)
    gone = len(ids) - len(runs)
    notes = [f"{words}: its outliers are left out, so it scatters less than its runs did"]
    if gone:
        notes.append(f"{words}: {counted(gone, 'run')} of it are no longer in the records")
    side = Side(words=words, runs=runs, baseline=name)
    return ChosenSide(side=side, notes=tuple(notes), samples=samples)


def _unknown(
    word: str, history: History, what: str, known: Sequence[str] | None = None
) -> SideError:
    names = [*history.labels, *(each.run_id for each in history.runs)]
    near = known if known is not None else difflib.get_close_matches(word, names, n=4, cutoff=0.5)
    return SideError(
        f"nothing is called so: {word!r}" if what == repr(word) else f"{word!r} names no {what}",
        expected=f"one of: {', '.join(near[:12])}" if near else GRAMMAR,
        next_step=history.next_step,
    )


def _empty(word: str, got: str, history: History) -> NothingComparedError:
    span = (
        f"runs from {history.runs[0].night} to {history.runs[-1].night} UTC"
        if history.runs
        else "a run"
    )
    return NothingComparedError(
        f"an empty side: {word!r}", expected=span, got=got, next_step=history.next_step
    )
