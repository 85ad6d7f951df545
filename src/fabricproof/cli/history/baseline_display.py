"""Baselines for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fabricproof.core.hostlist import fold
from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.units import by_key, columns
from fabricproof.history.baseline.freezing import Frozen
from fabricproof.history.baseline.review import Replay, Turned, Unlike
from fabricproof.verdict.baseline import Baseline, BaselineRow, LegPlace

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
            *(str(each[key]) for key in ("runs", "quantities", "outliers")),
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
    cards = by_key(
        (_card(node.told("model"), node.told("firmware")), name)
        for name, node in baseline.nodes.items()
    )
    yield f"nodes: {'; '.join(f'{fold(names)}{card}' for card, names in cards.items())}"
    yield f"builds: {', '.join(f'{stack} {build}' for stack, build in baseline.builds.items())}"
    yield "holds today: yes" if head["holds"] else "holds today: NO"
    yield from (f"  {reason}" for reason in head["why_not"])
    yield from _some("legs not judged", baseline.not_judged, whole=whole)
    rows = [each for each in baseline.rows() if whole or each[1].named]
    yield from _numbers(rows)
    yield from _blind(baseline)
    more = sum(1 for _ in baseline.rows()) - len(rows)
    if more:
        yield f"{more} more points of the curves: --all"
    yield from _outliers(baseline, whole=whole)
    yield from _some("not learnt from", baseline.set_aside, whole=whole)


def _span(baseline: Baseline) -> str:
    starts = sorted(baseline.runs.values())
    return f"{starts[0][:16]} to {starts[-1][:16]}".replace("T", " ")


def _card(model: str, firmware: str) -> str:
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
        bound = f">= {row.low:.5g}" if row.better > 0 else f"<= {row.high:.5g}"
        rows.append(
            (
                *(place.stack, place.program, place.leg, place.pair, row.quantity),
                *(str(len(row.samples)), f"{row.median:.5g} {row.unit}", f"{row.spread:.1%}"),
                *(bound, f"{row.detects:.1%}" + ", blind" * row.blind),
            )
        )
    yield from columns(rows, frozenset({5, 6, 7, 8}))


def _blind(baseline: Baseline) -> Iterator[str]:
    rows = [row for _, row in baseline.rows()]
    blind = sum(row.blind for row in rows)
    if blind:
        yield (
            f"{blind} of {len(rows)} quantities are blind: half the bandwidth or twice the latency "
            "lies within their bounds; more runs, or quieter ones, make them tighter"
        )


def _outliers(baseline: Baseline, *, whole: bool) -> Iterator[str]:
    told = [
        f"{place.label} {row.quantity}: {each.value:.5g} {row.unit} in {each.run_id}: {each.reason}"
        for place, row in baseline.rows()
        for each in row.outliers
    ]
    yield from _some("outliers, kept and not learnt from", told, whole=whole)


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
        "fabricproof": baseline.version,
        "runs_used": dict(baseline.runs),
        "builds": dict(baseline.builds),
        "nodes": {name: plain(node) for name, node in baseline.nodes.items()},
        "set_aside": list(baseline.set_aside),
        "not_judged": list(baseline.not_judged),
        "rows": [plain(place) | plain(row, "detects", "blind") for place, row in baseline.rows()],
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


def frozen_lines(frozen: Frozen, *, whole: bool = False, kept: bool = True) -> Iterator[str]:
    """Yield what was frozen and what was not.

    Args:
        frozen: the baseline, and what it left out.
        whole: True for all of each list.
        kept: False where no file has it, so that ``baseline show`` finds none.
    """
    baseline = frozen.baseline
    rows = list(baseline.rows())
    yield f"{baseline.words}: {len(rows)} quantities of {len(baseline.runs)} runs"
    named = [each for each in rows if each[1].named]
    yield from _numbers(named if whole else named[:_SHOWN])
    if len(named) > _SHOWN and not whole:
        show = f"fabricproof baseline show {baseline.name} {site_option(baseline.site)}"
        yield f"and {len(named) - _SHOWN} more: {show if kept else '--all, or --json'}"
    yield from _blind(baseline)
    yield from _outliers(baseline, whole=whole)
    yield from _some("not learnt from", baseline.set_aside, whole=whole)
    yield from _some("left out, too few good runs", frozen.left_out, whole=whole, few=4)


def unlike_record(each: Unlike) -> dict[str, Any]:
    """Return one row of a difference as plain data."""
    return plain(each.place) | plain(each, "ratio", "outside", without={"place"})


def diff_lines(
    first: Baseline, second: str, found: Sequence[Unlike], *, whole: bool
) -> Iterator[str]:
    """Yield what is beyond the bounds of the first side, then all else."""
    both = [each for each in found if each.ratio is not None]
    beyond = [each for each in both if each.outside]
    yield (
        f"{first.words} against {second}: {len(both)} quantities in both, "
        f"{len(beyond)} beyond its bounds"
    )
    shown = [each for each in both if whole or each.named or each.outside]
    rows: list[tuple[str, ...]] = [
        ("stack", "program", "leg", "pair", "quantity", first.name, second, "change", "bound", "")
    ]
    for each in shown:
        bound = each.low if each.better > 0 else each.high
        rows.append(
            (
                *(each.place.stack, each.place.program, each.place.leg, each.place.pair),
                *(each.quantity, f"{each.first:.5g} {each.unit}", f"{each.second:.5g} {each.unit}"),
                *(f"{(each.ratio or 1) - 1:+.1%}", f"{bound:.5g} {each.unit}"),
                "BEYOND" if each.outside else "",
            )
        )
    if shown:
        yield from columns(rows, frozenset({5, 6, 7, 8}))
    if len(shown) < len(both):
        yield f"{len(both) - len(shown)} more points of the curves, all within: --all"
    for side, absent in ((first.name, "second"), (second, "first")):
        only = [each for each in found if getattr(each, absent) is None]
        if only:
            yield f"{len(only)} quantities are in {side} only"
    lost = [each for each in found if each.lost]
    if lost:
        yield (
            f"{len(lost)} of them were tried for by {second} and have no usable number, first "
            f"{lost[0].lost}: {lost[0].place.label} {lost[0].quantity}"
        )


def replay_record(past: Replay) -> dict[str, Any]:
    """Return a replay as plain data."""
    return {
        "verdicts": {rule: dict(counts) for rule, counts in past.counts.items()},
        "judged": past.judged,
        "changes": [
            {"check": check, "before": before, "after": after, "numbers": count}
            for (check, before, after), count in past.by_check().items()
        ],
        "turned": [plain(each.place) | plain(each, without={"place"}) for each in past.turned],
    }


def propose_lines(
    frozen: Frozen, old: Baseline | None, past: Replay, *, whole: bool, kept: bool
) -> Iterator[str]:
    """Yield a proposal, and what history would have been under it.

    Args:
        frozen: the proposal.
        old: what judges today.
        past: the verdicts under either.
        whole: True for all of each list.
        kept: True where it was written.
    """
    yield from frozen_lines(frozen, whole=whole, kept=kept)
    yield f"history replayed, number by number; the proposal holds for {past.judged} of them"
    words = sorted({word for counts in past.counts.values() for word in counts})
    names = {"none": "physics and site alone", "old": old.name if old else "", "new": "proposal"}
    rows: list[tuple[str, ...]] = [("judged by", *words)]
    rows += (
        (names[rule], *(str(counts.get(word, 0)) for word in words))
        for rule, counts in past.counts.items()
    )
    yield from columns(rows, frozenset(range(1, len(words) + 1)))
    if not past.turned:
        yield "no past verdict would be another"
        return
    against = old.name if old else "no baseline"
    yield f"{len(past.turned)} past verdicts would be others than under {against}:"
    for (check, before, after), count in past.by_check().items():
        yield f"  {check}: {count} {before} -> {after}"
    shown = past.turned if whole else _telling(past.turned)
    yield from (f"  {_turned(each)}" for each in shown)
    if len(shown) < len(past.turned):
        yield f"  and {len(past.turned) - len(shown)} more: --all, or --json"


def _telling(turned: Sequence[Turned]) -> Sequence[Turned]:
    """Return some: those that would be red first."""
    return sorted(turned, key=lambda each: (each.after != "FAIL", each.run_id))[:_SHOWN]


def _turned(each: Turned) -> str:
    bound = f", bound {each.bound:.5g}" if each.bound is not None else ""
    learnt = ", one of its own samples" if each.learnt else ""
    return (
        f"{each.run_id} {each.place.label} {each.quantity} = {each.value:.5g} {each.unit}{bound}: "
        f"{each.before} -> {each.after}{learnt}"
    )
