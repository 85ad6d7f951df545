"""What a leg leaves behind, and the verdict that follows; from outputs of real runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Verdict
from fabricproof.job.leg import Leg, Traffic, read_plan, write_plan
from fabricproof.job.outcome import judge_leg, needs_second_look
from fabricproof.job.second_look import doubtful_legs
from fabricproof.physics import Fabric, find_link, latency_floor_us
from fabricproof.traffic import PathState
from leg_folders import (
    P2P,
    P2P_SIZES,
    PUT_BW,
    PUT_BW_SENT,
    PUT_BW_SIZES,
    leave,
    make_leg,
    rank_text,
    slower,
    speeds,
)

LEG = make_leg()


def _ranks(second: dict[str, object] | None = None, **both: object) -> tuple[str, str]:
    """Return what the ranks of a good leg write, with changes of both or of the second alone."""
    first: dict[str, object] = {"sent": PUT_BW_SENT, "received": 0, **both}
    other = {"sent": 0, "received": PUT_BW_SENT, **both, **(second or {})}
    return rank_text(0, **first), rank_text(1, **other)  # type: ignore[arg-type]


def _loads(first: str, second: str | None) -> tuple[str, str]:
    return _ranks({"library": second}, library=first)


def _lines(*dropped: str, last: int | None = None) -> str:
    lines = [each for each in PUT_BW.splitlines()[:last] if not each.startswith(dropped or "\0")]
    return "\n".join(lines) + "\n"


def _parts() -> tuple[str, str]:
    head, mark, rows = PUT_BW.partition("# Size      Bandwidth (MB/s)\n")
    lines = rows.splitlines(keepends=True)
    return head + mark + "".join(lines[:14]), head + mark + "".join(lines[14:])


def _p2p(share: int) -> dict[str, object]:
    """Return what a ping-pong left whose nodes sent a share of what its repetitions say."""
    rows = [line.split() for line in P2P.splitlines() if line.split()[0].isdigit()]
    payload = sum(int(row[0]) * int(row[1]) for row in rows) // share
    ranks = tuple(rank_text(rank, sent=payload, received=payload) for rank in (0, 1))
    return {"stdout": P2P, "ranks": ranks}


PASS, FAIL, INVALID, UNJUDGED, MISSING, *_ = Verdict
P2P_LEG = make_leg(
    suite="imb", program="PingPong", commands=(("IMB-P2P", "PingPong"),), expected_sizes=P2P_SIZES,
    traffic=Traffic(per_repetition=(1, 1)),
)  # fmt: skip
LIBRARY = "/opt/mpi/lib/libmpi.so.40"
ABI = LIBRARY.replace("libmpi.so.40", "libmpi_abi.so.1")
BUILT_LEG = make_leg(library=LIBRARY)
ONE_NODE, TWO_PARTS = replace(LEG, same_node=True), replace(LEG, commands=(("a",), ("b",)))
GOOD_RANK = _ranks()[0]
RESET = {"stderr": "node n2: Connection reset by peer\n\n"}
LOST = {"status": None}

Case = tuple[Leg, dict[str, object] | None, Verdict, bool, tuple[str, ...]]

#: the leg, what it left, the verdict, whether it gets a second look, and words of why
CASES: dict[str, Case] = {
    "a good table": (LEG, {}, PASS, False, ()),
    "nothing": (LEG, None, MISSING, False, ("bandwidth_4MiB: ", "left nothing in ",
                                            "; do the nodes share it?")),
    "a cut table": (LEG, {"stdout": _lines(last=10)}, MISSING, True,
                    ("1B to 4MiB (23) were asked for, got 1B to 32B (6)",)),
    "a hole": (LEG, {"stdout": _lines("1024 ")}, MISSING, True, ()),
    "more sizes than asked for": (
        replace(LEG, expected_sizes=PUT_BW_SIZES[:-1]), {}, MISSING, True, ()),
    "another program": (
        LEG, {"stdout": PUT_BW.replace("Put Bandwidth", "Get Bandwidth")}, MISSING, True, ()),
    "a due quantity that is not there": (
        replace(LEG, required=("bandwidth_4MiB", "latency_1B")), {}, MISSING, True,
        ("latency_1B: ",)),
    **{f"part {number} of two": (
        TWO_PARTS, {"stdout": part}, MISSING, True,
        ("1 tables of osu_put_bw in the output, expected 2",))
        for number, part in enumerate(_parts())},
    "no status": (LEG, {"status": None}, MISSING, True, ("cut off",)),
    "a full disk": (LEG, {"status": ""}, MISSING, True, ()),
    **{f"status {status}": (
        LEG, {"status": f"{status}\n", **RESET}, MISSING, True, (words, "Connection reset by peer"))
        for status, words in (("124", "time limit"), ("137", "time limit"), ("1", "exit status 1"),
                              ("139", "status 139"))},
    "a failed rank though the launcher says zero": (
        LEG, {"ranks": _ranks({"status": 11})}, MISSING, True,
        ("rank 1 on n2 ended with exit status 11",)),
    "a rank that never came back": (
        LEG, {"ranks": _ranks(LOST)}, UNJUDGED, True, ("rank 1 never came back",)),
    "no rank file": (LEG, {"ranks": ()}, UNJUDGED, True, ()),
    "damaged evidence": (
        LEG, {"ranks": (GOOD_RANK[: len(GOOD_RANK) // 2], GOOD_RANK)}, MISSING, True,
        ("rank.0.0",)),
    "another interface": (
        LEG, {"ranks": _ranks(interface="mgmt0")}, INVALID, False,
        ("traffic took another path", "mgmt0 sent")),
    "both ranks on one node": (LEG, {"ranks": _ranks(node="n1")}, INVALID, False, ()),
    "both on the one node of the site": (
        ONE_NODE, {"ranks": _ranks({"received": 0}, sent=0, node="n1")}, PASS, False,
        ("as the site declares",)),
    "one node, and nobody says where": (
        ONE_NODE, {"ranks": ()}, UNJUDGED, True, ("no rank reported where it ran",)),
    "one node, and they ran on two": (
        ONE_NODE, {"ranks": _ranks({"received": 0}, sent=0)}, INVALID, False,
        ("declares one node, the ranks ran on n1 and n2",)),
    "a slow table": (LEG, {"stdout": slower(PUT_BW, 2)}, FAIL, True, ()),
    "neither fabric nor reference": (replace(LEG, fabric=None), {}, UNJUDGED, False, ()),
    "repetitions say what moved": (P2P_LEG, _p2p(1), PASS, False, ()),
    "fewer bytes than the repetitions say": (P2P_LEG, _p2p(2), INVALID, False, ()),
    "the library of the build": (BUILT_LEG, {"ranks": _loads(LIBRARY, LIBRARY)}, PASS, False, ()),
    "the standard ABI beside it": (BUILT_LEG, {"ranks": _loads(ABI, ABI)}, PASS, False, ()),
    **{f"a rank loads {other}": (
        BUILT_LEG, {"ranks": _loads(LIBRARY, other)}, INVALID, False,
        (f"rank 1 on n2 loads {said}, the stack was built with {LIBRARY}",))
        for other, said in (
            ("/usr/lib/libmpi.so.40", "MPI library /usr/lib/libmpi.so.40"),
            ("/usr/lib/libmpi_abi.so.1", "MPI library /usr/lib/libmpi_abi.so.1"),
            ("none", "no MPI library"), ("not found", "MPI library not found"),
            ("/a and /b", "MPI library /a and /b"))},
    **{f"a library that nobody saw: {blind}": (
        BUILT_LEG, {"ranks": _loads(LIBRARY, blind)}, UNJUDGED, False,
        ("nobody saw which MPI library rank 1 loads",)) for blind in (None, "unknown")},
    "a rank that was lost before it said its library": (  # a Python program says it when it ends
        BUILT_LEG, {"ranks": _ranks({**LOST, "library": None}, library=LIBRARY)}, UNJUDGED, True,
        ("rank 1",)),
    "one machine proves no library of a lost rank": (
        replace(BUILT_LEG, same_node=True), {"ranks": _ranks(LOST, node="n1")}, UNJUDGED, False,
        ()),
    "red, and nobody saw the library": (
        BUILT_LEG, {"ranks": _loads("unknown", "unknown"), "stdout": slower(PUT_BW, 4)}, FAIL,
        False, ()),
    "no library is known": (LEG, {"ranks": _loads("/usr/lib/libmpi.so.40", "none")}, PASS, False,
                            ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_a_leg_left_is_judged(name: str, tmp_path: Path) -> None:
    leg, left, verdict, again, words = CASES[name]
    if left is not None:
        leave(tmp_path, leg, **left)  # type: ignore[arg-type]
    outcome = judge_leg(tmp_path, leg)
    report = outcome.report
    assert (report.verdict, needs_second_look(outcome)) == (verdict, again)
    assert (outcome.counted is None) == (left is None)
    told = [f"{each.name}: {each.reason}" for each in report.quantities if each.verdict is verdict]
    told += [report.net_path.reason] if report.net_path else []
    assert all(any(word in each for each in told) for word in words), told
    if verdict is PASS:
        assert report.net_path is not None
        assert report.net_path.state is PathState.PROVEN
        assert len(speeds(report)) == 23
    if verdict in {INVALID, UNJUDGED} and leg.fabric:
        assert {each.verdict for each in report.quantities} == {verdict}


def _reason(folder: Path) -> str:
    report = judge_leg(folder, LEG).report
    return next(each.reason for each in report.quantities if each.verdict is report.verdict)


def test_a_leg_that_the_job_did_not_come_to_is_missing(tmp_path: Path) -> None:
    leave(tmp_path, replace(LEG, name="another"))
    assert _reason(tmp_path) == "the leg was never started: the job ended before it"


@pytest.mark.parametrize("kept", range(4, len(PUT_BW.splitlines())))
def test_a_table_cut_at_any_line_is_missing(tmp_path: Path, kept: int) -> None:
    leave(tmp_path, LEG, "\n".join(PUT_BW.splitlines()[:kept]) + "\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


@pytest.mark.parametrize(
    "said",
    [
        "srun: error: vc4: task 1: Killed\nsrun: Force Terminated StepId=5.2\n",
        "srun: error: vc1: tasks 0-1,3: Killed\n",
        "mpirun noticed that process rank 1 exited on signal 9 (Killed).\n",
        "=   KILLED BY SIGNAL: 9 (Killed)\n",
    ],
)
def test_a_killed_rank_is_not_called_one_that_reached_its_time_limit(
    tmp_path: Path, said: str
) -> None:
    leave(tmp_path, LEG, status="137\n", stderr=said)
    assert "a rank was killed (signal 9), at the time limit or before" in _reason(tmp_path)
    assert "MPI_Finalize" not in _reason(tmp_path)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("srun: error: n1: task 0: Segmentation fault\nsrun: error: n2: task 1: Killed\n", None),
        ("srun: error: n2: task 1: Killed\n", 139),
        ("mpirun noticed that process rank 0 exited on signal 11 (Segmentation fault).\n", None),
    ],
)
def test_the_rank_that_died_first_is_the_reason_and_not_its_victims(
    tmp_path: Path, said: str, status: int | None
) -> None:
    ranks = _ranks({"status": None}, status=status)
    leave(tmp_path, LEG, "", status="137\n", stderr=said, ranks=ranks)
    assert "Segmentation fault" in _reason(tmp_path).partition("Killed")[0]
    assert "time limit" not in _reason(tmp_path)


# Second looks.


def test_a_second_look_that_was_never_made_is_said(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    (tmp_path / "second_look.err").write_text("Traceback\nModuleNotFoundError: fabricproof\n\n")
    findings = texts_of(judge_leg(tmp_path, LEG).report.findings)
    assert findings[0] == "no second look was made: ModuleNotFoundError: fabricproof"


@pytest.mark.parametrize(
    ("second", "verdict", "said"),
    [
        ({}, PASS, "second look: passed; the first said FAIL"),
        ({"ranks": _ranks(interface="mgmt0")}, INVALID, ""),
        ({"status": None}, MISSING, "the first said FAIL"),
    ],
)
def test_a_second_attempt_counts_and_the_first_is_said(
    second: dict[str, object], verdict: Verdict, said: str, tmp_path: Path
) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    leave(tmp_path, LEG, attempt=2, **second)  # type: ignore[arg-type]
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is verdict
    assert any(said in finding for finding in texts_of(outcome.report.findings))
    assert verdict is not PASS or outcome.counted is outcome.attempts[1]
    assert outcome.attempts[0].report.verdict is FAIL


def _stalled(text: str, size: int) -> str:
    """Return the table with the row of one size at a hundredth of its bandwidth."""
    row = next(line for line in text.splitlines() if line.split()[:1] == [str(size)])
    return text.replace(row, f"{size:<10d}{float(row.split()[1]) / 100:20.2f}")


def test_what_is_red_once_and_green_once_is_cleared_and_both_values_are_kept(
    tmp_path: Path,
) -> None:
    leave(tmp_path, LEG, _stalled(PUT_BW, 65536))
    leave(tmp_path, LEG, _stalled(PUT_BW, 4194304), attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    assert [each.report.verdict for each in outcome.attempts] == [Verdict.FAIL] * 2
    assert outcome.report.verdict is Verdict.PASS
    assert "red once: bandwidth_64KiB, bandwidth_4MiB" in texts_of(outcome.report.findings)[0]
    taken = {
        each.number: [j.name for j in speeds(each.report) if outcome.takes(j)]
        for each in outcome.attempts
    }
    assert taken[1] == ["bandwidth_4MiB"]
    assert len(taken[2]) == len(PUT_BW_SIZES) - 1


def test_the_numbers_of_two_looks_are_told_apart_where_they_are_copies(tmp_path: Path) -> None:
    """What counts is said by the attempt's number, whatever reads or rewrites a judgement."""
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    leave(tmp_path, LEG, slower(PUT_BW, 2), attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    copies = map(replace, outcome.report.quantities)
    outcome = replace(outcome, report=outcome.report.with_quantities(copies))
    first, second = (speeds(each.report) for each in outcome.attempts)
    assert [each.attempt for each in (*first, *second)] == [1] * len(first) + [2] * len(second)
    assert [each.value for each in first] == [each.value for each in second]
    assert all(map(outcome.takes, map(replace, second)))
    assert not any(map(outcome.takes, first))


@pytest.mark.parametrize("looks", [(64, 1), (1, 64), (64, 64)])
def test_an_impossible_number_in_either_look_clears_nothing(
    looks: tuple[int, int], tmp_path: Path
) -> None:
    # 64 KiB at 116 MB/s over 1 GbE: twice that is impossible, a hundredth is slow.
    tables = {64: PUT_BW.replace(" 116.06", " 216.06"), 1: _stalled(PUT_BW, 1024)}
    first, second = (tables[look] for look in looks)
    leave(tmp_path, LEG, first)
    leave(tmp_path, LEG, second if looks[0] != looks[1] else _stalled(first, 1024), attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    assert Verdict.INVALID in {each.report.verdict for each in outcome.attempts}
    assert outcome.report is not outcome.attempts[0].report
    assert outcome.report.verdict is outcome.attempts[1].report.verdict
    assert outcome.report.verdict is not Verdict.PASS


def test_only_doubtful_legs_are_named_for_a_second_look(tmp_path: Path) -> None:
    legs = tuple(replace(LEG, name=name) for name in ("good", "slow", "cut+off", "twice"))
    write_plan(tmp_path, legs)
    leave(tmp_path, legs[0])
    leave(tmp_path, legs[1], slower(PUT_BW, 2))
    leave(tmp_path, legs[2], status=None)
    leave(tmp_path, legs[3], slower(PUT_BW, 2))
    leave(tmp_path, legs[3], slower(PUT_BW, 2), attempt=2)
    assert doubtful_legs(tmp_path) == ["slow", "cut_off"]


def test_the_parts_of_a_leg_are_one_table(tmp_path: Path) -> None:
    leg = replace(LEG, commands=(("a",), ("b",)))
    first, second = _parts()
    leave(tmp_path, leg, first + second)
    (attempt,) = judge_leg(tmp_path, leg).attempts
    assert attempt.report.verdict is Verdict.PASS
    assert attempt.table is not None
    assert attempt.table.column("message_size") == PUT_BW_SIZES
    assert len(attempt.table.row_lines) == len(PUT_BW_SIZES)


def test_another_name_of_the_same_library_passes(tmp_path: Path) -> None:
    real, link = tmp_path / "real.so.40", tmp_path / "libmpi.so.40"
    real.touch()
    link.symlink_to(real)
    leg = make_leg(library=str(link))
    leave(tmp_path, leg, ranks=_loads(str(real), str(link)))
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS


def test_another_library_makes_a_bad_number_invalid_too_and_what_is_absent_stays_missing(
    tmp_path: Path,
) -> None:
    leg = make_leg(library="/elsewhere/libmpi.so.12", required=("bandwidth_4MiB", "latency_8B"))
    leave(tmp_path, leg, slower(PUT_BW, 4), ranks=_loads(LIBRARY, LIBRARY))
    report = judge_leg(tmp_path, leg).report
    verdicts = {each.name: each.verdict for each in report.quantities}
    assert (verdicts["bandwidth_4MiB"], verdicts["latency_8B"]) == (INVALID, MISSING)
    assert report.verdict is INVALID


@pytest.mark.parametrize(("repetitions", "invalid"), [(60, False), (1000, True), (None, True)])
def test_the_floor_of_a_mean_of_both_ends_follows_from_the_planned_repetitions(
    tmp_path: Path, repetitions: int | None, invalid: bool
) -> None:
    """osu_multi_lat of mpi4py: the last of 2 x 60 messages may be missing, 0.4 % of the mean."""
    size = 2**20
    floor = latency_floor_us(Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500), size).us
    leg = make_leg(
        suite="osu-mpi4py", program="osu_multi_lat", commands=(("osu_multi_lat.py",),),
        expected_sizes=(size,), required=("latency_1MiB",),
        traffic=Traffic(exact=(60 * size, 60 * size), repetitions=repetitions),
    )  # fmt: skip
    write_plan(tmp_path, [leg])
    (planned,) = read_plan(tmp_path).legs
    title = "# MPI Multi Latency Test\n# Size [B]        Latency [us]\n"
    leave(tmp_path, leg, f"{title}{size:<10d}{floor * 0.997:20.2f}\n")
    (judged,) = speeds(judge_leg(tmp_path, planned).report)
    assert (judged.verdict is Verdict.INVALID) == invalid, judged.reason
