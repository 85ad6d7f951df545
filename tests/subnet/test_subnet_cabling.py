"""Rails cabled crosswise, as ``ibnetdiscover`` shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.physics import find_link
from fabricproof.subnet import (
    Expected,
    Network,
    SubnetResult,
    join,
    judge_look,
    read_folder,
    read_ibnetdiscover,
)
from made_fabrics import changed, looked, make, show_discover

DATA = Path(__file__).resolve().parents[1] / "data" / "subnet"


def rails(hosts: int, *crossed: int, num_rails: int = 2, prefix: str = "n") -> Network:
    """Return hosts with one switch for each rail; of ``crossed`` the first two are exchanged."""
    names = [f"{prefix}{number:03}" for number in range(1, hosts + 1)]
    cables = []
    for number, name in enumerate(names, start=1):
        order = list(range(num_rails))
        if number in crossed:
            order[0], order[1] = order[1], order[0]
        cables += [
            (f"{name} mlx5_{rail}", 1, f"sw-rail{leaf}", number) for rail, leaf in enumerate(order)
        ]
    cables += [(f"sw-rail{leaf}", hosts + 1, "spine", leaf + 1) for leaf in range(num_rails)]
    return make(
        [(f"sw-rail{leaf}", hosts + 1) for leaf in range(num_rails)] + [("spine", num_rails)],
        [(f"{name} mlx5_{rail}", 1) for name in names for rail in range(num_rails)],
        cables,
    )


def cabling(network: Network, **expected: object) -> list[Finding]:
    return of(judge_look(looked(network), Expected(**expected)))  # type: ignore[arg-type]


def of(result: SubnetResult) -> list[Finding]:
    return [each for each in result.findings if each.fact == "cabling"]


def test_a_crossed_host_is_named_with_its_switches() -> None:
    red, good = cabling(read_ibnetdiscover(show_discover(rails(20, 17))))
    assert (red.verdict, str(red.where)) == (Verdict.FAIL, "n017")
    assert red.text == (
        "n017: mlx5_0 hangs on sw-rail1, where other hosts have mlx5_1; mlx5_1 hangs on sw-rail0, "
        "where other hosts have mlx5_0: crossed"
    )
    assert (good.verdict, good.quantity.value) == (Verdict.PASS, 19)


def test_few_hosts_name_it_and_are_no_proof() -> None:
    """Two rails plugged in at random give one of three against two three times of four."""
    (red,) = cabling(rails(3, 2))
    assert (red.verdict, str(red.where)) == (Verdict.UNJUDGED, "n002")
    assert "only 2 hosts are cabled alike, which may be chance" in red.text


def test_no_majority_is_a_note() -> None:
    result = judge_look(looked(rails(4, 1, 2)), Expected())
    assert of(result) == []
    assert any(
        "4 hosts hang on their switches in no common order" in each.text for each in result.notes
    )
    some = judge_look(looked(rails(9, 1, 2)), Expected())
    assert of(some) == []
    assert any("in no common order" in each.text for each in some.notes)


def test_one_rail_or_one_leaf_says_nothing() -> None:
    assert cabling(rails(20, num_rails=1)) == []
    one_leaf = make(
        [("leaf", 40)],
        [(f"n{number} mlx5_{rail}", 1) for number in range(20) for rail in (0, 1)],
        [
            (f"n{number} mlx5_{rail}", 1, "leaf", 2 * number + rail + 1)
            for number in range(20)
            for rail in (0, 1)
        ],
    )
    assert cabling(one_leaf) == []


def test_adapters_without_a_device_name_are_not_compared() -> None:
    """Their GUIDs are the factory's, in no order of slots."""
    plain = rails(20, 17)
    nodes = {
        guid: replace(node, description=node.description.split()[0])
        for guid, node in plain.nodes.items()
    }
    assert cabling(replace(plain, nodes=nodes)) == []


def test_ports_of_one_adapter_are_rails() -> None:
    """The recorded tree: host1 to host8, port 1 on leaf1 and port 2 on leaf2."""
    (good,) = of(judge_look(join(read_folder(DATA / "tree"), "tree"), Expected()))
    assert (good.verdict, good.quantity.value) == (Verdict.PASS, 8)


