"""Hold a leg's judgements against a baseline.  Pure.

A baseline comes last: what is impossible stays INVALID, what physics or the site's reference calls
too slow stays FAIL, whatever was measured before.  It can make a PASS a FAIL, and it may speak
where nobody else says what a number should be.

What somebody changes (a card, firmware, a driver, the kernel, an MTU, tuning) makes other numbers
right: the baseline has expired.  What a link comes to by itself (its state, rate, width, a shaper
that was left on it) does not: a link that trained down is what a baseline is there to catch, and
must not be excused by it.  Addresses that a subnet manager or DHCP hands out say nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fabricproof.core.findings import Finding, as_notes
from fabricproof.core.measure import Verdict
from fabricproof.core.project import site_option
from fabricproof.core.units import first_few
from fabricproof.traffic import PathState
from fabricproof.verdict.baseline.model import BaselineNode, Facts, LegPlace, Limit, Value
from fabricproof.verdict.value import Judgement, Report, Source, possible_up_to

#: what a link or a slot came to: the fault itself, never an excuse for it
SYMPTOMS = frozenset(
    {
        *("state", "phys_state", "rate_gbit_s", "speed_mbit_s", "width"),
        *("lanes", "lane_speed", "link", "pcie", "fec"),
        *("shaped_to_mbit_s", "shaper_queue_bytes"),
    }
)

#: handed out anew without anything being another
HANDED_OUT = frozenset({"addresses", "lid", "sm_lid"})

#: shown for a fact that is not there
UNKNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A fact of a node that is not what it was.

    Attributes:
        part: ``interface rail0``, ``node``.
        fact: ``firmware``; empty where the whole part came or went.
        then: its value in the baseline; None where it was not known.
        now: its value today; None where it is not known.
    """

    part: str
    fact: str
    then: Value | None
    now: Value | None

    @property
    def words(self) -> str:
        """``firmware of interface ib0 28.39 -> 28.41``."""
        if not self.fact:
            return f"{self.part} is {'new' if self.then is None else 'gone'}"
        then, now = (UNKNOWN if each is None else each for each in (self.then, self.now))
        where = "" if self.part in {"node", "tuning"} else f" of {self.part}"
        return f"{self.fact}{where} {then} -> {now}"


def that_matter(facts: Facts) -> dict[str, dict[str, Value]]:
    """Return the facts that a baseline holds for, parts and names sorted."""
    return {
        part: {
            name: value
            for name, value in sorted(facts[part].items())
            if name not in SYMPTOMS | HANDED_OUT
        }
        for part in sorted(facts)
    }


def changes(then: Facts, now: Facts) -> tuple[Changed, ...]:
    """Return what is not what it was, of the facts that matter."""
    here, there = that_matter(then), that_matter(now)
    found = []
    for part in sorted({*here, *there}):
        if part not in here or part not in there:
            gone = part in here
            found.append(
                Changed(part=part, fact="", then=part if gone else None, now=None if gone else part)
            )
            continue
        found += [
            Changed(part=part, fact=fact, then=here[part].get(fact), now=there[part].get(fact))
            for fact in sorted({*here[part], *there[part]})
            if here[part].get(fact) != there[part].get(fact)
        ]
    return tuple(found)


def why_not(node: str, then: Facts | None, now: Facts | None, *, same_digest: bool = False) -> str:
    """Return why a baseline does not hold for ``node``; empty where it does.

    ``then`` is None where the baseline does not know the node, ``now`` where nobody saw it;
    ``same_digest``: it is one of the inventories that the baseline was learnt with.
    """
    if then is None:
        return f"{node} was not in it"
    if now is None:
        return f"nobody saw what {node} is made of"
    if same_digest:
        return ""
    found = changes(then, now)
    if not found:
        return ""
    return f"{node}: {first_few([each.words for each in found], 3)}"


