"""Which looks are taken, with whom, and what counts as having seen something."""

import re
from dataclasses import replace

import pytest
from nights import DISTURBED, OPEN, leg, ran, red, unjudged

from fabricproof.core.measure import Verdict
from fabricproof.job.run import OF_REFRAME, LegResult
from fabricproof.nightly.confirm import LookColour, LookResult, Role
from fabricproof.nightly.decide import decide
from fabricproof.nightly.looks import (
    LookAsked,
    Partners,
    batches_of,
    look_at,
    open_of,
    reds_of,
    why_no_look,
)
from fabricproof.verdict.value import ERROR_UNIT

FOUR = {"compute": ("vc1", "vc2", "vc3", "vc4")}


def ask(one, role=Role.SAME, nodes=("vc1", "vc2")):
    return LookAsked(at=0, red=one, role=role, nodes=nodes)


def seen(one, run, nodes=("vc1", "vc2")):
    return look_at(ask(one, nodes=nodes), run)


def batches(*reds):
    return batches_of(ask(one, nodes=one.nodes) for one in reds)


def sides(one, *others, usable=FOUR, run=None):
    return Partners.after(run or ran(), [one, *others], usable).sides_of(one)


def test_only_fail_invalid_and_missing_are_red():
    verdicts = ["FAIL", "INVALID", "MISSING", "PASS", "UNJUDGED", "SKIPPED"]
    run = ran(*(leg(each, name=f"rail{i}") for i, each in enumerate(verdicts)))
    assert [each.verdict for each in reds_of(run)] == verdicts[:3]


@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (unjudged(DISTURBED), "was disturbed"),
        (unjudged(OPEN), "was left open by its rounds"),
        (unjudged(OPEN, OPEN | DISTURBED), "was disturbed"),
        (unjudged(OPEN, {"verdict": Verdict.PASS}), "was left open by its rounds"),
        (unjudged({}), None),
        (unjudged(), None),
        (unjudged(DISTURBED, {}), None),
        (unjudged({"disturbance": None, "is_open": False}), None),
        (replace(unjudged(DISTURBED), verdict=Verdict.FAIL), None),
    ],
)
def test_only_what_passes_is_measured_again(one, cause):
    """Want of a reference, or of a proof, is the same at every look; nor is red measured so."""
    run = ran(one)
    found = open_of(run)
    assert [each.cause for each in found] == [cause] * (cause is not None)


def test_a_path_over_a_software_device_says_so_to_people_and_not_to_machines():
    soft = replace(leg("FAIL", name="rxe0:1"), link="Soft-RoCE 80 Mb/s")
    run = ran(soft, leg("FAIL"))
    one, other = reds_of(run)
    assert (one.net_path, one.rails, one.key.leg) == ("rxe0:1 Soft-RoCE", ("rxe0:1",), "rxe0:1")
    assert other.net_path == "rail1"


def test_the_nodes_of_a_red_leg_are_those_of_its_job():
    """A pair leg within a job of four is looked at again with the four."""
    run = ran(leg("FAIL"), jobs={"1": ("vc1", "vc2", "vc3", "vc4")})
    (one,) = reds_of(run)
    assert one.nodes == ("vc1", "vc2", "vc3", "vc4")


@pytest.mark.parametrize(
    ("verdict", "colour"),
    [
        ("PASS", LookColour.GREEN),
        ("FAIL", LookColour.RED),
        ("INVALID", LookColour.RED),
        ("MISSING", LookColour.RED),
        ("UNJUDGED", LookColour.NONE),
        ("SKIPPED", LookColour.NONE),
    ],
)
def test_what_a_look_saw(verdict, colour):
    assert seen(red(), ran(leg(verdict))).colour is colour


def test_a_pass_on_other_nodes_clears_nothing():
    """The deliberate bad case: Slurm gave other nodes than those asked for."""
    found = seen(red(), ran(leg("PASS", nodes=("vc3", "vc4"))))
    assert found.colour is LookColour.NONE
    assert "asked for vc1,vc2, it ran on vc3,vc4" in found.reason
    assert found.verdict is None, "the report takes verdicts of looks as evidence of their nodes"


def test_a_job_that_never_started_is_no_look():
    found = seen(red(), ran(leg("MISSING", nodes=())))
    assert found.colour is LookColour.NONE
    assert "it ran nowhere" in found.reason


def test_a_pass_of_another_leg_clears_nothing():
    assert seen(red(), ran(leg("PASS", name="rail0"))).colour is LookColour.NONE


def test_of_two_answers_the_worse_counts():
    assert seen(red(), ran(leg("PASS"), leg("FAIL", job="2"))).colour is LookColour.RED


def test_a_check_that_left_no_leg_is_answered_for_by_all_of_its_legs():
    lost = red(Verdict.MISSING, leg="")
    assert seen(lost, ran(leg("PASS", name="rail0"), leg("PASS"))).colour is LookColour.GREEN
    assert seen(lost, ran(leg("PASS", name="rail0"), leg("FAIL"))).colour is LookColour.RED


