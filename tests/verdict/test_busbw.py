"""Bus bandwidth of GPUs: what the rails of a node allow, what is unknown, what proves nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricproof.benchmarks.parsers import parse_text, read_tables
from fabricproof.cli.judge.judge import command as judge
from fabricproof.cli.judge.parse import command as parse
from fabricproof.core.errors import ConfigError
from fabricproof.core.measure import Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.references import from_texts
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Report, Rules

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from nccl_outputs import COMBINES, FACTORS, Made, text_of

#: eight rails of NDR, 400 GB/s a node: about 390 of payload
EIGHT = Fabric(link=find_link("NDR 4x"), num_rails=8)
ONE = Fabric(link=find_link("NDR 4x"))


def reports(
    run: Made, fabric: Fabric | None = EIGHT, *references: str, rccl: bool = False
) -> list[Report]:
    rules = Rules(fabric=fabric, references=from_texts(references, origin="test"))
    return [judge_table(table, rules) for table in parse_text(text_of(run, rccl=rccl))]


def verdict(run: Made, fabric: Fabric | None = EIGHT, *references: str) -> Verdict:
    return reports(run, fabric, *references)[0].verdict


def reason(run: Made, fabric: Fabric | None = EIGHT, *references: str) -> str:
    return reports(run, fabric, *references)[0].quantities[-1].reason


def test_two_nodes_of_eight_gpus_over_eight_rails() -> None:
    out, inside = reports(Made())
    assert (out.verdict, inside.verdict) == (Verdict.PASS, Verdict.PASS)
    (judgement,) = out.quantities
    assert judgement.name == "device_busbw_8GiB"
    assert judgement.value == pytest.approx(369_660)  # GB/s are of 10 to the 9
    assert inside.quantities[0].name == "device_busbw_in_place_8GiB"


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
#: ranks in turn: each sends to another node
CYCLIC = Made(name="sendrecv", hosts=tuple(f"gpu{rank % 2}" for rank in range(16)))
OLD = Made(version="2.13.9")
FEW = replace(EIGHT, num_rails=2)
TEN_G = Fabric(link=find_link("10GbE"), mtu=9000)


def of(name: str, gb_s: float) -> Made:
    return Made(name=name, gb_s=gb_s)


#: a run, the fabric, the verdict and words of why
RUNS: list[tuple[Made, Fabric | None, Verdict, str]] = [
    (Made(gb_s=300.0), EIGHT, FAIL, ""),
    (Made(gb_s=370.0), replace(EIGHT, num_rails=4), PASS, ""),
    # Switches that add halve what leaves a node, so that busbw may be nearly twice the rails;
    (Made(gb_s=700.0), EIGHT, PASS, ""),
    (Made(gb_s=800.0), EIGHT, INVALID, ""),
    # what all ranks send each other crosses in full.
    (of("broadcast", 370.0), EIGHT, PASS, ""),
    (of("broadcast", 450.0), EIGHT, INVALID, ""),
    # 16 ranks, of whose 15 blocks 8 cross: 390 / 8 x 15 / 8 is 91 GB/s for each rank
    (of("alltoall", 88.0), EIGHT, PASS, ""),
    (of("alltoall", 66.0), EIGHT, FAIL, ""),
    (of("alltoall", 110.0), EIGHT, INVALID, ""),
    # sendrecv crosses once a node or with every rank
    (of("sendrecv", 46.0), EIGHT, PASS, ""),
    (of("sendrecv", 30.0), EIGHT, FAIL, ""),
    (replace(CYCLIC, gb_s=46.0), EIGHT, PASS, ""),
    (replace(CYCLIC, gb_s=60.0), EIGHT, INVALID, ""),
    # two rails for eight ranks that all send elsewhere: a quarter of one each
    (replace(CYCLIC, gb_s=11.8), FEW, PASS, ""),
    (replace(CYCLIC, gb_s=8.5), FEW, FAIL, ""),
    # eight GPUs and one rail stated: nobody said how many rails the node has,
    (Made(gb_s=370.0), ONE, UNJUDGED, "--link NAME,rails=N"),
    (Made(gb_s=47.0), ONE, UNJUDGED, ""),
    (Made(here=1, gb_s=47.0), ONE, PASS, ""),
    # and slower than one rail is too slow for any number of them.
    (Made(gb_s=20.0), ONE, FAIL, ""),
    # what the rails do not explain
    (Made(nodes=1), EIGHT, UNJUDGED, "one node"),
    (Made(groups=2), EIGHT, UNJUDGED, "several groups"),
    (Made(hosts=("a", "a", "a", "b")), EIGHT, UNJUDGED, "as many ranks"),
    (Made(name="sendrecv", hosts=("a",)), EIGHT, UNJUDGED, "one node"),
    (Made(), None, UNJUDGED, ""),
    # a program that does not print its name is told by its numbers or not at all
    (OLD, EIGHT, PASS, ""),
    (replace(OLD, name="reduce_scatter"), EIGHT, PASS, ""),
    (replace(OLD, gb_s=200.0), EIGHT, FAIL, ""),
    *((replace(OLD, name=name), EIGHT, UNJUDGED, "")
      for name in sorted(set(FACTORS) - {"all_reduce", "reduce_scatter"})),
    # messages too short to show the rate; of a table that begins with large messages nobody knows
    # what starting takes
    (Made(most=2**21, factor=2), EIGHT, UNJUDGED, "too short"),
    (Made(least=2**21, most=2**22, factor=2), EIGHT, UNJUDGED, ""),
    (Made(least=2**30, most=2**33, gb_s=200.0), EIGHT, FAIL, ""),
    # one GPU alone copies, or does nothing at all: 0.09 us have too few digits to divide by
    (Made(nodes=1, here=1, name="sendrecv", gb_s=183157.0, start_us=0.0004, most=2**24), EIGHT,
     UNJUDGED, ""),
    # 10GbE carries 1.2386 GB/s of TCP at most: a true rate printed as 1.24 may be that, 1.25 not
    (Made(name="sendrecv", here=1, gb_s=1.23755), TEN_G, PASS, ""),
    (Made(name="sendrecv", here=1, gb_s=1.2451), TEN_G, INVALID, ""),
    (Made(wrong=3), EIGHT, INVALID, "wrong"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "fabric", "expected", "words"), RUNS)
def test_a_run_is_judged_by_what_its_rails_allow(
    run: Made, fabric: Fabric | None, expected: Verdict, words: str
) -> None:
    assert verdict(run, fabric) is expected
    assert words in reason(run, fabric)


def test_a_reference_judges_where_rails_are_unknown() -> None:
    assert verdict(Made(gb_s=370.0), ONE, "device_busbw=360 GB/s") is Verdict.PASS


def test_without_the_lines_of_the_ranks_nothing_is_known() -> None:
    lines = [line for line in text_of(Made()).split("\n") if "  Rank " not in line]
    report = judge_table(parse_text("\n".join(lines))[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.UNJUDGED
    assert "on which nodes" in report.quantities[-1].reason


def test_a_program_without_a_row_is_unjudged() -> None:
    text = text_of(Made()).replace("all_reduce_perf", "hypercube_perf")
    report = judge_table(parse_text(text)[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.UNJUDGED


def test_a_rate_that_is_printed_as_nothing_is_red() -> None:
    dying = Made(gb_s=0.0075)
    assert any(" 0.00 " in line and " 0.01 " in line for line in text_of(dying).splitlines())
    assert verdict(dying) is Verdict.FAIL


def test_a_reference_of_host_memory_says_nothing_of_gpus() -> None:
    rules = Rules(fabric=EIGHT, references=from_texts(["1 GB/s"], origin="test"))
    (judgement,) = judge_table(parse_text(text_of(Made(gb_s=100.0)))[0], rules).quantities
    assert judgement.verdict is Verdict.FAIL
    assert judgement.reference != pytest.approx(1000)
    others = from_texts(["device_bandwidth=1 GB/s"], origin="test")
    report = judge_table(
        parse_text(text_of(Made(gb_s=100.0)))[0], replace(rules, references=others)
    )
    assert report.quantities[0].reference == judgement.reference
    with pytest.raises(ConfigError, match="unknown quantity"):
        from_texts(["device_rate=1 GB/s"], origin="test")


def test_wrong_values_are_invalid() -> None:
    """Also where the count of the rows is lost, and where a reference would be met."""
    text = text_of(Made()).replace("values : 0 OK", "values : 7 FAILED")
    report = judge_table(parse_text(text)[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.INVALID
    assert verdict(Made(wrong=3), EIGHT, "device_busbw=1 GB/s") is Verdict.INVALID


def test_a_wrong_value_of_a_small_message_spoils_the_run() -> None:
    lines = text_of(Made()).split("\n")
    at = next(index for index, line in enumerate(lines) if line.startswith("        2048"))
    lines[at] = lines[at].replace("       0    40.41", "       5    40.41")
    report = judge_table(parse_text("\n".join(lines))[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.INVALID


def test_a_dip_in_the_middle_is_no_pass() -> None:
    """The largest message is as fast as ever, and 32 MiB take ten times as long as they should."""
    lines = text_of(Made()).split("\n")
    at = next(index for index, line in enumerate(lines) if line.startswith("    33554432"))
    lines[at] = lines[at].replace("210.04  159.75  299.54", "2100.4   15.98   29.95")
    text = "\n".join(lines).replace(": 127.575", ": 119.150")
    out, inside = (judge_table(each, Rules(fabric=EIGHT)) for each in parse_text(text))
    assert (out.verdict, inside.verdict) == (Verdict.UNJUDGED, Verdict.PASS)
    assert "32MiB" in out.quantities[-1].reason
    assert any("dip: 32MiB" in str(each) for each in out.findings)


def test_a_tolerance_that_is_asked_for_counts() -> None:
    table = parse_text(text_of(Made(gb_s=340.0)))[0]
    assert judge_table(table, Rules(fabric=EIGHT)).verdict is Verdict.PASS
    assert judge_table(table, Rules(fabric=EIGHT, tolerance=0.05)).verdict is Verdict.FAIL
    asked = Rules(fabric=EIGHT, tolerance_asked=True)  # the 10 % that are usual elsewhere
    assert judge_table(table, asked).verdict is Verdict.FAIL


def test_a_minimum_that_was_set_is_kept() -> None:
    for word, expected in (("OK", Verdict.PASS), ("FAILED", Verdict.FAIL)):
        text = text_of(Made()).replace(": 127.575 ", f": 127.575 {word}")
        for table in parse_text(text):
            assert judge_table(table, Rules(fabric=EIGHT)).verdict is expected


def test_unchecked_values_are_told() -> None:
    findings = " ".join(map(str, reports(Made(checked=False))[0].findings))
    assert "not checked" in findings


@pytest.mark.parametrize(("word", "other"), [("196.61", "296.61"), ("10922.5", "5922.5")])
def test_a_row_that_contradicts_itself_is_invalid(word: str, other: str) -> None:
    text = text_of(Made())
    assert word in text
    report = judge_table(parse_text(text.replace(word, other))[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.INVALID
    assert any("contradicts" in each.reason for each in report.quantities)


@given(
    name=st.sampled_from(sorted(FACTORS)),
    nodes=st.integers(2, 9),
    here=st.sampled_from([1, 2, 4, 8]),
    share=st.floats(0.05, 3),
)
@settings(max_examples=150, deadline=None)
def test_more_is_never_worse_until_it_is_impossible(
    name: str, nodes: int, here: int, share: float
) -> None:
    order = [Verdict.FAIL, Verdict.PASS, Verdict.INVALID]
    runs = [
        Made(name=name, nodes=nodes, here=here, gb_s=390 * part, least=2**30)
        for part in (share, share * 1.3)
    ]
    found = [verdict(run) for run in runs]
    assert set(found) <= set(order)
    assert order.index(found[0]) <= order.index(found[1])


def test_rccl_and_its_half_tables() -> None:
    (table,) = parse_text(text_of(Made(version="2.13"), rccl=True, in_place_only=True))
    assert (table.suite, table.attributes["placement"]) == ("rccl-tests", "in-place")
    assert judge_table(table, Rules(fabric=EIGHT)).verdict is Verdict.PASS


def test_several_types_are_tables_of_their_own() -> None:
    text = text_of(Made())
    head, _, rows = text.partition("       (B)")
    body, _, end = rows.partition("# Out of")
    lines = body.split("\n", 1)[1]
    both = head + "#  (B)\n" + lines + lines.replace("   float", "    half") + "# Out of" + end
    tables = parse_text(both)
    assert [each.attributes["datatype"] for each in tables] == ["float", "float", "half", "half"]


def test_combining_programs_are_those_of_the_catalogue() -> None:
    assert {"all_reduce", "reduce", "reduce_scatter"} == COMBINES


def test_runs_one_after_the_other_and_a_damaged_one() -> None:
    text = text_of(Made()) + text_of(Made(name="sendrecv", gb_s=46.0))
    assert len(parse_text(text)) == 4
    damaged = text.replace("# Avg bus bandwidth    : 127", "# Avg bus bandwidth    : 128")
    reading = read_tables(damaged)
    assert [len(reading.tables), len(reading.damages)] == [2, 1]


#: as NCCL 2.22 to 2.30, the plugin of HPC-X and that for libfabric print them, with made names
USING = "gpu00:7:19 [0] NCCL INFO Using network {}"
CHANNEL = "gpu00:7:19 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/{}/0/GDRDMA"
PROVIDER = "gpu00:7:19 [0] NCCL INFO NET/OFI Selected provider is {}, fabric is efa (found 3 nics)"
CARDS = "gpu00:7:19 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/{} [1]mlx5_1:1/{} [RO]; OOB eth0:<0>"
MNNVL = "gpu00:7:19 [0] NCCL INFO comm 0xa rank 0 nRanks 16 nNodes 2 localRanks 8 MNNVL 1"
UCX = "[1.2] [gpu00:7:0] ucp_worker.c:1912 UCX  INFO    mpi inter-node cfg#1 tag(tcp/eth0)"
ROCE = Fabric(link=find_link("400GbE"), num_rails=8, protocol="rocev2")
TCP = Fabric(link=find_link("400GbE"), num_rails=8, protocol="tcp")
#: what EFA and Slingshot carry NCCL by: the plugin aws-ofi-nccl
EFA, CXI = (Fabric(link=find_link(name), num_rails=8) for name in ("EFA 400", "Slingshot 400"))
OFI = USING.format("AWS Libfabric")
IB, SOCKET = USING.format("IB"), USING.format("Socket")


def heard(fabric: Fabric, *lines: str, without: str = "\0") -> Report:
    """Judge a run among whose rows NCCL says what it used, less the lines with a word."""
    above, head, below = text_of(Made(gb_s=350.0)).partition("# Using devices\n")
    text = "\n".join(("gpu00:7:19 [0] NCCL INFO NET/IB : No device found.", *lines, ""))
    whole = "\n".join(
        line for line in (above + head + text + below).split("\n") if without not in line
    )
    return judge_table(parse_text(whole)[0], Rules(fabric=fabric))


@pytest.mark.parametrize(
    ("fabric", "lines", "words"),
    [
        (EIGHT, [SOCKET], "used Socket, and the declared link is NDR"),
        (EIGHT, [CHANNEL.format("Socket")], "used Socket"),
        (ROCE, [SOCKET], "(rocev2): the run took another path"),
        (EIGHT, [USING.format("Libfabric"), PROVIDER.format("tcp")], "used Libfabric and tcp"),
        (EIGHT, [USING.format("AWS Libfabric"), PROVIDER.format("efa")], "AWS Libfabric and efa"),
        (EFA, [OFI, PROVIDER.format("tcp")], "used AWS Libfabric and tcp"),
        (EFA, [SOCKET], "used Socket, and the declared link is EFA 400"),
        (CXI, [OFI, PROVIDER.format("efa")], "AWS Libfabric and efa"),
        (TCP, [IB], "used IB, and the declared link is 400GbE (tcp)"),
        (EIGHT, [CHANNEL.format("IB"), CHANNEL.format("Socket")], "did not take one path"),
        (EIGHT, [IB, CARDS.format("RoCE", "RoCE")], "used RoCE on mlx5_0:1 and mlx5_1:1"),
        (ROCE, [IB, CARDS.format("IB", "IB")], "used InfiniBand on mlx5_0:1 and mlx5_1:1"),
    ],
)
def test_what_nccl_says_of_another_path_is_invalid(
    fabric: Fabric, lines: list[str], words: str
) -> None:
    report = heard(fabric, *lines)
    assert report.verdict is Verdict.INVALID
    assert words in report.quantities[-1].reason


@pytest.mark.parametrize(
    ("fabric", "lines"),
    [
        (EIGHT, [IB, CHANNEL.format("IB"), CARDS.format("IB", "IB")]),
        (EIGHT, [IB, CARDS.format("IB", "RoCE")]),
        (EIGHT, [USING.format("IBext_v8")]),
        (EIGHT, [USING.format("AWS Libfabric"), PROVIDER.format("verbs")]),
        (EFA, [OFI, PROVIDER.format("efa")]),
        (EFA, [USING.format("Libfabric"), PROVIDER.format("efa")]),
        (CXI, [OFI, PROVIDER.format("cxi")]),
        (EIGHT, ["gpu00:7:19 [0] NCCL INFO NET/Socket : Using [0]ib0:10.0.0.1<0>"]),
        (EIGHT, [SOCKET, CHANNEL.format("IB")]),
        (EIGHT, [SOCKET, MNNVL]),
        (EIGHT, [UCX]),
        (EIGHT, [UCX, IB]),
        (EIGHT, ["MPI startup(): libfabric provider: tcp;ofi_rxm", IB]),
        (ROCE, [IB, CARDS.format("RoCE", "RoCE")]),
        (TCP, [SOCKET]),
        (Fabric(link=find_link("400GbE"), num_rails=8), [SOCKET]),
    ],
)
def test_what_nccl_says_of_the_declared_path_changes_nothing(
    fabric: Fabric, lines: list[str]
) -> None:
    """Nor does what it chose and did not use, or what carried its ranks' first words."""
    assert heard(fabric, *lines).verdict is heard(fabric).verdict is Verdict.PASS


