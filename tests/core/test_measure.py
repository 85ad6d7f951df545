"""Records and the order of verdicts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.measure import BADNESS, COLUMNS, Table, Verdict, unit_of_column, worst
from fabricproof.core.units import UNITS

verdicts = st.lists(st.sampled_from(list(Verdict)))


def test_of_nothing_the_worst_is_unjudged() -> None:
    assert worst([]) is Verdict.UNJUDGED


@given(verdicts)
def test_the_order_of_verdicts_does_not_matter(given_: list[Verdict]) -> None:
    assert worst(given_) is worst(given_[::-1])
    assert worst(given_) is worst(sorted(given_))


@given(verdicts, verdicts)
def test_worst_of_two_halves_is_worst_of_all(one: list[Verdict], other: list[Verdict]) -> None:
    if one and other:
        assert worst([worst(one), worst(other)]) is worst(one + other)


@given(verdicts)
def test_only_passes_and_skips_make_a_pass(given_: list[Verdict]) -> None:
    green = Verdict.PASS in given_ and set(given_) <= {Verdict.PASS, Verdict.SKIPPED}
    assert (worst(given_) is Verdict.PASS) == green


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([Verdict.PASS, Verdict.SKIPPED], Verdict.PASS),
        ([Verdict.SKIPPED], Verdict.SKIPPED),
        ([Verdict.PASS, Verdict.UNJUDGED], Verdict.UNJUDGED),
        ([Verdict.FAIL, Verdict.MISSING], Verdict.FAIL),
        ([Verdict.FAIL, Verdict.INVALID], Verdict.INVALID),
    ],
)
def test_the_worst(given_: list[Verdict], expected: Verdict) -> None:
    assert worst(given_) is expected


def test_every_verdict_has_its_place() -> None:
    assert set(BADNESS) == set(Verdict)


def test_every_column_has_a_known_unit() -> None:
    assert {unit for unit in COLUMNS.values() if unit} <= set(UNITS)


@pytest.mark.parametrize(
    ("column", "unit"),
    [("latency_p1_us", "us"), ("latency_p999_us", "us"), ("bandwidth_p25_mb_s", "MB/s")],
)
def test_any_percentile_is_a_column(column: str, unit: str) -> None:
    assert unit_of_column(column) == unit


@pytest.mark.parametrize("column", ["latency_p_us", "latency_p50_mb_s", "latency_px_us", "entropy"])
def test_no_other_name_is_a_column(column: str) -> None:
    assert unit_of_column(column) is None


def test_a_column_is_looked_up_by_name_and_nothing_is_guessed() -> None:
    table = Table(
        suite="osu",
        program="osu_bw",
        version=None,
        columns=("message_size", "bandwidth_mb_s"),
        rows=((1, 0.5), (2, 1.0)),
        source="x",
        line=1,
        row_lines=(2, 3),
    )
    assert table.column("bandwidth_mb_s") == (0.5, 1.0)
    with pytest.raises(KeyError, match="latency_us"):
        table.column("latency_us")
    with pytest.raises(FrozenInstanceError):
        table.rows = ()  # type: ignore[misc]
