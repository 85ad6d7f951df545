"""What a leg leaves behind, and the verdict that follows; from outputs of real runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict, texts_of
from fabricproof.job.leg import Leg, read_plan, write_plan
from fabricproof.job.outcome import judge_leg, mended, needs_second_look
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


def _reason(folder: Path, leg: object = LEG) -> str:
    report = judge_leg(folder, leg).report  # type: ignore[arg-type]
    return next(each.reason for each in report.quantities if each.verdict is report.verdict)


def test_a_good_table_over_its_path_passes(tmp_path: Path) -> None:
    leave(tmp_path, LEG)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.PASS
    assert outcome.report.net_path is not None
    assert outcome.report.net_path.state is PathState.PROVEN
    assert len(speeds(outcome.report)) == len(PUT_BW_SIZES)
    assert not needs_second_look(outcome)


def test_nothing_left_behind_is_missing(tmp_path: Path) -> None:
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.MISSING
    assert [each.name for each in outcome.report.quantities] == ["bandwidth_4MiB"]
    assert outcome.counted is None
    assert not needs_second_look(outcome)
    assert f"left nothing in {tmp_path}; do the nodes share it?" in _reason(tmp_path)


def test_a_leg_that_the_job_did_not_come_to_is_missing(tmp_path: Path) -> None:
    leave(tmp_path, replace(LEG, name="another"))
    assert _reason(tmp_path) == "the leg was never started: the job ended before it"


@pytest.mark.parametrize("kept", range(4, len(PUT_BW.splitlines())))
def test_a_table_cut_at_any_line_is_missing(tmp_path: Path, kept: int) -> None:
    leave(tmp_path, LEG, "\n".join(PUT_BW.splitlines()[:kept]) + "\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


def test_a_cut_table_says_which_sizes_there_are(tmp_path: Path) -> None:
    leave(tmp_path, LEG, "\n".join(PUT_BW.splitlines()[:10]) + "\n")
    assert "1B to 4MiB (23) were asked for, got 1B to 32B (6)" in _reason(tmp_path)


def test_a_table_with_a_hole_is_missing(tmp_path: Path) -> None:
    lines = [line for line in PUT_BW.splitlines() if not line.startswith("1024 ")]
    leave(tmp_path, LEG, "\n".join(lines) + "\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


def test_more_sizes_than_asked_for_are_another_run(tmp_path: Path) -> None:
    leg = replace(LEG, expected_sizes=PUT_BW_SIZES[:-1])
    leave(tmp_path, leg)
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.MISSING


def test_a_leg_without_status_was_cut_off(tmp_path: Path) -> None:
    leave(tmp_path, LEG, status=None)
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
    assert "cut off" in _reason(tmp_path)


def test_a_full_disk_that_left_an_empty_status_is_missing(tmp_path: Path) -> None:
    leave(tmp_path, LEG, status="")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


@pytest.mark.parametrize(
    ("status", "words"),
    [("124", "time limit"), ("137", "time limit"), ("1", "exit status 1"), ("139", "status 139")],
)
def test_a_whole_table_of_a_failed_program_is_missing(
    tmp_path: Path, status: str, words: str
) -> None:
    leave(tmp_path, LEG, status=f"{status}\n", stderr="node n2: Connection reset by peer\n\n")
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
    assert words in _reason(tmp_path)
    assert "Connection reset by peer" in _reason(tmp_path)


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


def test_a_failed_rank_counts_although_the_launcher_says_zero(tmp_path: Path) -> None:
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0),
        rank_text(1, sent=0, received=PUT_BW_SENT, status=11),
    )
    leave(tmp_path, LEG, ranks=ranks)
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
    assert "rank 1 on n2 ended with exit status 11" in _reason(tmp_path)


def test_a_rank_that_never_came_back_leaves_the_path_unproven(tmp_path: Path) -> None:
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0),
        rank_text(1, sent=0, received=PUT_BW_SENT, status=None),
    )
    leave(tmp_path, LEG, ranks=ranks)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.UNJUDGED
    assert needs_second_look(outcome)
    assert "rank 1 never came back" in _reason(tmp_path)


def test_without_any_rank_file_nothing_is_green(tmp_path: Path) -> None:
    leave(tmp_path, LEG, ranks=())
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.UNJUDGED


def test_damaged_evidence_is_missing_and_names_the_file(tmp_path: Path) -> None:
    good = rank_text(0, sent=PUT_BW_SENT, received=0)
    leave(tmp_path, LEG, ranks=(good[: len(good) // 2], good))
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING
    assert "rank.0.0" in _reason(tmp_path)


def test_traffic_over_another_interface_is_invalid_and_gets_no_second_look(tmp_path: Path) -> None:
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0, interface="mgmt0"),
        rank_text(1, sent=0, received=PUT_BW_SENT, interface="mgmt0"),
    )
    leave(tmp_path, LEG, ranks=ranks)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.INVALID
    assert "traffic took another path" in _reason(tmp_path)
    assert "mgmt0 sent" in _reason(tmp_path)
    assert not needs_second_look(outcome)


def test_both_ranks_on_one_node_prove_no_path(tmp_path: Path) -> None:
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0, node="n1"),
        rank_text(1, sent=0, received=PUT_BW_SENT, node="n1"),
    )
    leave(tmp_path, LEG, ranks=ranks)
    assert judge_leg(tmp_path, LEG).report.verdict is not Verdict.PASS


def test_two_ranks_on_one_node_pass_only_where_the_site_says_so(tmp_path: Path) -> None:
    leg = replace(LEG, same_node=True)
    ranks = tuple(rank_text(rank, sent=0, received=0, node="n1") for rank in (0, 1))
    leave(tmp_path, leg, ranks=ranks)
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.PASS
    assert report.net_path is not None
    assert "as the site declares" in report.net_path.reason


@pytest.mark.parametrize(
    ("nodes", "verdict", "reason"),
    [
        ((), Verdict.UNJUDGED, "no rank reported where it ran"),
        (("n1", "n2"), Verdict.INVALID, "declares one node, the ranks ran on n1 and n2"),
    ],
)
def test_a_site_of_one_node_is_told_where_its_ranks_ran(
    nodes: tuple[str, ...], verdict: Verdict, reason: str, tmp_path: Path
) -> None:
    leg = replace(LEG, same_node=True)
    ranks = [rank_text(rank, sent=0, received=0, node=node) for rank, node in enumerate(nodes)]
    leave(tmp_path, leg, ranks=tuple(ranks))
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is verdict
    assert report.net_path is not None
    assert reason in report.net_path.reason


# Second looks.


def test_a_slow_table_deserves_a_second_look(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.FAIL
    assert needs_second_look(outcome)


def test_a_second_look_that_was_never_made_is_said(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    (tmp_path / "second_look.err").write_text("Traceback\nModuleNotFoundError: fabricproof\n\n")
    findings = texts_of(judge_leg(tmp_path, LEG).report.findings)
    assert findings[0] == "no second look was made: ModuleNotFoundError: fabricproof"


def test_a_second_attempt_that_passes_clears_the_first_and_says_so(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    leave(tmp_path, LEG, attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.PASS
    assert any(
        finding.startswith("second look: passed; the first said FAIL")
        for finding in texts_of(outcome.report.findings)
    )
    assert outcome.counted is outcome.attempts[1]
    assert outcome.attempts[0].report.verdict is Verdict.FAIL


def test_red_twice_stays_red_by_the_numbers_of_the_second(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    leave(tmp_path, LEG, slower(PUT_BW, 3), attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.FAIL
    assert any("red again" in finding for finding in texts_of(outcome.report.findings))
    assert outcome.counted is outcome.attempts[1]
    first, second = (speeds(each.report)[-1].value for each in outcome.attempts)
    assert first != second
    assert speeds(outcome.report)[-1].value == second


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
    outcome = mended(judge_leg(tmp_path, LEG), replace)
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


def test_the_same_size_red_twice_is_red(tmp_path: Path) -> None:
    leave(tmp_path, LEG, _stalled(_stalled(PUT_BW, 65536), 1024))
    leave(tmp_path, LEG, _stalled(PUT_BW, 65536), attempt=2)
    outcome = judge_leg(tmp_path, LEG)
    red = [each.name for each in outcome.report.quantities if each.verdict is not Verdict.PASS]
    assert (outcome.report.verdict, red) == (Verdict.FAIL, ["bandwidth_64KiB"])


def test_a_second_attempt_that_went_elsewhere_clears_nothing(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0, interface="mgmt0"),
        rank_text(1, sent=0, received=PUT_BW_SENT, interface="mgmt0"),
    )
    leave(tmp_path, LEG, attempt=2, ranks=ranks)
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.INVALID


def test_a_second_attempt_that_never_ended_leaves_red(tmp_path: Path) -> None:
    leave(tmp_path, LEG, slower(PUT_BW, 2))
    leave(tmp_path, LEG, attempt=2, status=None)
    outcome = judge_leg(tmp_path, LEG)
    assert outcome.report.verdict is Verdict.MISSING
    assert any("the first said FAIL" in finding for finding in texts_of(outcome.report.findings))


def test_only_doubtful_legs_are_named_for_a_second_look(tmp_path: Path) -> None:
    legs = tuple(replace(LEG, name=name) for name in ("good", "slow", "cut+off", "twice"))
    write_plan(tmp_path, legs)
    leave(tmp_path, legs[0])
    leave(tmp_path, legs[1], slower(PUT_BW, 2))
    leave(tmp_path, legs[2], status=None)
    leave(tmp_path, legs[3], slower(PUT_BW, 2))
    leave(tmp_path, legs[3], slower(PUT_BW, 2), attempt=2)
    assert doubtful_legs(tmp_path) == ["slow", "cut_off"]


# Several parts, and outputs that say how often each size ran.


def _parts() -> tuple[str, str]:
    head, *rows = PUT_BW.split("# Size      Bandwidth (MB/s)\n")
    lines = rows[0].splitlines(keepends=True)
    title = head + "# Size      Bandwidth (MB/s)\n"
    return title + "".join(lines[:14]), title + "".join(lines[14:])


def test_the_parts_of_a_leg_are_one_table(tmp_path: Path) -> None:
    leg = replace(LEG, commands=(("a",), ("b",)))
    first, second = _parts()
    leave(tmp_path, leg, first + second)
    (attempt,) = judge_leg(tmp_path, leg).attempts
    assert attempt.report.verdict is Verdict.PASS
    assert attempt.table is not None
    assert attempt.table.column("message_size") == PUT_BW_SIZES
    assert len(attempt.table.row_lines) == len(PUT_BW_SIZES)


@pytest.mark.parametrize("which", [0, 1])
def test_a_part_that_is_not_there_is_missing(tmp_path: Path, which: int) -> None:
    leg = replace(LEG, commands=(("a",), ("b",)))
    leave(tmp_path, leg, _parts()[which])
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.MISSING
    assert "1 tables of osu_put_bw in the output, expected 2" in _reason(tmp_path, leg)


def test_a_table_of_another_program_is_missing(tmp_path: Path) -> None:
    leave(tmp_path, LEG, PUT_BW.replace("MPI_Put Bandwidth", "MPI_Get Bandwidth"))
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.MISSING


P2P_LEG = make_leg(
    suite="imb",
    program="PingPong",
    commands=(("IMB-P2P", "PingPong"),),
    expected_sizes=P2P_SIZES,
    sent_bytes=None,
    sent_per_message=(1, 1),
)


def _p2p_payload() -> int:
    rows = [line.split() for line in P2P.splitlines() if line.split()[0].isdigit()]
    return sum(int(row[0]) * int(row[1]) for row in rows)


def test_repetitions_in_the_table_say_what_must_have_moved(tmp_path: Path) -> None:
    payload = _p2p_payload()
    ranks = tuple(rank_text(rank, sent=payload, received=payload) for rank in (0, 1))
    leave(tmp_path, P2P_LEG, P2P, ranks=ranks)
    report = judge_leg(tmp_path, P2P_LEG).report
    assert report.verdict is Verdict.PASS
    assert report.net_path is not None
    assert report.net_path.state is PathState.PROVEN


def test_fewer_bytes_than_the_repetitions_say_took_another_path(tmp_path: Path) -> None:
    payload = _p2p_payload() // 2
    ranks = tuple(rank_text(rank, sent=payload, received=payload) for rank in (0, 1))
    leave(tmp_path, P2P_LEG, P2P, ranks=ranks)
    assert judge_leg(tmp_path, P2P_LEG).report.verdict is Verdict.INVALID


def test_a_due_quantity_that_is_not_in_the_output_is_missing(tmp_path: Path) -> None:
    leg = replace(LEG, required=("bandwidth_4MiB", "latency_1B"))
    leave(tmp_path, leg)
    report = judge_leg(tmp_path, leg).report
    assert report.verdict is Verdict.MISSING
    lost = [each.name for each in report.quantities if each.verdict is Verdict.MISSING]
    assert lost == ["latency_1B"]


def test_without_fabric_or_reference_nothing_is_green(tmp_path: Path) -> None:
    leg = replace(LEG, fabric=None)
    leave(tmp_path, leg)
    outcome = judge_leg(tmp_path, leg)
    assert outcome.report.verdict is Verdict.UNJUDGED
    assert not needs_second_look(outcome)  # another number would not be judged either


# --- which MPI library the ranks load

LIBRARY = "/opt/mpi/lib/libmpi.so.40"
BUILT_LEG = make_leg(library=LIBRARY)


def _leave_with_libraries(
    folder: Path, *libraries: str | None, leg: Leg = BUILT_LEG, attempt: int = 1
) -> None:
    sent = ((PUT_BW_SENT, 0), (0, PUT_BW_SENT))
    ranks = tuple(
        rank_text(rank, sent=out, received=back, library=library)
        for rank, ((out, back), library) in enumerate(zip(sent, libraries, strict=True))
    )
    leave(folder, leg, ranks=ranks, attempt=attempt)


def test_ranks_with_the_library_of_the_build_pass(tmp_path: Path) -> None:
    _leave_with_libraries(tmp_path, LIBRARY, LIBRARY)
    assert judge_leg(tmp_path, BUILT_LEG).report.verdict is Verdict.PASS


def test_another_name_of_the_same_library_passes(tmp_path: Path) -> None:
    real = tmp_path / "real.so.40"
    real.touch()
    link = tmp_path / "libmpi.so.40"
    link.symlink_to(real)
    leg = make_leg(library=str(link))
    _leave_with_libraries(tmp_path, str(real), str(link), leg=leg)
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.PASS


def test_a_program_of_the_standard_abi_loads_the_library_beside_that_of_the_build(
    tmp_path: Path,
) -> None:
    abi = LIBRARY.replace("libmpi.so.40", "libmpi_abi.so.1")
    _leave_with_libraries(tmp_path, abi, abi)
    assert judge_leg(tmp_path, BUILT_LEG).report.verdict is Verdict.PASS


@pytest.mark.parametrize(
    "other", ["/usr/lib/libmpi.so.40", "/usr/lib/libmpi_abi.so.1", "none", "not found", "/a and /b"]
)
def test_one_rank_with_another_library_makes_every_number_invalid(
    other: str, tmp_path: Path
) -> None:
    _leave_with_libraries(tmp_path, LIBRARY, other)
    outcome = judge_leg(tmp_path, BUILT_LEG)
    assert {each.verdict for each in outcome.report.quantities} == {Verdict.INVALID}
    loads = {"none": "no MPI library"}.get(other, f"MPI library {other}")
    reason = f"rank 1 on n2 loads {loads}, the stack was built with {LIBRARY}"
    assert _reason(tmp_path, BUILT_LEG) == reason
    assert not needs_second_look(outcome)


def test_another_library_makes_a_bad_number_invalid_too_and_what_is_absent_stays_missing(
    tmp_path: Path,
) -> None:
    leg = make_leg(library="/elsewhere/libmpi.so.12", required=("bandwidth_4MiB", "latency_8B"))
    _leave_with_libraries(tmp_path, LIBRARY, LIBRARY, leg=leg)
    (tmp_path / "legs" / "rail0.1" / "stdout").write_text(slower(PUT_BW, 4))
    report = judge_leg(tmp_path, leg).report
    verdicts = {each.name: each.verdict for each in report.quantities}
    assert (verdicts["bandwidth_4MiB"], verdicts["latency_8B"]) == (
        Verdict.INVALID,
        Verdict.MISSING,
    )
    assert report.verdict is Verdict.INVALID


@pytest.mark.parametrize("blind", [None, "unknown"])
def test_a_library_that_nobody_saw_is_not_green(blind: str | None, tmp_path: Path) -> None:
    _leave_with_libraries(tmp_path, LIBRARY, blind)
    outcome = judge_leg(tmp_path, BUILT_LEG)
    assert {each.verdict for each in outcome.report.quantities} == {Verdict.UNJUDGED}
    assert "nobody saw which MPI library rank 1 loads" in _reason(tmp_path, BUILT_LEG)
    assert not needs_second_look(outcome)


def test_a_rank_that_was_lost_before_it_said_its_library_gets_a_second_look(tmp_path: Path) -> None:
    """A Python program says what it loaded when it ends."""
    ranks = (
        rank_text(0, sent=PUT_BW_SENT, received=0, library=LIBRARY),
        rank_text(1, sent=0, received=PUT_BW_SENT, status=None),
    )
    leave(tmp_path, BUILT_LEG, ranks=ranks)
    outcome = judge_leg(tmp_path, BUILT_LEG)
    assert outcome.report.verdict is Verdict.UNJUDGED
    assert "rank 1" in _reason(tmp_path, BUILT_LEG)
    assert needs_second_look(outcome)


def test_one_machine_proves_no_library_of_a_rank_that_was_lost(tmp_path: Path) -> None:
    leg = replace(BUILT_LEG, same_node=True)
    ranks = tuple(
        rank_text(number, sent=PUT_BW_SENT, received=PUT_BW_SENT, node="n1", status=status)
        for number, status in ((0, 0), (1, None))
    )
    leave(tmp_path, leg, ranks=ranks)
    assert judge_leg(tmp_path, leg).report.verdict is Verdict.UNJUDGED


def test_a_number_that_is_red_stays_red_where_nobody_saw_the_library(tmp_path: Path) -> None:
    _leave_with_libraries(tmp_path, "unknown", "unknown")
    (tmp_path / "legs" / "rail0.1" / "stdout").write_text(slower(PUT_BW, 4))
    assert judge_leg(tmp_path, BUILT_LEG).report.verdict is Verdict.FAIL


def test_a_leg_of_which_no_library_is_known_asks_for_none(tmp_path: Path) -> None:
    _leave_with_libraries(tmp_path, "/usr/lib/libmpi.so.40", "none", leg=LEG)
    assert judge_leg(tmp_path, LEG).report.verdict is Verdict.PASS


@pytest.mark.parametrize(("repetitions", "invalid"), [(60, False), (1000, True), (None, True)])
def test_the_floor_of_a_mean_of_both_ends_follows_from_the_planned_repetitions(
    tmp_path: Path, repetitions: int | None, invalid: bool
) -> None:
    """osu_multi_lat of mpi4py: the last of 2 x 60 messages may be missing, 0.4 % of the mean."""
    size = 2**20
    floor = latency_floor_us(Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500), size).us
    leg = make_leg(
        suite="osu-mpi4py",
        program="osu_multi_lat",
        commands=(("osu_multi_lat.py",),),
        expected_sizes=(size,),
        sent_bytes=(60 * size, 60 * size),
        required=("latency_1MiB",),
        least_repetitions=repetitions,
    )
    write_plan(tmp_path, [leg])
    (planned,) = read_plan(tmp_path).legs
    title = "# MPI Multi Latency Test\n# Size [B]        Latency [us]\n"
    leave(tmp_path, leg, f"{title}{size:<10d}{floor * 0.997:20.2f}\n")
    (judged,) = speeds(judge_leg(tmp_path, planned).report)
    assert (judged.verdict is Verdict.INVALID) == invalid, judged.reason
