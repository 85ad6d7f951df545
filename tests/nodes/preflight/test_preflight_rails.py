"""Rails that are missing, down, slow or of the wrong MTU, on recorded and on written nodes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_nodes import VIRTUAL, changed, fabric, hindered, nodes, of, recorded, without, written

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine, ReadTroubleKind, Value
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.physics import find_link
from fabricproof.site.schema import FabricSpec
from vcluster.rails.shaping import node_commands

VC = FabricSpec.model_validate(VIRTUAL)
XL710 = fabric(link="40GbE", protocol="tcp", rails=[{"interface": "eth40"}])


def _virtual(node: str = "vc1") -> Machine:
    return recorded("virtual-cluster", node)


def _port(node: str = "n1", **facts: Value) -> Machine:
    part: dict[str, Value] = {"state": "ACTIVE", "layer": "InfiniBand", **facts}
    return written(node, {"port mlx4_0:1": part})


def _eth(node: str = "n1", name: str = "eth40", **facts: Value) -> Machine:
    part: dict[str, Value] = {"kind": "ethernet", "driver": "i40e", "state": "up", **facts}
    return written(node, {f"interface {name}": {"pci": "0000:81:00.0", **part}})


def test_the_recorded_virtual_cluster_is_as_its_site_declares_it() -> None:
    result = preflight(VC, nodes(_virtual("vc1"), _virtual("vc2")))
    assert result.verdict is Verdict.PASS
    assert {each.where.rail for each in result.findings} == {"rail0", "rail1"}
    assert {each.fact for each in result.findings} == {"state", "rate", "mtu", "fleet"}
    assert result.notes == ()
    assert result.warnings(["rail0", "rail1"], ["vc1", "vc2"]) == ()


def test_a_veth_is_judged_by_its_shaper_and_not_by_the_speed_that_it_says() -> None:
    slow = changed(_virtual("vc2"), "interface rail1", shaped_to_mbit_s=100)
    result = preflight(VC, nodes(_virtual(), slow))
    found = of(result, "vc2.rate", "rail1")
    assert (found.verdict, found.quantity.value, found.quantity.unit) == (
        Verdict.FAIL,
        100.0,
        "Mb/s",
    )
    assert found.text == "rail1 on vc2 runs at 100 of 200 Mb/s"
    assert "shaper (tc qdisc)" in found.reason
    assert of(result, "vc2.rate", "rail0").verdict is Verdict.PASS
    assert texts_of(result.warnings(["rail1"], ["vc1", "vc2"])) == [f"preflight: {found.text}"]
    assert result.warnings(["rail0"], ["vc1", "vc2"]) == ()
    assert result.warnings(["rail1"], ["vc1", "vc3"]) == ()


@given(st.integers(min_value=1, max_value=2000))
def test_a_shaped_rail_passes_only_within_three_percent(mbit_s: int) -> None:
    machine = changed(_virtual(), "interface rail0", shaped_to_mbit_s=mbit_s)
    found = of(preflight(VC, nodes(machine)), "vc1.rate", "rail0")
    assert found.verdict is (Verdict.PASS if 194 <= mbit_s <= 206 else Verdict.FAIL)


@pytest.mark.parametrize("gbit_s", [0.001, 0.2, 1, 10, 100])
def test_a_rail_of_the_virtual_cluster_passes_at_any_rate_that_it_is_made_with(
    gbit_s: float,
) -> None:
    spec = FabricSpec.model_validate({**VIRTUAL, "link": f"{gbit_s * 1000:g}MbE"})
    (command,) = node_commands("rail0", round(gbit_s * 1e9), 1500, None)
    rate = re.search(r"rate (\d+)([mk]?)bit", command)
    assert rate is not None
    mbit_s = int(rate[1]) * {"m": 1, "k": 1e-3, "": 1e-6}[rate[2]]
    machine = changed(_virtual(), "interface rail0", shaped_to_mbit_s=round(mbit_s))
    assert of(preflight(spec, nodes(machine)), "vc1.rate", "rail0").verdict is Verdict.PASS


def test_a_wire_that_is_shaped_below_its_rate_is_slow() -> None:
    spec = fabric(link="25GbE", protocol="tcp", rails=[{"interface": "eth40"}])
    machine = _eth(speed_mbit_s=25000, shaped_to_mbit_s=1000)
    found = of(preflight(spec, nodes(machine)), "n1.rate")
    assert found.text == "eth40 on n1 runs at 1 of 25 Gb/s"
    faster = _eth(speed_mbit_s=10000, shaped_to_mbit_s=25000)
    assert of(preflight(spec, nodes(faster)), "n1.rate").quantity.value == 10000


def test_a_rail_that_is_down_and_one_that_is_missing() -> None:
    down = changed(_virtual("vc2"), "interface rail1", state="down")
    gone = without(_virtual("vc3"), "interface rail0")
    result = preflight(VC, nodes(_virtual(), down, gone))
    assert of(result, "vc2.state", "rail1").text == "rail1 on vc2 is down (down)"
    assert "no carrier" in of(result, "vc2.state", "rail1").reason
    absent = of(result, "vc3.state", "rail0")
    assert absent.verdict is Verdict.FAIL
    assert "does not exist: the node has mgmt0, rail1" in absent.reason
    assert [each.quantity.name for each in result.of_rail("rail0")].count("vc3.rate") == 0


@pytest.mark.parametrize(
    ("kind", "what", "verdict"),
    [
        (ReadTroubleKind.CUT_OFF, "net", Verdict.UNJUDGED),
        (ReadTroubleKind.CUT_OFF, "tuning", Verdict.UNJUDGED),
        (ReadTroubleKind.CUT_OFF, "addresses", Verdict.UNJUDGED),
        (ReadTroubleKind.CUT_OFF, "qdisc", Verdict.FAIL),
        (ReadTroubleKind.NO_TOOL, "ip", Verdict.UNJUDGED),
        (ReadTroubleKind.NO_ANSWER, "ip -o -4 addr show", Verdict.UNJUDGED),
        (ReadTroubleKind.NO_TOOL, "lspci", Verdict.FAIL),
    ],
)
def test_an_interface_is_missing_only_where_the_look_would_have_shown_it(
    kind: ReadTroubleKind, what: str, verdict: Verdict
) -> None:
    blind = hindered(without(_virtual(), "interface rail0"), kind, what)
    assert of(preflight(VC, nodes(blind)), "vc1.state", "rail0").verdict is verdict


@pytest.mark.parametrize(("section", "verdict"), [("net", "UNJUDGED"), ("tools", "FAIL")])
def test_a_port_is_told_by_its_device_and_needs_no_address(section: str, verdict: str) -> None:
    spec = fabric(link="HDR 4x", rails=[{"interface": "mlx5_7:1"}])
    blind = hindered(_port(), ReadTroubleKind.CUT_OFF, section)
    assert of(preflight(spec, nodes(blind)), "n1.state").verdict.value == verdict


@pytest.mark.parametrize(
    ("kind", "what", "verdict"),
    [
        (ReadTroubleKind.CUT_OFF, "addresses", Verdict.UNJUDGED),
        (ReadTroubleKind.CUT_OFF, "qdisc", Verdict.UNJUDGED),
        (ReadTroubleKind.NO_TOOL, "tc", Verdict.UNJUDGED),
        (ReadTroubleKind.CUT_OFF, "tools", Verdict.FAIL),
    ],
)
def test_a_wire_whose_declared_shaper_nobody_could_see_is_not_called_too_fast(
    kind: ReadTroubleKind, what: str, verdict: Verdict
) -> None:
    wire = _eth(name="rail0", speed_mbit_s=1000)
    found = of(preflight(VC, nodes(hindered(wire, kind, what))), "n1.rate", "rail0")
    assert found.verdict is verdict
    slow = _eth(name="rail0", speed_mbit_s=100)
    found = of(preflight(VC, nodes(hindered(slow, kind, what))), "n1.rate", "rail0")
    assert found.verdict is Verdict.FAIL


def test_a_node_that_nobody_saw_is_missing_with_the_reason() -> None:
    result = preflight(VC, {"vc1": _virtual(), "vc2": None}, reasons={"vc2": "it hung"})
    found = of(result, "vc2.state", "rail1")
    assert (found.verdict, result.verdict) == (Verdict.MISSING, Verdict.MISSING)
    assert found.reason.endswith("it hung")
    assert not result.warnings(["rail1"], ["vc1", "vc2"])


def test_the_same_card_under_another_name_is_named() -> None:
    spec = fabric(link="25GbE", protocol="tcp", rails=[{"interface": "enp97s0f0np0"}])
    there, here = recorded("bnxt-healthy", "n1"), recorded("bnxt-degraded", "n2")
    found = of(preflight(spec, nodes(there, here)), "n2.state")
    assert found.reason == (
        "enp97s0f0np0 on n2 does not exist: the card that n1 calls enp97s0f0np0 is called "
        "enp182s0f0np0 here"
    )


def test_an_mtu_other_than_declared_is_named_per_node() -> None:
    large = changed(_virtual("vc2"), "interface rail0", mtu=1400)
    result = preflight(VC, nodes(_virtual(), large))
    found = of(result, "vc2.mtu", "rail0")
    assert found.text == "rail0 on vc2 has MTU 1400 instead of 1500"
    assert (found.quantity.value, found.quantity.reference) == (1400, 1500)
    blind = changed(_virtual(), "interface rail0", mtu=None)
    assert of(preflight(VC, nodes(blind)), "vc1.mtu", "rail0").verdict is Verdict.UNJUDGED


def test_unequal_mtus_are_found_where_the_site_states_none() -> None:
    spec = FabricSpec.model_validate({**VIRTUAL, "mtu": None})
    odd = changed(_virtual("vc3"), "interface rail1", mtu=9000)
    result = preflight(spec, nodes(_virtual(), _virtual("vc2"), odd))
    found = of(result, "fleet", "rail1")
    assert found.verdict is Verdict.FAIL
    assert found.where.hosts == ("vc3",)
    assert "MTU 1500 bytes on vc1, vc2 (2 of 3), 9000 bytes on vc3 (1 of 3)" in (found.reason)


# Links that trained to less.


@given(
    st.sampled_from(["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR"]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["QDR 4x", "FDR 4x", "EDR 4x", "HDR 4x", "NDR 4x"]),
)
def test_no_slower_link_passes_for_a_faster_one(speed: str, lanes: int, declared: str) -> None:
    spec = fabric(link=declared, rails=[{"interface": "mlx4_0:1"}])
    name = f"{speed} {lanes}x"
    found = of(preflight(spec, nodes(_port(link=name))), "n1.rate")
    alike = find_link(name).data_rate_gbit_s == find_link(declared).data_rate_gbit_s
    assert (found.verdict is Verdict.PASS) == alike


def test_a_qsfp_port_in_four_times_ten_is_told_from_a_bad_cable() -> None:
    split = written(
        "n1",
        {
            f"interface {name}": {
                "kind": "ethernet",
                "driver": "i40e",
                "state": "up",
                "pci": f"0000:81:00.{number}",
                "speed_mbit_s": 10000,
            }
            for number, name in enumerate(("eth40", "eth41", "eth42", "eth43"))
        },
    )
    found = of(preflight(XL710, nodes(split)), "n1.rate")
    assert found.text == "eth40 on n1 runs at 10 of 40 Gb/s"
    assert "its port is in 4x10 mode instead of 1x40" in found.reason
    single = of(preflight(XL710, nodes(_eth(speed_mbit_s=10000))), "n1.rate")
    assert "4x10" not in single.reason
    assert "made it train down" in single.reason


def test_a_driver_without_a_rate_is_unjudged_unless_the_site_says_that_none_is_told() -> None:
    keys = {"link": "100GbE", "protocol": "tcp", "rails": [{"interface": "eth40"}]}
    silent = nodes(_eth(driver="ena"))
    assert of(preflight(fabric(**keys), silent), "n1.rate").verdict is Verdict.UNJUDGED
    told = preflight(fabric(**keys, expect={"not_told": ["rate"]}), silent)
    assert [each.fact for each in told.findings] == ["state"]
    assert told.notes[0].text.startswith("not judged: eth40 on n1: its rate is not known")
    slow = nodes(_eth(driver="ena", speed_mbit_s=1000))
    assert preflight(fabric(**keys, expect={"not_told": ["rate"]}), slow).verdict is Verdict.FAIL


def test_a_site_without_a_link_has_nothing_to_be_judged() -> None:
    result = preflight(fabric(rails=[{"interface": "lo"}]), nodes(_virtual()))
    assert (result.findings, result.verdict) == ((), Verdict.UNJUDGED)


def _hdr(link: str = "HDR 4x") -> FabricSpec:
    return fabric(link=link, rails=[{"interface": "mlx4_0:1"}])


def _rail0(**facts: Value) -> Machine:
    return changed(_virtual(), "interface rail0", **facts)


@pytest.mark.parametrize(
    ("spec", "machine", "what", "verdict", "words"),
    [
        (VC, _rail0(shaped_to_mbit_s=None), "vc1.rate", Verdict.UNJUDGED, "says 10000 Mb/s whatev"),
        (VC, _rail0(shaped_to_mbit_s=400), "vc1.rate", Verdict.FAIL, "its file is behind the mach"),
        (VC, _rail0(state="unknown"), "vc1.state", Verdict.UNJUDGED, ""),
        (_hdr(), _port(rate_gbit_s=200), "n1.rate", Verdict.PASS, ""),
        (_hdr(), _port(rate_gbit_s=100), "n1.rate", Verdict.FAIL, ""),
        (_hdr(), _port(), "n1.rate", Verdict.UNJUDGED, ""),
        (_hdr(), _port(state="INIT", phys_state="LinkUp"), "n1.state", Verdict.FAIL, "opensm run?"),
        (_hdr(), _port(state="DOWN", phys_state="Polling"), "n1.state", Verdict.FAIL, "for a peer"),
        (_hdr(), _port(state="DOWN", phys_state="Disabled"), "n1.state", Verdict.FAIL, "ched off"),
        (_hdr("FDR 4x"), _port(link="FDR10 4x"), "n1.rate", Verdict.FAIL, "40 of 54.55 Gb/s: it t"),
        (_hdr(), _port(link="HDR 2x"), "n1.rate", Verdict.FAIL, "instead of HDR 4x, 2 of 4"),
        (_hdr("EDR 4x"), _port(link="100GbE"), "n1.rate", Verdict.FAIL, "is ethernet (100GbE)"),
        (XL710, _eth(speed_mbit_s=10000, speed_best_mbit_s=10000), "n1.rate", Verdict.FAIL,
         "can do no more than 10 Gb/s"),
        (XL710, _eth(speed_mbit_s=10000, lanes=1, speed_best_mbit_s=40000), "n1.rate",
         Verdict.FAIL, "1 of 4 lanes"),
    ],
)  # fmt: skip
def test_one_rail_of_one_node(
    spec: FabricSpec, machine: Machine, what: str, verdict: Verdict, words: str
) -> None:
    rail = "rail0" if spec is VC else spec.rails[0].interface
    found = of(preflight(spec, nodes(machine)), what, rail)
    assert found.verdict is verdict
    assert words in found.reason
