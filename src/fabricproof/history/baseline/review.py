"""What a baseline says: of the past, of the machines as they are today, beside another, of a run.

In a replay each number that counted is held against it alone, and what others did around it excuses
it as it would have in its job.  The second look that a red leg would have had is not known, so that
a replay shows more FAILs than nights would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fabricproof.core.measure import Verdict
from fabricproof.history.baseline.past import (
    Number,
    numbers_in,
    records_of,
)
from fabricproof.history.compare.facts import Machines
from fabricproof.history.surroundings import surroundings_of
from fabricproof.job.evidence.disturbance import NOBODY, Surroundings, excused
from fabricproof.verdict.baseline import (
    PLACE,
    Baseline,
    BaselineRow,
    LegPlace,
    changes,
    outside,
    why_not,
)
from fabricproof.verdict.value import Judgement, Report, Source

if TYPE_CHECKING:
    import polars as pl

    from fabricproof.history.store import Store


#: sources of a number that a baseline judged
_BY_BASELINE = frozenset({Source.BASELINE, Source.BASELINE_AND_PAIR, Source.BASELINE_AND_OTHER})


@dataclass(frozen=True, kw_only=True)
class Turned:
    """A verdict of the past that would have been another.

    Attributes:
        place: what was measured.
        quantity: ``bandwidth_1MiB``.
        value: that was measured.
        before: verdict under the first rule.
        after: verdict under the second.
        bound: of the second baseline, or of the first where only that has one; None for neither.
        learnt: the number is one that the second baseline was learnt from, or set aside from it.
    """

    run_id: str
    place: LegPlace
    quantity: str
    unit: str
    value: float
    before: str
    after: str
    bound: float | None
    learnt: bool


@dataclass(frozen=True, kw_only=True)
class Replay:
    """History under three rules: no baseline, the old one, the new one.

    Attributes:
        counts: rule (``none``, ``old``, ``new``) to verdict to how many numbers.
        turned: what the new baseline would have changed against the old one, or against none
            where there is no old one.
        judged: numbers that the new baseline holds for.
    """

    counts: Mapping[str, Mapping[str, int]]
    turned: tuple[Turned, ...]
    judged: int

    def by_check(self) -> dict[tuple[str, str, str], int]:
        """Return (check, before, after) to how many, sorted."""
        found = Counter((each.place.check, each.before, each.after) for each in self.turned)
        return dict(sorted(found.items()))


@dataclass(kw_only=True)
class _Rule:
    """A baseline, ready to be asked for thousands of numbers."""

    baseline: Baseline
    machines: Machines
    rows: dict[tuple[LegPlace, str, str], BaselineRow] = field(default_factory=dict)
    holds: dict[tuple[str, str | None], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {(place, row.quantity, row.unit): row for place, row in self.baseline.rows()}

    def row_for(self, number: Number) -> BaselineRow | None:
        """Return the row that judges a number; None where none does."""
        if number.relation or not all(
            self._holds_for(node, number.inventory.get(node)) for node in number.nodes
        ):
            return None
        return self.rows.get((number.place, number.quantity, number.unit))

    def _holds_for(self, node: str, digest: str | None) -> bool:
        key = (node, digest)
        if key not in self.holds:
            then = self.baseline.nodes.get(node)
            now = self.machines.facts(node, digest)
            self.holds[key] = bool(
                then is not None
                and digest is not None
                and (digest in then.digests or (now is not None and not changes(then.facts, now)))
            )
        return self.holds[key]


def replay(
    store: Store,
    run_ids: Iterable[str],
    machines: Machines,
    *,
    old: Baseline | None,
    new: Baseline,
    known: Iterable[Number] | None = None,
) -> Replay:
    """Return what history would have been.

    Args:
        store: the site's history.
        run_ids: which runs.
        machines: what the nodes were made of.
        old: the baseline that judges today; None where none does.
        new: the one that is proposed.
        known: the numbers of these runs, where they were read before.
    """
    rules = {
        name: _Rule(baseline=each, machines=machines)
        for name, each in (("old", old), ("new", new))
        if each is not None
    }
    counts: dict[str, Counter[str]] = {"none": Counter(), **{name: Counter() for name in rules}}
    turned: list[Turned] = []
    judged = 0
    every = [
        (number, {name: rule.row_for(number) for name, rule in rules.items()})
        for number in known or numbers_in(store.samples(run_ids))
    ]
    near = surroundings_of(
        (number.file, number.line, number.run_id)
        for number, rows in every
        if any(row and outside(number.value, row.limit) for row in rows.values())
    )
    for number, rows in every:
        plain = without_baseline(number)
        beside = near.get((number.file, number.line), NOBODY)
        said = {name: under(plain, number, row, beside) for name, row in rows.items()}
        counts["none"][plain] += 1
        for name, verdict in said.items():
            counts[name][verdict] += 1
        judged += rows["new"] is not None
        before = said.get("old", plain)
        if before != said["new"]:
            turned.append(_turned(number, before, said["new"], rows["new"] or rows.get("old")))
    return Replay(
        counts={name: dict(sorted(each.items())) for name, each in counts.items()},
        turned=tuple(turned),
        judged=judged,
    )


def without_baseline(number: Number) -> str:
    """Return the verdict that physics and the site's references gave a number by themselves."""
    if number.source not in _BY_BASELINE:
        return number.verdict
    if number.verdict == "PASS" and number.source is Source.BASELINE:
        return "UNJUDGED"
    # A baseline makes a FAIL only of what passed before it, or of what nobody judged.
    return "PASS" if number.verdict == "FAIL" else number.verdict


