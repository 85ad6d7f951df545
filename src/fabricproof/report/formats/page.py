"""The page: one HTML file that needs no script and no network, for a mail and for paper."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import compress
from typing import Any

import jinja2
from markupsafe import Markup

from fabricproof.core.hostlist import fold
from fabricproof.core.measure import BADNESS, Quantity, Verdict, worst
from fabricproof.core.units import by_key, counted, percent, size_label
from fabricproof.history.compare.model import Comparison
from fabricproof.history.store import Key
from fabricproof.job.run import LegResult
from fabricproof.pairs import Picture
from fabricproof.report.formats import svg
from fabricproof.report.formats.matrices import matrix_view, worst_first
from fabricproof.report.model import RawNumber, ReportData, for_people
from fabricproof.report.red import again, next_step, rails_of, what_next, with_device
from fabricproof.report.text.screen import groups_of, sections_beside_red

#: legs in the page, where fewer are red; --json has all
MOST_LEGS = 400

#: what the page shows at most: ``fabricproof report --json`` and ``compare --json`` have all
_MOST = {"most_panels": 12, "most_compared": 60, "most_groups": 12, "most_items": 4}
MOST_RAW = 120

#: values of one fact of the machines that are named
MOST_VALUES = 6

#: read with each word, so that no word is told by its colour alone
SYMBOLS = {
    "PASS": "●", "FAIL": "▼", "INVALID": "✕", "MISSING": "○", "UNJUDGED": "?", "SKIPPED": "-",
    "BETTER": "▲", "SAME": "=", "WORSE": "▼", "UNDECIDED": "?",
}  # fmt: skip

#: C0 controls but tab and newline, and lone surrogates: no HTML document may hold them
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_GREEN = frozenset({"PASS", "SKIPPED", ""})


def render_html(data: ReportData, records: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the whole report as one HTML file; the same data make the same page.

    Its content security policy allows its own style, by its digest, no script and no request.

    Args:
        data: what there is to report.
        records: of the run; those of kind ``confirmation`` say how sure a red leg is.
    """
    data = for_people(data)
    rows = _rows_of_places(data)
    groups = groups_of(data, records)
    first, *others = sections_beside_red(data, records)
    legs = _legs_worst_first(data)
    num_red = sum(leg.verdict.value not in _GREEN for leg in legs)
    shown = legs[: max(MOST_LEGS, num_red)]
    counts = data.session.counts()
    return _rendered(
        title=f"{data.site}: {data.session.verdict.value} (run {data.run.run_id})",
        data=data,
        verdict=data.session.verdict.value,
        counts=[(counts[each], each.value) for each in BADNESS if each in counts],
        step=next_step(data.session),
        commands=what_next(groups, data.site, data.run.run_id)[:4],
        red=[(each, _history_of(each.legs[0], data, rows)) for each in groups],
        beside=[each for each in (first, *others) if each.items],
        panels=_panels(data),
        pairs=[matrix_view(each) for each in worst_first(data.pairs)],
        comparison=data.comparison,
        forests=_forests(data.comparison) if data.comparison else [],
        events=_events(data),
        machines=list(_facts(data)),
        legs=[_leg_view(leg, data.site) for leg in shown],
        num_legs=len(legs),
        raw=_red_raw(data),
    )


def render_pairs(pictures: Sequence[Picture]) -> str:
    """Return matrices of pairs alone as one HTML file."""
    shown = worst_first(pictures)
    words = ", ".join(dict.fromkeys(each.verdict.value for each in shown)) or "nothing measured"
    return _rendered(title=f"All pairs: {words}", pairs=[matrix_view(each) for each in shown])


def _rendered(**view: Any) -> str:
    style = _asset("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    names = {"data": None, "most_lines": svg.MOST_LINES, **_MOST, **view}
    return f"{_template().render(style=Markup(style), policy=policy, **names)}\n"  # noqa: S704


def _asset(name: str) -> str:
    folder = files("fabricproof.report.formats").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_speakable,
    )
    environment.filters |= {
        "symbol": lambda word: SYMBOLS.get(word, "·"),
        "number": number,
        "percent": percent,
        "folded": lambda nodes: fold(nodes) or "-",
        "counted": counted,
        "swatch": svg.swatch,
    }
    return environment.from_string(_asset("page.html"))


def _speakable(value: object) -> object:
    if isinstance(value, str):
        return type(value)(_UNSPEAKABLE.sub("\ufffd", value))
    return value


def number(value: float | None, unit: str = "") -> str:
    """Return a number for people: five significant digits, its unit; a dash if there is none."""
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:.5g}"
    if "e+" in text:
        text = f"{value:.0f}"
    return text if unit in {"", "1"} else f"{text} {unit}"


# What is red, run after run.

_Place = tuple[str, ...]


def _rows_of_places(data: ReportData) -> dict[_Place, list[int]]:
    """Return the rows of the matrix at each place.

    A number that was not printed has neither unit nor setting, and so a row beside its history's.
    """
    return by_key(
        ((key.partition, key.stack, key.check, key.leg, key.nodes, key.quantity), row)
        for row, key in enumerate(data.matrix.keys)
    )


