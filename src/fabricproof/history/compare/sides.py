"""Which runs a person means by ``latest~3``, ``firmware=28.39`` or ``2026-11-01..2026-11-10``."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fabricproof.core.project import site_option
from fabricproof.core.units import counted
from fabricproof.history.baseline.file import find_baseline
from fabricproof.history.compare.model import NothingComparedError, Side, SideError
from fabricproof.history.machines import Machines
from fabricproof.history.store import Run, Store
from fabricproof.history.store.label_file import no_samples
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.words import name_of

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
_LAST = re.compile(r"last:(\d{1,9})(?:@(.+))?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?")

#: ``[NODE:][PART.]FACT=VALUE``; an interface or a port stands for its part
_FACT = re.compile(
    r"(?:(?P<node>[^:=]+):)?(?:(?P<part>[^=]+)\.)?(?P<fact>[A-Za-z]\w*)=(?P<value>.+)"
)

#: units that the names of facts end with; ``speed`` asks for ``speed_mbit_s``
_UNITS = re.compile("_(mbit_s|gbit_s|bytes)$")

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
        baseline: returns the runs of the baseline of that name, or raises.
        site: of the runs; empty if unknown.
    """

    runs: Sequence[Run]
    machines: Machines
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    baseline: Callable[[str], Sequence[str]] = lambda _: ()
    site: str = ""

    @classmethod
    def of(cls, store: Store, perflogs: Path, site_folder: Path) -> History:
        """Return all that sides are chosen from."""
        return cls(
            runs=store.runs,
            labels=store.labels,
            machines=Machines.of_site(perflogs, store.site),
            baseline=lambda name: list(find_baseline(site_folder, name).runs),
            site=store.site,
        )

    @property
    def next_step(self) -> str:
        """What says how runs are called, for a refusal."""
        return f"fabricproof runs {site_option(self.site)}" if self.site else "fabricproof runs"

    @property
    def of_samples(self) -> History:
        """The same without looks of a night and admissions, which are no sample of the site."""
        apart = no_samples(self.labels)
        return replace(self, runs=[each for each in self.runs if each.run_id not in apart])


@dataclass(frozen=True, kw_only=True)
class ChosenSide:
    """A side, and the runs that were passed over for it, with the reason."""

    side: Side
    notes: tuple[str, ...] = ()


#: runs of one word, and what must be said about them
_Part = tuple[Sequence[Run], Sequence[str]]


def choose_side(words: str, history: History) -> ChosenSide:
    """Return the side that ``words`` mean.

    Raises:
        SideError: nothing, or more than one thing, is called so; the nearest are named.
        NothingComparedError: the words are clear and no run is meant by them.
    """
    atoms = [each.strip() for each in words.split(",")]
    if not all(atoms):
        raise SideError(
            f"{words!r} has an empty name",
            expected=GRAMMAR,
            got=None if words else "nothing",
            next_step=history.next_step,
        )
    parts = [_part(each, history) for each in atoms]
    ids = {run.run_id for runs, _ in parts for run in runs}
    runs = tuple(run for run in history.runs if run.run_id in ids)
    is_baseline = len(atoms) == 1 and words.startswith("baseline:")
    return ChosenSide(
        side=Side(words=words, runs=runs, baseline=words[9:] if is_baseline else ""),
        notes=tuple(note for _, notes in parts for note in notes),
    )


def _part(word: str, history: History) -> _Part:
    """Return what one word means: forms that can be nothing else first, then names."""
    nights = history.of_samples
    if match := _LATEST.fullmatch(word):
        back = int(match[1] or 0)
        if back >= len(nights.runs):
            raise _empty(word, f"{len(nights.runs)} runs", history)
        return [nights.runs[-1 - back]], ()
    if match := _LAST.fullmatch(word):
        return _last(word, int(match[1]), match[2], nights)
    if "=" in word:
        return _having(word, nights)
    if ".." in word or _DATE.fullmatch(word):
        first, last = word.split("..", 1) if ".." in word else (word, word)
        return _between(word, first, last, nights)
    if word.startswith("baseline:"):
        return _of_ids(word, history.baseline(word.removeprefix("baseline:")), history)
    return _named(word, history)


def _last(word: str, count: int, until: str | None, history: History) -> _Part:
    end = _moment(until, end=True) if until else None
    runs = [each for each in history.runs if end is None or each.start < end]
    if not runs or not count:
        raise _empty(word, "no run" + f" before the end of {until}" * bool(until), history)
    few = [f"{word}: there are {len(runs)} runs only"] * (len(runs) < count)
    return runs[-count:], few


def _between(word: str, first: str, last: str, history: History) -> _Part:
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
    return runs, ()


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


def _of_ids(word: str, wanted: Sequence[str], history: History) -> _Part:
    ids = set(wanted)
    runs = [each for each in history.runs if each.run_id in ids]
    if not runs:
        raise _empty(word, "runs without records", history)
    gone = [f"{word}: {len(ids) - len(runs)} of {counted(len(ids), 'run')} have no records"]
    return runs, gone * (len(runs) < len(ids))