def test_what_nccl_chose_on_one_node_or_nobody_knows_where_carries_nothing() -> None:
    text = text_of(Made(nodes=1)).replace("# Using devices", SOCKET + "\n# Using devices")
    report = judge_table(parse_text(text)[0], Rules(fabric=EIGHT))
    assert report.verdict is Verdict.UNJUDGED
    assert heard(EIGHT, SOCKET, without=" Rank ").verdict is Verdict.UNJUDGED
    channel = CHANNEL.format("Socket")
    assert heard(EIGHT, channel, without=" Rank ").verdict is Verdict.INVALID


def test_the_command() -> None:
    folder = Path(__file__).parents[1] / "data" / "nccl"
    words = [str(folder / "all_reduce-2x8.txt"), "--json", "--link", "NDR 4x"]
    result = CliRunner().invoke(judge, [*words[:-1], "NDR 4x,rails=8"])
    assert (result.exit_code, json.loads(result.output)["verdict"]) == (0, "PASS")
    assert CliRunner().invoke(judge, words).exit_code == 5
    asked = [*words[:-1], "NDR 4x,rails=8", "--reference", "25 GB/s"]
    assert CliRunner().invoke(judge, asked).exit_code == 4
    asked = [*words, "--reference", "device_busbw=366 GB/s"]
    assert CliRunner().invoke(judge, asked).exit_code == 0
    parsed = CliRunner().invoke(parse, [str(folder / "sendrecv-2x8.txt"), "--json"])
    assert [each["program"] for each in json.loads(parsed.output)] == ["sendrecv_perf"] * 2
