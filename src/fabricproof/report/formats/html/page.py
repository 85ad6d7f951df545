"""The page: what is said without a script, the data, and the script that draws it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files

from fabricproof.pairs import Picture
from fabricproof.report.formats.html import change, headline, pairs, sections
from fabricproof.report.formats.html.markup import Markup, joined, section, tag, word
from fabricproof.report.formats.html.payload import all_keys, collect, packed, places
from fabricproof.report.model import ReportData, for_people

#: in the order in which they are put together; each file is less than 400 lines
SCRIPTS = (
    "data.js",
    "page.js",
    "raw.js",
    "chart.js",
    "choose.js",
    "curves.js",
    "matrix.js",
    "trend.js",
    "tables.js",
    "start.js",
)
STYLES = ("page.css", "charts.css", "print.css")


def render_html(data: ReportData) -> str:
    """Return the whole report as one HTML file.

    It holds everything it needs, asks for nothing, and is the same for the same data.  Its content
    security policy allows this very script and style, by their digests, and no request at all.
    """
    data = for_people(data)
    keys = all_keys(data)
    known = places(data, keys)
    text, coding = packed(collect(data, keys) | {"legs": sections.beyond(data, known)})
    script, style = _script(), _style()
    body = joined(
        [
            tag("a", "Skip to the content", href="#main", class_="skip"),
            headline.header(data),
            _contents(_SECTIONS if data.pairs else _WITHOUT_PAIRS),
            tag(
                "main",
                headline.verdict(data, keys, known),
                change.before_and_after(data),
                _view("curves", "Curves over message size", _CURVES),
                _view("matrix", "Node by node", _MATRICES),
                *([pairs.pair_matrices(pairs.worst_first(data.pairs))] if data.pairs else []),
                sections.trend(data),
                sections.inventory(data),
                sections.every_leg(data, known),
                sections.raw_numbers(data),
                how_to_read(data),
                id="main",
                tabindex="-1",
            ),
            _machinery(),
            tag(
                "script",
                Markup(text),
                type="text/plain",
                id="data",
                data_coding=coding,
            ),
            tag("script", Markup(script)),
        ],
        "\n",
    )
    title = f"{data.site}: {data.session.verdict.value} (run {data.run.run_id})"
    return _document(title, body, script, style)


def render_pairs(pictures: Sequence[Picture]) -> str:
    """Return matrices of pairs alone as one HTML file, without a script."""
    shown = pairs.worst_first(pictures)
    words = ", ".join(dict.fromkeys(each.verdict.value for each in shown)) or "nothing measured"
    body = joined(
        [
            tag("header", tag("h1", "Every node with every node")),
            tag("main", pairs.pair_matrices(shown)),
        ]
    )
    return _document(f"All pairs: {words}", body, "", _style())


def _document(title: str, body: Markup, script: str, style: str) -> str:
    head = joined(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("meta", name="generator", content="fabricproof"),
            tag("title", title),
            tag("style", Markup(style)),
        ],
        "\n",
    )
    page = tag("html", tag("head", head), "\n", tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (
        files("fabricproof.report.formats.html")
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
    )


def _script() -> str:
    inside = "".join(map(_read, SCRIPTS))
    return f'(function () {{\n"use strict";\n{inside}}})();\n'


def _style() -> str:
    return "".join(map(_read, STYLES))


_SECTIONS = {
    "verdict": "Verdict",
    "change": "Before and after",
    "curves": "Curves",
    "matrix": "Node by node",
    "pairs": "All pairs",
    "trend": "History",
    "inventory": "Inventory",
    "legs": "Every leg",
    "raw": "Raw numbers",
    "notes": "How to read",
}

_WITHOUT_PAIRS = {name: title for name, title in _SECTIONS.items() if name != "pairs"}


def _contents(sections: Mapping[str, str]) -> Markup:
    links = (tag("li", tag("a", title, href=f"#{name}")) for name, title in sections.items())
    return tag("nav", tag("ol", *links), aria_label="Sections")


_NO_SCRIPT = tag(
    "noscript",
    tag(
        "p",
        "This needs JavaScript, which is switched off. The same numbers are in the tables of this "
        "page, and all of them in: fabricproof report --json",
        class_="remark",
    ),
)


_CURVES = (
    "This run's numbers. The bold curve is the chosen one: ceiling, reference, accepted range, "
    "baseline and the numbers before and after are drawn for it. A click on a point, or Enter, "
    "shows every raw number behind it."
)
_MATRICES = (
    "Numbers between two nodes, this run. Symbol and colour say how a pair does against what is "
    "chosen; where several numbers belong to one pair, the worst is shown."
)


def _view(name: str, title: str, text: str) -> Markup:
    """Return the section of what the script draws."""
    view = tag("div", id=f"{name}-view", class_="view", data_view=name)
    return section(name, title, tag("p", text), _NO_SCRIPT, view)


def _machinery() -> Markup:
    """Return what only the script fills: the panel of raw numbers, the keys, what is said aloud."""
    close = tag("button", "Close", type="button", class_="close")
    return joined(
        [
            tag(
                "dialog",
                tag("h2", "Raw numbers", id="panel-title"),
                tag("div", id="panel-body"),
                close,
                id="panel",
                aria_labelledby="panel-title",
            ),
            tag(
                "dialog",
                tag("h2", "Keys", id="help-title"),
                tag("div", id="help-body"),
                close,
                id="help",
                aria_labelledby="help-title",
            ),
            tag("p", id="said", class_="unseen", aria_live="polite"),
            tag("p", id="trouble", role="alert", class_="trouble", hidden=True),
        ]
    )


_VERDICTS = {
    "PASS": "measured, on the path it claims, possible, and good enough",
    "FAIL": "measured, on the path it claims, and worse than the accepted range",
    "INVALID": "the number is not what it claims: impossible, or it took another path",
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
    "leg": "one launch of one program over one path and layout",
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


def _list(entries: Iterable[tuple[str, str]]) -> Markup:
    return tag("dl", joined(_pair(*each) for each in entries))


def _pair(name: object, text: str) -> Markup:
    return joined([tag("dt", name), tag("dd", text)])
