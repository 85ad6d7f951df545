"""The verdict on one look: each fault is named, and a good fabric is PASS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.physics import Link, find_link
from fabricproof.subnet import (
    End,
    Expected,
    Manager,
    Network,
    SubnetLook,
    SubnetResult,
    join,
    judge_look,
    read_folder,
)
from made_fabrics import changed, looked, make, tree, without

DATA = Path(__file__).resolve().parents[1] / "data" / "subnet"
EDR = find_link("EDR 4x")
MASTER = Manager(lid=1, guid="0" * 16, priority=2, state=3)


def red(result: SubnetResult) -> list[str]:
    return [each.sentence for each in result.findings if each.verdict is not Verdict.PASS]


def judged(network: Network, **expected: object) -> SubnetResult:
    return judge_look(looked(network), Expected(**expected))  # type: ignore[arg-type]


def kept(name: str) -> SubnetLook:
    return join(read_folder(DATA / name), name)


def one_end(network: Network, where: str, **facts: object) -> Network:
    """Return ``network`` with one end of a cable changed, and not the other."""
    (end,) = [end for end in network.ports if network.where(end) == where]
    return replace(network, ports={**network.ports, end: replace(network.ports[end], **facts)})  # type: ignore[arg-type]


def test_good_fabrics_pass() -> None:
    assert judge_look(kept("tree"), Expected(link=EDR)).verdict is Verdict.PASS
    torus = judge_look(kept("torus"), Expected())
    assert (torus.verdict, red(torus)) == (Verdict.PASS, [])
    assert judged(tree()).verdict is Verdict.PASS


def test_nothing_to_judge_is_no_pass() -> None:
    empty = make([("leaf", 4)], [("n1 mlx5_0", 1)], [])
    assert judged(empty).verdict is Verdict.SKIPPED


def test_links_below_what_both_ends_support() -> None:
    result = judge_look(kept("tree"), Expected())
    assert result.verdict is Verdict.FAIL
    assert len(red(result)) == 24
    assert "both ends support width 12x and speed HDR" in red(result)[0]


def test_links_below_what_is_declared() -> None:
    """A 1x link and a slower one, as iblinkinfo over ibsim printed them."""
    fdr, narrow = red(judge_look(kept("tree-narrow"), Expected(link=EDR)))
    assert "host3 HCA-1 port 1 - leaf1 port 3 is at FDR 4x (54.5455 Gb/s)" in fdr
    assert "speed trained down" in fdr
    assert "leaf1 port 10 - spine1 port 2 is at EDR 1x (25 Gb/s)" in narrow
    assert "width trained down" in narrow


def test_half_the_lanes_at_twice_the_speed_is_as_good() -> None:
    hdr100 = changed(tree(), "leaf0", 1, lanes=2, speed="HDR")
    assert judged(hdr100, link=EDR).verdict is Verdict.PASS
    assert judged(hdr100, link=find_link("HDR 4x")).verdict is Verdict.FAIL


def test_an_unknown_speed_is_unjudged() -> None:
    unknown = changed(tree(), "leaf0", 1, lanes=None, speed=None)
    for link in (EDR, None):
        assert judged(unknown, link=link).verdict is Verdict.UNJUDGED


@pytest.mark.parametrize(
    ("in_use", "hint"),
    [
        ("( 1X        53.125 Gbps", "Could be undefined (16) "),
        ("(12X           2.5 Gbps", " Could be Extended speed"),
        ("(12X           2.5 Gbps", " Could be undefined (8)"),
    ],
)
def test_a_hint_without_a_name_is_unjudged(in_use: str, hint: str) -> None:
    """Both ends of node00's cable say that there is better; what, the tool does not know."""
    texts = read_folder(DATA / "torus")
    lines = texts["iblinkinfo.txt"].splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if "node00" in line]
    assert len(ends) == 2
    for number in ends:
        line = lines[number].replace("(12X        53.125 Gbps", in_use).replace("( )", f"({hint})")
        lines[number] = line
    cables = texts["ibnetdiscover.txt"].splitlines(keepends=True)
    speed = "1xHDR" if "53" in in_use else "12xSDR"
    cables = [
        line.replace("12xHDR", speed) if '"node00 ' in line or "1](100001) " in line else line
        for line in cables
    ]
    again = {"iblinkinfo.txt": "".join(lines), "ibnetdiscover.txt": "".join(cables)}
    result = judge_look(join(texts | again), Expected())
    (sentence,) = red(result)
    assert result.verdict is Verdict.UNJUDGED
    assert sentence.startswith("node00 mlx5_0 port 1 - sw00 port 1 is at ")
    assert "both ends support more, which the tool cannot name" in sentence


