"""Links: what people write, and the rates of the specifications."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, ExitStatus, UnknownLinkError
from fabricproof.physics import ethernet_link, find_link, known_links

#: effective Gb/s of one lane, IBTA
LANE_RATES = {
    "SDR": 2,
    "DDR": 4,
    "QDR": 8,
    "FDR10": 10,
    "FDR": 13.6363636364,
    "EDR": 25,
    "HDR": 50,
    "NDR": 100,
    "XDR": 200,
}


@pytest.mark.parametrize("speed", LANE_RATES)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 12])
def test_infiniband_data_rate_of_every_speed_and_width(speed: str, lanes: int) -> None:
    link = find_link(f"{speed} {lanes}x")
    assert (link.technology, link.lanes) == ("infiniband", lanes)
    assert link.data_rate_gbit_s == pytest.approx(lanes * LANE_RATES[speed])
    assert link.data_rate_mb_s == pytest.approx(lanes * LANE_RATES[speed] * 125)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("FDR 4x", "FDR 4x"),
        ("4X FDR", "FDR 4x"),
        ("fdr", "FDR 4x"),
        ("FDR-4x", "FDR 4x"),
        ("fdr4x", "FDR 4x"),
        ("InfiniBand FDR", "FDR 4x"),
        ("IB 4X EDR", "EDR 4x"),
        ("FDR56", "FDR 4x"),
        ("FDR10", "FDR10 4x"),
        ("4x FDR10", "FDR10 4x"),
        ("FDR10 1x", "FDR10 1x"),
        ("QDR 4x", "QDR 4x"),
        ("QDR40", "QDR 4x"),
        ("12X QDR", "QDR 12x"),
        ("HDR", "HDR 4x"),
        ("HDR100", "HDR 2x"),
        ("HDR200", "HDR 4x"),
        ("HDR 2x", "HDR 2x"),
        ("NDR200", "NDR 2x"),
        ("NDR400", "NDR 4x"),
        ("XDR", "XDR 4x"),
        ("XDR800", "XDR 4x"),
        ("56 Gb/sec (4X FDR)", "FDR 4x"),
        ("40 Gb/sec (4X FDR10)", "FDR10 4x"),
        ("1GbE", "1GbE"),
        ("1gige", "1GbE"),
        ("Gigabit Ethernet", "1GbE"),
        ("2.5GbE", "2.5GbE"),
        ("40 GbE", "40GbE"),
        ("100GbE", "100GbE"),
        ("100G", "100GbE"),
        ("100 Gb/s Ethernet", "100GbE"),
        ("100 Gbps ethernet", "100GbE"),
        ("100 Gbit/s Ethernet", "100GbE"),
        ("Ethernet 100", "100GbE"),
        ("Ethernet 100G", "100GbE"),
        ("10G Ethernet", "10GbE"),
        ("1.6TbE", "1600GbE"),
        ("0.4GbE", "400MbE"),
        ("400MbE", "400MbE"),
        ("100 Mb/s Ethernet", "100MbE"),
        ("Ethernet 400 Mb/s", "400MbE"),
        ("Omni-Path 100", "Omni-Path 100"),
        ("OPA", "Omni-Path 100"),
        ("opa100", "Omni-Path 100"),
        ("CN5000", "CN5000"),
        ("Slingshot 200", "Slingshot 200"),
        ("slingshot-11", "Slingshot 200"),
        ("EFA 100", "EFA 100"),
        ("EFA 50", "EFA 50"),
        ("efa150", "EFA 150"),
        ("EFA 12.5 Gb/s", "EFA 12.5"),
        ("BXI", "BXI v2"),
        ("BXI v2", "BXI v2"),
    ],
)
def test_the_ways_people_write_a_link(text: str, name: str) -> None:
    assert find_link(text).name == name
    assert find_link(f"  {text.upper()} ") == find_link(text.lower())


@pytest.mark.parametrize("name", known_links())
def test_every_known_name_finds_itself_and_has_a_positive_rate_and_a_source(name: str) -> None:
    link = find_link(name)
    assert link.name == name
    assert link.data_rate_gbit_s > 0
    assert link.data_rate_gbit_s <= link.lanes * link.line_rate_gbit_s
    assert len(link.source) > 12
    assert link.formula.endswith("/ 8")


@pytest.mark.parametrize(
    ("name", "mb_s"),
    [
        ("QDR 4x", 4000),
        ("FDR10 4x", 5000),
        ("FDR 4x", 6818.18),
        ("1GbE", 125),
        ("40GbE", 5000),
        ("100GbE", 12500),
        ("Omni-Path 100", 12500),
        ("CN5000", 50000),
        ("Slingshot 200", 25000),
        ("BXI v2", 11.64153 * 1024**3 / 1e6),
    ],
)
def test_published_link_ceilings(name: str, mb_s: float) -> None:
    assert find_link(name).data_rate_mb_s == pytest.approx(mb_s, rel=1e-5)


def test_the_formula_can_be_followed() -> None:
    assert find_link("FDR").formula == "4 x 14.0625 Gb/s x 64/66 / 8"
    assert find_link("400MbE").formula == "0.4 Gb/s / 8"


@pytest.mark.parametrize(
    "text",
    ["", " ", "FDR 5x", "FDRX", "foo", "IB", "InfiniBand", "4x", "0GbE", "0 Mb/s Ethernet", "-1GbE",
     "4x FDR 4x", "HDR 150", "FDR 10", "100 MB/s", "100 GB/s Ethernet", "1e3GbE",
     "Ethernet", "FDR\nQDR", "9" * 400 + "GbE"],
)  # fmt: skip
def test_an_unknown_link_is_refused(text: str) -> None:
    with pytest.raises(UnknownLinkError):
        find_link(text)


def test_the_refusal_says_what_was_got_what_is_near_and_what_there_is() -> None:
    with pytest.raises(UnknownLinkError) as caught:
        find_link("FDR 5x")
    message = str(caught.value)
    assert "got 'FDR 5x'" in message
    assert "nearest known: 'FDR" in message
    for word in ("SDR", "XDR", "12x", "800GbE", "Omni-Path 100", "Slingshot 200", "EFA 100", "BXI"):
        assert word in message
    assert isinstance(caught.value, ConfigError)
    assert caught.value.exit_status is ExitStatus.CONFIG


@given(st.floats(min_value=1e-3, max_value=1e5).map(lambda rate: float(f"{rate:.6g}")))
def test_any_positive_ethernet_rate_is_a_link_and_its_name_finds_it(rate: float) -> None:
    link = ethernet_link(rate)
    assert link.data_rate_gbit_s == pytest.approx(rate)
    assert find_link(link.name).data_rate_gbit_s == pytest.approx(rate)


@pytest.mark.parametrize("rate", [0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UnknownLinkError):
        ethernet_link(rate)


@given(st.text(max_size=30))
def test_any_text_is_a_link_or_an_unknown_link(text: str) -> None:
    try:
        link = find_link(text)
    except UnknownLinkError:
        return
    assert link.data_rate_mb_s > 0


def test_a_device_of_efa_has_any_rate() -> None:
    """Hpc7a has two cards of 150 Gb/s, some instances one of 25 or 50."""
    link = find_link("EFA 150")
    assert (link.technology, link.data_rate_mb_s) == ("efa", 18750)
    assert find_link("EFA 200") is known_links()["EFA 200"]
    for text in ("EFA 0", "EFA -50", "EFA 50 Mb/s", "EFA 50 GB/s"):
        with pytest.raises(UnknownLinkError, match="EFA of any other rate"):
            find_link(text)
