"""What a load costs a pair: rounds with their load, a fair share, a starved pair, no load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from looks import bandwidths

from fabricproof.core.measure import Table, Verdict, texts_of
from fabricproof.core.units import at_size
from fabricproof.job.evidence.disturbance import Surroundings
from fabricproof.job.leg import Relation
from fabricproof.job.outcome import BESIDE_FOLDER, Attempt, Outcome
from fabricproof.job.relations.judge import judge_relation, legs_to_repeat, rounds_due
from fabricproof.traffic.disturbance import Disturbance, DisturbanceKind
from fabricproof.verdict.value import Judgement, Report, at_most, missing
from leg_folders import make_leg

SIZES = (65536, 131072)
LAW = at_most(4.0, unit="x", tolerance=0.5, origin="fair share of 4 pairs on 1 uplink")
NODES = ("vc2", "vc3", "vc6", "vc7")
IMPACT = "bandwidth_impact_shared"


def relation(**changes: object) -> Relation:
    settings: dict[str, object] = {
        "impacts": {
            IMPACT: {
                "alone": "alone",
                "loaded": "shared",
                "quantity": "bandwidth",
                "sizes": list(SIZES),
                "due_mb_s": 0.7,
                "senders": list(NODES[:2]),
            }
        },
        "judged": {IMPACT: {"reference": asdict(LAW), "hint": "it is starved"}},
        "words": ["drawn with seed 1"],
    }
    return Relation(
        name="rail0.impact",
        kind="impact",
        legs=("alone", "shared"),
        owns=("shared",),
        turns={"alone": "alone.turn", "shared": "shared.turn"},
        suite="osu",
        program="osu_bw",
        rails=("rail0",),
        settings={**settings, **changes},
    )


def report(value: float) -> Report:
    return bandwidths(dict.fromkeys(SIZES, value))


def load_of(
    folder: Path,
    rate_mb_s: float = 0.73,
    *,
    status: int = 0,
    nodes: Sequence[str] = NODES,
    silent: str = "",
    arrived: float = 1.0,
) -> Path:
    """Leave what ranks beside an attempt wrote: senders of so much over rail0 in ten seconds.

    ``arrived``: as much of it came to those that only receive.
    """
    beside = folder / BESIDE_FOLDER
    beside.mkdir(parents=True)
    for rank, node in enumerate(nodes):
        moved = int(rate_mb_s * 1e7 * (1.3 if silent else 1)) if rank < len(nodes) // 2 else 1000
        moved = 0 if node == silent else moved
        came = 0 if rank < len(nodes) // 2 else int(rate_mb_s * 1e7 * arrived)
        lines = [f"rank {rank}", f"node {node}", "cpus 0-1"]
        for when, clock, sent, got in (("before", 0, 0, 0), ("after", 10_000_000, moved, came)):
            ticks = clock // 10_000
            cores = f"busy_ticks={ticks} own_ticks={ticks} idle_ticks=0 steal_ticks=0"
            lines += [f"{when} node/cores {cores} clock_us={clock}"]
            lines += [f"{when} rail0 tx_bytes={5 + sent} rx_bytes={5 + got}"]
        (beside / f"rank.{rank}.0").write_text("\n".join([*lines, f"status {status}"]) + "\n")
    return folder


def leg_of(
    name: str, reports: Sequence[Report], folders: Sequence[Path], **more: object
) -> Outcome:
    attempts = tuple(
        Attempt(number=number, folder=folder, status=0, table=None, ranks=(), report=each)
        for number, (each, folder) in enumerate(zip(reports, folders, strict=True), start=1)
    )
    counted = reports[0] if reports else missing(["bandwidth"], "it never ran")
    return Outcome(leg=make_leg(name=name, **more), attempts=attempts, report=counted)


def outcomes(
    folder: Path, alone: Sequence[float], shared: Sequence[float], loads: Sequence[Path] = ()
) -> list[Outcome]:
    """Return the first look, then rounds in turn, of both legs."""
    loads = loads or [load_of(folder / f"round{index}") for index in range(len(shared))]
    load = make_leg(num_nodes=4, nodes=NODES)
    nowhere = [folder] * len(alone)
    both = [("alone", alone, nowhere, {}), ("shared", shared, loads, {"load": load})]
    return [
        leg_of(f"{name}{turn}", [report(each) for each in values[part]], folders[part], **more)
        for name, values, folders, more in both
        for turn, part in (("", slice(0, 1)), (".turn", slice(1, None)))
    ]


def test_a_fair_share_of_a_shared_link_passes(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.92, 2.93, 2.92], [0.73, 0.72, 0.74])
    judged = judge_relation(relation(), seen).report
    (quantity,) = judged.quantities
    assert (judged.verdict, quantity.name) == (Verdict.PASS, IMPACT)
    assert quantity.value == pytest.approx(4.0, rel=0.02)
    assert "fair share of 4 pairs on 1 uplink" in quantity.reason
    assert "in 3 rounds" in quantity.reason
    said = texts_of(judged.findings)
    assert said[:2] == ["drawn with seed 1", "beside shared: 2 sent 0.73 MB/s each"]


def test_a_starved_pair_is_red_after_six_rounds(tmp_path: Path) -> None:
    alone, starved = [2.92, 2.93, 2.92] * 2, [0.21, 0.2, 0.19] * 2
    early = outcomes(tmp_path / "early", alone[:3], starved[:3])
    assert judge_relation(relation(), early).report.verdict is Verdict.UNJUDGED
    assert rounds_due([relation()], early)[:2] == ("shared.turn", "alone.turn")
    judged = judge_relation(relation(), outcomes(tmp_path / "late", alone, starved)).report
    assert judged.verdict is Verdict.FAIL
    assert judged.quantities[0].reason.startswith("14.6 x of 4 x expected")
    assert "it is starved" in judged.quantities[0].reason


def beside_alltoall(folder: Path, *, judged: bool) -> tuple[Relation, list[Outcome]]:
    """A starved pair that did not end its legs beside an alltoall, all in six rounds."""
    told = "bandwidth_impact_alltoall"
    mine = relation().settings["impacts"][IMPACT]
    impacts = {IMPACT: mine, told: {**mine, "loaded": "alltoall"}}
    laws = {IMPACT: {"reference": asdict(LAW), "hint": "it is starved"}}
    wanted = relation(impacts=impacts, judged={**laws, **({told: laws[IMPACT]} if judged else {})})
    seen = outcomes(folder, [2.92, 2.93, 2.92] * 2, [0.21, 0.2, 0.19] * 2)
    ended = missing(["bandwidth_64KiB"], "it was ended at its time limit")
    load = make_leg(num_nodes=4, nodes=NODES)
    folders = [load_of(folder / f"alltoall{index}") for index in range(6)]
    seen += [
        leg_of("alltoall", [ended], folders[:1], load=load),
        leg_of("alltoall.turn", [ended] * 5, folders[1:], load=load),
    ]
    turns = {**wanted.turns, "alltoall": "alltoall.turn"}
    return replace(wanted, legs=(*wanted.legs, "alltoall"), turns=turns), seen


def test_a_leg_that_never_ended_beside_a_load_without_a_law_hides_no_starved_pair(
    tmp_path: Path,
) -> None:
    judged = judge_relation(*beside_alltoall(tmp_path, judged=False)).report
    assert judged.verdict is Verdict.FAIL
    starved, lost = judged.quantities
    assert (starved.name, starved.verdict) == (IMPACT, Verdict.FAIL)
    assert (lost.name, lost.verdict) == ("bandwidth_impact_alltoall", Verdict.MISSING)
    assert lost.reason == "leg alltoall is MISSING: it was ended at its time limit"


def test_a_leg_that_never_ended_beside_a_load_with_a_law_is_missing(tmp_path: Path) -> None:
    judged = judge_relation(*beside_alltoall(tmp_path, judged=True)).report
    assert [each.verdict for each in judged.quantities] == [Verdict.FAIL, Verdict.MISSING]


def test_a_leg_that_ends_in_its_first_round_alone_is_missing(tmp_path: Path) -> None:
    wanted, seen = beside_alltoall(tmp_path / "starved", judged=False)
    good = outcomes(tmp_path / "good", [2.92, 2.93, 2.92] * 2, [0.73, 0.72, 0.74] * 2)
    load = make_leg(num_nodes=4, nodes=NODES)
    first = leg_of("alltoall", [report(0.7)], [load_of(tmp_path / "first")], load=load)
    judged = judge_relation(wanted, [*good, first, seen[5]]).report
    assert [each.verdict for each in judged.quantities] == [Verdict.PASS, Verdict.MISSING]


def test_a_leg_that_never_ended_is_missing_beside_a_load_that_was_too_weak(tmp_path: Path) -> None:
    wanted, seen = beside_alltoall(tmp_path / "starved", judged=False)
    loads = [load_of(tmp_path / f"weak{index}", 0.01) for index in range(3)]
    weak = outcomes(tmp_path / "good", [2.92, 2.93, 2.92], [0.73, 0.72, 0.74], loads)
    judged = judge_relation(wanted, [*weak, *seen[4:]]).report
    assert judged.verdict is Verdict.MISSING
    assert "ended at its time limit" in judged.quantities[-1].reason


def test_who_was_disturbed_beside_one_load_has_numbers_beside_the_others(tmp_path: Path) -> None:
    told = "bandwidth_impact_alltoall"
    mine = relation().settings["impacts"][IMPACT]
    law = {"reference": asdict(LAW), "hint": "it is starved"}
    impacts = {IMPACT: mine, told: {**mine, "loaded": "alltoall"}}
    wanted = relation(impacts=impacts, judged={IMPACT: law, told: law})
    turns = {**wanted.turns, "alltoall": "alltoall.turn"}
    wanted = replace(wanted, legs=(*wanted.legs, "alltoall"), turns=turns)
    seen = outcomes(tmp_path, [2.92, 2.93, 2.92], [0.73, 0.72, 0.74])
    load = make_leg(num_nodes=4, nodes=NODES)
    folders = [load_of(tmp_path / f"alltoall{index}") for index in range(3)]
    reports = [report(each) for each in (0.72, 0.73, 0.72)]
    by = Disturbance(kind=DisturbanceKind.STARVED_CORES, reason="others ran", share=0.5)
    turn = leg_of("alltoall.turn", reports[1:], folders[1:], load=load)
    turn = replace(
        turn,
        attempts=tuple(replace(each, near=Surroundings(found=(by,))) for each in turn.attempts),
    )
    alltoall = leg_of("alltoall", reports[:1], folders[:1], load=load)
    judged = judge_relation(wanted, [*seen, alltoall, turn]).report
    good, open_one = judged.quantities
    assert (good.name, good.verdict) == (IMPACT, Verdict.PASS)
    assert (open_one.verdict, open_one.is_open) == (Verdict.UNJUDGED, True)
    assert "1 of 3 rounds" in open_one.reason
    assert sum("does not count: disturbed" in each for each in texts_of(judged.findings)) == 2


@pytest.mark.parametrize(
    ("ended", "verdict"), [((1, 3, 5), Verdict.UNJUDGED), ((4,), Verdict.PASS)]
)
def test_a_pair_that_is_starved_to_its_limit_every_other_round_is_not_green(
    ended: tuple[int, ...], verdict: Verdict, tmp_path: Path
) -> None:
    alone, loaded = [2.92, 2.93, 2.92] * 2, [0.73, 0.72, 0.74] * 2
    *others, shared = outcomes(tmp_path, alone, loaded)
    gone = missing(["bandwidth_64KiB"], "it was ended at its time limit")
    attempts = tuple(
        replace(each, report=gone) if index in ended else each
        for index, each in enumerate(shared.attempts, start=1)
    )
    judged = judge_relation(relation(), [*others, replace(shared, attempts=attempts)]).report
    assert judged.verdict is verdict, judged.quantities[0].reason
    assert any("it was ended at its time limit" in each for each in texts_of(judged.findings))


def test_a_good_pair_with_a_leg_that_never_ended_is_not_green(tmp_path: Path) -> None:
    wanted, seen = beside_alltoall(tmp_path / "starved", judged=False)
    good = outcomes(tmp_path / "good", [2.92, 2.93, 2.92], [0.73, 0.72, 0.74])
    report = judge_relation(wanted, [*good, *seen[4:]]).report
    assert report.verdict is Verdict.MISSING
    assert report.quantities[0].verdict is Verdict.PASS


APART = at_most(1.0, unit="x", tolerance=0.25, origin="a load that shares no link")


def apart() -> Relation:
    return relation(judged={IMPACT: {"reference": asdict(APART), "hint": "is that what is wired?"}})


def test_a_load_that_shares_no_link_may_cost_noise_and_no_more(tmp_path: Path) -> None:
    noise = outcomes(tmp_path / "noise", [2.92, 2.9, 2.93], [2.9, 2.95, 2.88])
    judged = judge_relation(apart(), noise).report
    assert judged.verdict is Verdict.PASS
    assert judged.quantities[0].value == pytest.approx(1.0, abs=0.02)
    halved = outcomes(tmp_path / "halved", [2.92, 2.9, 2.93] * 2, [1.46, 1.47, 1.44] * 2)
    assert judge_relation(apart(), halved).report.verdict is Verdict.FAIL


def test_what_is_a_third_below_its_fair_share_is_red_and_just_above_it_is_not(
    tmp_path: Path,
) -> None:
    # The law allows 4 x and half as much again: 6 x.
    alone = [2.92, 2.93, 2.92] * 2
    below = outcomes(tmp_path / "below", alone, [0.44, 0.45, 0.44] * 2)
    above = outcomes(tmp_path / "above", alone, [0.53, 0.54, 0.53] * 2)
    assert judge_relation(relation(), below).report.verdict is Verdict.FAIL
    assert judge_relation(relation(), above).report.verdict is Verdict.PASS


def on_one_link() -> Relation:
    # As many uplinks as pairs are declared, so that nobody should lose anything, and 1.4 MB/s due.
    mine = {**relation().settings["impacts"][IMPACT], "same_link": True, "due_mb_s": 1.4}
    law = at_most(1.0, unit="x", tolerance=0.5, origin="fair share of 4 pairs on 8 uplinks")
    judged = {IMPACT: {"reference": asdict(law), "hint": "there are fewer uplinks"}}
    return relation(impacts={IMPACT: mine, "told": mine}, judged=judged)


def beside(folder: Path, rates: Sequence[float], shared: Sequence[float]) -> list[Outcome]:
    loads = [load_of(folder / str(index), rate) for index, rate in enumerate(rates)]
    return outcomes(folder, [2.9] * len(shared), shared, loads)


def test_a_link_that_starves_the_load_too_is_red(tmp_path: Path) -> None:
    # As measured on a virtual cluster whose uplink had an eighth of what was declared.
    starved = beside(tmp_path, [0.5] * 6, [1.47, 1.61, 1.43, 1.42, 1.43, 1.63])
    judged = judge_relation(on_one_link(), starved).report
    assert judged.verdict is Verdict.FAIL
    assert judged.quantities[0].name == IMPACT
    assert judged.quantities[0].value == pytest.approx(1.94, rel=0.02)
    assert "there are fewer uplinks" in judged.quantities[0].reason
    early = beside(tmp_path / "early", [0.5] * 3, [1.47, 1.61, 1.43])
    assert judge_relation(on_one_link(), early).report.verdict is Verdict.UNJUDGED
    assert rounds_due([on_one_link()], early)[:2] == ("shared.turn", "alone.turn")


@pytest.mark.parametrize(
    ("rates", "shared"),
    [
        # The pair lost half of its rate beside hardly any load: that is not the link's doing.
        ([0.1] * 6, [1.45] * 6),
        # Once it lost nothing beside a weak load: then the link has room.
        ([0.5] * 6, [1.45] * 5 + [2.9]),
        # A weak load that costs nothing is no ground for a green.
        ([0.5] * 6, [2.9] * 6),
    ],
)
def test_a_weak_load_is_no_ground_for_any_other_verdict(
    tmp_path: Path, rates: Sequence[float], shared: Sequence[float]
) -> None:
    judged = judge_relation(on_one_link(), beside(tmp_path, rates, shared)).report
    assert judged.verdict is Verdict.UNJUDGED
    assert "1.4 were due" in judged.quantities[0].reason
    assert not [each for each in texts_of(judged.findings) if "nobody says what it should" in each]


def test_beside_a_load_on_other_links_a_weak_one_never_counts(tmp_path: Path) -> None:
    mine = {**on_one_link().settings["impacts"][IMPACT], "same_link": False}
    starved = beside(tmp_path, [0.5] * 6, [1.45] * 6)
    elsewhere = relation(impacts={IMPACT: mine}, judged=on_one_link().settings["judged"])
    assert judge_relation(elsewhere, starved).report.verdict is Verdict.UNJUDGED


def times(value_us: float) -> Report:
    return replace(
        bandwidths({}),
        verdict=Verdict.UNJUDGED,
        quantities=tuple(
            Judgement(
                name=at_size("latency", size),
                value=value_us,
                unit="us",
                message_size=size,
                verdict=Verdict.UNJUDGED,
                reason="nobody says what it should be",
            )
            for size in SIZES
        ),
    )


def test_a_collective_that_waits_for_the_load_is_told_and_red_where_a_site_states_it(
    tmp_path: Path,
) -> None:
    mine = {**relation().settings["impacts"][IMPACT], "quantity": "latency"}
    label = "allreduce_impact_incast"
    stated = at_most(2.0, unit="x", tolerance=0.2, origin="ten nights")
    law = {label: {"reference": asdict(stated), "hint": ""}}
    for value_us, verdict in ((150.0, Verdict.PASS), (900.0, Verdict.FAIL)):
        seen = outcomes(tmp_path / f"{value_us}", [2.92] * 6, [0.73] * 6)
        seen = [
            replace(
                each,
                report=times(100.0 if each.leg.load is None else value_us),
                attempts=tuple(
                    replace(one, report=times(100.0 if each.leg.load is None else value_us))
                    for one in each.attempts
                ),
            )
            for each in seen
        ]
        report = judge_relation(relation(impacts={label: mine}, judged=law), seen).report
        assert report.verdict is verdict
        assert report.quantities[0].value == pytest.approx(value_us / 100)


def test_what_a_stack_has_not_is_skipped_beside_what_was_judged(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.92] * 3, [0.73] * 3)
    without = relation(skipped={"allreduce_impact": "no such program"})
    judged = judge_relation(without, seen).report
    assert judged.verdict is Verdict.PASS
    skipped = judged.quantities[-1]
    assert (skipped.name, skipped.verdict) == ("allreduce_impact", Verdict.SKIPPED)
    assert (skipped.value, skipped.reason) == (None, "no such program")


def test_what_was_sent_and_came_elsewhere_is_no_load(tmp_path: Path) -> None:
    loads = [load_of(tmp_path / str(index), arrived=0.2) for index in range(3)]
    seen = outcomes(tmp_path, [2.92] * 3, [2.92] * 3, loads)
    judged = judge_relation(relation(), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    said = "0.292 MB/s of the load came to vc6, vc7, 1.4 were due"
    assert said in judged.quantities[0].reason


def test_beside_no_load_nothing_is_green(tmp_path: Path) -> None:
    loads = [load_of(tmp_path / str(index), 0.2) for index in range(3)]
    seen = outcomes(tmp_path, [2.92] * 3, [2.92] * 3, loads)
    judged = judge_relation(relation(), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    said = "leg shared: the load was 0.2 MB/s from each of its senders, 0.7 were due"
    assert judged.quantities[0].reason == said


def test_a_load_of_which_one_sender_was_silent_is_none(tmp_path: Path) -> None:
    loads = [load_of(tmp_path / str(index), silent="vc3") for index in range(3)]
    seen = outcomes(tmp_path, [2.92] * 3, [2.0] * 3, loads)
    judged = judge_relation(relation(), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    assert "the load was 0 MB/s from vc3, 0.7 were due" in judged.quantities[0].reason


def test_where_nobody_says_what_a_load_should_move_nothing_is_green(tmp_path: Path) -> None:
    impact = {**relation().settings["impacts"][IMPACT], "due_mb_s": 0.0}
    seen = outcomes(tmp_path, [2.92] * 3, [2.92] * 3)
    judged = judge_relation(relation(impacts={IMPACT: impact}), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    assert "no link is declared" in judged.quantities[0].reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": 75}, "ended before it did, on vc2"),
        ({"nodes": (*NODES[2:], *NODES[:2])}, "was to run on vc2, vc3, vc6, vc7"),
        ({"nodes": NODES[:3]}, "left no counters"),
    ],
)
def test_a_load_of_another_kind_is_none(tmp_path: Path, changes: dict, said: str) -> None:
    loads = [load_of(tmp_path / str(index), **changes) for index in range(3)]
    seen = outcomes(tmp_path, [2.92] * 3, [0.73] * 3, loads)
    judged = judge_relation(relation(), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    assert said in judged.quantities[0].reason


def test_a_round_without_its_load_does_not_count(tmp_path: Path) -> None:
    loads = [load_of(tmp_path / str(index), rate) for index, rate in enumerate((0.73, 0.73, 0.1))]
    seen = outcomes(tmp_path, [2.92] * 3, [0.73, 0.73, 2.9], loads)
    judged = judge_relation(relation(), seen).report
    assert judged.verdict is Verdict.UNJUDGED
    assert "2 of 3 rounds that it takes" in judged.quantities[0].reason
    assert rounds_due([relation()], seen) == ("shared.turn", "alone.turn")


def test_a_load_that_was_not_there_costs_its_own_numbers_and_no_others(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.92] * 3, [0.73] * 3)
    weak = {**relation().settings["impacts"][IMPACT], "due_mb_s": 9.0}
    law = relation().settings["judged"][IMPACT]
    two = relation(
        impacts={"more": weak, IMPACT: relation().settings["impacts"][IMPACT], "told": weak},
        judged={IMPACT: law, "more": law},
    )
    judged = judge_relation(two, seen).report
    assert {each.name: each.verdict for each in judged.quantities} == {
        IMPACT: Verdict.PASS,
        "more": Verdict.UNJUDGED,
    }
    why = "leg shared: the load was 0.73 MB/s from each of its senders, 9 were due"
    assert why in judged.quantities[-1].reason
    assert f"told: {why}" in texts_of(judged.findings)


def test_what_nobody_has_a_law_for_is_told_with_its_scatter(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.9, 2.9, 2.9], [1.45, 1.45, 1.45])
    told = {"label": {**relation().settings["impacts"][IMPACT]}}
    both = relation(impacts={**relation().settings["impacts"], **told})
    judged = judge_relation(both, seen).report
    assert [each.name for each in judged.quantities] == [IMPACT]
    assert "label: 2 x (2 to 2 x in 3 rounds); nobody says what it should be" in texts_of(
        judged.findings
    )


def test_what_is_only_told_is_measured_three_times_as_well(tmp_path: Path) -> None:
    told = {**relation().settings["impacts"], "more": relation().settings["impacts"][IMPACT]}
    seen = outcomes(tmp_path, [2.9], [1.45])
    back_and_forth = ("shared.turn", "alone.turn", "alone.turn", "shared.turn")
    assert rounds_due([relation(impacts=told)], seen) == back_and_forth


def test_what_is_only_told_asks_for_no_rounds_once_the_others_are_decided(tmp_path: Path) -> None:
    told = {**relation().settings["impacts"], "more": relation().settings["impacts"][IMPACT]}
    told["more"] = {**told["more"], "due_mb_s": 1000.0}  # beside it there never was a load
    seen = outcomes(tmp_path, [2.92, 2.93, 2.92], [0.73, 0.72, 0.74])
    assert rounds_due([relation(impacts=told)], seen) == ()


def test_numbers_that_have_rounds_ask_for_no_second_look(tmp_path: Path) -> None:
    law = relation().settings["judged"][IMPACT]
    impacts = {**relation().settings["impacts"], "more": relation().settings["impacts"][IMPACT]}
    two = relation(impacts=impacts, judged={IMPACT: law, "more": law})
    seen = outcomes(tmp_path, [2.9], [0.2])
    assert not legs_to_repeat([two], seen) & {"alone", "shared"}


def test_a_pair_that_was_not_measured_is_missing(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.9], [1.45])
    lost = [replace(each, report=bandwidths({1: 1.0})) for each in seen[:2]]
    attempts = [replace(each.attempts[0], report=each.report) for each in lost[:1]]
    seen[0] = replace(lost[0], attempts=tuple(attempts))
    assert judge_relation(relation(), seen).report.verdict is Verdict.MISSING


TAIL = "latency_p99_impact_shared"


def with_tail(seen: Sequence[Outcome], *p99_us: Sequence[float]) -> list[Outcome]:
    """Return the looks whose tables tell of slow messages: alone, beside, then both in turn."""
    found = []
    for outcome, values in zip(seen, p99_us, strict=True):
        attempts = tuple(
            replace(
                each,
                table=Table(
                    suite="fabricproof", program="pingpong", version=None, source="", line=1,
                    columns=("message_size", "latency_us", "latency_p99_us"),
                    rows=tuple((float(size), 1.0, value) for size in SIZES), row_lines=(1, 2),
                ),
            )
            for each, value in zip(outcome.attempts, values, strict=False)
        )  # fmt: skip
        found.append(replace(outcome, attempts=(*attempts, *outcome.attempts[len(attempts) :])))
    return found


def tailed(**judged: object) -> Relation:
    mine = relation().settings["impacts"][IMPACT]
    tail = {**mine, "quantity": "latency", "column": "latency_p99_us"}
    own = {**relation().settings["judged"], **judged}
    return relation(impacts={IMPACT: mine, TAIL: tail}, judged=own)


def test_slow_messages_are_told_of_the_rounds_that_have_enough(tmp_path: Path) -> None:
    seen = outcomes(tmp_path, [2.92] * 3, [0.73] * 3)
    whole = with_tail(seen, [10.0], [10.0, 10.0], [40.0], [40.0, 40.0])
    judged = judge_relation(tailed(), whole).report
    assert judged.verdict is Verdict.PASS
    assert f"{TAIL}: 4 x (4 to 4 x in 3 rounds); nobody says what it should be" in texts_of(
        judged.findings
    )
    none = judge_relation(tailed(), seen).report
    assert none.verdict is Verdict.PASS
    assert f"{TAIL}: too few repetitions, alone or beside the load" in texts_of(none.findings)
    assert rounds_due([tailed()], with_tail(seen, [10.0], [], [40.0], [])) == ()


def test_slow_messages_that_a_site_states_are_judged_and_never_green_unmeasured(
    tmp_path: Path,
) -> None:
    stated = at_most(2.0, unit="x", tolerance=0.1, origin="ten nights")
    law = {"reference": asdict(stated), "hint": ""}
    seen = outcomes(tmp_path, [2.92] * 6, [0.73] * 6)
    slow = with_tail(seen, [10.0], [10.0] * 5, [40.0], [40.0] * 5)
    judged = judge_relation(tailed(**{TAIL: law}), slow).report
    assert {each.name: each.verdict for each in judged.quantities} == {
        IMPACT: Verdict.PASS,
        TAIL: Verdict.FAIL,
    }
    lost = judge_relation(tailed(**{TAIL: law}), seen).report
    assert [each.verdict for each in lost.quantities] == [Verdict.PASS, Verdict.UNJUDGED]
    assert rounds_due([tailed(**{TAIL: law})], seen) == ()
