"""What changed between two looks: losses, moves, swaps, slower links, errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.subnet import (
    End,
    Network,
    SubnetLook,
    SubnetResult,
    compare_looks,
    join,
    read_folder,
)
from made_fabrics import changed, looked, tree, without

DATA = Path(__file__).resolve().parents[1] / "data" / "subnet"


def red(result: SubnetResult) -> list[str]:
    return [each.sentence for each in result.findings if each.verdict is not Verdict.PASS]


def end_of(network: Network, where: str) -> End:
    return next(end for end in network.ports if network.where(end) == where)


def recabled(network: Network, pairs: dict[str, str]) -> Network:
    """Return ``network`` with these ends joined, whatever they were joined with before."""
    ports = dict(network.ports)
    for one, other in pairs.items():
        ends = (end_of(network, one), end_of(network, other))
        for mine, far in (ends, ends[::-1]):
            ports[mine] = replace(
                ports[mine], peer=far, lanes=4, speed="EDR", state="Active", physical="LinkUp"
            )
    return replace(network, ports=ports)


def test_the_same_is_pass() -> None:
    look = looked(tree(), counters={}, counted_ports=24)
    result = compare_looks(look, look)
    assert (result.verdict, red(result)) == (Verdict.PASS, [])
    assert result.findings[-1].sentence == "12 cables are where they were"


def test_recorded_looks() -> None:
    before = join(read_folder(DATA / "tree"))
    after = join(read_folder(DATA / "tree-faults"))
    sentences = red(compare_looks(before, after))
    assert sentences[0] == (
        "leaf1 port 9 - spine1 port 1: the link is gone (leaf1 port 9 is Polling now; spine1 "
        "port 1 is Polling now)"
    )
    assert "symbol_error of port:1 on leaf2 rose by 65535" in sentences
    assert "port_rcv_errors of port:2 on leaf2 rose by 12" in sentences


def test_a_slower_link_and_a_better_one() -> None:
    slow = changed(tree(), "leaf0", 1, lanes=1)
    worse = compare_looks(looked(tree()), looked(slow))
    assert red(worse) == ["leaf0 port 1 - n0 mlx5_0 port 1 was at EDR 4x, is at EDR 1x"]
    better = compare_looks(looked(slow), looked(tree()))
    assert better.verdict is Verdict.PASS
    assert any("was at EDR 1x, is at EDR 4x: better" in note for note in better.notes)


@pytest.mark.parametrize("where", ["leaf0 port 1", "n0 mlx5_0 port 1"])
def test_either_end_that_is_slower_is_told(where: str) -> None:
    network = tree()
    end = end_of(network, where)
    port = replace(network.ports[end], lanes=1)
    after = replace(network, ports={**network.ports, end: port})
    (sentence,) = red(compare_looks(looked(network), looked(after)))
    assert sentence == (f"leaf0 port 1 - n0 mlx5_0 port 1: {where} was at EDR 4x, is at EDR 1x")
    back = compare_looks(looked(after), looked(network))
    assert any("was at EDR 1x, is at EDR 4x: better" in note for note in back.notes)


def test_two_cables_that_are_swapped() -> None:
    before = tree()
    after = recabled(
        before,
        {"leaf0 port 1": "n1 mlx5_0 port 1", "leaf0 port 2": "n0 mlx5_0 port 1"},
    )
    (sentence,) = red(compare_looks(looked(before), looked(after)))
    assert sentence == (
        "two cables are swapped: leaf0 port 1 - n0 mlx5_0 port 1; leaf0 port 2 - n1 mlx5_0 port "
        "1 before, and crosswise now"
    )


def test_a_cable_that_was_moved() -> None:
    before = without(tree(leaves=3), "leaf0", 2)
    host = "n0 mlx5_0 port 1"
    after = recabled(without_host(before), {"leaf0 port 2": host})
    (sentence,) = red(compare_looks(looked(before), looked(after)))
    assert sentence == (
        "a cable was moved: leaf0 port 1 - n0 mlx5_0 port 1 before, leaf0 port 2 - n0 mlx5_0 "
        "port 1 now"
    )


def without_host(network: Network) -> Network:
    """Return ``network`` with leaf0 port 1 down and its host's port waiting for another cable."""
    ports = dict(network.ports)
    end = end_of(network, "leaf0 port 1")
    ports[end] = replace(ports[end], peer=None, state="Down", physical="Polling")
    return replace(network, ports=ports)