@pytest.mark.parametrize("facts", [{"lanes": 1}, {"speed": "SDR"}, {"lanes": 12, "speed": "XDR"}])
@pytest.mark.parametrize("end", ["leaf0 port 1", "n0 mlx5_0 port 1"])
def test_ends_of_a_cable_that_disagree_are_no_pass(facts: dict[str, object], end: str) -> None:
    network = one_end(tree(), end, **facts)
    result = judged(network)
    assert result.verdict is Verdict.UNJUDGED
    (sentence,) = red(result)
    assert "its ends disagree" in sentence
    declared = judged(network, link=EDR).verdict
    assert declared is (Verdict.UNJUDGED if facts.get("lanes") == 12 else Verdict.FAIL)


def test_what_is_wrong_goes_before_what_is_not_known() -> None:
    network = changed(tree(), "leaf0", 1, could_unnamed=True, could_speed="HDR")
    assert judged(network).verdict is Verdict.FAIL


@pytest.mark.parametrize("state", ["Initialize", "Armed"])
def test_a_linked_port_that_is_not_active(state: str) -> None:
    (sentence,) = red(judged(changed(tree(), "leaf0", 2, state=state)))
    assert f"is {state}, not Active" in sentence


@pytest.mark.parametrize(
    ("physical", "verdict"),
    [
        ("LinkErrorRecovery", Verdict.FAIL),
        ("Polling", Verdict.FAIL),
        ("?(9)", Verdict.UNJUDGED),
        ("", Verdict.UNJUDGED),
    ],
)
def test_an_active_port_that_is_not_up_below_is_no_pass(physical: str, verdict: Verdict) -> None:
    result = judged(one_end(tree(), "leaf0 port 2", physical=physical))
    assert result.verdict is verdict
    (sentence,) = red(result)
    said = physical or "not known"
    assert f"leaf0 port 2 is Active, and its physical state is {said}, not LinkUp" in sentence
    assert "23 of 24 linked ports are Active" in [each.sentence for each in result.findings]


def test_a_recorded_port_in_recovery_is_named() -> None:
    texts = read_folder(DATA / "tree")
    text = texts["iblinkinfo.txt"].replace("Active/  LinkUp", "Active/ LinkErrorRecovery", 1)
    (sentence,) = red(judge_look(join(texts | {"iblinkinfo.txt": text}), Expected(link=EDR)))
    assert sentence.startswith("leaf2 port 1 is Active, and its physical state is LinkErrorRec")


def test_a_fabric_without_manager_is_one_finding() -> None:
    (sentence,) = red(judge_look(kept("unmanaged"), Expected(link=EDR)))
    assert sentence.startswith("all 48 linked ports are Initialize")


def test_a_silent_neighbour_is_named() -> None:
    sentences = red(judge_look(kept("tree-silent"), Expected(link=EDR)))
    assert any("leaf1 port 10 is Active/Polling, and nothing" in each for each in sentences)
    assert any("may not have been seen" in each for each in sentences)


def test_a_lost_uplink_shows_among_its_siblings() -> None:
    result = judged(without(tree(leaves=3, per_pair=2), "leaf0", 5))
    (sentence,) = red(result)
    assert sentence.startswith("leaf0 - spine0: 1 cable where 5 of its sibling pairs have 2")
    gone = without(without(tree(leaves=3, per_pair=2), "leaf0", 5), "leaf0", 6)
    assert red(judged(gone))[0].startswith("leaf0 - spine0: 0 cables where 5")


