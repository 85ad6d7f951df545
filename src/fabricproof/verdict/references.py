"""References that people type, and those of a baseline, a file that history writes.

A baseline judges after physics and the site's own references, and is never milder: it makes a PASS
a FAIL, and judges what nothing else does if the path is proven.  Each row holds for one place
(build, nodes, version and setting of the tool ...) and for nodes that are what they were; elsewhere
it does not judge, and a finding says why.  What may judge a job lies beside the job's plan, so that
a verdict can be repeated after the baseline was replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from fabricproof.core.errors import ConfigError, ParseError, words_of
from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict
from fabricproof.core.plain import typed
from fabricproof.core.project import site_option
from fabricproof.core.provenance import PLACE, LegPlace
from fabricproof.core.records import read_json
from fabricproof.core.units import (
    BUFFERS,
    at_size,
    convert,
    dimension,
    parse_size,
    split_any,
    split_buffers,
    split_quantity,
)
from fabricproof.traffic import PathState
from fabricproof.verdict.value import (
    DEFAULT_LATENCY_TOLERANCE,
    DEFAULT_TOLERANCE,
    Judgement,
    Reference,
    Report,
    Source,
    at_least,
    at_most,
    judge_value,
    possible_up_to,
)

FORMAT = 3

#: beside the plan of a job
STAGE_FILE = "baseline.json"

#: what a node is made of: part -> fact -> value
Facts = Mapping[str, Mapping[str, str | int]]


@dataclass(frozen=True, kw_only=True)
class BaselineRow:
    """One quantity at one place.

    Attributes:
        unit: of all its numbers: ``MB/s``, ``us``, ``x`` ...
        message_size: in bytes; None for a quantity without one.
        better: 1 if more is better, -1 if less is.
        named: whether it carries a verdict, or is a point of a curve.
        median: of the samples; ``low`` and ``high`` are its bounds.
        spread: relative standard deviation from run to run, with what like quantities lend it.
        num_runs: that it was learnt from.
    """

    quantity: str
    unit: str
    message_size: int | None
    better: int
    named: bool
    median: float
    spread: float
    low: float
    high: float
    num_runs: int

    def __post_init__(self) -> None:
        """Refuse what no type forbids: a bound of NaN, 0 or infinity would not be crossed."""
        if not 0 < self.low <= self.median <= self.high < math.inf:
            raise ValueError(f"bounds of {self.quantity}: expected 0 < low <= median <= high")
        if self.better not in {-1, 1} or not math.isfinite(self.spread):
            raise ValueError(f"{self.quantity}: expected better of 1 or -1, and a finite spread")

    @property
    def bound(self) -> float:
        """The bound on the bad side."""
        return self.low if self.better > 0 else self.high

    def reference(self, baseline: str) -> Reference:
        """Return it as a reference of the judge."""
        return Reference(
            value=self.median,
            lower=self.low if self.better > 0 else None,
            upper=self.high if self.better < 0 else None,
            unit=self.unit,
            tolerance=abs(self.bound / self.median - 1),
            origin=f"baseline {baseline}, {self.num_runs} runs",
            source=Source.BASELINE,
        )


@dataclass(frozen=True, kw_only=True)
class BaselineLeg:
    """The quantities of one place."""

    place: LegPlace
    rows: tuple[BaselineRow, ...]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Numbers of known-good runs, with everything they rest on: what stands in the file.

    Attributes:
        frozen: when it was made, UTC, ``2026-11-21T21:54:14Z``.
        command: what was typed; ``fabricproof`` is the version that made it.
        settings: the words of a tool's own setting that make two numbers unlike.
        runs: run to its beginning (UTC) of every run that gave a number.
        set_aside, not_judged: what was not learnt from, and legs without a quantity; and why.
        common: the facts that all its nodes have alike; ``nodes`` has the others of each.
        legs: beside a plan, leg to what is known of its place before it runs.
    """

    name: str
    site: str
    frozen: str
    command: str
    fabricproof: str
    settings: tuple[str, ...]
    runs: Mapping[str, str]
    set_aside: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    common: Facts
    nodes: Mapping[str, Facts]
    legs: Mapping[str, LegPlace] = field(default_factory=dict)
    groups: tuple[BaselineLeg, ...]

    def __post_init__(self) -> None:
        """Refuse one that says nothing."""
        if not self.runs or not (self.groups or self.legs):
            raise ValueError("it was learnt from nothing")

    @property
    def words(self) -> str:
        """``baseline spring-2026 of 2026-03-21``."""
        return f"baseline {self.name} of {self.frozen[:10]}"

    def rows(self) -> Iterator[tuple[LegPlace, BaselineRow]]:
        """Yield every quantity with its place."""
        for group in self.groups:
            for row in group.rows:
                yield group.place, row

    def facts_of(self, node: str) -> Facts | None:
        """Return what a node was made of; None if it was not in it."""
        if (own := self.nodes.get(node)) is None:
            return None
        parts = sorted({*self.common, *own})
        return {part: {**self.common.get(part, {}), **own.get(part, {})} for part in parts}

    def settings_of(self, attributes: Mapping[str, object]) -> str:
        """Return a tool's own setting as a place has it, by what the tool said of its run."""
        words = [word for word in self.settings if word in attributes]
        return " ".join(f"{word}={attributes[word]}" for word in words)