def test_a_host_that_is_gone_is_missing() -> None:
    before = tree()
    cut = without(before, "leaf0", 1)
    nodes = {guid: node for guid, node in cut.nodes.items() if node.description != "n0 mlx5_0"}
    result = compare_looks(looked(before), looked(replace(cut, nodes=nodes)))
    assert {each.verdict for each in result.findings} >= {Verdict.MISSING, Verdict.FAIL}
    assert "n0 was on the fabric and is no more" in red(result)
    back = compare_looks(looked(replace(cut, nodes=nodes)), looked(before))
    assert back.verdict is Verdict.PASS
    assert any(note.startswith("new: ca n0 mlx5_0") for note in back.notes)


def test_an_adapter_that_lost_its_hosts_name_is_no_host_that_is_gone() -> None:
    """rdma-ndd did not start: the description is the factory's."""
    before = tree()
    factory = "MT4123 ConnectX6   Mellanox Technologies"
    nodes = {
        guid: replace(node, description=factory) if node.description == "n0 mlx5_0" else node
        for guid, node in before.nodes.items()
    }
    result = compare_looks(looked(before), looked(replace(before, nodes=nodes)))
    assert (result.verdict, red(result)) == (Verdict.PASS, [])
    renamed = f"was called 'n0 mlx5_0', is called {factory!r}"
    assert any(note.endswith(renamed) for note in result.notes)


def test_an_adapter_that_was_put_into_another_host_is_not_its_old_host() -> None:
    before = tree()
    nodes = {
        guid: replace(node, description="n1 mlx5_1") if node.description == "n0 mlx5_0" else node
        for guid, node in before.nodes.items()
    }
    result = compare_looks(looked(before), looked(replace(before, nodes=nodes)))
    assert (result.verdict, red(result)) == (
        Verdict.MISSING,
        ["n0 was on the fabric and is no more"],
    )


def test_a_port_that_is_no_more_active() -> None:
    after = changed(tree(), "leaf0", 1, state="Initialize")
    sentences = red(compare_looks(looked(tree()), looked(after)))
    assert sentences == [
        "leaf0 port 1 was Active and is Initialize",
        "n0 mlx5_0 port 1 was Active and is Initialize",
    ]


def test_new_lids_and_names_are_notes() -> None:
    before = tree()
    ports = {end: replace(port, lid=(port.lid or 0) + 500) for end, port in before.ports.items()}
    nodes = {
        guid: replace(node, description=f"{node.description}-b")
        for guid, node in before.nodes.items()
    }
    result = compare_looks(looked(before), looked(replace(before, ports=ports, nodes=nodes)))
    assert any("have another LID" in note for note in result.notes)
    assert any("is called 'leaf0-b'" in note for note in result.notes)


def counted(**values: int) -> SubnetLook:
    network = tree()
    return looked(
        network,
        counters={end_of(network, "leaf0 port 1"): values},
        counted_ports=24,
        zero_nodes=frozenset(network.nodes),
    )


@pytest.mark.parametrize(
    ("before", "after", "verdict", "words"),
    [
        ({}, {"symbol_error": 3}, Verdict.FAIL, "rose by 3"),
        ({"symbol_error": 3}, {"symbol_error": 3}, Verdict.PASS, ""),
        ({"symbol_error": 9}, {}, Verdict.UNJUDGED, "ran backwards"),
        ({"symbol_error": 65535}, {"symbol_error": 65535}, Verdict.UNJUDGED, "at its end"),
        ({"link_downed": 254}, {"link_downed": 255}, Verdict.FAIL, "rose by 1"),
        ({"VL15_dropped": 1}, {"VL15_dropped": 2}, Verdict.PASS, ""),
        ({"VL15_dropped": 1}, {}, Verdict.PASS, ""),
    ],
)
def test_what_counters_rose_by(
    before: dict[str, int], after: dict[str, int], verdict: Verdict, words: str
) -> None:
    result = compare_looks(counted(**before), counted(**after))
    assert result.verdict is verdict
    assert all(words in sentence for sentence in red(result))


def test_counters_that_nobody_read_are_told() -> None:
    result = compare_looks(looked(tree()), counted())
    assert any("nobody knows whether errors rose" in note for note in result.notes)


