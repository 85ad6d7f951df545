"""JUnit XML: well formed whatever the words, and no reader takes anything red for green."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from report_data import leg, report

from fabricproof.core.findings import as_notes
from fabricproof.core.measure import Verdict
from fabricproof.report.formats.junit import render_junit

_COUNTS = ("tests", "failures", "errors", "skipped")


def parsed(*legs: object) -> ElementTree.Element:
    root = ElementTree.fromstring(render_junit(report(*legs)))  # type: ignore[arg-type]
    check(root)
    return root


def check(root: ElementTree.Element) -> None:
    """Check the rules that windyroad's JUnit.xsd and Jenkins' junit-10.xsd have in common."""
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        needed = {"name", "package", "id", "hostname", "timestamp", "time", *_COUNTS}
        assert set(suite.attrib) == needed
        assert len(suite.attrib["timestamp"]) == len("2026-11-01T02:00:00")
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert int(suite.attrib["tests"]) == len(cases) > 0
        for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[count]) == len(suite.findall(f"testcase/{tag}"))
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            assert {child.tag for child in case} <= {"failure", "error", "skipped"}
    for count in _COUNTS:
        assert int(root.attrib[count]) == sum(int(suite.attrib[count]) for suite in root)


def test_each_verdict_has_its_element() -> None:
    root = parsed(
        leg(),
        leg(Verdict.FAIL),
        leg(Verdict.INVALID),
        leg(Verdict.MISSING, quantities=()),
        leg(Verdict.UNJUDGED),
        leg(Verdict.SKIPPED, reason="no such fabric"),
    )
    assert [root.attrib[each] for each in _COUNTS] == ["6", "1", "3", "1"]
    kinds = [child.attrib.get("type", child.tag) for child in root.iterfind(".//testcase/*")]
    assert kinds == ["FAIL", "INVALID", "MISSING", "UNJUDGED", "skipped"]


def test_a_run_in_which_nothing_was_judged_is_an_error() -> None:
    for legs in ((), (leg(Verdict.SKIPPED, reason="no such fabric"),)):
        assert parsed(*legs).attrib["errors"] == "1"


@settings(deadline=None)
@given(words=st.text(), verdict=st.sampled_from(Verdict))
def test_any_words_make_well_formed_xml(words: str, verdict: Verdict) -> None:
    """Control characters, ]]>, surrogates: the file can be read and the count is right."""
    mine = leg(
        verdict,
        reason=words,
        stack=words,
        program=words,
        nodes=(words,),
        findings=as_notes([words]),
    )
    root = parsed(mine)
    assert root.attrib["tests"] == ("2" if verdict is Verdict.SKIPPED else "1")
