"""The verdict on one look: each fault is named, and a good fabric is PASS."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from fabricproof.core.findings import texts_of
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
    return [each.text for each in result.findings if each.verdict is not Verdict.PASS]


def judged(network: Network, **expected: object) -> SubnetResult:
    return judge_look(looked(network), Expected(**expected))  # type: ignore[arg-type]


def kept(name: str) -> SubnetLook:
    return join(read_folder(DATA / name), name)


def one_end(network: Network, where: str, **facts: object) -> Network:
    """Return ``network`` with one end of a cable changed, and not the other."""
    (end,) = [end for end in network.ports if str(network.where(end)) == where]
    return replace(network, ports={**network.ports, end: replace(network.ports[end], **facts)})  # type: ignore[arg-type]


def lids(lid: int, *hosts: str) -> Network:
    network = tree()
    ports = {
        end: replace(port, lid=lid) if network.host_of(end.guid) in hosts else port
        for end, port in network.ports.items()
    }
    return replace(network, ports=ports)


LEAF1 = partial(changed, tree(), "leaf0", 1)
FEWER = without(tree(leaves=3, per_pair=2), "leaf0", 5)
UNKNOWN = LEAF1(lanes=None, speed=None)
STRANGER = {End(guid="f" * 16, port=1): {"symbol_error": 65535}}


def managed(*managers: Manager) -> SubnetLook:
    return looked(tree(), managers=managers)


@pytest.mark.parametrize(
    ("look", "expected", "verdict", "words"),
    [
        (looked(make([("leaf", 4)], [("n1 mlx5_0", 1)], [])), Expected(), Verdict.SKIPPED, None),
        # half the lanes at twice the speed are as good
        (looked(LEAF1(lanes=2, speed="HDR")), Expected(link=EDR), Verdict.PASS, None),
        (looked(LEAF1(lanes=2, speed="HDR")), Expected(link=find_link("HDR 4x")), Verdict.FAIL,
         None),
        (looked(UNKNOWN), Expected(link=EDR), Verdict.UNJUDGED, None),
        (looked(UNKNOWN), Expected(), Verdict.UNJUDGED, None),
        (looked(LEAF1(could_unnamed=True, could_speed="HDR")), Expected(), Verdict.FAIL, None),
        (looked(LEAF1(state="Initialize")), Expected(), Verdict.FAIL, "is Initialize, not Active"),
        (looked(LEAF1(state="Armed")), Expected(), Verdict.FAIL, "is Armed, not Active"),
        (kept("unmanaged"), Expected(link=EDR), Verdict.FAIL, "all 48 linked ports are Initialize"),
        (looked(FEWER), Expected(), Verdict.FAIL,
         "leaf0 - spine0: 1 cable where 5 of its sibling pairs have 2"),
        (looked(without(FEWER, "leaf0", 6)), Expected(), Verdict.FAIL, "0 cables where 5"),
        (looked(without(tree(leaves=1, spines=2, per_pair=2), "leaf0", 5)), Expected(),
         Verdict.PASS, None),
        # the adapter that looks is always shown, with its cable out too
        (looked(without(tree(), "leaf0", 1)), Expected(hosts=("n0", "n1")), Verdict.MISSING,
         "n0 is expected and has no link: its cable is out"),
        (looked(lids(77, "n1", "n2")), Expected(), Verdict.FAIL,
         "LID 77 is given to n1 mlx5_0 port 1 and n2 mlx5_0 port 1: two"),
        (looked(lids(0, "n1")), Expected(), Verdict.FAIL, "n1 mlx5_0 port 1 has no LID"),
        (managed(), Expected(), Verdict.FAIL, "no subnet manager is master"),
        (managed(replace(MASTER, state=2)), Expected(), Verdict.FAIL,
         "no subnet manager is master"),
        (managed(MASTER, replace(MASTER, lid=9)), Expected(), Verdict.FAIL,
         "2 subnet managers are masters"),
        (managed(replace(MASTER, state=2), replace(MASTER, lid=9)), Expected(), Verdict.FAIL,
         "still name LID 1"),
        (looked(tree(), counters=STRANGER, counted_ports=3), Expected(), Verdict.UNJUDGED, None),
    ],
)  # fmt: skip
def test_each_fault_has_its_verdict(
    look: SubnetLook, expected: Expected, verdict: Verdict, words: str | None
) -> None:
    result = judge_look(look, expected)
    assert result.verdict is verdict
    if words is not None:
        (sentence,) = red(result)
        assert words in sentence


def test_good_fabrics_pass() -> None:
    assert judge_look(kept("tree"), Expected(link=EDR)).verdict is Verdict.PASS
    torus = judge_look(kept("torus"), Expected())
    assert (torus.verdict, red(torus)) == (Verdict.PASS, [])
    assert judged(tree()).verdict is Verdict.PASS


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
    assert "23 of 24 linked ports are Active" in [each.text for each in result.findings]


def test_a_silent_neighbour_is_named() -> None:
    sentences = red(judge_look(kept("tree-silent"), Expected(link=EDR)))
    assert any("leaf1 port 10 is Active/Polling, and nothing" in each for each in sentences)
    assert any("may not have been seen" in each for each in sentences)


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


def test_missing_hosts_are_missing() -> None:
    result = judged(tree(), hosts=("n0", "n7.cluster.example", "n8"))
    assert result.verdict is Verdict.MISSING
    (sentence,) = red(result)
    assert sentence.startswith("n8 is expected and not on this fabric")
    assert "not on the list of expected hosts: n1, n2" in " ".join(texts_of(result.notes))


def test_a_standby_is_no_fault_and_its_absence_is_told() -> None:
    alone = judge_look(looked(tree(), managers=(MASTER,)), Expected())
    both = judge_look(
        looked(tree(), managers=(MASTER, replace(MASTER, lid=9, state=2))), Expected()
    )
    assert alone.verdict is both.verdict is Verdict.PASS
    assert any("no second subnet manager" in note.text for note in alone.notes)
    assert not any("no second subnet manager" in note.text for note in both.notes)


def test_a_counter_at_its_end_is_unjudged_and_errors_are_told() -> None:
    result = judge_look(kept("tree-faults"), Expected(link=EDR))
    sentences = red(result)
    assert any("symbol_error of leaf2 port 1 stands at its end (65535)" in s for s in sentences)
    assert any("reset it (perfquery -R 3 1) and look again" in s for s in sentences)
    assert any("leaf1 - spine1: 1 cable" in s for s in sentences)
    assert any("leaf2 port 2: link_downed 3, port_rcv_errors 12" in n.text for n in result.notes)


def test_what_was_not_asked_is_told() -> None:
    texts = read_folder(DATA / "tree")
    look = join({name: texts[name] for name in ("ibnetdiscover.txt", "iblinkinfo.txt")})
    notes = " ".join(texts_of(judge_look(look, Expected(link=EDR)).notes))
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
        assert {each.fact for each in result.findings if each.verdict is Verdict.UNJUDGED} == (
            {"state"} if link else {"state", "link"}
        )
        assert any("iblinkinfo" in note.text for note in result.notes)
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
