"""Nodes that should be alike: what is said where they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_nodes import VIRTUAL, changed, fabric, hindered, nodes, of, recorded

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.nodes.inventory.facts import Machine, Momentary, ReadTroubleKind
from fabricproof.nodes.preflight.fleet import group, minority
from fabricproof.nodes.preflight.judge import preflight
from fabricproof.site.schema import FabricSpec

HDR = {"link": "HDR 4x", "rails": [{"interface": "mlx5_0:1"}]}
PORT = "port mlx5_0:1"
VC = FabricSpec.model_validate(VIRTUAL)


def _mlx5(*names: str) -> list[Machine]:
    return [recorded("mlx5-healthy", name) for name in names]


def test_the_minority_of_a_mixed_fleet_is_named() -> None:
    odd = changed(recorded("mlx5-healthy", "n3"), PORT, firmware="20.35.4030")
    result = preflight(fabric(**HDR), nodes(*_mlx5("n1", "n2"), odd))
    found = of(result, "fleet")
    assert (found.verdict, found.where.hosts) == (Verdict.FAIL, ("n3",))
    assert "firmware 20.41.1000 on n1, n2 (2 of 3), 20.35.4030 on n3 (1 of 3)" in (found.reason)
    assert found.text == "mixed fleet on mlx5_0:1: firmware of n3 not as elsewhere"
    assert result.warnings(["mlx5_0:1"], ["n1", "n2"]) == ()
    assert texts_of(result.warnings(["mlx5_0:1"], ["n1", "n3"])) == [f"preflight: {found.text}"]


def test_of_two_unlike_nodes_neither_is_the_minority() -> None:
    odd = changed(recorded("mlx5-healthy", "n2"), PORT, firmware="20.35.4030")
    found = of(preflight(fabric(**HDR), nodes(*_mlx5("n1"), odd)), "fleet")
    assert found.where.hosts == ("n1", "n2")


@pytest.mark.parametrize("fact", ["type", "psid", "firmware", "driver", "driver_version", "pcie"])
def test_each_fact_of_a_card_makes_a_mixed_fleet(fact: str) -> None:
    value = "3.0x8" if fact == "pcie" else "other"
    odd = changed(recorded("mlx5-healthy", "n3"), PORT, **{fact: value})
    assert preflight(fabric(**HDR), nodes(*_mlx5("n1", "n2"), odd)).verdict is Verdict.FAIL


def test_what_the_site_states_is_judged_by_that_alone() -> None:
    odd = changed(recorded("mlx5-healthy", "n2"), PORT, firmware="20.35.4030")
    stated = fabric(**HDR, expect={"firmware": ["20.41.1000", "20.35.4030"]})
    result = preflight(stated, nodes(*_mlx5("n1"), odd))
    assert result.verdict is Verdict.PASS
    strict = fabric(**HDR, expect={"firmware": "20.41.1000"})
    result = preflight(strict, nodes(*_mlx5("n1"), odd))
    assert of(result, "n2.firmware").verdict is Verdict.FAIL
    assert of(result, "fleet").verdict is Verdict.PASS


def test_a_mixture_on_purpose_is_a_note() -> None:
    odd = changed(recorded("mlx5-healthy", "n2"), PORT, firmware="20.35.4030")
    spec = fabric(**HDR, expect={"mixed": ["firmware"]})
    result = preflight(spec, nodes(*_mlx5("n1"), odd))
    assert result.verdict is Verdict.PASS
    assert "firmware 20.41.1000 on n1 (1 of 2)" in result.notes[0].text


def test_tuning_that_is_unlike_is_a_note() -> None:
    odd = changed(recorded("mlx5-healthy", "n3"), "interface ib0", rings="RX 256 of 8192")
    result = preflight(fabric(**HDR), nodes(*_mlx5("n1", "n2"), odd))
    assert result.verdict is Verdict.PASS
    assert "rings RX 512 of 8192, TX 512 of 8192 on n1, n2 (2 of 3)" in result.notes[0].text
    kernel = changed(recorded("mlx5-healthy", "n3"), "node", kernel="5.4")
    (note,) = preflight(fabric(**HDR), nodes(*_mlx5("n1", "n2"), kernel)).notes
    assert note.text.startswith("nodes are unlike: kernel ")


def test_a_fact_that_one_node_could_not_read_makes_no_mixture() -> None:
    blind = changed(recorded("mlx5-user", "n2"), PORT, driver_version=None, firmware=None)
    blind = hindered(blind, ReadTroubleKind.NO_ANSWER, "ethtool -i ib0")
    assert preflight(fabric(**HDR), nodes(*_mlx5("n1"), blind)).verdict is Verdict.PASS


def test_a_firmware_that_one_driver_names_and_its_twin_does_not_is_a_mixture() -> None:
    first = recorded("virtual-cluster", "vc1")
    odd = changed(recorded("virtual-cluster", "vc2"), "interface rail1", firmware="9.9.9")
    result = preflight(VC, nodes(first, odd, recorded("virtual-cluster", "vc3")))
    found = of(result, "fleet", "rail1")
    assert (found.verdict, found.where.hosts) == (Verdict.FAIL, ("vc2",))
    assert "firmware none on vc1, vc3 (2 of 3), 9.9.9 on vc2 (1 of 3)" in found.reason
    deaf = hindered(first, ReadTroubleKind.NO_TOOL, "ethtool")
    assert of(preflight(VC, nodes(deaf, odd)), "fleet", "rail1").verdict is Verdict.PASS
    # Only root may ask a transceiver; the firmware was asked for all the same.
    asked = hindered(first, ReadTroubleKind.ONLY_ROOT, "ethtool -m")
    assert of(preflight(VC, nodes(asked, odd)), "fleet", "rail1").verdict is Verdict.FAIL


def test_one_node_is_no_fleet() -> None:
    result = preflight(fabric(**HDR), nodes(*_mlx5("n1")))
    assert "fleet" not in {each.fact for each in result.findings}


@given(st.dictionaries(st.sampled_from([f"n{i}" for i in range(9)]), st.integers(0, 3)))
def test_groups_hold_each_node_once_and_the_minority_is_never_the_greatest(
    values: dict[str, int],
) -> None:
    groups = group(dict(values))
    placed = [node for each in groups.values() for node in each]
    assert sorted(placed) == sorted(values)
    sizes = [len(each) for each in groups.values()]
    assert sizes == sorted(sizes, reverse=True)
    if len(groups) > 1 and sizes[0] > sizes[1]:
        assert not set(minority(groups)) & set(next(iter(groups.values())))


def test_interfaces_whose_networks_overlap_are_a_note_on_their_node() -> None:
    one = changed(recorded("virtual-cluster", "vc1"), "interface rail0", addresses="10.1.0.1/16")
    odd = changed(one, "interface rail1", addresses="10.1.2.1/24")
    said = [each for each in preflight(VC, nodes(odd)).notes if "overlap" in each.text]
    assert [(each.where.node, each.text[:21]) for each in said] == [
        ("vc1", "rail0 (10.1.0.1/16) a")
    ]
    assert not any("overlap" in each.text for each in preflight(VC, nodes(one)).notes)


def test_of_many_nodes_whose_networks_overlap_one_note_tells() -> None:
    odd = [
        changed(
            changed(recorded("virtual-cluster", name), "interface rail0", addresses="10.1.0.1/16"),
            "interface rail1",
            addresses="10.1.2.1/24",
        )
        for name in ("vc1", "vc2", "vc3")
    ]
    said = [each for each in preflight(VC, nodes(*odd)).notes if "overlap" in each.text]
    assert [each.where.node for each in said] == [""]
    assert said[0].text.endswith("; likewise on vc2, vc3")


# Who has which address.


def _with_address(node: str, address: str, mac: str, **neighbours: str) -> Machine:
    heard = {f"rail0 {where.replace('_', '.')[1:]}": who for where, who in neighbours.items()}
    one = changed(recorded("virtual-cluster", node), "interface rail0", addresses=f"{address}/24")
    return replace(one, now=Momentary(macs={"rail0": mac}, neighbours=heard))


def test_two_nodes_with_one_address_are_both_red() -> None:
    """The deliberate bad case: traffic to one reached the other, and each alone looks fine."""
    both = [_with_address(node, "198.19.0.9", "m") for node in ("vc1", "vc2")]
    red = [each for each in preflight(VC, nodes(*both)).findings if each.fact == "address"]
    assert [(each.verdict, each.where.node) for each in red] == [
        (Verdict.FAIL, "vc1"),
        (Verdict.FAIL, "vc2"),
    ]
    assert all("198.19.0.9 belongs to vc1 and vc2" in each.reason for each in red)


@pytest.mark.parametrize(
    ("heard", "verdict"),
    [("m2", None), ("M2", None), ("m3", Verdict.FAIL), ("12:34", Verdict.UNJUDGED)],
)
def test_a_third_node_that_answers_for_an_address_is_named(
    heard: str, verdict: Verdict | None
) -> None:
    one = _with_address("vc1", "198.19.0.1", "m1", _198_19_0_2=heard)
    others = [_with_address(f"vc{at}", f"198.19.0.{at}", f"m{at}") for at in (2, 3)]
    found = [e for e in preflight(VC, nodes(one, *others)).findings if e.fact == "address"]
    assert [each.verdict for each in found] == ([verdict] if verdict else [])
    if verdict:
        assert found[0].where.hosts == ("vc1", "vc2")
        assert ("at vc3" in found[0].reason) is (verdict is Verdict.FAIL)


def test_a_node_whose_rails_exchanged_their_addresses_is_named() -> None:
    """The deliberate bad case: every leg over either rail was INVALID, and nobody said why."""
    good = [recorded("virtual-cluster", f"vc{number}") for number in (1, 2, 3)]
    odd = recorded("virtual-cluster", "vc4")
    addresses = [str(odd.facts[f"interface rail{rail}"]["addresses"]) for rail in (1, 0)]
    for rail, address in enumerate(addresses):
        odd = changed(odd, f"interface rail{rail}", addresses=address)
    red = [e for e in preflight(VC, nodes(*good, odd)).findings if e.fact == "address"]
    assert {(each.where.node, each.where.rail) for each in red} == {
        ("vc4", "rail0"),
        ("vc4", "rail1"),
    }
    # routed rails, each node with networks of its own: nothing is usual
    own = [
        changed(each, f"interface rail{rail}", addresses=f"10.{at}.{rail}.1/31")
        for at, each in enumerate(good)
        for rail in (0,)
    ]
    assert not [e for e in preflight(VC, nodes(*own)).findings if e.fact == "address"]


def test_a_folder_that_is_full_is_named() -> None:
    one = recorded("virtual-cluster", "vc1")
    full = replace(one, now=Momentary(free_bytes={"/tmp": 4096, "/dev/shm": 1 << 30}))
    (found,) = [e for e in preflight(VC, nodes(full)).findings if e.fact == "room"]
    assert (found.verdict, found.text) == (Verdict.FAIL, "/tmp of vc1 is full")


@pytest.mark.parametrize(("said", "is_red"), [("full", False), ("small", True)])
def test_full_size_packets_that_get_lost_are_red_with_both_nodes(said: str, is_red: bool) -> None:
    """The deliberate bad case: a switch port at MTU 1400 between nodes at 1500."""
    one = replace(recorded("virtual-cluster", "vc1"), now=Momentary(pings={"rail0 vc2 1500": said}))
    found = [e for e in preflight(VC, nodes(one)).findings if e.fact == "path_mtu"]
    assert [each.where.hosts for each in found] == [("vc1", "vc2")] * is_red
