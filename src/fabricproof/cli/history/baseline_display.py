"""Baselines for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fabricproof.core.hostlist import fold
from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.provenance import LegPlace
from fabricproof.core.units import by_key, columns
from fabricproof.history.baseline.freezing import Frozen
from fabricproof.history.baseline.review import builds_of
from fabricproof.verdict.references import Baseline, BaselineRow, Facts

#: a change by this factor that a bound does not see makes the row worthless: a choice
BLIND_FACTOR = 2.0

#: lines of a list that are shown without ``--all``
_SHOWN = 12


def list_lines(site: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the baselines of a site, one a line, with why those that expired have."""
    if not records:
        again = f"fabricproof baseline freeze NAME last:10 {site_option(site)}"
        yield f"site {site} has no baseline; next: {again}"
        return
    rows: list[tuple[str, ...]] = [
        ("baseline", "frozen (UTC)", "runs", "quantities", "set aside", "legs not judged", "holds")
    ]
    rows += (
        (
            each["name"] + (" (judges)" if each["active"] else ""),
            each["frozen"][:16].replace("T", " "),
            *(str(each[key]) for key in ("runs", "quantities", "set_aside")),
            str(len(each["not_judged"])),
            "yes" if each["holds"] else f"no: {'; '.join(each['why_not'][:2])}",
        )
        for each in records
    )
    yield from columns(rows, frozenset({2, 3, 4, 5}))


def show_lines(baseline: Baseline, head: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield a baseline: what it rests on, where it holds, its numbers."""
    yield f"{baseline.words}, site {baseline.site}" + (", judges" if head["active"] else "")
    yield f"from {len(baseline.runs)} runs, {_span(baseline)}, by: {baseline.command}"
    cards = by_key((_card(baseline.facts_of(name) or {}), name) for name in baseline.nodes)
    yield f"nodes: {'; '.join(f'{fold(names)}{card}' for card, names in cards.items())}"
    builds = builds_of(baseline).items()
    yield f"builds: {', '.join(f'{stack} {each}' for stack, several in builds for each in several)}"
    yield "holds today: yes" if head["holds"] else "holds today: NO"
    yield from (f"  {reason}" for reason in head["why_not"])
    yield from _some("legs not judged", baseline.not_judged, whole=whole)
    rows = [each for each in baseline.rows() if whole or each[1].named]
    yield from _numbers(rows)
    yield from _blind(baseline)
    more = sum(1 for _ in baseline.rows()) - len(rows)
    if more:
        yield f"{more} more points of the curves: --all"
    yield from _some("not learnt from", baseline.set_aside, whole=whole)


def _span(baseline: Baseline) -> str:
    starts = sorted(baseline.runs.values())
    return f"{starts[0][:16]} to {starts[-1][:16]}".replace("T", " ")


def _card(facts: Facts) -> str:
    """Return ``(ConnectX-6 firmware 28.39)``, of all cards; empty if unknown."""
    model, firmware = (
        ", ".join(dict.fromkeys(str(each[fact]) for each in facts.values() if fact in each))
        for fact in ("model", "firmware")
    )
    told = " ".join(each for each in (model, firmware and f"firmware {firmware}") if each)
    return f" ({told})" if told else ""


def _numbers(several: Iterable[tuple[LegPlace, BaselineRow]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        (
            *("stack", "program", "leg", "pair", "quantity", "runs"),
            *("median", "spread", "bound", "sees a change of"),
        )
    ]
    for place, row in several:
        bound = f"{'>=' if row.better > 0 else '<='} {row.bound:.5g}"
        rows.append(
            (
                *(place.stack, place.program, place.leg, place.pair, row.quantity),
                *(str(row.num_runs), f"{row.median:.5g} {row.unit}", f"{row.spread:.1%}"),
                *(bound, f"{detects(row):.1%}" + ", blind" * is_blind(row)),
            )
        )
    yield from columns(rows, frozenset({5, 6, 7, 8}))


def detects(row: BaselineRow) -> float:
    """Return the smallest loss (of a latency: rise) that a row is sure to see, of its median."""
    return abs(row.bound / row.median - 1)


def is_blind(row: BaselineRow) -> bool:
    """Tell whether half a bandwidth, or twice a latency, lies within the bounds of a row."""
    if row.better > 0:
        return row.low < row.median / BLIND_FACTOR
    return row.high > row.median * BLIND_FACTOR


def _blind(baseline: Baseline) -> Iterator[str]:
    rows = [row for _, row in baseline.rows()]
    blind = sum(map(is_blind, rows))
    if blind:
        yield (
            f"{blind} of {len(rows)} quantities are blind: half the bandwidth or twice the latency "
            "lies within their bounds; more runs, or quieter ones, make them tighter"
        )


def _some(title: str, lines: Sequence[str], *, whole: bool, few: int = _SHOWN) -> Iterator[str]:
    if not lines:
        return
    yield f"{title}: {len(lines)}"
    shown = lines if whole else lines[:few]
    yield from (f"  {each}" for each in shown)
    if len(shown) < len(lines):
        yield f"  and {len(lines) - len(shown)} more: --all, or --json"


def baseline_record(baseline: Baseline) -> dict[str, Any]:
    """Return a baseline as plain data, the form of ``--json``."""
    return {
        "site": baseline.site,
        "command": baseline.command,
        "fabricproof": baseline.fabricproof,
        "runs_used": dict(baseline.runs),
        "builds": builds_of(baseline),
        "nodes": {name: baseline.facts_of(name) for name in baseline.nodes},
        "set_aside": list(baseline.set_aside),
        "not_judged": list(baseline.not_judged),
        "rows": [
            plain(place)
            | plain(row, detects=detects(row), blind=is_blind(row))
            | {"samples": baseline.samples_of(row)}
            for place, row in baseline.rows()
        ],
    }


def frozen_record(frozen: Frozen) -> dict[str, Any]:
    """Return what was frozen, in short, as plain data."""
    baseline = frozen.baseline
    return {
        "name": baseline.name,
        "runs": list(baseline.runs),
        "quantities": sum(1 for _ in baseline.rows()),
        "set_aside": list(baseline.set_aside),
        "left_out": list(frozen.left_out),
    }


def frozen_lines(frozen: Frozen) -> Iterator[str]:
    """Yield what was frozen and what was not."""
    baseline = frozen.baseline
    rows = list(baseline.rows())
    yield f"{baseline.words}: {len(rows)} quantities of {len(baseline.runs)} runs"
    named = [each for each in rows if each[1].named]
    yield from _numbers(named[:_SHOWN])
    if len(named) > _SHOWN:
        show = f"fabricproof baseline show {baseline.name} {site_option(baseline.site)}"
        yield f"and {len(named) - _SHOWN} more: {show}"
    yield from _blind(baseline)
    yield from _some("not learnt from", baseline.set_aside, whole=False)
    yield from _some("left out, too few good runs", frozen.left_out, whole=False, few=4)