@dataclass(frozen=True, kw_only=True)
class LegBaseline:
    """What a baseline says of one leg of a job, whatever nodes it will run on.

    Attributes:
        date: the day it was frozen.
        place: what is known of the leg before it runs; nodes, tool version and settings are empty.
        rows: the baseline's quantities of that leg, each with its whole place: other builds too,
            so that it can be said that they do not judge.
        nodes: what the nodes of those rows were.
        settings: words that make up a place's settings, in order.
        site: that it is of; empty where a plan was staged before this was kept.
    """

    name: str
    date: str
    place: LegPlace
    rows: tuple[tuple[LegPlace, Limit], ...]
    nodes: Mapping[str, BaselineNode]
    settings: tuple[str, ...]
    site: str = ""

    @property
    def words(self) -> str:
        """``baseline spring-2026 of 2026-03-21``."""
        return f"baseline {self.name} of {self.date}"


@dataclass(frozen=True, kw_only=True)
class LegSeen:
    """What is known of a leg after it ran.

    Attributes:
        machines: node to its facts as the job saw them; None where nobody did.
        digests: node to the digest of these.
        tool_version: of the suite, empty where it prints none.
        attributes: what the tool said of its run.
    """

    nodes: Iterable[str]
    machines: Mapping[str, Facts | None]
    digests: Mapping[str, str | None]
    tool_version: str
    attributes: Mapping[str, object]


def settings_of(attributes: Mapping[str, object], words: Iterable[str]) -> str:
    """Return a tool's own setting as a place has it: ``num_pairs=1 window_size=64``."""
    return " ".join(f"{word}={attributes[word]}" for word in words if word in attributes)


def with_baseline(report: Report, leg: LegBaseline, seen: LegSeen) -> Report:
    """Return the report after the baseline had its say."""
    rows, trouble = rows_for(leg, seen)
    if trouble:
        return replace(report, findings=(*report.findings, Finding(text=trouble)))
    may_clear = report.net_path is not None and report.net_path.state is PathState.PROVEN
    findings: list[str] = []
    quantities = []
    for each in report.quantities:
        row = rows.get((each.name, each.unit))
        if row is not None and (note := better_than(each, row, leg)):
            findings.append(note)
        quantities.append(each if row is None else held(each, row, leg, may_clear=may_clear))
    return report.with_quantities(quantities, *as_notes(findings))


def rows_for(leg: LegBaseline, seen: LegSeen) -> tuple[Mapping[tuple[str, str], Limit], str]:
    """Return the rows that judge what ran, by quantity and unit; or why none does."""
    place = replace(
        leg.place,
        nodes=",".join(sorted(seen.nodes)),
        tool_version=seen.tool_version,
        settings=settings_of(seen.attributes, leg.settings),
    )
    like = [(other, row) for other, row in leg.rows if other == place]
    if not like:
        return {}, unlike(leg, place)
    reasons = [
        why_not(
            node,
            leg.nodes[node].facts if node in leg.nodes else None,
            seen.machines.get(node),
            same_digest=node in leg.nodes and seen.digests.get(node) in leg.nodes[node].digests,
        )
        for node in sorted(seen.nodes)
    ]
    if any(reasons):
        said = "; ".join(reason for reason in reasons if reason)
        return {}, no_longer_holds(leg, said)
    return {(row.quantity, row.unit): row for _, row in like}, ""


def no_longer_holds(leg: LegBaseline, reason: str) -> str:
    """Return the sentence that says why a baseline judges nothing, and what to do."""
    site = f" {site_option(leg.site)}" if leg.site else ""
    return (
        f"{leg.words} no longer holds: {reason}; its numbers do not judge; next: "
        f"fabricproof compare baseline:{leg.name} last:5{site}, then "
        f"fabricproof baseline freeze NEW last:5{site}"
    )


def unlike(leg: LegBaseline, place: LegPlace) -> str:
    """Return why no row of the leg is for this place, by the fields in which the nearest differ."""
    on_these = [other for other, _ in leg.rows if other.nodes == place.nodes]
    if not on_these:
        return f"{leg.words} says nothing of {place.label}: it was never frozen for these nodes"
    other = min(on_these, key=lambda each: len(_fields(each, place)))
    told = ", ".join(
        f"{name.replace('_', ' ')} {then or 'not known'} -> {now or 'not known'}"
        for name, then, now in _fields(other, place)
    )
    return no_longer_holds(leg, f"{place.label}: {told}")