def test_a_recorded_host_with_its_ports_crossed() -> None:
    """Seven of eight hosts of one order: 18 of 256 fabrics plugged in at random have that much."""
    red, *more = of(judge_look(join(read_folder(DATA / "tree-crossed"), ""), Expected()))
    assert (red.verdict, str(red.where), more) == (Verdict.UNJUDGED, "host3", [])


def test_cables_in_the_wrong_switch_are_red_among_named_hosts() -> None:
    """A server of another kind may well have both its adapters on one switch."""
    network = rails(20)
    ends = {str(network.where(end)): end for end in network.ports}
    ports = dict(network.ports)
    one, other = ends["n003 mlx5_0 port 1"], ends["n004 mlx5_1 port 1"]
    far_one, far_other = network.ports[one].peer, network.ports[other].peer
    assert far_one is not None
    assert far_other is not None
    for mine, far in ((one, far_other), (other, far_one)):
        ports[mine] = replace(ports[mine], peer=far)
        ports[far] = replace(ports[far], peer=mine)
    swapped = replace(network, ports=ports)
    doubts = [each for each in cabling(swapped) if each.verdict is Verdict.UNJUDGED]
    assert [str(each.where) for each in doubts] == ["n003", "n004"]
    assert "or a host of another kind" in doubts[0].text
    hosts = tuple(f"n{number:03}" for number in range(1, 21))
    red = [each for each in cabling(swapped, hosts=hosts) if each.verdict is Verdict.FAIL]
    assert [str(each.where) for each in red] == ["n003", "n004"]
    assert cabling(swapped, hosts=tuple(set(hosts) - {"n003", "n004"}))[0].quantity.value == 18


@given(st.integers(3, 40), st.integers(2, 5), st.data())
@settings(max_examples=40, deadline=None)
def test_one_crossed_host_is_always_named_alone(
    hosts: int, num_rails: int, data: st.DataObject
) -> None:
    which = data.draw(st.integers(1, hosts))
    red = [
        each
        for each in cabling(rails(hosts, which, num_rails=num_rails))
        if each.verdict is not Verdict.PASS
    ]
    assert [str(each.where) for each in red] == [f"n{which:03}"]
    assert all(each.verdict is Verdict.PASS for each in cabling(rails(hosts, num_rails=num_rails)))


DECLARED = {"mlx5_0:1": ("sw-rail0",), "mlx5_1:1": ("sw-rail1*",)}


def test_what_the_site_declares_needs_no_majority() -> None:
    good, red = cabling(rails(3, 2), switches=DECLARED)
    assert (good.verdict, good.quantity.value) == (Verdict.PASS, 2)
    assert (red.verdict, str(red.where)) == (Verdict.FAIL, "n002")
    assert red.text == (
        "n002: mlx5_0 hangs on sw-rail1, which the site declares for mlx5_1; mlx5_1 hangs on "
        "sw-rail0, which the site declares for mlx5_0: crossed"
    )
    # Most are crossed: they have a majority, and are wrong all the same.
    found = cabling(rails(14, *range(2, 15)), switches=DECLARED)
    assert {str(each.where) for each in found if each.verdict is Verdict.FAIL} == {
        f"n{at:03}" for at in range(2, 15)
    }


def test_a_switch_that_the_site_declares_for_no_rail_is_red_among_hosts_that_are_alike() -> None:
    elsewhere = {**DECLARED, "mlx5_1:1": ("sw-plane1",)}
    found = cabling(rails(2), switches=elsewhere)
    assert {each.verdict for each in found} == {Verdict.UNJUDGED}
    assert "mlx5_1 hangs on sw-rail1, which the site declares for no rail" in found[0].text
    assert "or a host of another kind" in found[0].text
    found = cabling(rails(2), switches=elsewhere, hosts=("n001", "n002"))
    assert {each.verdict for each in found} == {Verdict.FAIL}