@pytest.mark.parametrize("agent", ["", "Mellanox Technologies Aggregation Node"])
def test_a_leaf_without_any_cable_to_a_spine_is_named(agent: str) -> None:
    """A spine with SHARP shows an adapter of its own: it is still a spine."""
    pairs = [(leaf, spine) for leaf in (1, 2, 3) for spine in (1, 2) if (leaf, spine) != (1, 1)]
    network = make(
        [(f"leaf{leaf}", 3) for leaf in (1, 2, 3)] + [("spine1", 4), ("spine2", 4)],
        [(f"n{leaf} a", 1) for leaf in (1, 2, 3)] + ([(agent, 1)] if agent else []),
        [(f"n{leaf} a", 1, f"leaf{leaf}", 3) for leaf in (1, 2, 3)]
        + [(f"leaf{leaf}", spine, f"spine{spine}", leaf) for leaf, spine in pairs]
        + ([(agent, 1, "spine1", 4)] if agent else []),
    )
    assert list(network.hosts) == ["n1", "n2", "n3"]
    (sentence,) = red(judged(network))
    assert sentence.startswith("leaf1 - spine1: 0 cables where 5 of its sibling pairs have 1")


def test_siblings_that_are_all_unlike_are_not_judged() -> None:
    assert red(judged(without(tree(leaves=1, spines=2, per_pair=2), "leaf0", 5))) == []


def test_missing_hosts_are_missing() -> None:
    result = judged(tree(), hosts=("n0", "n7.cluster.example", "n8"))
    assert result.verdict is Verdict.MISSING
    (sentence,) = red(result)
    assert sentence.startswith("n8 is expected and not on this fabric")
    assert "not on the list of expected hosts: n1, n2" in " ".join(result.notes)


def test_a_host_without_a_link_is_missing() -> None:
    """The adapter that looks is always shown, with its cable out too."""
    network = without(tree(), "leaf0", 1)
    assert "n0" in network.hosts
    result = judged(network, hosts=("n0", "n1"))
    assert result.verdict is Verdict.MISSING
    assert red(result) == ["n0 is expected and has no link: its cable is out"]


def test_a_lid_given_twice() -> None:
    network = tree()
    ports = dict(network.ports)
    ends = [end for end in ports if network.host_of(end.guid) in {"n1", "n2"}]
    for end in ends:
        ports[end] = replace(ports[end], lid=77)
    (sentence,) = red(judged(replace(network, ports=ports)))
    assert sentence.startswith("LID 77 is given to n1 mlx5_0 port 1 and n2 mlx5_0 port 1: two")


def test_a_port_without_lid() -> None:
    network = tree()
    ports = dict(network.ports)
    (end,) = [end for end in ports if network.host_of(end.guid) == "n1"]
    ports[end] = replace(ports[end], lid=0)
    assert "n1 mlx5_0 port 1 has no LID" in red(judged(replace(network, ports=ports)))[0]


@pytest.mark.parametrize(
    ("managers", "words"),
    [
        ((), "no subnet manager is master"),
        ((replace(MASTER, state=2),), "no subnet manager is master"),
        ((MASTER, replace(MASTER, lid=9)), "2 subnet managers are masters"),
        ((replace(MASTER, state=2), replace(MASTER, lid=9)), "still name LID 1"),
    ],
)
def test_managers_that_are_wrong(managers: tuple[Manager, ...], words: str) -> None:
    look = looked(tree(), managers=managers)
    (sentence,) = red(judge_look(look, Expected()))
    assert words in sentence


def test_a_standby_is_no_fault_and_its_absence_is_told() -> None:
    alone = judge_look(looked(tree(), managers=(MASTER,)), Expected())
    both = judge_look(
        looked(tree(), managers=(MASTER, replace(MASTER, lid=9, state=2))), Expected()
    )
    assert alone.verdict is both.verdict is Verdict.PASS
    assert any("no second subnet manager" in note for note in alone.notes)
    assert not any("no second subnet manager" in note for note in both.notes)