def under(plain: str, number: Number, row: BaselineRow | None, near: Surroundings) -> str:
    """Return the verdict of a number with a baseline's row after it, as its job would have said."""
    judges = plain == "PASS" or (plain == "UNJUDGED" and number.open_)
    if row is None or not judges:
        return plain
    if not outside(number.value, row.limit):
        return "PASS"
    red = Judgement(
        name=number.quantity,
        value=number.value,
        unit=number.unit,
        message_size=number.message_size,
        verdict=Verdict.FAIL,
        reason="beyond its baseline",
        lower=row.low if row.better > 0 else None,
        upper=row.high if row.better < 0 else None,
    )
    report = Report(verdict=Verdict.FAIL, quantities=(red,))
    return excused(report, near, max(2, len(number.nodes))).quantities[0].verdict.value


def _turned(number: Number, before: str, after: str, row: BaselineRow | None) -> Turned:
    bound = None
    if row is not None:
        bound = row.low if row.better > 0 else row.high
    learnt = row is not None and (
        number.run_id in row.samples or any(each.run_id == number.run_id for each in row.outliers)
    )
    return Turned(
        run_id=number.run_id,
        place=number.place,
        quantity=number.quantity,
        unit=number.unit,
        value=number.value,
        before=before,
        after=after,
        bound=bound,
        learnt=learnt,
    )