def test_a_leg_whose_check_leaves_none_when_looked_at_again_is_red():
    run = ran(leg("MISSING", name="", nodes=("vc1", "vc2")))
    assert seen(red(), run).colour is LookColour.RED


def test_what_ran_nowhere_cannot_be_looked_at():
    assert why_no_look(red(Verdict.MISSING, nodes=(), leg=""))


def test_legs_of_one_stack_on_the_same_nodes_share_one_look():
    found = batches(red(), red(leg="rail0"), red(check="OsuLatency"), red(stack="mpich5"))
    assert [(each.stack, each.checks) for each in found] == [
        ("openmpi5", (("OsuBandwidth", "eth0"), ("OsuLatency", "eth0"))),
        ("mpich5", (("OsuBandwidth", "eth0"),)),
    ]


def test_each_set_of_nodes_is_looked_at_once_before_any_twice():
    """A budget that ends early has then seen all places."""
    one, other = ("vc1", "vc2"), ("vc3", "vc4")
    found = batches(red(), red(stack="mpich5"), red(nodes=other))
    assert [each.nodes for each in found] == [one, other, one]


def test_the_options_select_exactly_the_check():
    (batch,) = batches(red())
    options = batch.arguments("vcluster")
    assert options[:4] == ["-r", "--system=vcluster:compute", "-p", "^openmpi5$"]
    pattern = re.compile(options[options.index("-n") + 1])
    assert pattern.search("OsuBandwidth%fabric=eth0")
    assert pattern.search("OsuBandwidth%fabric=eth0~vcluster+x")
    assert not pattern.search("OsuBandwidth%fabric=eth01")
    assert not pattern.search("PreOsuBandwidth%fabric=eth0")
    assert not pattern.search("OsuBandwidthRails%fabric=eth0")


EIGHT = {"compute": tuple(f"n{i}" for i in range(8))}
PLACES = {"compute": ("n1", "n2", "n9", "n10", "n11", "n12")}


@pytest.mark.parametrize(
    ("one", "others", "usable", "nodes"),
    [
        (red(), [], FOUR, [("vc1", "vc3"), ("vc2", "vc4")]),
        (red(), [], {"compute": ("vc1", "vc2", "vc3")}, [("vc1", "vc3"), ("vc2", "vc3")]),
        (red(), [], {"compute": ("vc1", "vc2")}, []),
        (red(), [red(nodes=("vc3", "vc4"))], FOUR, []),
        # All four are red together whenever one of them is.
        (red(), [red(nodes=FOUR["compute"])], FOUR, [("vc1", "vc3"), ("vc2", "vc4")]),
        (red(nodes=("n0", "n1", "n2", "n3")), [], EIGHT, [
            ("n0", "n1", "n4", "n5"), ("n2", "n3", "n6", "n7")
        ]),
        # Sorted as text; Slurm has n9 first, and each side keeps its place.
        (red(nodes=("n10", "n9")), [], PLACES, [("n1", "n10"), ("n11", "n9")]),
    ],
    ids=["unlike", "one for both", "none", "suspects", "a collective", "halves", "in place"],
)  # fmt: skip
def test_both_sides_get_partners(one, others, usable, nodes):
    found, why = sides(one, *others, usable=usable)
    assert [each for _, each in found] == nodes
    assert bool(why) is not bool(nodes)


def test_partners_that_passed_come_first():
    run = ran(leg("PASS", nodes=("vc4", "vc1"), name="rail0"))
    assert [nodes for _, nodes in sides(red(), run=run)[0]] == [("vc1", "vc4"), ("vc2", "vc3")]


# --- a program that sends one way, on a node that changes its place


def beside(one, role, asked, *legs):
    return look_at(ask(one, role, asked), ran(*legs))


def test_beside_others_the_leg_the_other_way_answers_too():
    """vc3 received behind vc1; before vc4 it sends, and what it receives is in the leg back."""
    one, asked = red(nodes=("vc1", "vc3")), ("vc3", "vc4")
    forth, back = leg("PASS", asked), leg("FAIL", asked, name="rail1.back")
    found = beside(one, Role.SECOND, asked, forth, back)
    assert (found.colour, found.leg.leg) == (LookColour.RED, "rail1.back")
    green = beside(one, Role.SECOND, asked, forth, leg("PASS", asked, name="rail1.back"))
    assert green.colour is LookColour.GREEN


def test_on_the_same_nodes_only_the_leg_itself_answers():
    legs = (leg("PASS"), leg("FAIL", name="rail1.back"))
    assert seen(red(), ran(*legs)).colour is LookColour.GREEN


@pytest.mark.parametrize(
    ("program", "colour"), [("osu_bw", LookColour.NONE), ("osu_latency", LookColour.GREEN)]
)
def test_a_pass_the_other_way_alone_clears_nobody(program, colour):
    one, asked = red(nodes=("vc1", "vc3")), ("vc3", "vc4")
    found = beside(one, Role.SECOND, asked, replace(leg("PASS", asked), program=program))
    assert found.colour is colour
    assert found.verdict is (None if colour is LookColour.NONE else Verdict.PASS)


