"""What a baseline would have said of the past: which verdicts of history it would have changed.

Each number that counted is held against it alone.  The second look that a red leg would have had
is not known, so that a replay shows more FAILs than nights would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabricproof.history.baseline.past import Machines, Number, numbers
from fabricproof.verdict.baseline.apply import changes, outside
from fabricproof.verdict.baseline.model import Baseline, Place, Row
from fabricproof.verdict.value import Source

if TYPE_CHECKING:
    from fabricproof.history.store import Store

#: sources of a number that a baseline judged
_BY_BASELINE = frozenset({Source.BASELINE, Source.BASELINE_AND_PAIR, Source.BASELINE_AND_OTHER})


@dataclass(frozen=True, kw_only=True)
class Turned:
    """A verdict of the past that would have been another.

    Attributes:
        run_id: of the run.
        place: what was measured.
        quantity: ``bandwidth_1MiB``.
        unit: of the value.
        value: that was measured.
        before: verdict under the first rule.
        after: verdict under the second.
        bound: of the second baseline, or of the first where only that has one; None for neither.
        learnt: the number is one that the second baseline was learnt from, or set aside from it.
    """

    run_id: str
    place: Place
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
    rows: dict[tuple[Place, str, str], Row] = field(default_factory=dict)
    holds: dict[tuple[str, str | None], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {(place, row.quantity, row.unit): row for place, row in self.baseline.rows()}

    def row_for(self, number: Number) -> Row | None:
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
) -> Replay:
    """Return what history would have been.

    Args:
        store: the site's history.
        run_ids: which runs.
        machines: what the nodes were made of.
        old: the baseline that judges today; None where none does.
        new: the one that is proposed.
    """
    rules = {
        name: _Rule(baseline=each, machines=machines)
        for name, each in (("old", old), ("new", new))
        if each is not None
    }
    counts: dict[str, Counter[str]] = {"none": Counter(), **{name: Counter() for name in rules}}
    turned: list[Turned] = []
    judged = 0
    for number in numbers(store, run_ids, trusting=True):
        plain = without_baseline(number)
        rows = {name: rule.row_for(number) for name, rule in rules.items()}
        said = {name: under(plain, number, row) for name, row in rows.items()}
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


def under(plain: str, number: Number, row: Row | None) -> str:
    """Return the verdict of a number with a baseline's row after it."""
    judges = plain == "PASS" or (plain == "UNJUDGED" and number.open_)
    if row is None or not judges:
        return plain
    return "FAIL" if outside(number.value, row.limit) else "PASS"


def _turned(number: Number, before: str, after: str, row: Row | None) -> Turned:
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