@dataclass(frozen=True, kw_only=True)
class BaselineCoverage:
    """Where a baseline still judges.

    Attributes:
        nodes: node to why it does not hold for it; empty where it does.
        builds: stack to why it does not hold for it; empty where it does.
    """

    nodes: Mapping[str, str]
    builds: Mapping[str, str]

    @property
    def holds(self) -> bool:
        """Whether it holds for every node and stack that it has numbers of."""
        return not any((*self.nodes.values(), *self.builds.values()))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not, one clause each."""
        return tuple(each for each in (*self.nodes.values(), *self.builds.values()) if each)


def standing(baseline: Baseline, machines: Machines, store: Store | None) -> BaselineCoverage:
    """Return whether ``baseline`` holds for nodes and stacks as they were last seen.

    Args:
        baseline: which.
        machines: the site's inventories.
        store: the site's history; None where nothing was measured yet.
    """
    newest = machines.newest()
    nodes = {}
    for name, node in baseline.nodes.items():
        seen = newest.get(name)
        digest = seen.digest if seen else None
        nodes[name] = why_not(
            name, node.facts, machines.facts(name, digest), same_digest=digest in node.digests
        )
    last = _last_builds(store) if store else {}
    builds = {}
    for stack, build in baseline.builds.items():
        now = last.get(stack, "")
        unlike = now and now not in build.split(", ")
        builds[stack] = f"{stack}: build {build} -> {now}" if unlike else ""
    return BaselineCoverage(nodes=nodes, builds=builds)


def _last_builds(store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in store.runs:
        found |= {stack: build for stack, build in run.builds.items() if build}
    return found


@dataclass(frozen=True, kw_only=True)
class Unlike:
    """A quantity in two baselines, or in a baseline and a run.

    Attributes:
        place: where it was measured.
        quantity: ``bandwidth_1MiB``.
        better: 1 or -1.
        named: whether it carries a verdict.
        first: median on the first side; None where it is not there.
        low: bounds of the first side; None where it is not there.
        second_low: bounds of the second side; None where it is no baseline or not there.
        lost: verdict word of a run that tried for it and has no usable number; else empty.
    """

    place: LegPlace
    quantity: str
    unit: str
    better: int
    named: bool
    first: float | None
    second: float | None
    low: float | None = None
    high: float | None = None
    second_low: float | None = None
    second_high: float | None = None
    lost: str = ""

    @property
    def ratio(self) -> float | None:
        """Second over first; None where a side has none."""
        if self.first is None or self.second is None:
            return None
        return self.second / self.first

    @property
    def outside(self) -> bool:
        """Whether the second is beyond the first's bound on the bad side."""
        if self.second is None or self.low is None or self.high is None:
            return False
        return self.second < self.low if self.better > 0 else self.second > self.high


_Name = tuple[LegPlace, str, str]


def differences(first: Baseline, second: Baseline) -> list[Unlike]:
    """Return every quantity of either, the worst change first, then what one side lacks."""
    here, there = _rows(first), _rows(second)
    names = sorted({*here, *there}, key=str)
    found = [_unlike(name, here.get(name), there.get(name)) for name in names]
    return sorted(found, key=_worst_first)


def _unlike(name: _Name, first: BaselineRow | None, second: BaselineRow | None) -> Unlike:
    row = first or second
    assert row is not None
    return Unlike(
        place=name[0],
        quantity=name[1],
        unit=name[2],
        better=row.better,
        named=row.named,
        first=first.median if first else None,
        second=second.median if second else None,
        low=first.low if first else None,
        high=first.high if first else None,
        second_low=second.low if second else None,
        second_high=second.high if second else None,
    )


def against_run(baseline: Baseline, store: Store, run_id: str) -> list[Unlike]:
    """Return every quantity of the baseline beside what one run measured, the worst first."""
    samples = store.samples([run_id])
    measured: dict[_Name, float] = {
        (each.place, each.quantity, each.unit): each.value
        for each in numbers_in(samples)
        if each.verdict != "INVALID"
    }
    words = _words_in(samples)
    found = []
    for name, row in _rows(baseline).items():
        second = measured.get(name)
        told = (words.get((place, name[1]), "") for place in records_of(name[0]))
        lost = "" if second is not None else next(filter(None, told), "")
        found.append(replace(_unlike(name, row, None), second=second, lost=lost))
    return sorted(found, key=_worst_first)


def _words_in(samples: pl.DataFrame) -> dict[tuple[LegPlace, str], str]:
    """Return the verdict word of each quantity of these samples that counted and was tried for."""
    rows = samples.filter("counts").select(*PLACE, "quantity", "verdict")
    return {
        (LegPlace(**dict(zip(PLACE, place, strict=True))), quantity): verdict
        for *place, quantity, verdict in rows.iter_rows()
        if verdict not in {"", "SKIPPED"}
    }


def _rows(baseline: Baseline) -> dict[_Name, BaselineRow]:
    return {(place, row.quantity, row.unit): row for place, row in baseline.rows()}


def _worst_first(each: Unlike) -> tuple[object, ...]:
    ratio = each.ratio
    if ratio is None:
        return (2, 0.0, str(each.place), each.quantity)
    return (not each.outside, ratio if each.better > 0 else 1 / ratio, str(each.place))