@pytest.mark.parametrize("name", ["sminfo.txt", "issm.txt", "ibqueryerrors.txt"])
def test_a_second_look_that_asks_less_is_no_pass(name: str) -> None:
    texts = read_folder(DATA / "tree")
    whole, part = join(texts), join({key: text for key, text in texts.items() if key != name})
    result = compare_looks(whole, part)
    assert result.verdict is Verdict.UNJUDGED
    assert red(result)[0].startswith("not looked at the second time, and the first time it was")
    assert compare_looks(part, whole).verdict is Verdict.PASS


@pytest.mark.parametrize(("number", "which"), [(0, "first"), (1, "second")])
def test_counters_of_a_part_of_the_ports_are_no_pass(number: int, which: str) -> None:
    looks = [counted(), counted()]
    looks[number] = replace(looks[number], counted_ports=23)
    result = compare_looks(*looks)
    assert result.verdict is Verdict.UNJUDGED
    assert f"of 23 ports were read in the {which} look, and 24 have a link" in red(result)[0]


def asked_one_by_one(text: str) -> SubnetLook:
    texts = read_folder(DATA / "tree")
    del texts["ibqueryerrors.txt"]
    return join({**texts, "perfquery.txt": text})


def test_what_a_look_did_not_ask_was_not_zero() -> None:
    """leaf2 port 1 stands at 65535 in the second look; the first asked its port 2 alone."""
    after = join(
        read_folder(DATA / "tree")
        | {"ibqueryerrors.txt": (DATA / "tree-faults" / "ibqueryerrors.txt").read_text()}
    )
    before = asked_one_by_one((DATA / "tools" / "perfquery.txt").read_text())
    result = compare_looks(before, after)
    assert result.verdict is Verdict.UNJUDGED
    (sentence,) = red(result)
    assert "the counters of 1 ports were read in the first look, and 48 have a link" in sentence
    assert "1 ports counted no new errors" in [each.sentence for each in result.findings]
    assert compare_looks(after, before).verdict is Verdict.UNJUDGED


def test_what_a_look_did_ask_one_by_one_can_rise() -> None:
    text = (DATA / "tools" / "perfquery.txt").read_text()
    before = asked_one_by_one(text.replace("....12\n", "....11\n"))
    sentences = red(compare_looks(before, asked_one_by_one(text)))
    assert "port_rcv_errors of port:2 on leaf2 rose by 1" in sentences


def test_of_a_part_of_the_nodes_or_with_silent_ports_nothing_is_zero() -> None:
    """Where four nodes were asked, or two ports did not answer, the others may have errors."""
    faults = (DATA / "tree-faults" / "ibqueryerrors.txt").read_text()
    texts = read_folder(DATA / "tree")
    after = join(texts | {"ibqueryerrors.txt": faults})
    said = texts["ibqueryerrors.txt"]
    failures = "##          2 PMA query failures\n## Suppressed"
    for part in (
        said.replace("12 nodes", "4 nodes"),
        said.replace("## Suppressed", failures),
    ):
        before = join(texts | {"ibqueryerrors.txt": part})
        assert before.zero_nodes == frozenset()
        assert compare_looks(before, after).verdict is Verdict.UNJUDGED
    listed = join(texts | {"ibqueryerrors.txt": faults.replace("12 nodes", "4 nodes")})
    assert {listed.network.name(guid) for guid in listed.zero_nodes} == {"leaf2", "spine1"}
    assert compare_looks(join(texts), after).verdict is Verdict.FAIL


def test_a_link_that_trains_anew_is_no_pass() -> None:
    after = changed(tree(), "leaf0", 1, physical="LinkErrorRecovery")
    sentences = red(compare_looks(looked(tree()), looked(after)))
    assert "leaf0 port 1 was LinkUp and is LinkErrorRecovery" in sentences
    assert compare_looks(looked(after), looked(tree())).verdict is Verdict.PASS


def test_another_manager_is_a_note() -> None:
    before = join(read_folder(DATA / "tree"))
    assert before.managers is not None
    other = replace(before.managers[0], guid="f" * 16)
    result = compare_looks(before, replace(before, managers=(other,)))
    assert any("another subnet manager: 0x0000000000100001 before" in n for n in result.notes)
