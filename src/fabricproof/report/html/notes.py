"""How to read the report: words, units, and what was passed over."""

from __future__ import annotations

from collections.abc import Iterable

from fabricproof.report.html.markup import Markup, joined, section, tag, word
from fabricproof.report.model import ReportData

_VERDICTS = {
    "PASS": "measured, on the road it claims, possible, and good enough",
    "FAIL": "measured, on the road it claims, and worse than the accepted range",
    "INVALID": "the number is not what it claims: impossible, or it took another road",
    "MISSING": "was due and was not measured",
    "UNJUDGED": "measured, and there is nothing to judge it by",
    "SKIPPED": "not due here; the reason says why",
}

_CHANGES = {
    "BETTER": "better by the margin or more, and more surely than chance among all of them allows",
    "WORSE": "worse by the margin or more, and more surely than chance among all of them allows",
    "SAME": "the whole interval lies within the margin: a change that matters is ruled out",
    "UNDECIDED": "neither could be shown; the note says how many more runs would decide",
}

_WORDS = {
    "run": "one start of fabricproof run: what is compared; attempts within it are not",
    "attempt": "a second look at the same number in the same job; one of them counts",
    "leg": "one launch of one program over one road and layout",
    "rail": "one of several networks, or ports, that join the same nodes",
    "ceiling": "what physics allows: a rate not to be exceeded, a latency not to be beaten",
    "reference": "what a number is judged by; the accepted range lies around it",
    "baseline": "what known-good runs of this site showed; drawn as a band",
    "ratio": "after over before of the quantity itself; for a latency above 1 is slower",
    "interval": "where the true ratio lies, with 95 % confidence unless another level is told",
    "margin": "the smallest change that matters: the band around 1",
    "p": "chance of such a difference anywhere among all quantities if nothing had changed",
    "share of ceiling": "value over ceiling; of a latency ceiling over value: 100 % is the limit",
}

_UNITS = {
    "MB/s": "10^6 bytes per second",
    "us": "microseconds",
    "x": "a ratio of two numbers",
    "KiB, MiB": "message sizes: 1024 bytes, 1024 x 1024 bytes",
}


def how_to_read(data: ReportData) -> Markup:
    """Return the last section."""
    margins = ""
    if data.comparison is not None and data.comparison.margins:
        told = ", ".join(f"{name} {part:.0%}" for name, part in data.comparison.margins.items())
        margins = f"Margins of this comparison: {told}; error rate {data.comparison.alpha:.0%}."
    return section(
        "notes",
        "How to read this",
        tag("h3", "Verdicts"),
        _list((word(name), text) for name, text in _VERDICTS.items()),
        tag("h3", "Words of a comparison"),
        _list((word(name), text) for name, text in _CHANGES.items()),
        *([tag("p", margins)] if margins else []),
        tag("h3", "Other words"),
        _list(_WORDS.items()),
        tag("h3", "Units"),
        _list(_UNITS.items()),
        tag(
            "p",
            "All times are UTC. Nothing on this page was asked of any network.",
            class_="remark",
        ),
    )


def _list(pairs: Iterable[tuple[str, str]]) -> Markup:
    return tag("dl", joined(_pair(*pair) for pair in pairs))


def _pair(name: object, text: str) -> Markup:
    return joined([tag("dt", name), tag("dd", text)])