def read_baseline(path: Path, leg: str = "") -> Baseline:
    """Read the file that history wrote: all of it, or what may judge one leg of a plan.

    Raises:
        ParseError: it is gone, damaged, of another format, says what cannot be, or does not know
            the leg.
    """
    try:
        record = read_json(path)
        if (number := record.pop("format")) != FORMAT:
            raise ValueError(f"format {number!r:.20}")
        if leg:
            record["legs"] = {leg: record["legs"][leg]}
            record["groups"] = [each for each in record["groups"] if each["place"]["leg"] == leg]
        return typed(Baseline, record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(
            "no readable baseline",
            source=str(path),
            line=getattr(error, "lineno", None),
            expected=f"a file of format {FORMAT} as baseline freeze writes it",
            got=words_of(error),
            next_step="git log on the file, or freeze it again",
        ) from None


def for_legs(baseline: Baseline, legs: Mapping[str, LegPlace]) -> Baseline:
    """Return what of a baseline may judge these legs (leg to its place).

    Rows of other builds, versions and settings are kept: it can be said why they do not judge.
    A place without nodes stands for any nodes.
    """
    asked = {(place.planned, place.nodes) for place in legs.values()}
    groups = tuple(
        group
        for group in baseline.groups
        if asked & {(group.place.planned, nodes) for nodes in ("", group.place.nodes)}
    )
    names = {node for group in groups for node in group.place.nodes.split(",")}
    nodes = {name: facts for name, facts in baseline.nodes.items() if name in names}
    return replace(baseline, set_aside=(), not_judged=(), nodes=nodes, legs=legs, groups=groups)


def judge_by_baseline(report: Report, baseline: Baseline, ran: LegPlace, changed: str) -> Report:
    """Return a leg's report after the baseline, which may be the part beside the plan.

    ``ran`` is the leg's place as it ran, ``changed`` why its nodes are not what they were; empty if
    they are.
    """
    rows = {
        (row.quantity, row.unit): row
        for group in baseline.groups
        if group.place == ran
        for row in group.rows
    }
    site = site_option(baseline.site)
    again = f"fabricproof baseline freeze NEW last:5 {site}"
    if why := changed if rows else _unlike(baseline, ran):
        text = (
            f"{baseline.words} does not judge {ran.label}: {why}; next: fabricproof compare "
            f"baseline:{baseline.name} last:5 {site}, then {again}"
        )
        return replace(report, findings=(*report.findings, *as_notes([text])))
    proven = report.net_path is not None and report.net_path.state is PathState.PROVEN
    pairs = [(each, rows.get((each.name, each.unit))) for each in report.quantities]
    now = [tightened(each, row, baseline.name, proven) if row else each for each, row in pairs]
    better = (
        f"{each.name} = {each.value:.5g} is better than {baseline.words} knows "
        f"({row.low:.5g} to {row.high:.5g} {row.unit}): what changed? next: {again}"
        for each, row in pairs
        if row and each.value is not None and each.verdict is not Verdict.INVALID
        if (each.value > row.high if row.better > 0 else each.value < row.low)
    )
    return report.with_quantities(now, *as_notes(better))


def tightened(judgement: Judgement, row: BaselineRow, name: str, proven: bool) -> Judgement:
    """Return a judgement by the tighter of its own bounds and those of a row of baseline ``name``.

    If the path is ``proven`` an UNJUDGED number without a reference may pass by the row alone.
    """
    value, verdict = judgement.value, judgement.verdict
    alone = verdict is Verdict.UNJUDGED and judgement.reference is None and proven
    if value is None or not (verdict is Verdict.PASS or alone):
        return judgement
    found = judge_value(
        name=judgement.name,
        value=value,
        unit=judgement.unit,
        message_size=judgement.message_size,
        reference=row.reference(name),
    )
    lower = max((each for each in (judgement.lower, found.lower) if each), default=None)
    upper = min((each for each in (judgement.upper, found.upper) if each), default=None)
    if not alone and found.verdict is Verdict.PASS:
        if (lower, upper) == (judgement.lower, judgement.upper):
            return judgement
        source = (judgement.source or Source.OTHER).and_baseline()
        origin = f"{found.origin}, and {judgement.origin}"
        found = replace(found, reason=judgement.reason, origin=origin, source=source)
    if judgement.ceiling is not None and judgement.unit == "MB/s":
        upper = min(upper or math.inf, possible_up_to(judgement.ceiling))
    return replace(
        judgement,
        verdict=found.verdict,
        reason=found.reason,
        # ReFrame takes bounds as fractions of the reference, which has to lie between them.
        reference=max(min(row.median, upper or math.inf), lower or 0.0),
        lower=lower,
        upper=upper,
        origin=found.origin,
        source=found.source,
    )


def _unlike(baseline: Baseline, ran: LegPlace) -> str:
    """Return why no row is for this place: the fields in which the nearest place differs."""
    others = [
        [
            f"{name.replace('_', ' ')} {then or 'not known'} -> {now or 'not known'}"
            for name, then, now in zip(PLACE, astuple(each.place), astuple(ran), strict=True)
            if then != now
        ]
        for each in baseline.groups
        if (each.place.planned, each.place.nodes) == (ran.planned, ran.nodes)
    ]
    nearest = min(others, key=len, default=["it was never frozen for these nodes"])
    return ", ".join(nearest)


#: what MPI carries of what TCP does below it, over the same rail
SHARE = "mpi_share"

#: quantity of a reference -> what its unit measures
_DIMENSIONS = {"bandwidth": "bandwidth", "busbw": "bandwidth", "latency": "time", SHARE: "fraction"}


def from_text(text: str, *, tolerance: float | None, origin: str) -> tuple[str, Reference]:
    """Read ``'bandwidth=21 GB/s'`` or ``'latency_0B=60 us'`` into (quantity, reference).

    A bare ``'21 GB/s'`` names the quantity by its unit, which is converted to the judge's own.

    Raises:
        UnitError: no unit, or not one of bandwidth or time.
        ConfigError: the quantity is unknown, the unit is not one of it, or the value not positive.
    """
    name, _, amount = text.rpartition("=")
    number, unit = split_quantity(amount)
    is_time = dimension(unit) == "time"
    name, kind = _spelled(name.strip() or ("latency" if is_time else "bandwidth"))
    if text != amount and _DIMENSIONS[kind] != dimension(unit):
        raise ConfigError(
            f"the unit does not fit quantity {name!r}",
            expected=f"a time for latency, a bandwidth for bandwidth, a fraction for {SHARE}",
            got=repr(amount),
        )
    if tolerance is None:
        tolerance = DEFAULT_LATENCY_TOLERANCE if is_time else DEFAULT_TOLERANCE
    own = "us" if is_time else "x" if kind == SHARE else "MB/s"
    make = at_most if is_time else at_least
    return name, make(convert(number, unit, own), unit=own, tolerance=tolerance, origin=origin)


def open_reference(
    text: str, *, more_is_better: bool, tolerance: float | None, origin: str
) -> Reference:
    """Read what a site expects of a quantity of its own, ``'12.5 ns/day'``: in any unit.

    Raises:
        UnitError: no number or no unit.
        ConfigError: the value is not positive, or the tolerance is none.
    """
    value, unit = split_any(text)
    if tolerance is None:
        tolerance = DEFAULT_TOLERANCE if more_is_better else DEFAULT_LATENCY_TOLERANCE
    make = at_least if more_is_better else at_most
    return make(value, unit=unit, tolerance=tolerance, origin=origin)


def _spelled(name: str) -> tuple[str, str]:
    """Return ``bandwidth_4194304`` as the judge spells it, ``bandwidth_4MiB``, and its kind."""
    buffers, rest = split_buffers(name)
    kind, mark, size = (rest, "", "") if name == SHARE else rest.partition("_")
    if kind not in _DIMENSIONS or (kind == "busbw" and buffers != "device_"):
        raise ConfigError(
            "unknown quantity in a reference",
            expected="bandwidth, latency, device_busbw, or one size of it as bandwidth_4MiB; of "
            f"buffers on GPUs with {', '.join(BUFFERS)} before it",
            got=repr(name),
        )
    return (at_size(f"{buffers}{kind}", parse_size(size)) if mark else name), kind


def from_texts(
    texts: Iterable[str], *, tolerance: float | None = None, origin: str
) -> dict[str, Reference]:
    """Return references by quantity, each read as :func:`from_text` does.

    Raises:
        UnitError, ConfigError: one is none, or a quantity has two.
    """
    found: dict[str, Reference] = {}
    for text in texts:
        name, reference = from_text(text, tolerance=tolerance, origin=origin)
        if name in found:
            raise ConfigError(f"two values for {name}", expected="one", got=repr(text))
        found[name] = reference
    return found
