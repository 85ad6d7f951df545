"""A run as JUnit XML, which every CI shows: one test case for each leg.

FAIL is a failure.  INVALID, MISSING and UNJUDGED are errors: the leg could not be tested, and no
reader may take that for green.  SKIPPED is skipped, with its reason.  A run in which nothing was
judged has an error of its own, because CIs call an empty suite a success.

The common subset of the two schemas in use (windyroad's JUnit.xsd, Jenkins' junit-10.xsd):
properties and system-out belong to a suite, a case has at most one of skipped, error, failure.
Nobody measures how long a leg takes, so ``time`` is 0 everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.core.units import by_key
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import folded

_ERRORS = frozenset({Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED})

#: what XML 1.0 cannot hold (production 2, Char), and what no UTF-8 can
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(data: ReportData) -> str:
    """Return the XML of a run."""
    suites = by_key(((leg.check, leg.partition), leg) for leg in data.session.legs)
    nothing = data.session.verdict is Verdict.SKIPPED
    counts = _counts(data.session.legs, nothing=nothing)
    root = Element("testsuites", _held(name=f"fabricproof {data.site}", **counts, time="0"))
    for (check, partition), legs in suites.items():
        suite = _suite(root, data, f"{check} on {partition}" if partition else check, legs)
        for leg in legs:
            _case(suite, leg)
        _end(suite, _said(legs))
    if nothing:
        suite = _suite(root, data, "run", (), nothing=True)
        case = _add(suite, "testcase", name="something was judged", classname="run", time="0")
        _add(case, "error", message="nothing was judged in this run", type="SKIPPED")
        _end(suite, "")
    ElementTree.indent(root)
    xml = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}\n'


def _counts(legs: Sequence[LegResult], *, nothing: bool) -> dict[str, str]:
    verdicts = [leg.verdict for leg in legs]
    return {
        "tests": str(len(verdicts) + nothing),
        "failures": str(verdicts.count(Verdict.FAIL)),
        "errors": str(sum(each in _ERRORS for each in verdicts) + nothing),
        "skipped": str(verdicts.count(Verdict.SKIPPED)),
    }


def _suite(
    root: Element,
    data: ReportData,
    name: str,
    legs: Sequence[LegResult],
    *,
    nothing: bool = False,
) -> Element:
    suite = _add(
        root,
        "testsuite",
        name=name,
        package="fabricproof",
        id=str(len(root)),
        hostname=data.site,
        timestamp=data.run.start.strftime("%Y-%m-%dT%H:%M:%S"),
        **_counts(legs, nothing=nothing),
        time="0",
    )
    properties = {"run_id": data.run.run_id, "site": data.site}
    properties |= {f"build.{stack}": build for stack, build in sorted(data.run.builds.items())}
    several = _add(suite, "properties")
    for key, value in properties.items():
        _add(several, "property", name=key, value=value)
    return suite


def _end(suite: Element, said: str) -> None:
    _add(suite, "system-out", said)
    _add(suite, "system-err")


def _case(suite: Element, leg: LegResult) -> None:
    nodes = f"on {folded(leg.nodes)}" if leg.nodes else ""
    # A dot in a part of a class name would make two of it.
    parts = (leg.partition, leg.stack, leg.check)
    place = ".".join(each.replace(".", "_") for each in parts if each)
    job = f"job {leg.job_id}" if leg.job_id else ""
    name = " ".join(filter(None, (leg.program or leg.check, leg.path_name, nodes, job)))
    case = _add(suite, "testcase", name=name, classname=place, time="0")
    if leg.verdict is Verdict.SKIPPED:
        _add(case, "skipped", message=leg.reason)
    elif leg.verdict is not Verdict.PASS:
        message = f"{leg.verdict}: {leg.reason or 'ReFrame failed its check'}"
        stage = [f"raw output: {leg.stage_folder}"] if leg.stage_folder else []
        body = "\n".join([leg.reason, *texts_of(leg.findings), *stage])
        tag = "failure" if leg.verdict is Verdict.FAIL else "error"
        _add(case, tag, body, message=message, type=leg.verdict.value)


def _said(legs: Sequence[LegResult]) -> str:
    return "\n".join(
        f"{leg.verdict} {leg.stack} {leg.path_name} {each.name} {each.value} {each.unit}: "
        f"{each.reason}"
        for leg in legs
        for each in leg.quantities
        if each.named
    )


def _add(parent: Element, tag: str, words: str = "", /, **facts: str) -> Element:
    made = ElementTree.SubElement(parent, tag, _held(**facts))
    made.text = _NO_CHARACTER.sub("\ufffd", words)
    return made


def _held(**facts: str) -> dict[str, str]:
    """Return attributes without a character that XML cannot hold."""
    return {name: _NO_CHARACTER.sub("\ufffd", value) for name, value in facts.items()}
