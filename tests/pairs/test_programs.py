"""What LinkTest and mpiGraph print, as matrices: whose fault, what is missing, what is none."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_programs import (
    RATE_MIB_S,
    again,
    gnuplot,
    header,
    healthy,
    linktest_parallel,
    linktest_serial,
    mapping,
    mpigraph,
    one_each,
    results,
    slow,
    tasks,
)

from fabricproof.core.errors import FabricproofError, ParseError
from fabricproof.pairs import Judged, MatrixVerdict, judge_matrix, limits_of, read_matrices, say
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.value import at_least

NODES = one_each(8)
WHOLE: dict[str, Callable[..., str]] = {
    "serial": lambda fault=healthy: linktest_serial(NODES, fault),
    "analysis": lambda fault=healthy: mapping(NODES) + gnuplot(8, fault),
    "mpigraph": lambda fault=healthy: mpigraph(NODES, fault),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def judged_text(folder: Path, text: str, least_mib_s: float = 0.0, link: str = "") -> Judged:
    file = folder / "run.out"
    file.write_text(text, encoding="utf-8")
    (matrix,) = read_matrices(str(file))
    given_ = {"bandwidth": at_least(least_mib_s * 1.048576, origin="test")} if least_mib_s else {}
    fabric = Fabric(link=find_link(link)) if link else None
    return judge_matrix(matrix, limits=limits_of([matrix], references=given_, fabric=fabric)[0])


@pytest.mark.parametrize("form", WHOLE)
def test_a_whole_output_of_healthy_nodes_blames_nobody(folder: Path, form: str) -> None:
    judged = judged_text(folder, WHOLE[form]())
    assert judged.verdict is MatrixVerdict.UNJUDGED
    assert len(judged.matrix) == (28 if form == "analysis" else 56)
    assert judged.matrix.missing == ()
    kind = judged.matrix.kind
    assert (kind.quantity, kind.unit, kind.size) == ("bandwidth", "MiB/s", "1MiB")
    assert judged.yardsticks[0] == pytest.approx(RATE_MIB_S, rel=0.02)
    good = judged_text(folder, WHOLE[form](), least_mib_s=RATE_MIB_S)
    assert good.verdict is MatrixVerdict.PASS
    assert judged_text(folder, WHOLE[form](), RATE_MIB_S * 1.2).verdict is MatrixVerdict.FAIL


@pytest.mark.parametrize("form", WHOLE)
def test_a_slow_node_is_blamed(folder: Path, form: str) -> None:
    judged = judged_text(folder, WHOLE[form](slow(3)))
    assert judged.verdict is MatrixVerdict.FAIL
    (blame,) = say(judged).blame
    assert (blame.where.node, blame.where.direction) == ("n3", "both")
    assert blame.share == pytest.approx(0.3, abs=0.02)


def test_mpigraph_tells_the_receiving_side_and_the_slower_end_counts(folder: Path) -> None:
    judged = judged_text(folder, mpigraph(NODES, lambda _a, b: 0.3 if b == 5 else 1.0))
    (blame,) = say(judged).blame
    assert (blame.where.node, blame.where.direction) == ("n5", "receive")
    # A buffer that took the message ends the sender's clock early: the receiver's counts.
    text = mpigraph(NODES)
    row = next(line for line in text.splitlines() if line.startswith("n0:0 to"))
    fast = "\t".join(["n0:0 to", "0.000", *["99999.000"] * 7, ""])
    matrix = judged_text(folder, text.replace(row, fast)).matrix
    assert matrix.value.max() < RATE_MIB_S * 1.05


def test_ranks_that_share_a_node_are_refused(folder: Path) -> None:
    """Two ranks of a node have half of its rail each."""
    hosts = [f"n{rank // 2}" for rank in range(12)]
    for text in (linktest_serial(hosts), mapping(hosts) + gnuplot(12), mpigraph(hosts)):
        with pytest.raises(ParseError, match="several ranks ran on one node"):
            judged_text(folder, text)


def test_short_ping_pongs_are_not_held_against_the_rate_of_a_link(folder: Path) -> None:
    """128 KiB there and back over HDR are two thirds of its rate on a healthy fabric."""
    short = linktest_serial(NODES, size=131072)
    assert judged_text(folder, short, link="HDR 4x").verdict is MatrixVerdict.UNJUDGED
    long = linktest_serial(NODES, size=16 * 2**20)
    assert judged_text(folder, long, link="HDR 4x").verdict is MatrixVerdict.FAIL
    # what no link carries is INVALID at any size
    assert judged_text(folder, short, link="10GbE").verdict is MatrixVerdict.INVALID


def test_small_messages_are_latencies(folder: Path) -> None:
    for text in (
        linktest_serial(NODES, slow(2), size=1024),
        mapping(NODES) + gnuplot(8, slow(2), size=1024),
    ):
        judged = judged_text(folder, text)
        kind = judged.matrix.kind
        assert (kind.quantity, kind.unit) == ("latency", "us")
        assert [each.where.node for each in say(judged).blame] == ["n2"]


# --- what is missing


@pytest.mark.parametrize("form", WHOLE)
def test_a_cut_output_is_missing_and_never_green(folder: Path, form: str) -> None:
    lines = WHOLE[form]().splitlines(keepends=True)
    keep = next(at for at, line in enumerate(lines) if form != "mpigraph" or "Recv\t" in line)
    for cut in range(max(keep, len(lines) // 2), len(lines) - 1):
        judged = judged_text(folder, "".join(lines[:cut]), least_mib_s=RATE_MIB_S * 0.9)
        if form == "mpigraph" and cut == len(lines) - 1:
            continue
        assert judged.verdict is MatrixVerdict.MISSING, cut
        assert "not in the output" in judged.reason


SERIAL = linktest_serial(NODES)
LINE = next(each for each in SERIAL.splitlines() if "      2->     6:" in each)
CUT_ROWS = mpigraph(NODES).replace("Recv\tn0:0", "Recvd\tn0:0").replace("n7:7 from\t", "n7:7 f")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SERIAL.replace(LINE, ""), "1 of 56 values: n2 to n6"),
        (SERIAL.replace(LINE, LINE[:30]), "1 of 56 values: n2 to n6"),
        (SERIAL.replace("task[000004] on n4", "ta"), "where 1 of 8 ranks ran"),
        (SERIAL.partition("RESULT")[0], "the lines RESULT at its end"),
        (re.sub(r"(RESULT: Max Time: +)\d+", r"\g<1>999", SERIAL), "the slowest value"),
        (CUT_ROWS, "table Recv: 7 of 56 values: n0 to n7, n1 to n7, n2 to n7 ..."),
    ],
)
def test_what_is_missing_is_named_and_hides_no_fault(folder: Path, text: str, said: str) -> None:
    judged = judged_text(folder, text, least_mib_s=RATE_MIB_S * 0.9)
    assert judged.verdict is MatrixVerdict.MISSING
    assert any(each.startswith(said) for each in judged.matrix.missing)
    slower = linktest_serial(NODES, slow(3)).partition("RESULT")[0]
    assert judged_text(folder, slower).verdict is MatrixVerdict.FAIL


# --- parallel runs: the slowest pairs alone


def test_the_slowest_pairs_alone_are_no_verdict_on_anybody(folder: Path) -> None:
    """All listed pairs are of n3, and that its others are fine nobody can see."""
    for fault in (healthy, slow(3)):
        judged = judged_text(folder, linktest_parallel(NODES, fault))
        assert judged.verdict is MatrixVerdict.MISSING
        said = say(judged)
        assert said.blame == ()
        assert "gnuplotinput.dat" in judged.reason
    assert any("n3 with" in each.text or "with n3" in each.text for each in said.notes)


def test_pairs_that_were_slow_twice_miss_a_reference(folder: Path) -> None:
    bad = judged_text(folder, linktest_parallel(NODES, slow(3)), least_mib_s=RATE_MIB_S)
    assert bad.verdict is MatrixVerdict.FAIL
    assert "measured twice" in bad.reason
    good = judged_text(folder, linktest_parallel(NODES), least_mib_s=RATE_MIB_S * 0.9)
    assert good.verdict is MatrixVerdict.MISSING


def test_a_second_look_takes_a_low_value_of_a_serial_run_back(folder: Path) -> None:
    text = linktest_serial(NODES, lambda a, b: 0.3 if (a, b) == (1, 6) else 1.0)
    judged = judged_text(folder, text, least_mib_s=RATE_MIB_S)
    assert judged.verdict is MatrixVerdict.UNDECIDED
    text += again(0, 1, 6, 1190.0, 357.0)
    judged = judged_text(folder, text, least_mib_s=RATE_MIB_S)
    assert judged.verdict is MatrixVerdict.PASS


# --- what is refused


def test_two_runs_of_unlike_nodes_are_refused(folder: Path) -> None:
    other = [f"m{rank}" for rank in range(8)]
    for text in (
        linktest_serial(NODES) + linktest_serial(other),
        mpigraph(NODES) + mpigraph(NODES),
    ):
        with pytest.raises(ParseError, match="two runs"):
            judged_text(folder, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (gnuplot(8), "no line says on which node"),
        (linktest_serial(NODES).replace("task[", "t["), "no line says on which node"),
        (linktest_serial(["n0"] * 8), "several ranks ran on one node"),
        (header(8) + tasks(NODES) + results([355.0, 360.0]), "no value of a pair"),
        (mpigraph(NODES).partition("Gathering")[0], "no table"),
        # half the time beside the same MB/s
        (re.sub(r"(->.*?: *)\d+\.\d+us", r"\g<1>9.00000us", SERIAL, count=1), "contradicts itself"),
        (mpigraph(NODES).replace("n7:7\t", "n7:" + "9" * 5000 + "\t"), "a damaged heading"),
        (mpigraph(NODES).replace("n3:3\t", ""), "a damaged heading"),
        (linktest_serial(NODES).replace("task[000007]", "task[000008]"), "a rank beyond"),
        (linktest_serial(NODES).replace("  8\n", "  4\n", 1), "a rank beyond"),
        (
            # the form of 2.x: sums over all pairs
            "Parallel Results for step 3: min:   10.00000 us (   24.4141 GiB/s)\n",
            "no value of a pair",
        ),
    ],
)
def test_what_holds_no_matrix_is_refused(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        judged_text(folder, text)


def test_labels_of_a_launcher_change_nothing(folder: Path) -> None:
    for text in (linktest_serial(NODES, slow(3)), mpigraph(NODES, slow(3))):
        labelled = "".join(f"{at % 8}: {line}\n" for at, line in enumerate(text.splitlines()))
        one, two = judged_text(folder, text), judged_text(folder, labelled)
        assert (one.matrix.value == two.matrix.value).all()
        assert one.verdict is two.verdict


@given(seed=st.integers(0, 10**6), form=st.sampled_from([*WHOLE, "parallel"]))
@settings(max_examples=60, deadline=None)
def test_no_damage_breaks_the_readers_or_makes_more_values(
    folder: Path, seed: int, form: str
) -> None:
    chance = random.Random(seed)
    text = WHOLE[form]() if form in WHOLE else linktest_parallel(NODES)
    for _ in range(chance.randint(1, 4)):
        at, junk = chance.randrange(len(text)), chance.choice(["", "\n", "9" * 40, "-", "\0", "²"])
        text = text[:at] + junk + text[at + chance.choice([0, 1, 40, 400]) :]
    try:
        judged = judged_text(folder, text, least_mib_s=RATE_MIB_S * 0.5)
    except FabricproofError:
        return
    assert len(judged.matrix) <= 56
