"""The drawings of the page, as static SVG: curves over message size, sparklines, intervals.

Colours come from the page's style by class, so that they follow the dark mode; a line is told by
its dashes and its place in the legend too, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from fabricproof.core.units import size_label

#: lines that are drawn by themselves; those beyond are a band
MOST_LINES = 8

_WIDTH, _HEIGHT = 460.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 24.0, 12.0, 30.0


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """A curve: points of message size in bytes and value, rising in size.

    Attributes:
        red: indices of the points that did not pass.
    """

    points: tuple[tuple[int, float], ...]
    red: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A ceiling, floor or reference over message size, as points like those of a line."""

    kind: str  # ceiling or reference: a class of the style
    points: tuple[tuple[int, float], ...]


class _Axes:
    """Message size on a logarithmic axis, values on a linear (bandwidth) or logarithmic one."""

    def __init__(self, points: Iterable[tuple[int, float]], *, logarithmic: bool) -> None:
        sizes, values = zip(*points, strict=True)
        self.logarithmic = logarithmic
        self.first, self.last = (math.log2(max(size, 0.5)) for size in (min(sizes), max(sizes)))
        self.low = math.log10(min(values)) - 0.1 if logarithmic else 0.0
        self.high = math.log10(max(values)) + 0.1 if logarithmic else max(values) * 1.08

    def x(self, size: float) -> float:
        span = max(self.last - self.first, 1.0)
        share = (math.log2(max(size, 0.5)) - self.first) / span
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        at = math.log10(value) if self.logarithmic else value
        share = (at - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def sizes(self) -> list[int]:
        step = max(1, math.ceil((self.last - self.first) / 6))
        return [
            2**power for power in range(max(0, math.ceil(self.first)), int(self.last) + 1, step)
        ]

    def values(self) -> list[float]:
        if self.logarithmic:
            decades = range(math.ceil(self.low), math.floor(self.high) + 1)
            steps = (1,) if len(decades) > 2 else (1, 2, 5)
            powers = range(math.floor(self.low), math.ceil(self.high))
            found = [step * 10.0**power for power in powers for step in steps]
            return [each for each in found if self.low <= math.log10(each) <= self.high]
        rough = self.high / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
        return [step * at for at in range(int(self.high / step) + 1)]

    def drawn(self, unit: str) -> str:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>']
        for value in self.values():
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{_LEFT} {y}H{right}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" class="end">{value:g}</text>')
        for size in self.sizes():
            x = self.x(size)
            parts.append(f'<text x="{x}" y="{bottom + 16}" class="mid">{size_label(size)}</text>')
        parts.append(f'<text x="{_LEFT + 4}" y="{_TOP + 10}">{escape(unit)}</text>')
        return "".join(parts)


def curves(
    lines: Sequence[CurveLine], limits: Sequence[Limit], unit: str, title: str, *, logarithmic: bool
) -> Markup:
    """Return one panel: at most :data:`MOST_LINES` lines, the rest as the band that they fill.

    Args:
        lines: the worst first; of one point at least.
        limits: ceilings and references, drawn behind the lines.
        unit: of the values, at the axis.
        title: what a screen reader says.
        logarithmic: the values' axis, for times.
    """
    every = [point for line in lines for point in line.points]
    every += [point for limit in limits for point in limit.points]
    axes = _Axes(every, logarithmic=logarithmic)

    def path(points: Iterable[tuple[int, float]]) -> str:
        return "M" + "L".join(f"{axes.x(size)} {axes.y(value)}" for size, value in points)

    parts = [axes.drawn(unit)]
    if beyond := lines[MOST_LINES:]:
        by_size: dict[int, list[float]] = {}
        for size, value in (point for each in beyond for point in each.points):
            by_size.setdefault(size, []).append(value)
        edge = [(size, max(by_size[size])) for size in sorted(by_size)]
        edge += [(size, min(by_size[size])) for size in sorted(by_size, reverse=True)]
        parts.append(f'<path class="rest" d="{path(edge)}Z"/>')
    parts += [f'<path class="{each.kind}" d="{path(each.points)}"/>' for each in limits]
    for index, line in reversed([*enumerate(lines[:MOST_LINES])]):
        parts.append(f'<path class="line l{index}" d="{path(line.points)}"/>')
        for at, (size, value) in enumerate(line.points):
            where = f'cx="{axes.x(size)}" cy="{axes.y(value)}"'
            kind, radius = ("red", 4.5) if at in line.red else (f"dot l{index}", 2.2)
            parts.append(f'<circle class="{kind}" {where} r="{radius}"/>')
    return _svg(_WIDTH, _HEIGHT, title, parts, "curves")


def swatch(index: int) -> Markup:
    """Return the sample of a line for the legend."""
    return Markup(  # noqa: S704 - of numbers alone
        f'<svg class="swatch" viewBox="0 0 34 10" width="34" height="10" aria-hidden="true">'
        f'<path class="line l{index}" d="M1 5H33"/></svg>'
    )


def sparkline(
    values: Sequence[float | None], title: str, lower: float | None, upper: float | None
) -> Markup:
    """Return the values of one quantity, run after run, with the accepted range behind them."""
    known = [(at, value) for at, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return Markup()
    width, height = 160.0, 34.0
    inside = [value for _, value in known] + [each for each in (lower, upper) if each]
    low, high = min(inside), max(inside)
    pad = (high - low or abs(high) or 1.0) * 0.1
    low, high = low - pad, high + pad

    def y(value: float) -> float:
        return round(height - 3 - (value - low) / (high - low) * (height - 6), 1)

    def x(at: int) -> float:
        return round(4 + at / max(len(values) - 1, 1) * (width - 8), 1)

    top, bottom = y(upper) if upper else 0.0, y(lower) if lower else height
    parts = []
    if lower or upper:
        parts.append(
            f'<rect class="accepted" x="0" y="{top}" width="{width}" '
            f'height="{max(bottom - top, 0):g}"/>'
        )
    points = "L".join(f"{x(at)} {y(value)}" for at, value in known)
    last_at, last = known[-1]
    parts += [
        f'<path class="line l0" d="M{points}"/>',
        f'<circle class="last" cx="{x(last_at)}" cy="{y(last)}" r="3.5"/>',
    ]
    return _svg(width, height, title, parts, "spark")


def interval(
    ratio: float, low: float | None, high: float | None, margin: float, reach: float, word: str
) -> Markup:
    """Return a ratio of after over before with its interval, on a logarithmic axis around 1.

    ``margin`` is the smallest change that matters, as a fraction: the band around 1; ``reach`` the
    ratio at the right end, the left end is one over it; ``word`` BETTER, SAME, WORSE or UNDECIDED,
    the shape of the point.
    """
    width, height = 240.0, 18.0

    def x(value: float) -> float:
        place = 0.5 + 0.5 * math.log(value) / math.log(reach)
        return round(6 + min(max(place, 0.0), 1.0) * (width - 12), 1)

    left, right, at = x(1 / (1 + margin)), x(1 + margin), x(ratio)
    parts = [
        f'<rect class="margin" x="{left}" y="0" width="{right - left:.1f}" height="{height}"/>',
        f'<path class="axis" d="M{x(1)} 0V{height}"/>',
    ]
    if low and high:
        ends = [
            f"M{x(each)} 5v8"
            if 1 / reach <= each <= reach
            else f"M{x(each) - step} 5l{step} 4l{-step} 4"
            for each, step in ((low, -5), (high, 5))
        ]
        parts.append(f'<path class="interval" d="M{x(low)} 9H{x(high)}{"".join(ends)}"/>')
    shape = {
        "BETTER": f"{at},3 {at + 6},14 {at - 6},14",
        "WORSE": f"{at},15 {at + 6},4 {at - 6},4",
        "SAME": f"{at - 5},4 {at + 5},4 {at + 5},14 {at - 5},14",
    }.get(word, f"{at},3 {at + 6},9 {at},15 {at - 6},9")
    parts.append(f'<polygon class="shape w-{word}" points="{shape}"/>')
    title = f"ratio {ratio:.4g}, axis from {1 / reach:.3g} to {reach:.3g}"
    return _svg(width, height, title, parts, "dots")


def reach_of(estimates: Iterable[float], ends: Iterable[float]) -> float:
    """Return the ratio at the right end of the intervals, at which every estimate has its place.

    An interval of few and noisy runs may be a hundred times as long and would squeeze all others
    into one line: ends beyond three quarters of all ends leave the drawing with an arrow.
    """
    sorted_ends = sorted(abs(math.log(each)) for each in ends)
    usual = sorted_ends[3 * len(sorted_ends) // 4] if sorted_ends else 0.0
    far = max((abs(math.log(each)) for each in estimates), default=0.0)
    return math.exp(1.1 * max(usual, far, 0.05))


def _svg(width: float, height: float, title: str, parts: Iterable[str], kind: str) -> Markup:
    head = f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" role="img">'
    inside = f"<title>{escape(title)}</title>{''.join(parts)}"
    return Markup(f"{head}{inside}</svg>")  # noqa: S704 - numbers, and text that was escaped
