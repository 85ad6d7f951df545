"""Who is named where pairs took another path, and who is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.findings import Finding, Where
from fabricproof.core.measure import Verdict
from fabricproof.pairs.campaign import path as room
from fabricproof.pairs.campaign.path import LEAST_PARTNERS, MOST_SHARE
from fabricproof.traffic import PathProof, PathState


@dataclass(frozen=True, kw_only=True)
class PairPath:
    pair: tuple[str, str]
    is_wrong: bool
    came_by: str = ""
    lacking: str = ""

    @property
    def proof(self) -> PathProof:
        state = PathState.WRONG if self.is_wrong else PathState.PROVEN
        return PathProof(state=state, reason="", came_by=self.came_by, lacking=self.lacking)


def wrong_paths(net_path: str, seen: Sequence[PairPath]) -> list[Finding]:
    return room.wrong_paths(net_path, [(each.pair, each.proof) for each in seen])


def seen_of(count: int, bad: set[int], *, alike: bool = True) -> list[PairPath]:
    """Return all pairs of nodes of which some are cabled crosswise, alike or each otherwise."""
    return [
        PairPath(
            pair=(f"n{one}", f"n{other}"),
            is_wrong=((one in bad) != (other in bad)) or (not alike and {one, other} <= bad),
            came_by="rail1" if {one, other} & bad else "",
            lacking=f"n{other if other in bad else one}" if {one, other} & bad else "",
        )
        for one, other in combinations(range(count), 2)
    ]


def test_the_one_node_that_is_wrong_with_all_others_is_named_with_where_it_comes_in() -> None:
    (found,) = wrong_paths("rail0", seen_of(8, {3}))
    assert (found.where, found.verdict) == (Where(node="n3", rail="rail0"), Verdict.INVALID)
    assert "with all 7 partners, 21 pairs of other nodes do not: it comes in by rail1" in found.text
    assert found.text.startswith("n3: traffic over rail0 takes another path with all 7")
    assert "cables of rail0 and rail1 of n3 exchanged" in found.text


def test_two_that_are_crossed_alike_reach_each_other_and_are_both_named() -> None:
    found = wrong_paths("rail0", seen_of(12, {3, 7}))
    assert [each.where.node for each in found] == ["n3", "n7"]
    assert all("with all 10 partners" in each.text for each in found)
    assert [each.where.node for each in wrong_paths("rail0", seen_of(12, {3, 7}, alike=False))] == [
        "n3",
        "n7",
    ]


def test_nobody_is_named_where_all_are_right_or_half_are_wrong_or_one_pair_is_all_there_is() -> (
    None
):
    assert not wrong_paths("rail0", seen_of(8, set()))
    assert not wrong_paths("rail0", seen_of(4, {0, 1}))
    assert not wrong_paths("rail0", seen_of(2, {0}))
    assert not wrong_paths("rail0", [])


def test_nobody_is_named_whose_partners_nobody_saw_take_the_right_path() -> None:
    star = [
        PairPath(pair=("n3", partner), is_wrong=True, came_by="rail1", lacking="n3")
        for partner in ("n0", "n1")
    ]
    assert not wrong_paths("rail0", star)
    elsewhere = [*star, PairPath(pair=("n4", "n5"), is_wrong=False)]
    assert not wrong_paths("rail0", elsewhere)
    (found,) = wrong_paths("rail0", [*elsewhere, PairPath(pair=("n0", "n1"), is_wrong=False)])
    assert found.where.node == "n3"
    assert "with all 2 partners, 2 pairs of other nodes do not" in found.text


def test_a_wrong_pair_of_nodes_that_are_right_elsewhere_names_nobody_beside_it() -> None:
    seen = seen_of(8, {3})
    at = next(i for i, each in enumerate(seen) if each.pair == ("n0", "n1"))
    seen[at] = PairPath(pair=("n0", "n1"), is_wrong=True)
    assert not wrong_paths("rail0", seen)


def test_no_interface_is_named_where_it_comes_in_by_several() -> None:
    seen = seen_of(6, {3})
    at = next(i for i, each in enumerate(seen) if "n3" in each.pair)
    seen[at] = PairPath(pair=seen[at].pair, is_wrong=True, came_by="mgmt0", lacking="n3")
    (found,) = wrong_paths("rail0", seen)
    assert "comes in by" not in found.text
    assert "exchanged" not in found.text


def test_where_it_comes_in_to_partners_is_not_said_of_the_node() -> None:
    """Of three rails the node's rail0 is in the switch of rail1, and its rail2 in that of rail0."""
    seen = [
        replace(each, came_by="rail2") if each.lacking == "n3" else each for each in seen_of(8, {3})
    ]
    partly = [
        replace(each, came_by="rail1", lacking="n0") if each.pair == ("n0", "n3") else each
        for each in seen
    ]
    assert ["comes in by rail2" in each.text for each in wrong_paths("rail0", partly)] == [True]
    others = {each.pair: next(iter({*each.pair} - {"n3"})) for each in seen if each.is_wrong}
    at_partners = [
        replace(each, came_by="rail1", lacking=others[each.pair]) if each.is_wrong else each
        for each in seen
    ]
    assert ["comes in by" in each.text for each in wrong_paths("rail0", at_partners)] == [False]


@given(st.integers(4, 14), st.data())
def test_only_the_bad_are_named_whatever_was_measured(count: int, data: st.DataObject) -> None:
    most = int(MOST_SHARE * count)
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=most))
    alike = data.draw(st.booleans())
    seen = seen_of(count, bad, alike=alike)
    few = data.draw(st.lists(st.sampled_from(seen), max_size=40)) if seen else []
    for rounds, is_whole in ((seen, True), (few, False)):
        named = {each.where.node for each in wrong_paths("rail0", rounds)}
        if is_whole:
            assert named == {f"n{each}" for each in bad}
        assert len(named) <= MOST_SHARE * count
        right = {node for each in rounds if not each.is_wrong for node in each.pair}
        assert not named or len(right) >= LEAST_PARTNERS
