"""Soft-RoCE: a software device is judged as one, and stands for no adapter; nor the other way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_nodes import changed, fabric, hindered, nodes, of, recorded, without, written

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine, ReadTroubleKind, Value
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.nodes.preflight.sight import Preflight
from fabricproof.physics import soft_path_mtu
from fabricproof.site.schema import FabricSpec

RAILS = [{"interface": "rxe0:1"}, {"interface": "rxe1:1"}]
SOFT = fabric(
    link="Soft-RoCE 100 Mb/s", protocol="rocev2", mtu=4096, shaper={"burst_bytes": 9000},
    rails=RAILS,
)  # fmt: skip
#: without a shaper: the rate was measured
MEASURED = fabric(link="Soft-RoCE 100 Mb/s", rails=[{"interface": "rxe0:1"}])


def guest(node: str = "vc1") -> Machine:
    return recorded("soft-roce", node)


def look(machine: Machine, spec: FabricSpec = SOFT) -> Preflight:
    return preflight(spec, nodes(machine))


def test_two_guests_as_their_site_declares_them() -> None:
    result = preflight(SOFT, nodes(guest("vc1"), guest("vc2")))
    assert result.verdict is Verdict.PASS, [each.reason for each in result.findings]
    assert {each.fact for each in result.findings} == {*("state", "device", "rate", "mtu", "fleet")}
    rate = of(result, "vc1.rate", "rxe0:1").quantity
    assert (rate.value, rate.unit) == (100.0, "Mb/s")
    assert of(result, "vc1.device", "rxe0:1").reason == ("rxe0:1 on vc1 is Soft-RoCE over rail0")
    # the rate in sysfs is told once a rail and judges nothing
    told = [each.text for each in result.notes if "sysfs" in each.text]
    assert told == [
        f"{rail} says '2.5 Gb/sec (1X SDR)' in sysfs, which the kernel makes up for a software "
        "device: not judged"
        for rail in ("rxe0:1", "rxe1:1")
    ]


@pytest.mark.parametrize(
    ("link", "verdict"),
    [("Soft-RoCE 80 Mb/s", Verdict.PASS), ("Soft-RoCE 100 Mb/s", Verdict.FAIL),
     ("Soft-RoCE 50 Mb/s", Verdict.FAIL), ("100MbE", Verdict.FAIL)],
)  # fmt: skip
def test_a_recorded_guest_against_what_a_site_may_say_of_it(link: str, verdict: Verdict) -> None:
    spec = fabric(
        link=link, protocol="rocev2", mtu=4096, shaper={"burst_bytes": 66000}, rails=RAILS
    )
    machines = nodes(recorded("soft-roce-guest", "vc1"), recorded("soft-roce-guest", "vc2"))
    result = preflight(spec, machines)
    assert result.verdict is verdict
    assert "device" in {each.fact for each in result.findings}


@pytest.mark.parametrize(
    ("link", "protocol"),
    [("EDR 4x", None), ("SDR 1x", None), ("100GbE", "rocev2"), ("100MbE", "rocev2"),
     ("2.5GbE", "rocev2")],
)  # fmt: skip
def test_a_software_device_is_no_adapter_whatever_its_rate_in_sysfs_says(
    link: str, protocol: str | None
) -> None:
    spec = fabric(link=link, protocol=protocol, rails=RAILS)
    found = of(look(guest(), spec), "vc1.device", "rxe0:1")
    assert found.verdict is Verdict.FAIL
    assert found.reason == (
        "rxe0:1 on vc1 is Soft-RoCE over rail0: the kernel's software, no HCA, and the site "
        f'declares {link}: state link = "Soft-RoCE ..." with the rate that rail0 is shaped to, or '
        "name the HCA's port"
    )
    # said by the benchmarks that use the rail too, and no rate that means nothing beside it
    assert texts_of(look(guest(), spec).warnings(["rxe0:1"], ["vc1"])) == [
        "preflight: rxe0:1 on vc1 is Soft-RoCE over rail0: the kernel's software, no HCA"
    ]
    assert not [each for each in look(guest(), spec).findings if each.fact == "rate"]


@pytest.mark.parametrize(("name", "port"), [("mlx5-healthy", "mlx5_0:1"), ("hfi1", "hfi1_0:1")])
def test_an_adapter_is_no_software_device(name: str, port: str) -> None:
    spec = fabric(link="Soft-RoCE 100 Gb/s", rails=[{"interface": port}])
    found = of(look(recorded(name, "n1"), spec), "n1.device")
    assert found.verdict is Verdict.FAIL
    assert found.reason.startswith(f"{port} on n1 is no Soft-RoCE device (")
    assert "the site declares Soft-RoCE 100 Gb/s" in found.reason
    assert look(recorded(name, "n1"), spec).verdict is Verdict.FAIL


@pytest.mark.parametrize("name", ["mlx5-healthy", "bnxt-healthy", "virtual-cluster"])
def test_nothing_is_said_of_software_where_there_is_none(name: str) -> None:
    port = {"mlx5-healthy": "mlx5_0:1", "bnxt-healthy": "enp97s0f0np0"}.get(name, "rail0")
    link = {"mlx5-healthy": "HDR 4x", "bnxt-healthy": "25GbE"}.get(name, "200MbE")
    result = look(recorded(name, "n1"), fabric(link=link, rails=[{"interface": port}]))
    assert {each.fact for each in result.findings} == {"state", "rate"}


def test_two_devices_over_one_interface_are_red() -> None:
    """Alike on both nodes, so that no mixed fleet tells."""
    both = [changed(guest(node), "port rxe1:1", parent="rail0") for node in ("vc1", "vc2")]
    result = preflight(SOFT, nodes(*both))
    assert result.verdict is Verdict.FAIL
    red = [each for each in result.findings if each.verdict is not Verdict.PASS]
    assert {(each.where.rail, each.quantity.name) for each in red} == {
        (rail, f"{node}.wire") for rail in ("rxe0:1", "rxe1:1") for node in ("vc1", "vc2")
    }
    found = of(result, "vc2.wire", "rxe1:1")
    assert found.reason.startswith(
        "rxe0:1 and rxe1:1 on vc2 are over one interface: rail0 below them carries all"
    )
    assert texts_of(result.warnings(["rxe1:1"], ["vc1"])) == [
        "preflight: rxe0:1 and rxe1:1 on vc1 are over one interface"
    ]
    # a fabric of one of them is one rail
    assert look(both[0], MEASURED).verdict is not Verdict.FAIL


def test_a_slowed_rail_below_is_red_and_no_other() -> None:
    slow = changed(guest("vc2"), "interface rail1", shaped_to_mbit_s=80)
    result = preflight(SOFT, nodes(guest("vc1"), slow))
    found = of(result, "vc2.rate", "rxe1:1")
    assert (found.verdict, found.quantity.value) == (Verdict.FAIL, 80.0)
    assert of(result, "vc2.rate", "rxe0:1").verdict is Verdict.PASS
    assert of(result, "vc1.rate", "rxe1:1").verdict is Verdict.PASS


@given(st.integers(min_value=1, max_value=400))
def test_a_shaped_rail_passes_only_within_three_percent(mbit_s: int) -> None:
    machine = changed(guest(), "interface rail0", shaped_to_mbit_s=mbit_s)
    found = of(look(machine), "vc1.rate", "rxe0:1")
    assert found.verdict is (Verdict.PASS if 97 <= mbit_s <= 103 else Verdict.FAIL)


def test_a_rate_that_was_measured_is_unjudged_until_the_site_says_so() -> None:
    bare = changed(guest(), "interface rail0", shaped_to_mbit_s=None)
    said = fabric(
        link="Soft-RoCE 100 Mb/s", rails=[{"interface": "rxe0:1"}], expect={"not_told": ["rate"]}
    )
    result = look(bare, said)
    assert result.verdict is Verdict.PASS
    assert any("nothing shapes rail0" in each.text for each in result.notes)


@given(st.integers(min_value=68, max_value=65535))
def test_a_path_mtu_leaves_room_for_the_headers_and_none_larger_would(mtu: int) -> None:
    # seen in a guest: 4200 gives 4096; rdma_rxe over the usual 1500 gives 1024
    assert (soft_path_mtu(4200), soft_path_mtu(1500), soft_path_mtu(300)) == (4096, 1024, None)
    path = soft_path_mtu(mtu)
    if path is None:
        assert mtu < 256 + 80
    else:
        assert path + 80 <= mtu
        assert path == 4096 or 2 * path + 80 > mtu


def test_devices_of_one_name_over_unlike_interfaces_are_a_mixed_fleet() -> None:
    other = changed(guest("vc2"), "port rxe0:1", parent="rail1")
    found = of(preflight(SOFT, nodes(guest("vc1"), other)), "fleet", "rxe0:1")
    assert found.verdict is Verdict.FAIL
    assert "interface below rail0 on vc1" in found.reason


def test_a_node_with_an_adapter_among_nodes_with_software_is_red() -> None:
    real = written("vc2", {"port rxe0:1": {"state": "ACTIVE", "driver": "mlx5_core", "mtu": 4096}})
    result = preflight(MEASURED, nodes(guest("vc1"), real))
    assert of(result, "vc2.device").verdict is Verdict.FAIL
    assert of(result, "fleet").verdict is Verdict.FAIL


def port(machine: Machine | None = None, **facts: Value) -> Machine:
    return changed(machine or guest(), "port rxe0:1", **facts)


def below(machine: Machine | None = None, **facts: Value) -> Machine:
    """Return the guest with another rail0, below its rxe0."""
    return changed(machine or guest(), "interface rail0", **facts)


BARE = below(shaped_to_mbit_s=None)
NO_RAIL0 = without(guest(), "interface rail0")
ON_RAIL0 = fabric(link="Soft-RoCE 100 Mb/s", rails=[{"interface": "rail0"}])


@pytest.mark.parametrize(
    ("machine", "spec", "what", "verdict", "words"),
    [
        (guest(), ON_RAIL0, "device", Verdict.FAIL, "no Soft-RoCE device (an interface, virtio_n"),
        (below(shaped_to_mbit_s=80), SOFT, "rate", Verdict.FAIL, "rail0 below it is shaped so"),
        (BARE, SOFT, "rate", Verdict.FAIL, "declares a shaper, and rail0 below it has none"),
        (BARE, MEASURED, "rate", Verdict.UNJUDGED, 'not_told = ["rate"]'),
        (below(BARE, speed_mbit_s=40000, driver="i40e"), MEASURED, "rate", Verdict.UNJUDGED, ""),
        (below(BARE, speed_mbit_s=10, driver="i40e"), MEASURED, "rate", Verdict.FAIL, "its driver"),
        # what a virtual interface says of its speed is a word
        (below(BARE, speed_mbit_s=10), MEASURED, "rate", Verdict.UNJUDGED, ""),
        (hindered(BARE, ReadTroubleKind.NO_TOOL, "tc"), SOFT, "rate", Verdict.UNJUDGED, "with tc"),
        (hindered(BARE, ReadTroubleKind.NO_ANSWER, "tc qdisc show"), SOFT, "rate",
         Verdict.UNJUDGED, "with tc qdisc show"),
        (hindered(BARE, ReadTroubleKind.CUT_OFF, "addresses"), SOFT, "rate", Verdict.UNJUDGED,
         "with addresses"),
        (NO_RAIL0, SOFT, "rate", Verdict.UNJUDGED, ""),
        (port(parent=None), SOFT, "rate", Verdict.UNJUDGED, ""),
        (port(parent=None), SOFT, "device", Verdict.PASS, ""),
        (port(below(mtu=1500), mtu=1024), SOFT, "mtu", Verdict.FAIL, "of which 1024 is left"),
        # where no tool says the MTU, it follows from the interface
        (port(mtu=None), SOFT, "mtu", Verdict.PASS, ""),
        (port(below(mtu=1500), mtu=None), SOFT, "mtu", Verdict.FAIL, ""),
        (port(NO_RAIL0, mtu=None), SOFT, "mtu", Verdict.UNJUDGED, ""),
        (port(below(state="down"), state="DOWN", phys_state="Disabled"), SOFT, "state",
         Verdict.FAIL, "is down (DOWN): rail0 below it is down: ip link set rail0 up"),
        (below(state="down"), SOFT, "state", Verdict.FAIL, "rail0 below it is down"),
        (without(guest(), "port rxe0:1"), SOFT, "state", Verdict.FAIL, "type rxe netdev INTERFACE"),
    ],
)  # fmt: skip
def test_a_software_device_is_judged_with_what_is_below_it(
    machine: Machine, spec: FabricSpec, what: str, verdict: Verdict, words: str
) -> None:
    rail = "rail0" if spec is ON_RAIL0 else "rxe0:1"
    found = of(look(machine, spec), f"vc1.{what}", rail)
    assert found.verdict is verdict
    assert words in found.reason
