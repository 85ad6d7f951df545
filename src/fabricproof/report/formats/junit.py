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
from collections.abc import Iterable, Mapping, Sequence

from fabricproof.core.measure import Verdict, texts_of
from fabricproof.job.run import LegResult
from fabricproof.report.model import ReportData
from fabricproof.report.red import folded

_ERRORS = frozenset({Verdict.INVALID, Verdict.MISSING, Verdict.UNJUDGED})

#: what XML 1.0 cannot hold (production 2, Char), and what no UTF-8 can
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}

#: kept in an attribute only where they are written as references
_BLANKS = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def render_junit(data: ReportData) -> str:
    """Return the XML of a run."""
    suites: dict[tuple[str, str], list[LegResult]] = {}
    for leg in data.session.legs:
        suites.setdefault((leg.check, leg.partition), []).append(leg)
    nothing = data.session.verdict is Verdict.SKIPPED
    bodies = [_suite(data, index, name, legs) for index, (name, legs) in enumerate(suites.items())]
    if nothing:
        bodies.append(_nothing(data, len(bodies)))
    counts = _counts(data.session.legs, nothing=nothing)
    attributes = _attributes({"name": f"fabricproof {data.site}", **counts, "time": "0"})
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{attributes}>"]
    return "\n".join([*head, *bodies, "</testsuites>\n"])


def _counts(legs: Sequence[LegResult], *, nothing: bool = False) -> dict[str, str]:
    verdicts = [leg.verdict for leg in legs]
    return {
        "tests": str(len(verdicts) + nothing),
        "failures": str(verdicts.count(Verdict.FAIL)),
        "errors": str(sum(each in _ERRORS for each in verdicts) + nothing),
        "skipped": str(verdicts.count(Verdict.SKIPPED)),
    }


def _suite(data: ReportData, index: int, name: tuple[str, str], legs: Sequence[LegResult]) -> str:
    check, partition = name
    return _suite_of(
        data,
        index,
        f"{check} on {partition}" if partition else check,
        _counts(legs),
        [_case(leg) for leg in legs],
        _said(legs),
    )


def _suite_of(
    data: ReportData,
    index: int,
    name: str,
    counts: Mapping[str, str],
    cases: Iterable[str],
    said: str = "",
) -> str:
    facts = {
        "name": name,
        "package": "fabricproof",
        "id": str(index),
        "hostname": data.site,
        "timestamp": data.run.start.strftime("%Y-%m-%dT%H:%M:%S"),
        **counts,
        "time": "0",
    }
    properties = {"run_id": data.run.run_id, "site": data.site}
    properties |= {f"build.{stack}": build for stack, build in sorted(data.run.builds.items())}
    lines = [f"  <testsuite{_attributes(facts)}>", "    <properties>"]
    lines += [
        f"      <property{_attributes({'name': key, 'value': value})}/>"
        for key, value in properties.items()
    ]
    lines += ["    </properties>", *cases, f"    <system-out>{text(said)}</system-out>"]
    return "\n".join([*lines, "    <system-err></system-err>", "  </testsuite>"])


def _case(leg: LegResult) -> str:
    nodes = f"on {folded(leg.nodes)}" if leg.nodes else ""
    place = ".".join(_word(each) for each in (leg.partition, leg.stack, leg.check) if each)
    job = f"job {leg.job_id}" if leg.job_id else ""
    name = " ".join(filter(None, (leg.program or leg.check, leg.path_name, nodes, job)))
    start = f"    <testcase{_attributes({'name': name, 'classname': place, 'time': '0'})}"
    if leg.verdict is Verdict.PASS:
        return f"{start}/>"
    if leg.verdict is Verdict.SKIPPED:
        inner = f"<skipped{_attributes({'message': leg.reason})}/>"
        return f"{start}>\n      {inner}\n    </testcase>"
    tag = "failure" if leg.verdict is Verdict.FAIL else "error"
    message = f"{leg.verdict}: {leg.reason or 'ReFrame failed its check'}"
    facts = _attributes({"message": message, "type": leg.verdict.value})
    body = "\n".join([leg.reason, *texts_of(leg.findings), *_stage(leg)])
    return f"{start}>\n      <{tag}{facts}>{text(body)}</{tag}>\n    </testcase>"


def _stage(leg: LegResult) -> list[str]:
    return [f"raw output: {leg.stage_folder}"] if leg.stage_folder else []


def _word(part: str) -> str:
    """Return a part of a class name: a dot in it would make two of it."""
    return part.replace(".", "_")


def _nothing(data: ReportData, index: int) -> str:
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    facts = {"message": "nothing was judged in this run", "type": "SKIPPED"}
    name = {"name": "something was judged", "classname": "run", "time": "0"}
    case = f"    <testcase{_attributes(name)}>\n      <error{_attributes(facts)}/>\n    </testcase>"
    return _suite_of(data, index, "run", counts, [case])


def _said(legs: Sequence[LegResult]) -> str:
    """Return the named numbers of a suite, one line each."""
    return "\n".join(
        f"{leg.verdict} {leg.stack} {leg.path_name} {each.name} {each.value} {each.unit}: "
        f"{each.reason}"
        for leg in legs
        for each in leg.quantities
        if each.named
    )


def text(words: str) -> str:
    """Return character data: no markup, no ``]]>``, no character that XML cannot hold."""
    held = _NO_CHARACTER.sub("\ufffd", words)
    return "".join(_ESCAPES.get(each, each) for each in held)


def _attributes(facts: Mapping[str, str]) -> str:
    return "".join(f' {name}="{_attribute(value)}"' for name, value in facts.items())


def _attribute(words: str) -> str:
    return "".join(_BLANKS.get(each, each) for each in text(words))