def _named(word: str, history: History) -> _Part:
    """Return the runs of a label, or the one run that begins so."""
    labelled = history.labels.get(word.removeprefix("label:"))
    begun = [each for each in history.runs if each.run_id.startswith(word)]
    if labelled and not begun:
        return _of_ids(word, labelled, history)
    exact = [each for each in begun if each.run_id == word]
    if len(exact or begun) == 1 and not labelled:
        return exact or begun, ()
    if not begun:
        raise _unknown(word, history)
    some = ", ".join(each.run_id for each in begun[-5:])
    raise SideError(
        f"{word!r} is more than one thing",
        expected="one run, or label:NAME",
        got=f"{len(begun)} runs begin so: {some}" + ", and a label" * bool(labelled),
        next_step=f"{history.next_step}   # say more of it",
    )


def _having(word: str, history: History) -> _Part:
    """Return the runs of which every node that took part, or the named one, has a value.

    A run in which only some nodes have it is on no side: its numbers are of both kinds.
    """
    match = _FACT.fullmatch(word)
    if match is None:
        raise _unknown(word, history)
    node, part, fact, value = (match[name] or "" for name in ("node", "part", "fact", "value"))
    having: list[Run] = []
    mixed: list[str] = []
    unseen = 0
    known: dict[str, str] = {}
    for run in history.runs:
        machines = history.machines.of(run).items()
        of_nodes = {name: _values(each, part, fact) for name, each in machines}
        of_nodes = {name: of_nodes[name] for name in of_nodes if node in {"", name}}
        known |= {each: name for name, values in of_nodes.items() for each in values}
        has = [any(is_value(value, each) for each in values) for values in of_nodes.values()]
        if not any(of_nodes.values()):
            unseen += 1
        elif all(has):
            having.append(run)
        elif any(has):
            mixed.append(
                "; ".join(
                    f"{name} {' and '.join(sorted(values)) or 'not known'}"
                    for name, values in sorted(of_nodes.items())
                )
            )
    if not known:
        raise _no_such_fact(word, node, part, history)
    if not having:
        told = ", ".join(f"{each} ({name})" for each, name in list(known.items())[:8])
        raise NothingComparedError(
            f"no run has {word!r} on all its nodes",
            expected=f"a value that was seen: {told}",
            got=f"unlike nodes in {counted(len(mixed), 'run')}: {mixed[0]}" if mixed else None,
            next_step=f"name the node: NODE:{word}" if mixed else "fabricproof inventory show",
        )
    notes = []
    if mixed:
        passed = counted(len(mixed), "run")
        notes.append(f"{word}: {passed} passed over, its nodes were unlike ({mixed[0]})")
    if unseen:
        notes.append(f"{word}: {counted(unseen, 'run')} passed over, nobody looked at the nodes")
    return having, notes


def _values(machine: Machine | None, part: str, fact: str) -> set[str]:
    """Return the values that a node has of a fact: its name, without its unit, or in words."""
    asked = fact.casefold()
    return {
        str(value)
        for place, facts in (machine.facts.items() if machine else ())
        if part in {"", place, place.partition(" ")[2]}
        for name, value in facts.items()
        if asked in {name, _UNITS.sub("", name), name_of(name).casefold().replace(" ", "_")}
    }


def is_value(asked: str, value: str) -> bool:
    """Tell whether a value is the one asked for, or begins with it at a point of its version."""
    text, asked = value.casefold(), asked.casefold()
    if text == asked or re.match(re.escape(asked) + r"[. ,(-]", text):
        return True
    try:
        return text.isdecimal() and int(text) == float(asked)
    except ValueError:
        return False


def _no_such_fact(word: str, node: str, part: str, history: History) -> SideError:
    """Return the refusal that names the nodes, the parts or the facts there are."""
    nodes = {each for run in history.runs for each in run.inventory}
    machines = [each for run in history.runs[-20:] for each in history.machines.of(run).values()]
    parts = {place.split(" ")[-1] for each in machines if each for place in each.facts}
    facts = {name for each in machines if each for of in each.facts.values() for name in of}
    known = nodes if node and node not in nodes else parts if part and part not in parts else facts
    asked = word.partition("=")[0].rpartition(":")[2].rpartition(".")[2]
    near = difflib.get_close_matches(asked, sorted(known), n=5, cutoff=0.4) or sorted(known)
    return SideError(
        f"{word!r} names nothing of the inventory",
        expected=f"one of: {', '.join(near[:12])}" if near else GRAMMAR,
        next_step=history.next_step,
    )


def _unknown(word: str, history: History) -> SideError:
    names = [*history.labels, *(each.run_id for each in history.runs)]
    near = difflib.get_close_matches(word, names, n=4, cutoff=0.5)
    return SideError(
        f"nothing is called so: {word!r}",
        expected=f"one of: {', '.join(near)}" if near else GRAMMAR,
        next_step=history.next_step,
    )


def _empty(word: str, got: str, history: History) -> NothingComparedError:
    span = "a run"
    if history.runs:
        span = f"runs from {history.runs[0].night} to {history.runs[-1].night} UTC"
    return NothingComparedError(
        f"an empty side: {word!r}", expected=span, got=got, next_step=history.next_step
    )
