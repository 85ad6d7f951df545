"""What a quantity is judged by: one record, refused rather than guessed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, UnitError
from fabricproof.core.measure import Verdict
from fabricproof.core.units import convert
from fabricproof.physics import Fabric, bound, find_link
from fabricproof.rfm.handover import bounds
from fabricproof.verdict.references import from_text
from fabricproof.verdict.value import (
    DEFAULT_LATENCY_TOLERANCE,
    DEFAULT_TOLERANCE,
    Judgement,
    Reference,
    around,
    at_least,
    at_most,
    from_ceiling,
)

MAKERS = [at_least, at_most]


def test_each_kind_has_its_bounds() -> None:
    made = at_least(1000.0, tolerance=0.1, origin="x")
    assert (made.lower, made.upper, made.unit) == (900.0, None, "MB/s")
    made = at_most(10.0, tolerance=0.2, origin="x")
    assert (made.lower, made.upper, made.unit) == (None, 12.0, "us")
    made = around(2.0, unit="1", tolerance=0.1, origin="x")
    assert (made.lower, made.upper) == (pytest.approx(1.8), pytest.approx(2.2))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_bound_that_nothing_could_cross_is_refused(maker: object, value: float) -> None:
    with pytest.raises(ConfigError, match="impossible reference"):
        maker(value, origin="x")  # type: ignore[operator]


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, 1.5, math.nan, math.inf])
def test_a_tolerance_that_passes_anything_is_refused(tolerance: float) -> None:
    with pytest.raises(ConfigError, match="impossible tolerance"):
        at_least(1.0, tolerance=tolerance, origin="x")


@pytest.mark.parametrize("tolerance", [-0.1, math.nan, math.inf])
def test_a_latency_may_be_more_than_doubled_but_not_endless(tolerance: float) -> None:
    assert at_most(1.0, tolerance=2.0, origin="x").upper == 3.0
    with pytest.raises(ConfigError, match="impossible tolerance"):
        at_most(1.0, tolerance=tolerance, origin="x")


@pytest.mark.parametrize(
    ("text", "name", "value", "unit"),
    [
        ("3.4 GB/s", "bandwidth", 3400.0, "MB/s"),
        ("27.2 Gb/s", "bandwidth", 3400.0, "MB/s"),
        ("60 us", "latency", 60.0, "us"),
        ("latency_0B=0.06 ms", "latency_0B", 60.0, "us"),
        ("bandwidth_4MiB=116 MB/s", "bandwidth_4MiB", 116.0, "MB/s"),
        ("bandwidth_4194304=116 MB/s", "bandwidth_4MiB", 116.0, "MB/s"),
        ("bandwidth = 21 GB/s", "bandwidth", 21000.0, "MB/s"),
    ],
)
def test_text_becomes_a_reference_in_the_judges_unit(
    text: str, name: str, value: float, unit: str
) -> None:
    found, made = from_text(text, tolerance=None, origin="x")
    assert (found, made.unit) == (name, unit)
    assert made.value == pytest.approx(value)
    expected = DEFAULT_LATENCY_TOLERANCE if unit == "us" else DEFAULT_TOLERANCE
    assert made.tolerance == expected


UNAPPLIED = {
    UnitError: ("3.4", "bandwidth=3.4", "4 KiB", "10 %", "bandwidth_big=3 GB/s"),
    ConfigError: (
        "latency=3 GB/s", "bandwidth=3 us", "speed=3 GB/s", "message_rate=3 GB/s", "0 GB/s",
        "-3 GB/s", "bandwidth=0.9 x", "mpi_share=3 GB/s", "mpi_share=0 x"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"), [(text, error) for error, texts in UNAPPLIED.items() for text in texts]
)
def test_a_reference_that_could_never_be_applied_is_refused(
    text: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        from_text(text, tolerance=None, origin="x")


@given(st.sampled_from(["MB/s", "GB/s", "GiB/s", "Gb/s", "B/s"]), st.floats(1.0, 1e4))
def test_the_unit_of_a_reference_does_not_matter(unit: str, megabytes: float) -> None:
    text = f"{convert(megabytes, 'MB/s', unit):.12f} {unit}"
    _, made = from_text(text, tolerance=0.1, origin="x")
    assert made.value == pytest.approx(megabytes, rel=1e-6)


def test_physics_gives_its_conservative_end_and_says_what_binds() -> None:
    ceiling = bound(Fabric(link=find_link("FDR 4x")))
    made = from_ceiling(ceiling)
    assert (made.value, made.origin) == (ceiling.low_mb_s, "physics: the link binds")
    limited = bound(Fabric(link=find_link("100GbE"), flow_limit_gbit_s=10))
    assert from_ceiling(limited).origin == "declared: the flow limit binds"


def _judged(by: Reference, ceiling: float | None = None) -> Judgement:
    return Judgement(
        name="x", value=by.value, unit=by.unit, message_size=None, verdict=Verdict.PASS, reason="",
        reference=by.value, lower=by.lower, upper=by.upper, ceiling=ceiling,
    )  # fmt: skip


def test_reframe_gets_fractions_and_the_unit_of_the_number() -> None:
    made = at_least(2000.0, tolerance=0.1, origin="x")
    value, lower, upper, unit = bounds(_judged(made, ceiling=2500.0))
    assert (value, unit) == (2000.0, "MB/s")
    assert lower == pytest.approx(-0.1)
    # A clock may be 300 ppm fast, and the last digit is rounded.
    assert upper == pytest.approx(0.2503775)


def test_reframe_gets_no_bound_that_was_not_stated() -> None:
    made = at_most(10.0, tolerance=0.5, origin="x")
    for floor in (None, 2.0):  # the floor of a time is no upper bound
        assert bounds(_judged(made, ceiling=floor))[1:3] == (None, pytest.approx(0.5))
    tight = at_least(2000.0, tolerance=0.1, origin="x")
    assert bounds(_judged(tight))[1:3] == (pytest.approx(-0.1), None)


def test_a_share_of_mpi_is_a_fraction_and_the_only_one() -> None:
    name, made = from_text("mpi_share=0.9 x", tolerance=0.05, origin="site")
    assert (name, made.value, made.unit) == ("mpi_share", 0.9, "x")
    assert made.lower == pytest.approx(0.855)
    _, percent = from_text("mpi_share=90 %", tolerance=None, origin="site")
    assert percent.value == pytest.approx(0.9)
