"""The readers: real outputs, what hardware prints beyond them, and what must be refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.errors import InputMissingError, ParseError
from fabricproof.subnet import (
    NodeKind,
    SubnetLook,
    join,
    read_folder,
    read_iblinkinfo,
    read_ibnetdiscover,
    read_ibqueryerrors,
    read_issm,
    read_managers,
    with_states,
)
from fabricproof.subnet.look import TOOLS
from fabricproof.traffic.counters import ENDS
from made_fabrics import changed, make, show_discover, show_linkinfo, tree

DATA = Path(__file__).resolve().parents[1] / "data" / "subnet"


def recorded(name: str) -> str:
    return (DATA / name).read_text()


def test_a_recorded_tree_is_read_whole() -> None:
    network = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    assert [network.name(guid) for guid in network.switches] == [
        "leaf1",
        "leaf2",
        "spine1",
        "spine2",
    ]
    assert list(network.hosts) == [f"host{number}" for number in range(1, 9)]
    assert (len(network.cables), len(network.trunks)) == (24, 8)
    assert {cable.one.words for cable in network.cables} == {"EDR 4x"}
    assert network.name(network.from_guid) == "host7 HCA-1"
    host = network.nodes[network.hosts["host1"][0]]
    assert (host.kind, host.num_ports) == (NodeKind.HOST, 2)


@pytest.mark.parametrize("name", ["ibnetdiscover-full.txt", "ibnetdiscover-grouped.txt"])
def test_other_forms_of_ibnetdiscover_show_the_same(name: str) -> None:
    one = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    other = read_ibnetdiscover(recorded(f"tools/{name}"))
    assert other.nodes == one.nodes
    assert other.ports == one.ports


def test_lines_and_blocks_of_iblinkinfo_show_the_same() -> None:
    network = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    lines = with_states(network, read_iblinkinfo(recorded("tree/iblinkinfo.txt")))
    blocks = with_states(network, read_iblinkinfo(recorded("tools/iblinkinfo-blocks.txt")))
    assert lines.ports == blocks.ports
    down = [port for port in lines.ports.values() if port.state == "Down"]
    assert len(down) == 8
    assert {port.could_lanes for port in lines.ports.values() if port.peer} == {12}
    assert {port.could_speed for port in lines.ports.values() if port.peer} == {"HDR"}


def test_a_port_whose_other_end_does_not_answer() -> None:
    """iblinkinfo.c, print_port: "Port not available" where a port is up and its peer unknown."""
    look = join(read_folder(DATA / "tree-silent"))
    silent = [port for port in look.network.ports.values() if not port.peer and port.lanes]
    assert {(port.state, port.physical) for port in silent} == {
        ("Active", "LinkUp"),
        ("Active", "Polling"),
    }
    assert any("bad status 110" in line for line in look.complaints)


def test_names_with_quotes_and_brackets() -> None:
    """A switch may be called anything (clean_nodedesc keeps printable characters)."""
    odd = 'MF0;sw "A" (rack 3):MQM8700/U1" (x'
    network = make(
        [(odd, 2)],
        [('n1 "mlx5_0" ==( 4X', 1), ("MT4123 ConnectX6   Mellanox Technologies", 1)],
        [
            ('n1 "mlx5_0" ==( 4X', 1, odd, 1),
            ("MT4123 ConnectX6   Mellanox Technologies", 1, odd, 2),
        ],
    )
    for lines in (True, False):
        again = with_states(
            read_ibnetdiscover(show_discover(network)),
            read_iblinkinfo(show_linkinfo(network, lines=lines)),
        )
        assert again.ports == network.ports
        assert again.nodes == network.nodes
    assert list(network.hosts) == ["n1"], "the factory's name is no host"


def test_a_hint_at_what_could_be_is_read() -> None:
    """ibdiag_common.c, get_max_msg; FDR10 has a sentence of its own."""
    network = changed(tree(), "leaf0", 1, lanes=1, could_lanes=4, could_speed="NDR")
    text = show_linkinfo(network)
    fdr10 = text.replace(
        "(Could be 4X Could be 106.25 Gbps)",
        "( Could be FDR10 (Found link at QDR but expected speed is FDR10))",
    )
    ports = [each.port for each in read_iblinkinfo(fdr10)]
    hints = {(port.could_lanes, port.could_speed) for port in ports}
    assert hints == {(None, None), (None, "FDR10")}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "", "empty"),
        (lambda text: text[:-1], "cut"),
        (lambda text: text + "ibwarn: [1] mad_rpc: failed\n", "not a line of ibnetdiscover"),
        (lambda text: "hello\n" + text, "not a line of ibnetdiscover"),
        (lambda text: text + text, "not a line of ibnetdiscover"),
        (lambda text: text.replace("4xEDR", "4xZDR", 1), "not a line of ibnetdiscover"),
        (lambda text: text.replace("[12]\t", "[13]\t", 1), "cannot be"),
        (lambda text: text[: text.rindex("[1](")], "one end"),
        (lambda text: text[: text.rindex("Ca\t")], "cut"),
    ],
)
def test_a_damaged_ibnetdiscover_is_refused(change: object, words: str) -> None:
    text = change(recorded("tree/ibnetdiscover.txt"))  # type: ignore[operator]
    with pytest.raises(ParseError, match=words) as refused:
        read_ibnetdiscover(text, "kept/ibnetdiscover.txt")
    assert str(refused.value).startswith("kept/ibnetdiscover.txt:")
    assert "expected" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "", "empty"),
        (lambda text: text[:-1], "cut"),
        (lambda text: text.replace("25.78125", "26.1", 1), "not known"),
        (lambda text: text.replace("Active", "Lively", 1), "not a line of iblinkinfo"),
        (lambda text: text[text.index("\n") + 1 :], "line for"),
        (lambda text: text[: text.rindex("0x0", 0, len(text) - 90)], "line for|not a line|cut"),
        (lambda text: text + text[: text.index("\n") + 1], "a port twice"),
        (lambda text: text.replace(" 12[  ]", " 11[  ]", 1), "other cables|a port twice"),
    ],
)
def test_a_damaged_iblinkinfo_is_refused(change: object, words: str) -> None:
    text = change(recorded("tree/iblinkinfo.txt"))  # type: ignore[operator]
    network = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    with pytest.raises(ParseError, match=words):
        with_states(network, read_iblinkinfo(text))


def test_two_looks_do_not_mix() -> None:
    network = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    with pytest.raises(ParseError, match="other cables"):
        with_states(network, read_iblinkinfo(recorded("tree-faults/iblinkinfo.txt")))


def test_lost_blanks_at_ends_are_no_damage() -> None:
    errors = recorded("tree/ibqueryerrors.txt")
    assert "## Thresholds: \n" in errors
    bare = "\n".join(line.rstrip() for line in errors.split("\n"))
    assert read_ibqueryerrors(bare) == read_ibqueryerrors(errors)


def test_ibqueryerrors_by_port() -> None:
    errors = read_ibqueryerrors(recorded("tree-faults/ibqueryerrors.txt"))
    assert (errors.checked, errors.failed) == (56, 0)
    assert errors.ports["0000000000200001", 1] == {"symbol_error": 65535}
    assert errors.ports["0000000000200001", 2] == {"port_rcv_errors": 12, "link_downed": 3}
    with_data = read_ibqueryerrors(recorded("tools/ibqueryerrors-data.txt"))
    assert with_data.ports["0000000000200001", 2]["port_rcv_errors"] == 12


def test_hidden_errors_are_refused() -> None:
    with pytest.raises(ParseError, match="hidden"):
        read_ibqueryerrors(recorded("tools/ibqueryerrors-suppressed.txt"))
    text = recorded("tree-faults/ibqueryerrors.txt")
    with pytest.raises(ParseError, match="hidden"):
        read_ibqueryerrors(text.replace("Thresholds: ", "Thresholds:SymbolErrorCounter=10"))


def test_every_cut_ibqueryerrors_is_refused() -> None:
    text = recorded("tree-faults/ibqueryerrors.txt")
    for end in range(len(text)):
        with pytest.raises(ParseError):
            read_ibqueryerrors(text[:end])
    lines = text.splitlines(keepends=True)
    with pytest.raises(ParseError, match="missing"):
        read_ibqueryerrors("".join(lines[:2] + lines[3:]))


def test_two_managers_answer_for_themselves() -> None:
    assert read_issm(recorded("tree-faults/issm.txt")) == (1, 13)
    master, standby = read_managers(recorded("tree-faults/sminfo.txt"))
    assert (master.lid, master.is_master, master.priority) == (1, True, 2)
    assert (standby.lid, standby.state) == (13, 2)


def test_sminfo_names_the_manager() -> None:
    (manager,) = read_managers(
        "sminfo: sm lid 12 sm guid 0xf45214030091ba11, activity count 8312 priority 14 "
        "state 3 SMINFO_MASTER\n"
    )
    assert (manager.lid, manager.priority) == (12, 14)
    assert manager.guid == "f45214030091ba11"


@pytest.mark.parametrize(
    "line",
    [
        "ibwarn: [2290] mad_rpc: _do_madrpc failed; dport (Lid 0)\n",
        "sminfo: sm lid 1 sm guid 0x1, activity count 4 priority 2 state 2 SMINFO_MASTER\n",
    ],
    ids=["nobody answered", "a word of another state"],
)
def test_what_is_no_manager_is_refused(line: str) -> None:
    with pytest.raises(ParseError, match="not a line of sminfo") as caught:
        read_managers(line)
    assert "sminfo: sm lid ..." in str(caught.value)


def test_every_cut_answer_of_managers_is_refused() -> None:
    text = recorded("tree-faults/issm.txt")
    last = text.index("IsSMdisabled ports\n") + len("IsSMdisabled ports\n")
    for end in range(last):
        with pytest.raises(ParseError):
            read_issm(text[:end])
    text = recorded("tree/sminfo.txt")
    for end in range(len(text)):
        with pytest.raises(ParseError):
            read_managers(text[:end])


def test_a_look_needs_the_cables() -> None:
    texts = read_folder(DATA / "tree")
    with pytest.raises(InputMissingError, match=r"ibnetdiscover\.txt"):
        join({name: text for name, text in texts.items() if name != "ibnetdiscover.txt"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "SW     1  1 0x0002c90300000001 4x EDR - CA    4  1 0x0002c90300000010 ( 'a' - 'b' )\n",
            "-p",
        ),
        ("# Topology file: generated with tree_maker\n", "simulator"),
        ("# Faked topology file\n", "simulator"),
    ],
)
def test_what_looks_like_ibnetdiscover_is_told_with_what_to_do(text: str, words: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_ibnetdiscover(text)
    assert words in (caught.value.next_step or "")


def test_a_manager_that_nobody_asked_is_told() -> None:
    texts = read_folder(DATA / "tree-faults")
    first = texts["sminfo.txt"].splitlines(keepends=True)[0]
    look = join({**texts, "sminfo.txt": first})
    assert any("LID 13 was not asked" in line for line in look.complaints)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("ibnetdiscover.txt", "12xHDR", "1xSDR", "other LIDs, widths or speeds"),
        ("ibnetdiscover.txt", "12xHDR", "12xEDR", "expected EDR"),
        ("ibnetdiscover.txt", "12xHDR", "4xHDR", "expected 4x"),
        ("ibnetdiscover.txt", " lid 13 ", " lid 113 ", "expected LID 113"),
        ("sminfo.txt", "sm lid 1 ", "sm lid 777 ", "got LID 777, GUID 0x0000000000100001"),
        ("sminfo.txt", "guid 0x100001", "guid 0xdeadbeef", "GUID 0x00000000deadbeef"),
        ("sminfo.txt", "sm lid 1 ", "sm lid 2 ", "got LID 2, GUID 0x0000000000100001"),
    ],
)
def test_outputs_of_two_moments_are_refused(name: str, old: str, new: str, words: str) -> None:
    texts = read_folder(DATA / "torus")
    assert old in texts[name]
    with pytest.raises(ParseError) as refused:
        join(texts | {name: texts[name].replace(old, new)}, "kept")
    assert words in str(refused.value)


def test_what_one_of_the_two_does_not_know_is_no_other_moment() -> None:
    """An old ibnetdiscover has no names for what an iblinkinfo beside it can name."""
    texts = read_folder(DATA / "torus")
    text = texts["ibnetdiscover.txt"].replace("12xHDR", "?????")
    assert {
        cable.one.words for cable in join(texts | {"ibnetdiscover.txt": text}).network.cables
    } == {"HDR 12x"}


@pytest.mark.parametrize(("guid", "port"), [("0xdead", 1), ("0x200000", 7)])
def test_counters_of_a_port_that_is_not_there_are_refused(guid: str, port: int) -> None:
    texts = read_folder(DATA / "torus")
    errors = (
        f'Errors for "other"\n   GUID {guid} port {port}: [LinkDownedCounter == 200]\n'
        + texts["ibqueryerrors.txt"]
        .replace("0 bad nodes", "1 bad nodes")
        .replace("0 ports have", "1 ports have")
    )
    with pytest.raises(ParseError, match=r"ibqueryerrors\.txt: of another fabric"):
        join(texts | {"ibqueryerrors.txt": errors})
    complained = texts | {"ibqueryerrors.txt": errors, "complaints.txt": "ibnetdiscover: timeout\n"}
    assert join(complained).complaints == ("ibnetdiscover: timeout",)


def test_a_master_that_saquery_does_not_know_is_told() -> None:
    texts = read_folder(DATA / "torus")
    look = join(texts | {"issm.txt": "IsSM ports\n\nIsSMdisabled ports\n"})
    (said,) = look.complaints
    assert said == "sminfo names a master at LID 1, and saquery -s no subnet manager there"


def test_queries_that_failed_are_counted_once() -> None:
    text = recorded("tree/ibqueryerrors.txt")
    failed = "##          2 PMA query failures\n"
    silent = text.replace("## Supp", f"{failed}## Supp")
    assert read_ibqueryerrors(silent).failed == 2
    with pytest.raises(ParseError, match="twice"):
        read_ibqueryerrors(silent.replace(failed, failed * 2))


def test_the_node_that_looked_was_seen() -> None:
    text = recorded("tree/ibnetdiscover.txt")
    (line,) = [line for line in text.splitlines(keepends=True) if line.startswith("# Initiated")]
    stranger = line.replace("node 0000000000100012", "node 00000000deadbeef")
    with pytest.raises(ParseError, match=r"looked|not a line"):
        read_ibnetdiscover(text.replace(line, stranger))


def test_managers_that_are_there_twice() -> None:
    text = recorded("tree/sminfo.txt")
    assert read_managers(text + text.replace("count 406", "count 407")) == read_managers(text)
    with pytest.raises(ParseError, match="answered twice, and not the same"):
        read_managers(text + text.replace("state 3 SMINFO_MASTER", "state 2 SMINFO_STANDBY"))


def test_a_port_that_is_up_and_nobody_knows_is_refused() -> None:
    """An adapter's second port: without a cable it is left out, with a silent switch it is not."""
    network = read_ibnetdiscover(recorded("tree/ibnetdiscover.txt"))
    text = recorded("tree/iblinkinfo.txt")
    start = '0x00000000000fffff "                   host9 HCA-1"      0    2[  ] '
    down = start + '==(                Down/ Polling)==>             [  ] "" ( )\n'
    up = start + '==( 4X      25.78125 Gbps Active/  LinkUp)==>      "Port not available"\n'
    assert with_states(network, read_iblinkinfo(text + down)).cables
    with pytest.raises(ParseError, match="a node that ibnetdiscover did not show"):
        with_states(network, read_iblinkinfo(text + up))


#: what no other line vouches for; the tool tells of it on standard error besides
UNNOTICED = ("##          2 PMA query failures",)


def judged_facts(look: SubnetLook) -> SubnetLook:
    """Return a look with those counters only that are errors."""
    counters = {
        end: {name: values[name] for name in sorted(values.keys() & ENDS.keys())}
        for end, values in (look.counters or {}).items()
    }
    return replace(look, counters=counters)


@pytest.mark.parametrize("look", ["tree-faults", "torus", "tree-silent"])
@pytest.mark.parametrize("name", TOOLS)
def test_a_line_that_is_lost_or_doubled_is_refused_or_says_nothing(look: str, name: str) -> None:
    texts = read_folder(DATA / look)
    whole = judged_facts(join(texts))
    lines = texts[name].splitlines(keepends=True)
    unnoticed = []
    for number, line in enumerate(lines):
        for now in (lines[:number] + lines[number + 1 :], [*lines[: number + 1], *lines[number:]]):
            try:
                again = judged_facts(join(texts | {name: "".join(now)}))
            except ParseError:
                continue
            is_told = len(again.complaints) > len(whole.complaints)
            if again != whole and not is_told and not line.startswith(UNNOTICED):
                unnoticed.append((number, line))
    assert not unnoticed