def test_a_counter_at_its_end_is_unjudged_and_errors_are_told() -> None:
    result = judge_look(kept("tree-faults"), Expected(link=EDR))
    sentences = red(result)
    assert any("symbol_error of leaf2 port 1 stands at its end (65535)" in s for s in sentences)
    assert any("reset it (perfquery -R 3 1) and look again" in s for s in sentences)
    assert any("leaf1 - spine1: 1 cable" in s for s in sentences)
    assert any("leaf2 port 2: link_downed 3, port_rcv_errors 12" in n for n in result.notes)


def test_what_was_not_asked_is_told() -> None:
    texts = read_folder(DATA / "tree")
    look = join({name: texts[name] for name in ("ibnetdiscover.txt", "iblinkinfo.txt")})
    notes = " ".join(judge_look(look, Expected(link=EDR)).notes)
    assert "not looked at: error counters" in notes
    assert "not looked at: subnet manager" in notes


def test_without_states_what_can_be_checked_is_and_nothing_is_green() -> None:
    def judged_without(name: str, link: Link | None) -> SubnetResult:
        texts = read_folder(DATA / name)
        return judge_look(
            join({file: text for file, text in texts.items() if file != "iblinkinfo.txt"}),
            Expected(link=link),
        )

    for link in (None, EDR):
        result = judged_without("tree", link)
        assert result.verdict is Verdict.UNJUDGED
        assert {each.quantity for each in result.findings if each.verdict is Verdict.UNJUDGED} == (
            {"state"} if link else {"state", "link"}
        )
        assert any("iblinkinfo" in note for note in result.notes)
    # trained down, against what is declared, and cables fewer than the siblings'
    assert judged_without("tree-faults", EDR).verdict is Verdict.FAIL
    assert any("declared" in each for each in red(judged_without("tree-narrow", EDR)))
    assert judged_without("tree-faults", None).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("nodes", "ports", "verdict"),
    [
        (0, 0, Verdict.UNJUDGED),
        (1, 2, Verdict.UNJUDGED),
        (18, 53, Verdict.UNJUDGED),
        (18, 54, Verdict.PASS),
    ],
)
def test_counters_of_a_part_of_the_ports_are_no_pass(
    nodes: int, ports: int, verdict: Verdict
) -> None:
    texts = read_folder(DATA / "torus")
    said = (
        texts["ibqueryerrors.txt"]
        .replace("18 nodes checked", f"{nodes} nodes checked")
        .replace("63 ports checked", f"{ports} ports checked")
    )
    result = judge_look(join(texts | {"ibqueryerrors.txt": said}), Expected())
    assert result.verdict is verdict
    if verdict is not Verdict.PASS:
        (sentence,) = red(result)
        assert f"the counters of {ports} ports were read, and 54 have a link" in sentence


@pytest.mark.parametrize("nodes", [4, 11, 13])
def test_ports_of_switches_do_not_stand_for_adapters(nodes: int) -> None:
    """As with --switch: 48 ports have a link, and 48 of four switches were asked."""
    texts = read_folder(DATA / "tree")
    said = (
        texts["ibqueryerrors.txt"]
        .replace("12 nodes checked", f"{nodes} nodes checked")
        .replace("56 ports checked", "48 ports checked")
    )
    result = judge_look(join(texts | {"ibqueryerrors.txt": said}), Expected(link=EDR))
    assert result.verdict is Verdict.UNJUDGED
    (sentence,) = red(result)
    assert f"the counters of {nodes} nodes were read, and ibnetdiscover showed 12" in sentence


def test_a_counter_of_a_node_that_is_not_there_is_no_crash() -> None:
    stranger = End(guid="f" * 16, port=1)
    look = looked(tree(), counters={stranger: {"symbol_error": 65535}}, counted_ports=3)
    assert judge_look(look, Expected()).verdict is Verdict.UNJUDGED