def test_a_red_the_other_way_alone_is_seen():
    one, asked = red(nodes=("vc1", "vc3")), ("vc3", "vc4")
    assert beside(one, Role.SECOND, asked, leg("FAIL", asked)).colour is LookColour.RED


def of_two(first, second, unit="MB/s"):
    """Return a leg of two numbers with these verdicts."""
    plain = leg("INVALID" if "INVALID" in {first, second} else "FAIL")
    (quantity,) = plain.quantities
    several = (
        replace(quantity, name="latency_0B", verdict=Verdict(first), unit=unit),
        replace(quantity, verdict=Verdict(second)),
    )
    return replace(plain, quantities=several)


@pytest.mark.parametrize(
    ("before", "after", "colour"),
    [
        (of_two("FAIL", "PASS"), of_two("PASS", "FAIL"), LookColour.GREEN),
        (of_two("FAIL", "PASS"), of_two("FAIL", "PASS"), LookColour.RED),
        (of_two("FAIL", "PASS"), of_two("FAIL", "FAIL"), LookColour.RED),
        (of_two("FAIL", "UNJUDGED"), of_two("PASS", "FAIL"), LookColour.RED),
        (of_two("FAIL", "PASS"), of_two("UNJUDGED", "FAIL"), LookColour.RED),
        (of_two("FAIL", "PASS"), leg("FAIL"), LookColour.RED),
        (of_two("FAIL", "PASS", ERROR_UNIT), of_two("PASS", "FAIL", ERROR_UNIT), LookColour.RED),
        (of_two("PASS", "FAIL", ERROR_UNIT), of_two("FAIL", "PASS", ERROR_UNIT), LookColour.RED),
        (of_two("FAIL", "PASS"), of_two("PASS", "INVALID"), LookColour.RED),
        (of_two("INVALID", "PASS"), of_two("PASS", "FAIL"), LookColour.RED),
        (of_two("FAIL", "PASS"), replace(leg("MISSING"), quantities=()), LookColour.RED),
    ],
    ids=[
        *("other number", "same number", "both numbers", "open at first", "open now"),
        *("not measured now", "lost at first", "lost now", "impossible now"),
        *("impossible at first", "gone now"),
    ],
)
def test_a_fail_by_other_numbers_alone_is_no_fail_again(before, after, colour):
    first = ran(before)
    (one,) = reds_of(first)
    assert seen(one, ran(after)).colour is colour


def off_by(value, lower=90.0, upper=None):
    plain = leg("FAIL")
    (quantity,) = plain.quantities
    return replace(plain, quantities=(replace(quantity, value=value, lower=lower, upper=upper),))


@pytest.mark.parametrize(
    ("pair", "beside", "colour"),
    [
        (off_by(60.0), off_by(89.5), LookColour.GREEN),
        (off_by(60.0), off_by(80.0), LookColour.RED),
        (off_by(89.0), off_by(89.5), LookColour.RED),
        (off_by(20.0, None, 10.0), off_by(10.5, None, 10.0), LookColour.GREEN),
        (off_by(60.0), off_by(20.0, None, 10.0), LookColour.RED),
        (off_by(60.0), of_two("FAIL", "FAIL", ERROR_UNIT), LookColour.RED),
        (off_by(60.0), of_two("INVALID", "PASS"), LookColour.RED),
        (of_two("INVALID", "PASS"), off_by(60.0), LookColour.GREEN),
        (of_two("INVALID", "PASS"), of_two("INVALID", "PASS"), LookColour.RED),
    ],
    ids=[
        *("a little beside others", "far beside others", "a little both times"),
        *("a time by a little", "another number by far", "lost", "impossible"),
        *("slow beside the impossible", "impossible both times"),
    ],
)
def test_a_side_that_misses_its_bound_by_a_little_does_not_explain_a_pair_that_is_far_off(
    pair, beside, colour
):
    """A healthy node at 89.8 % of 90 was blamed beside one whose rails have 68 %."""
    first = ran(pair)
    (one,) = reds_of(first)
    again = ran(beside)
    assert look_at(ask(one, Role.FIRST), again).colour is colour
    assert seen(one, ran(off_by(89.5))).colour is LookColour.RED, "the same nodes are red again"


def test_red_by_another_number_is_a_flutter():
    (one,) = reds_of(ran(of_two("FAIL", "PASS")))
    found = decide(one, [seen(one, ran(of_two("PASS", "FAIL")))])
    assert (found.verdict, found.finding) == (Verdict.PASS, LookResult.NOT_REPEATED)


def test_a_look_that_reframe_did_not_end_as_it_should_saw_nothing():
    doubt = LegResult(verdict=Verdict.UNJUDGED, check=OF_REFRAME, reason="ended with status 1")
    look = seen(red(), ran(leg("PASS"), doubt))
    assert (look.colour, look.verdict) == (LookColour.NONE, None)
    assert look.reason == "ReFrame ended with status 1"