@dataclass(frozen=True, kw_only=True)
class _History:
    drawing: Markup
    words: str


def _history_of(
    leg: LegResult, data: ReportData, rows: Mapping[_Place, Sequence[int]]
) -> _History | None:
    """Return the first red number of a leg, run after run, and how often it was red."""
    red = next((each for each in leg.quantities if each.verdict.value not in _GREEN), None)
    if red is None:
        return None
    nodes = ",".join(sorted(red.nodes or leg.nodes))
    mine = rows.get((leg.partition, leg.stack, leg.check, leg.path_name, nodes, red.name), ())
    matrix = data.matrix
    if not mine or not matrix.verdicts:
        return None
    columns = range(len(matrix.runs))
    words = [[word for row in mine if (word := matrix.verdicts[row][at])] for at in columns]
    if any(len(each) > 1 for each in words):
        return None  # two quantities would fit
    told = [word for each in words for word in each]
    num_red = sum(word not in _GREEN for word in told)
    text = f"{red.name}: red in {num_red} of {counted(len(told), 'run')}"
    of_runs = [[float(matrix.values[row, at]) for row in mine] for at in columns]
    values = [next((x for x in each if not math.isnan(x)), None) for each in of_runs]
    drawing = svg.sparkline(values, text, red.lower, red.upper)
    return _History(drawing=drawing, words=text)


def _red_raw(data: ReportData) -> list[tuple[Key, RawNumber]]:
    """Return every attempt of this run's quantities that did not pass."""
    found = []
    for key, numbers in data.raw.items():
        mine = [each for each in numbers if each.run_id == data.run.run_id]
        if any(each.counts and each.verdict not in _GREEN for each in mine):
            found += [(key, each) for each in mine]
    return found[:MOST_RAW]


# Curves.


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """One curve of this run.

    Attributes:
        verdict: the worst of its points.
        share: how near its largest message comes to the ceiling, 1 at it; infinite if unknown.
        said: its largest message in words.
    """

    name: str
    line: svg.CurveLine
    verdict: Verdict
    share: float
    said: str
    limits: tuple[svg.Limit, ...]


def _panels(data: ReportData) -> list[dict[str, Any]]:
    """Return a panel for each program and quantity of this run, the worst first."""
    column = next(
        (at for at, run in enumerate(data.matrix.runs) if run.run_id == data.run.run_id), None
    )
    if column is None:
        return []
    of_panels: dict[tuple[str, ...], dict[Key, list[tuple[Key, float, str]]]] = {}
    for row, key in enumerate(data.matrix.keys):
        value = float(data.matrix.values[row, column])
        if key.message_size is None or math.isnan(value):
            continue
        metric = key.quantity.removesuffix(f"_{size_label(key.message_size)}")
        word = data.matrix.verdicts[row][column] if data.matrix.verdicts else ""
        panel = (f"{key.program} ({key.suite})", metric, key.unit)
        curve = _without_size(key)
        of_panels.setdefault(panel, {}).setdefault(curve, []).append((key, value, word))
    panels = []
    for (program, metric, unit), of_curves in of_panels.items():
        parts = [_parts(curve) for curve in of_curves]
        varies = [len({each[at] for each in parts}) > 1 for at in range(len(parts[0]))]
        curves = [
            _curve(" ".join(filter(None, compress(names, varies))) or names[1], points, data)
            for names, points in zip(parts, of_curves.values(), strict=True)
            if len(points) > 1
        ]
        if not curves:
            continue
        curves.sort(key=lambda each: (BADNESS.index(each.verdict), each.share, each.name))
        title = f"{program}: {metric}"
        drawing = svg.curves(
            [each.line for each in curves],
            # each once: rails that are alike have one ceiling, two of them together another
            [*dict.fromkeys(limit for each in curves[: svg.MOST_LINES] for limit in each.limits)],
            unit,
            f"{title} over message size, {counted(len(curves), 'curve')}",
            logarithmic=unit in {"us", "ms"},
        )
        worst_one = (BADNESS.index(curves[0].verdict), curves[0].share, title)
        panels.append((worst_one, {"title": title, "curves": curves, "drawing": drawing}))
    return [panel for _, panel in sorted(panels, key=lambda each: each[0])]


def _without_size(key: Key) -> Key:
    facts = {name: getattr(key, name) for name in key.__dataclass_fields__}
    return Key(**{**facts, "message_size": None, "quantity": "", "named": True})


def _parts(curve: Key) -> tuple[str, ...]:
    """Return what tells a curve from others of its panel, for people."""
    pair = curve.nodes.replace(",", " - ") if curve.nodes.count(",") == 1 else curve.nodes
    setup = (curve.build, curve.tool_version, curve.settings, curve.check, curve.partition)
    return (curve.stack, curve.leg, pair, *setup)


