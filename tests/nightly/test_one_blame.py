"""One blame for all legs of a night that are red on the same nodes over the same rails."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nights import look, red

from fabricproof.core.measure import Verdict
from fabricproof.nightly.confirm import Blame, LookColour, LookResult
from fabricproof.nightly.decide import decide_all

R, G, N = "red", "green", "not seen"


def one_leg(same, first, second):
    return [
        look("same nodes", same),
        look("first side with others", first, ("vc1", "vc3")),
        look("second side with others", second, ("vc2", "vc4")),
    ]


def blamed(*with_others, reds=None):
    """Confirm legs that are red again, each seen with others as ``with_others`` say."""
    reds = reds or [red(check=f"Check{i}") for i, _ in enumerate(with_others)]
    return decide_all(reds, [one_leg(R, *each) for each in with_others])


def test_a_borderline_leg_is_told_apart_by_the_others_of_its_night():
    """It said "only the way between" beside seven legs that named the node."""
    found = blamed(*[(G, R)] * 7, (G, G))
    assert {(each.blame, each.blamed) for each in found} == {(Blame.SECOND, ("vc2",))}
    (sentence,) = {each.sentence for each in found}
    said = "vc2 on rail1 is red with others in 7 of 8 legs, vc1 is green in 8 legs"
    assert sentence == f"red again on vc1 and vc2; {said}"


def test_a_leg_that_was_not_tried_with_others_takes_what_the_others_saw():
    found = blamed((R, G), (N, N))
    assert {each.blamed for each in found} == {("vc1",)}


#: what each of two or three legs saw of both sides with others -> blame
CASES = [
    ([(R, G), (R, G)], Blame.FIRST),
    ([(R, G), (G, R)], Blame.BOTH),
    ([(R, G), (G, R), (G, R)], Blame.SECOND),
    ([(R, R), (R, N)], Blame.BOTH),
    ([(R, R), (R, G)], Blame.BOTH),
    ([(G, G), (G, N)], Blame.PAIR),
    ([(G, R), (G, G), (G, G)], Blame.SECOND),
    ([(G, N), (N, G)], Blame.UNKNOWN),
    ([(G, N), (G, N)], Blame.UNKNOWN),
]


@pytest.mark.parametrize(("legs", "blame"), CASES)
def test_what_several_legs_say_together(legs, blame):
    assert {each.blame for each in blamed(*legs)} == {blame}


colours = st.sampled_from([each.value for each in LookColour])


@given(st.lists(st.tuples(colours, colours), min_size=1, max_size=6), st.randoms())
def test_one_night_has_one_blame_and_one_sentence_for_a_pair_and_rail(legs, order):
    """Whatever the legs saw, in whatever order; nobody is blamed who was red with nobody else."""
    found = blamed(*legs)
    assert len({(each.blame, each.blamed, each.sentence) for each in found}) == 1
    mixed = list(legs)
    order.shuffle(mixed)
    assert blamed(*mixed)[0].blame is found[0].blame
    red_sides = {node for at, node in enumerate(("vc1", "vc2")) if any(e[at] == R for e in legs)}
    if found[0].blame is Blame.PAIR:
        assert (G, G) in legs
        assert not red_sides
    else:
        assert bool(found[0].blamed) is bool(red_sides)
        assert set(found[0].blamed) <= red_sides


OTHERS = {
    "another rail": red(leg="rail0"),
    "another pair": red(nodes=("vc1", "vc5")),
    "another verdict": red(Verdict.INVALID, check="Other"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_of_another_pair_rail_or_kind_tells_nothing(other):
    found = blamed((G, R), (G, G), reds=[red(), other])
    assert [each.blame for each in found] == [Blame.SECOND, Blame.PAIR]


def test_one_rail_tells_of_several_rails_together_and_not_the_reverse():
    wide = red(leg="rail0+rail1")
    wide = replace(wide, rails=("rail0", "rail1"))
    found = blamed((G, G), (G, R), reds=[wide, red()])
    assert [each.blame for each in found] == [Blame.SECOND, Blame.SECOND]
    found = blamed((G, R), (G, G), reds=[wide, red()])
    assert found[1].blame is Blame.PAIR


@pytest.mark.parametrize(("same", "first"), list(itertools.product([G, N], [R, G, N])))
def test_a_leg_that_is_not_red_again_tells_nothing(same, first):
    found = decide_all([red(), red(check="Other")], [one_leg(R, G, G), one_leg(same, first, R)])
    assert found[0].blame is Blame.PAIR
    assert found[1].finding is not LookResult.CONFIRMED
    assert found[1].blamed == ()
