"""One form of what was found: written and read back alike, refused where damaged, said in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import Finding, FindingKind, Where, findings_of, texts_of
from fabricproof.core.measure import Quantity, Verdict

RATE = Quantity(
    name="n1.rate", value=100, unit="Mb/s", message_size=None, verdict=Verdict.FAIL, reason="half"
)


@given(
    st.lists(
        st.builds(
            Finding,
            text=st.text(),
            kind=st.sampled_from(FindingKind),
            verdict=st.none() | st.sampled_from(Verdict),
            where=st.builds(Where, rail=st.text(), nodes=st.lists(st.text()).map(tuple)),
            quantity=st.none()
            | st.builds(
                Quantity,
                value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
                ceiling=st.none(),
                reference=st.none(),
                lower=st.none(),
                upper=st.none(),
            ),
        )
    )
)
def test_findings_are_read_as_they_were_written(findings: list[Finding]) -> None:
    record = json.loads(json.dumps({"findings": [each.record() for each in findings]}))
    assert findings_of(record) == tuple(findings)


@pytest.mark.parametrize(
    "damage",
    [
        "a sentence",
        {"kind": "note"},
        {"text": "x", "kind": "gossip"},
        {"text": "x", "verdict": "GREEN"},
        {"text": "x", "where": {"nodes": "n1"}},
        {"text": "x", "sentence": "y"},
    ],
)
def test_a_finding_that_is_damaged_is_refused(damage: Any) -> None:
    with pytest.raises(ValueError, match=r"expected .*, got "):
        findings_of({"findings": [damage]})


def test_what_is_empty_is_left_out_of_a_record() -> None:
    assert Finding(text="x").record() == {"text": "x", "kind": "note"}
    record = Finding(text="x", where=Where(node="n1", rail="rail0"), quantity=RATE).record()
    assert record["where"] == {"node": "n1", "rail": "rail0"}
    assert record["quantity"]["value"] == 100


@pytest.mark.parametrize(
    ("where", "words", "hosts"),
    [
        (Where(), "", ()),
        (Where(node="n17", rail="rail0", direction="transmit"), "n17 rail0 transmit", ("n17",)),
        (
            Where(node="leaf1", rail="port 9", peer="spine1 port 1"),
            "leaf1 port 9 - spine1 port 1",
            ("leaf1",),
        ),
        (Where(nodes=("n1", "n2")), "n1, n2", ("n1", "n2")),
    ],
)
def test_a_place_in_words(where: Where, words: str, hosts: tuple[str, ...]) -> None:
    assert (str(where), where.hosts) == (words, hosts)


def test_only_preflight_says_who_speaks_and_a_line_has_the_next_step() -> None:
    found = Finding(text="n1 runs at half", means="numbers are half", next_step="mend it")
    seen = Finding(text="n1 runs at half", kind=FindingKind.PREFLIGHT, quantity=RATE)
    assert texts_of([found, seen]) == ["n1 runs at half", "preflight: n1 runs at half"]
    assert found.line == "n1 runs at half: numbers are half; mend it"
    assert (found.reason, seen.reason) == ("n1 runs at half", "half")