def _curve(name: str, points: list[tuple[Key, float, str]], data: ReportData) -> _Curve:
    points.sort(key=lambda each: each[0].message_size or 0)
    words = [Verdict(word) for _, _, word in points if word]
    limits = []
    for kind in ("ceiling", "reference"):
        known = [
            (key.message_size or 0, limit)
            for key, _, _ in points
            if (bound := data.bounds.get(key)) and (limit := getattr(bound, kind))
        ]
        limits += [svg.Limit(kind=kind, points=tuple(known))] * (len(known) > 1)
    last, value, _ = points[-1]
    bound = data.bounds.get(last)
    share, of = math.inf, ""
    if bound and bound.ceiling and last.better < 0:
        share, of = bound.ceiling / value, f", {value / bound.ceiling:.1f} x the floor"
    elif bound and bound.ceiling:
        share = value / bound.ceiling
        of = f", {share:.0%} of the ceiling"
    return _Curve(
        name=name,
        line=svg.CurveLine(
            points=tuple((key.message_size or 0, value) for key, value, _ in points),
            red=frozenset(at for at, each in enumerate(points) if each[2] not in _GREEN),
        ),
        verdict=worst(words) if words else Verdict.SKIPPED,
        share=share,
        said=f"{number(value, last.unit)} at {size_label(last.message_size or 0)}{of}",
        limits=tuple(limits),
    )


# Before and after, history, machines, legs.


def _forests(made: Comparison) -> list[dict[str, Any]]:
    """Return the groups of a comparison by kind, each with its drawing."""
    shifts = [each.shift for each in made.groups if each.shift is not None and each.shift.ratio]
    ends = [end for each in shifts for end in (each.low, each.high) if end]
    reach = svg.reach_of((each.ratio for each in shifts if each.ratio), ends)
    order = ["WORSE", "BETTER", "UNDECIDED", "SAME"]
    forests = []
    for kind, groups in by_key((each.kind, each) for each in made.groups).items():
        rows = []
        for group in sorted(groups, key=lambda each: order.index(each.change.value)):
            shift, drawing = group.shift, Markup()
            if shift is not None and shift.ratio:
                margin = made.margins.get(group.metric, 0.0)
                word = group.change.value
                drawing = svg.interval(shift.ratio, shift.low, shift.high, margin, reach, word)
            rows.append((group, drawing))
        forests.append({"kind": kind, "rows": rows})
    return forests


def _events(data: ReportData) -> list[dict[str, Any]]:
    """Return the lasting changes of the history, each with its largest step run after run."""
    if data.trend is None:
        return []
    found = []
    for event in data.trend.events:
        drawing, said = Markup(), "-"
        for step in event.steps[:1]:
            said = f"{step.key.label}: {percent(step.step.ratio)}"
            drawing = svg.sparkline(step.history, said, None, None)
        found.append({"event": event, "step": said, "drawing": drawing})
    return found


def _facts(data: ReportData) -> Iterator[tuple[str, str, str]]:
    """Yield each fact in which the nodes are unlike: part, fact, the values with their nodes."""
    facts: dict[tuple[str, str], dict[str, list[str]]] = {}
    for node, parts in data.machines.items():
        for part, values in parts.items():
            for fact, value in values.items():
                facts.setdefault((part, fact), {}).setdefault(str(value), []).append(node)
    for (part, fact), unlike in sorted(facts.items()):
        if len(unlike) > 1:
            # The rarest value first: the node that is unlike the others is looked for.
            order = sorted(unlike.items(), key=lambda item: (len(item[1]), item[0]))
            told = [f"{value} on {fold(nodes)}" for value, nodes in order[:MOST_VALUES]]
            more = [f"and {len(order) - MOST_VALUES} more values"] * (len(order) > MOST_VALUES)
            yield part, fact, "; ".join([*told, *more])


def _legs_worst_first(data: ReportData) -> list[LegResult]:
    return sorted(
        data.session.legs,
        key=lambda leg: (BADNESS.index(leg.verdict), leg.stack, leg.suite, leg.program, leg.leg),
    )


def _leg_view(leg: LegResult, site: str) -> dict[str, Any]:
    named = [each for each in leg.quantities if each.named]
    rails = "+".join(rails_of(leg) or leg.rails)
    proof = leg.net_path
    return {
        "leg": leg,
        "program": f"{leg.program or leg.check}{f' ({leg.suite})' * bool(leg.suite)}",
        "rails": with_device(rails, leg.device) or "-",
        "numbers": [_measured(each) for each in named],
        "more": len(leg.quantities) - len(named),
        "path": "" if proof is None else f"{proof.get('state', '?')} {proof.get('reason', '')}",
        "again": again(leg, site) if leg.verdict.value not in _GREEN else "",
    }


def _measured(quantity: Quantity) -> str:
    """Return a number and how near it is to its physical limit."""
    text = f"{quantity.name} {number(quantity.value, quantity.unit)}"
    if not quantity.value or not quantity.ceiling:
        return text
    if quantity.unit in {"us", "ms"}:
        return f"{text} (floor {number(quantity.ceiling)})"
    return f"{text} ({quantity.value / quantity.ceiling:.0%} of {number(quantity.ceiling)})"
