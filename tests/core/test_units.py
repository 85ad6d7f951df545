"""Units convert exactly or refuse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import UnitError
from fabricproof.core.units import (
    ALIASES,
    UNITS,
    canonical_unit,
    convert,
    dimension,
    first_few,
    natural,
    parse_quantity,
    parse_size,
    size_label,
    split_quantity,
)


@pytest.mark.parametrize(
    ("value", "unit", "to", "expected"),
    [
        (3.4, "GB/s", "MB/s", 3400.0),
        (100, "Gb/s", "MB/s", 12500.0),
        (11.64153, "GiB/s", "GB/s", 12.5),
        (25.4, "Gbits/sec", "MB/s", 3175.0),
        (1, "ms", "us", 1000.0),
        (0.5, "µs", "ns", 500.0),
        (4, "MiB", "B", 4194304.0),
        (10, "%", "1", 0.1),
    ],
)
def test_known_conversions(value: float, unit: str, to: str, expected: float) -> None:
    assert convert(value, unit, to) == pytest.approx(expected, rel=1e-6)


@given(
    st.sampled_from(sorted(UNITS)),
    st.sampled_from(sorted(UNITS)),
    st.floats(min_value=1e-6, max_value=1e9),
)
def test_there_and_back_is_the_same_or_refused(one: str, other: str, value: float) -> None:
    if dimension(one) != dimension(other):
        with pytest.raises(UnitError, match="cannot convert"):
            convert(value, one, other)
    else:
        assert convert(convert(value, one, other), other, one) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_every_alias_leads_to_a_unit(alias: str) -> None:
    assert canonical_unit(alias) in UNITS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.4 GB/s", (3.4, "GB/s")),
        ("3,400 MB/s", (3400.0, "MB/s")),
        ("1,234,567.5 B", (1234567.5, "B")),
        (" 1e3us ", (1000.0, "us")),
        (".5 us", (0.5, "us")),
        ("60 usec", (60.0, "us")),
        ("3.4 GB/sec", (3.4, "GB/s")),
        ("3.4 GBytes/s", (3.4, "GB/s")),
        ("3400 MBps", (3400.0, "MB/s")),
        ("27 Gb/sec", (27.0, "Gb/s")),
        ("-3 us", (-3.0, "us")),
    ],
)
def test_quantities_are_read(text: str, expected: tuple[float, str]) -> None:
    assert split_quantity(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3.4",
        "GB/s",
        "fast",
        "3,4 GB/s",
        "12,34 GB/s",
        "1 000 MB/s",
        "1e400 GB/s",
        "nan GB/s",
        "inf GB/s",
        "3.4 GBps/s",
        "3.4 furlongs",
        "3..4 GB/s",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(UnitError) as refused:
        split_quantity(text)
    assert refused.value.expected is not None
    assert refused.value.got is not None


def test_an_unknown_unit_lists_the_known_ones() -> None:
    with pytest.raises(UnitError, match=r"expected one of .*GB/s.*, got 'Gb'"):
        split_quantity("3 Gb")


def test_a_time_is_no_bandwidth() -> None:
    with pytest.raises(UnitError, match="cannot convert time to bandwidth"):
        parse_quantity("3 us", "MB/s")


@given(st.integers(min_value=0, max_value=2**50))
def test_size_labels_are_read_back(size: int) -> None:
    assert parse_size(size_label(size)) == size


@pytest.mark.parametrize(
    ("size", "label"), [(0, "0B"), (8, "8B"), (1536, "1536B"), (65536, "64KiB"), (4 << 20, "4MiB")]
)
def test_size_labels(size: int, label: str) -> None:
    assert size_label(size) == label


@pytest.mark.parametrize("text", ["4MB/s", "1.5B", "-4KiB", "²", "big", "4 us", "1e400KiB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_size(text)


def test_a_plain_number_is_bytes() -> None:
    assert parse_size(" 4096 ") == 4096


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(sorted(UNITS)))
def test_whatever_is_read_is_finite(value: float, unit: str) -> None:
    try:
        number, _ = split_quantity(f"{value} {unit}")
    except UnitError:
        return
    assert math.isfinite(number)


def test_names_are_in_the_order_of_their_numbers() -> None:
    names = ["n10", "n2", "rack1-n3", "rack1-n12", "n", "2x", "leaf2 port 9", "leaf2 port 10"]
    assert sorted(names, key=natural) == [
        *("2x", "leaf2 port 9", "leaf2 port 10", "n", "n2", "n10", "rack1-n3", "rack1-n12")
    ]


@given(st.lists(st.text(alphabet="n09-\u00b2\u0663", max_size=9)))
def test_unlike_names_have_unlike_places(names: list[str]) -> None:
    unlike = {*names, "n" + "9" * 5000}
    assert len(set(map(natural, unlike))) == len(unlike)


def test_the_first_few_and_how_many_more() -> None:
    assert first_few([]) == ""
    assert first_few("abcd") == "a, b, c, d"
    assert first_few("abcde") == "a, b, c, d and 1 more"
    assert first_few("abc", 1, " legs", "; ") == "a and 2 more legs"
    assert first_few("abc", 2, between="; ") == "a; b and 1 more"
