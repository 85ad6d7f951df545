"""The rule of confirming: every case of it, and what it never does."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import key, look, red

from fabricproof.core.measure import Verdict
from fabricproof.core.provenance import LegKey
from fabricproof.nightly.confirm import (
    Blame,
    Look,
    LookColour,
    LookResult,
    Role,
    record,
)
from fabricproof.nightly.decide import decide

REDS = ("FAIL", "INVALID", "MISSING")
COLOURS = ("red", "green", "not seen")

#: with others, first side and second side -> blame and blamed, where red again
BLAMED = {
    ("red", "red"): ("both sides", ("vc1", "vc2")),
    ("red", "green"): ("first side", ("vc1",)),
    ("red", "not seen"): ("first side", ("vc1",)),
    ("green", "red"): ("second side", ("vc2",)),
    ("not seen", "red"): ("second side", ("vc2",)),
    ("green", "green"): ("only together", ("vc1", "vc2")),
    ("green", "not seen"): ("not told apart", ()),
    ("not seen", "green"): ("not told apart", ()),
    ("not seen", "not seen"): ("not told apart", ()),
}
#: the first verdict and the look at the same nodes -> what became of it, where not red again
NOT_RED_AGAIN = {
    ("FAIL", "green"): "NOT REPEATED",
    ("MISSING", "green"): "NOT REPEATED",
    ("INVALID", "green"): "NOT CLEARED",
    ("FAIL", "not seen"): "NOT LOOKED AT",
    ("MISSING", "not seen"): "NOT LOOKED AT",
    ("INVALID", "not seen"): "NOT LOOKED AT",
}


def looks(same, first, second):
    return [
        look("same nodes", same),
        look("first side with others", first, ("vc1", "vc3")),
        look("second side with others", second, ("vc2", "vc4")),
    ]


@pytest.mark.parametrize(
    ("verdict", "same", "first", "second"),
    list(itertools.product(REDS, COLOURS, COLOURS, COLOURS)),
)
def test_the_whole_table(verdict, same, first, second):
    """All 81 cases: verdict of the run, look at the same nodes, each side with others."""
    found = decide(red(Verdict(verdict)), looks(same, first, second))
    if same == "red":
        blame, blamed = BLAMED[first, second]
        assert (found.finding, found.blame, found.blamed) == ("CONFIRMED", blame, blamed)
    else:
        assert found.finding == NOT_RED_AGAIN[verdict, same]
        assert (found.blame, found.blamed) == (Blame.UNKNOWN, ())
    assert found.stays_red is (found.finding != "NOT REPEATED")
    assert found.sentence


some_looks = st.lists(
    st.builds(
        Look,
        role=st.sampled_from(Role),
        nodes=st.just(("vc1", "vc2")),
        colour=st.sampled_from(LookColour),
    )
)


@given(verdict=st.sampled_from([Verdict(each) for each in REDS]), seen=some_looks)
def test_nothing_is_cleared_without_a_green_look_at_the_same_nodes_and_none_red(verdict, seen):
    """Whatever is looked at in whatever order: green needs a green look there, and no red one."""
    found = decide(red(verdict), seen)
    same = [each.colour for each in seen if each.role is Role.SAME]
    if not found.stays_red:
        assert LookColour.GREEN in same
        assert LookColour.RED not in same
        assert verdict is not Verdict.INVALID


@given(verdict=st.sampled_from([Verdict(each) for each in REDS]), seen=some_looks)
def test_more_looks_that_saw_nothing_change_nothing(verdict, seen):
    blind = [look(role, "not seen") for role in Role]
    assert decide(red(verdict), [*seen, *blind]).finding is decide(red(verdict), seen).finding


@given(seen=some_looks, data=st.data())
def test_the_order_of_the_looks_does_not_matter(seen, data):
    again = data.draw(st.permutations(seen))
    one, other = decide(red(), seen), decide(red(), again)
    assert (one.finding, one.blame, one.blamed) == (other.finding, other.blame, other.blamed)


def test_no_look_at_all_leaves_it_red():
    found = decide(red(), [])
    assert found.finding is LookResult.UNCONFIRMED
    assert found.stays_red


def test_the_sentence_names_node_and_rail_of_the_guilty_and_clears_the_other():
    found = decide(red(), looks("red", "green", "red"))
    assert "vc2 on rail1 is red with others too, vc1 is green" in found.sentence


def test_a_side_that_nobody_saw_is_not_said_to_be_green():
    found = decide(red(), looks("red", "red", "not seen"))
    assert "vc2 was not seen with others" in found.sentence
    assert "vc2 is green" not in found.sentence


def test_three_nodes_have_no_sides_and_are_said_not_to_be_told_apart():
    odd = red(nodes=("vc1", "vc2", "vc3"))
    assert odd.halves is None
    found = decide(odd, [look("same nodes", "red", odd.nodes)])
    assert found.finding is LookResult.CONFIRMED
    assert found.blamed == ()
    assert "not told apart" in found.sentence


def test_halves_of_four_are_blamed_as_halves():
    four = red(nodes=("vc1", "vc2", "vc3", "vc4"))
    found = decide(four, looks("red", "green", "red"))
    assert found.blamed == ("vc3", "vc4")


def test_both_outcomes_are_in_the_record():
    line = record(decide(red(), looks("red", "green", "red")))
    assert [each["outcome"] for each in line["looks"]] == ["red", "green", "red"]
    # Lines of earlier nights have these keys, and are read beside those of tonight.
    assert set(line) == {
        *("leg", "check", "partition", "stack", "fabric", "rails", "nodes", "first_verdict"),
        *("first_reason", "first_run_id", "finding", "stays_red", "blame", "blamed", "sentence"),
        *("flutters", "looks"),
    }
    assert set(line["looks"][0]) == {"role", "nodes", "outcome", "run_id", "verdict", "reason"}
    assert [each["nodes"] for each in line["looks"]][1:] == [["vc1", "vc3"], ["vc2", "vc4"]]
    assert line["blamed"] == ["vc2"]
    assert line["first_run_id"]


names = st.text("abcXYZ019_-", min_size=1, max_size=8)


@given(names, names, names, names, st.text("rail0+./x", max_size=9))
def test_a_key_reads_back_what_it_writes(partition, fabric, stack, check, leg):
    one = LegKey(partition=partition, fabric=fabric, stack=stack, check=check, leg=leg)
    assert LegKey.of(str(one)) == one


def test_keys_of_different_legs_differ():
    assert str(key("rail0")) != str(key("rail1"))