def _fields(first: LegPlace, second: LegPlace) -> Sequence[tuple[str, str, str]]:
    pairs = (
        (name, str(getattr(first, name)), str(getattr(second, name)))
        for name in first.__dataclass_fields__
    )
    return [(name, then, now) for name, then, now in pairs if then != now]


def outside(value: float, row: Limit) -> bool:
    """Tell whether a value is beyond the row's bound on the bad side."""
    return value < row.low if row.better > 0 else value > row.high


def held(judgement: Judgement, row: Limit, leg: LegBaseline, *, may_clear: bool) -> Judgement:
    """Return a judgement after the baseline.

    ``may_clear``: an UNJUDGED number of a proven path may pass by the baseline alone.
    """
    value = judgement.value
    nobody_says = judgement.verdict is Verdict.UNJUDGED and judgement.reference is None
    if value is None or not (judgement.verdict is Verdict.PASS or (nobody_says and may_clear)):
        return judgement
    count = row.runs
    origin = f"baseline {leg.name}, {count} runs"
    said = f"{value / row.median:.1%} of the baseline's median {row.median:.5g} {row.unit}"
    text = f"{said} ({origin})"
    lower = row.low if row.better > 0 else None
    upper = row.high if row.better < 0 else None
    if outside(value, row):
        bound = (
            f"below its lower bound {row.low:.5g}"
            if row.better > 0
            else f"above its upper bound {row.high:.5g}"
        )
        return replace(
            _bounded(judgement, row, lower, upper, origin),
            verdict=Verdict.FAIL,
            reason=f"{text}, {bound}",
        )
    if nobody_says:
        return replace(
            _bounded(judgement, row, lower, upper, origin), verdict=Verdict.PASS, reason=text
        )
    if not _stricter(judgement, lower, upper):
        return judgement
    also = f"{origin}, and {judgement.origin}"
    source = (judgement.source or Source.OTHER).and_baseline()
    return replace(_bounded(judgement, row, lower, upper, also), source=source)


def _stricter(judgement: Judgement, lower: float | None, upper: float | None) -> bool:
    if lower is not None:
        return judgement.lower is None or lower > judgement.lower
    return upper is not None and (judgement.upper is None or upper < judgement.upper)


def _bounded(
    judgement: Judgement, row: Limit, lower: float | None, upper: float | None, origin: str
) -> Judgement:
    """Return the judgement with the tighter of its own bounds and the baseline's."""
    lowers = [each for each in (judgement.lower, lower) if each is not None]
    uppers = [each for each in (judgement.upper, upper) if each is not None]
    if judgement.ceiling is not None and judgement.unit == "MB/s":
        uppers.append(possible_up_to(judgement.ceiling))
    low, high = max(lowers, default=None), min(uppers, default=None)
    # ReFrame takes bounds as fractions of the reference, which has to lie between them.
    value = min(row.median, high) if high is not None else row.median
    value = max(value, low) if low is not None else value
    return replace(
        judgement, reference=value, lower=low, upper=high, origin=origin, source=Source.BASELINE
    )


def better_than(judgement: Judgement, row: Limit, leg: LegBaseline) -> str:
    """Return a finding where a number is better than the baseline knows; empty where it is not."""
    value = judgement.value
    if value is None or judgement.verdict is Verdict.INVALID:
        return ""
    if not (value > row.high if row.better > 0 else value < row.low):
        return ""
    bound = row.high if row.better > 0 else row.low
    site = f" {site_option(leg.site)}" if leg.site else ""
    return (
        f"{judgement.name} = {value:.5g} {row.unit} is better than {leg.words} knows "
        f"(median {row.median:.5g}, its bound {bound:.5g}): what changed? next: fabricproof "
        f"baseline freeze NEW last:5{site}"
    )