def test_a_declared_rail_without_a_cable_is_no_pass() -> None:
    network = make(
        [("sw-rail0", 3), ("sw-rail1", 3), ("spine", 2)],
        [(f"n{host:03} mlx5_{rail}", 1) for host in (1, 2) for rail in (0, 1)],
        [
            ("n001 mlx5_0", 1, "sw-rail0", 1),
            ("n001 mlx5_1", 1, "sw-rail1", 1),
            ("n002 mlx5_0", 1, "sw-rail0", 2),
            ("sw-rail0", 3, "spine", 1),
            ("sw-rail1", 3, "spine", 2),
        ],
    )
    open_end, good = cabling(network, switches=DECLARED)
    assert (open_end.verdict, str(open_end.where)) == (Verdict.UNJUDGED, "n002")
    assert open_end.text == "n002: mlx5_1 hangs on no switch"
    assert (good.verdict, good.quantity.value) == (Verdict.PASS, 1)


def test_hosts_without_the_sites_rails_are_judged_by_each_other() -> None:
    more = {**DECLARED, "mlx5_2:1": ("sw-rail2",)}
    red, good = cabling(rails(20, 17), switches=more)
    assert (str(red.where), good.quantity.value) == ("n017", 19)
    assert "where other hosts have" in red.text


def without_rail(network: Network, adapter: str) -> Network:
    """Return the fabric as ``ibnetdiscover`` shows it where the cable of an adapter is out."""
    (lost,) = (guid for guid, node in network.nodes.items() if node.description == adapter)
    ports = {
        end: port
        for end, port in network.ports.items()
        if end.guid != lost and (port.peer is None or port.peer.guid != lost)
    }
    nodes = {guid: node for guid, node in network.nodes.items() if guid != lost}
    return replace(network, nodes=nodes, ports=ports)


def names(hosts: int) -> tuple[str, ...]:
    return tuple(f"n{number:03}" for number in range(1, hosts + 1))


def test_a_named_host_that_lost_a_rail_is_named() -> None:
    network = without_rail(rails(8), "n003 mlx5_1")
    good, lost = cabling(network, switches=DECLARED, hosts=names(8))
    assert (good.verdict, good.quantity.value) == (Verdict.PASS, 7)
    assert (lost.verdict, str(lost.where)) == (Verdict.UNJUDGED, "n003")
    assert lost.text == "n003: mlx5_1 is not on this fabric, where 7 other hosts have it"
    (lost,) = [
        each
        for each in cabling(network, hosts=names(8))
        if each.verdict is not Verdict.PASS and str(each.where) == "n003"
    ]
    assert lost.text == "n003: mlx5_1 is not on this fabric, where 7 other hosts have it"


def test_a_rail_that_no_named_host_or_many_of_them_lack_is_no_loss() -> None:
    """Each rail a subnet of its own: one look sees one.  And lists of hosts of two kinds."""
    single = rails(8)
    for host in names(8):
        single = without_rail(single, f"{host} mlx5_1")
    assert cabling(single, switches=DECLARED, hosts=names(8)) == []
    two_kinds = rails(20)
    for host in names(6):
        two_kinds = without_rail(two_kinds, f"{host} mlx5_1")
    assert {str(each.where) for each in cabling(two_kinds, hosts=names(20))} == {""}
    # Nobody said that other hosts are to be alike.
    assert {str(each.where) for each in cabling(without_rail(rails(20), "n003 mlx5_1"))} == {""}


def test_a_cable_is_held_against_the_link_of_its_own_rail() -> None:
    """Rail 1 is declared slower: its cables are no fault, and one of rail 0 at that speed is."""
    network = rails(4)
    for name in names(4):
        network = changed(network, f"{name} mlx5_1", 1, speed="FDR")
    fast, slow = find_link("EDR 4x"), find_link("FDR 4x")
    expected = Expected(link=slow, rail_links={"mlx5_0:1": fast, "mlx5_1:1": slow})
    result = judge_look(looked(network), expected)
    assert [each.verdict for each in result.findings if each.fact == "link"] == [Verdict.PASS]
    assert any("the site's rails are unlike" in note.text for note in result.notes)
    trained = changed(network, "n002 mlx5_0", 1, speed="FDR")
    found = judge_look(looked(trained), expected).findings
    (red,) = [each for each in found if each.verdict is Verdict.FAIL]
    assert "below EDR 4x (100 Gb/s), which is declared: speed trained down" in red.text
    alike = judge_look(looked(trained), Expected(link=slow)).findings
    assert not [each for each in alike if each.verdict is Verdict.FAIL]
