"""Traffic that takes another path than the one that is judged, and devices that are others.

Opt in: ``pytest -m rdma`` with a cluster of guests up (FABRICPROOF_VCLUSTER names it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rdma_session import ROOT, SITE, TEST_SECONDS, Session, by_path, port_bytes, told_bytes

pytestmark = [pytest.mark.rdma, pytest.mark.timeout(TEST_SECONDS)]

Legs = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def detours(session: Session) -> list[dict[str, Any]]:
    """Run UCX and libfabric on each of their detours."""
    status, legs = session.run("DetoursOfUcx|DetourOfLibfabric")
    assert status == 3
    return legs


@pytest.fixture(scope="session")
def ucx(detours: list[dict[str, Any]]) -> Legs:
    """Give UCX's detours, by path."""
    return by_path(detours, "DetoursOfUcx")


@pytest.mark.parametrize(
    ("net_path", "words"),
    [
        ("rxe0:1.tcp_rail0", "traffic went over TCP on rail0 (the interface under rxe0): UCX"),
        ("rxe0:1.tcp_mgmt0", "traffic went over TCP on mgmt0: UCX"),
        ("rxe0:1.other_rail", "traffic took another path"),
    ],
)
def test_ucx_on_another_path_is_invalid_and_the_path_is_named(
    net_path: str, words: str, ucx: Legs
) -> None:
    leg = ucx[net_path]
    assert leg["verdict"] == "INVALID"
    assert words in leg["reason"]


def test_traffic_over_tcp_left_the_device_at_rest_and_the_interface_below_it_busy(
    ucx: Legs,
) -> None:
    """The interface under rxe0 is rail0: only the device's own counters tell the two apart."""
    leg = ucx["rxe0:1.tcp_rail0"]
    due = told_bytes(leg)
    assert port_bytes(leg, "rxe0:1")[0] < 0.02 * due
    assert leg["nodes"] == ["vc1", "vc2"]


def test_the_wrong_rail_is_named_with_its_bytes(ucx: Legs) -> None:
    leg = ucx["rxe0:1.other_rail"]
    assert "rxe1:1 sent" in leg["reason"]
    assert "rxe0:1 sent 0.0 MB" in leg["reason"]
    assert port_bytes(leg, "rxe1:1")[0] >= told_bytes(leg)


def test_one_rail_where_two_are_measured_is_invalid_and_the_idle_one_is_named(ucx: Legs) -> None:
    leg = ucx["rxe0:1+rxe1:1.one_rail"]
    assert leg["verdict"] == "INVALID"
    idle = min(("rxe0:1", "rxe1:1"), key=lambda rail: port_bytes(leg, rail)[0])
    assert f"{idle} carried" in leg["reason"]
    assert "this is not a 2-rail number" in leg["reason"]


def test_libfabric_over_tcp_is_invalid_and_named(detours: list[dict[str, Any]]) -> None:
    (leg,) = by_path(detours, "DetourOfLibfabric").values()
    assert (leg["stack"], leg["verdict"]) == ("intelmpi", "INVALID")
    assert "traffic went over TCP on rail0 (the interface under rxe0)" in leg["reason"]


#: the rails of the cluster, declared as what they are not
EDR = """
[[fabrics]]
name = "edr"
link = "EDR 4x"
protocol = "ib"
transport = "ucx"
rails = [{ interface = "rxe0:1" }, { interface = "rxe1:1" }]

[[fabrics]]
name = "roce100"
link = "100GbE"
protocol = "rocev2"
transport = "ucx"
rails = [{ interface = "rxe0:1" }, { interface = "rxe1:1" }]
"""


def test_a_soft_device_that_the_site_calls_an_adapter_is_invalid(
    session: Session, copied_site: Path
) -> None:
    """Not FAIL, as a slow adapter would be: there is none."""
    text = (ROOT / "site-configs" / SITE / "site.toml").read_text()
    (copied_site / "site.toml").write_text(
        text.replace('fabrics = ["roce0"]', 'fabrics = ["edr", "roce100"]')
    )
    (copied_site / "fabric.toml").write_text(EDR)
    status, legs = session.run("ShortWrite", site=str(copied_site))
    assert status == 3
    assert {(leg["link"], leg["verdict"]) for leg in legs} == {
        ("EDR 4x", "INVALID"),
        ("100GbE", "INVALID"),
    }
    for leg in legs:
        assert f"measured on Soft-RoCE, judged as {leg['link']}" in leg["reason"]
        assert "rxe0:1 on vc" in leg["reason"]
