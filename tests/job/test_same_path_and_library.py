"""What bytes alone cannot tell: a third node between, an event on the wire, mixed libraries."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.declaration import objections_of, unlike_libraries
from fabricproof.job.evidence.leg_folder import parse_rank
from fabricproof.job.outcome import judge_leg
from fabricproof.verdict.objections import ObjectionKind
from leg_folders import PUT_BW_SENT, leave, make_leg, rank_text

LEG = make_leg()
HOP, UNKNOWN = ObjectionKind.OTHER_HOP, ObjectionKind.PATH_UNKNOWN


def rank(number: int, *more: str) -> str:
    """Return a rank's file of a node with one address of each kind on its rail."""
    sent = (PUT_BW_SENT, 0) if number == 0 else (0, PUT_BW_SENT)
    text = rank_text(number, sent=sent[0], received=sent[1])
    text = text.replace("fact rail0 ", f"fact rail0 address=02:00:00:00:00:0{number + 1} ")
    lines = [f"addresses 192.0.2.1 198.51.100.{number + 1}", *more]
    return text + "".join(f"{line}\n" for line in lines)


def entry(peer: int, hardware: str, flags: str = "0x2") -> str:
    return f"neighbours rail0/198.51.100.{peer}={flags}/{hardware} rail0/198.51.100.9=0x2/{THIRD}"


def ttl(peer: int, number: int) -> str:
    return f"ttl rail0/198.51.100.{peer}={number}"


OWN = {peer: f"02:00:00:00:00:0{peer}" for peer in (1, 2)}
THIRD = "02:00:00:00:00:03"
RIGHT = (entry(2, OWN[2]), entry(1, OWN[1]))


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        (RIGHT[:1], RIGHT[1:], set()),
        ((RIGHT[0], ttl(2, 64)), (RIGHT[1], ttl(1, 64)), set()),
        # a static entry on the second node: its packets come to the first by way of a third
        ((RIGHT[0], ttl(2, 63)), (entry(1, THIRD, "0x6"), ttl(1, 64)), {HOP}),
        (RIGHT[:1], (entry(1, THIRD, "0x6"),), {HOP}),
        # routed by way of another node, with no entry for the peer itself
        ((RIGHT[0], ttl(2, 63)), (), {HOP}),
        # it answers for its peer: nobody stated it, and nobody saw the time to live
        (RIGHT[:1], (entry(1, THIRD),), {UNKNOWN}),
        # a switch that answers for all (clouds do) takes nothing off
        ((RIGHT[0], ttl(2, 64)), (entry(1, THIRD),), set()),
        # the address of one node of the leg for that of another
        (RIGHT[:1], (entry(1, OWN[2]),), {HOP}),
        # another system's first number; a path that no cluster has
        ((RIGHT[0], ttl(2, 128)), RIGHT[1:], set()),
        ((RIGHT[0], ttl(2, 1)), RIGHT[1:], set()),
        # what never answered is no entry; networks that route have none for the peer
        (RIGHT[:1], (entry(1, "00:00:00:00:00:00", "0x0"),), set()),
        ((), (), set()),
    ],
)
def test_who_was_between(
    first: tuple[str, ...], second: tuple[str, ...], kinds: set[ObjectionKind]
) -> None:
    ranks = [parse_rank(rank(0, *first), "x"), parse_rank(rank(1, *second), "y")]
    found = objections_of(LEG, ranks)
    assert {each.kind for each in found} == kinds


def test_a_leg_through_a_third_node_is_invalid_and_that_node_named_if_it_is_known(
    tmp_path: Path,
) -> None:
    leave(tmp_path, LEG, ranks=(rank(0, RIGHT[0]), rank(1, entry(1, THIRD, "0x6"))))
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.INVALID
    assert report.quantities[0].objections == (HOP,)
    third = parse_rank(rank(2), "z")
    ranks = [parse_rank(rank(0, RIGHT[0]), "x"), parse_rank(rank(1, entry(1, THIRD)), "y"), third]
    (found,) = objections_of(LEG, ranks)
    assert found.reason.startswith("packets from n2 to n1 went through n3: ")


# An event on the wire.


def flapped(before: int, after: int) -> tuple[str, str]:
    first = rank(0).replace("before rail0 ", f"before rail0 carrier_changes={before} ")
    return first.replace("after rail0 ", f"after rail0 carrier_changes={after} "), rank(1)


@pytest.mark.parametrize(
    ("looks", "verdict"),
    [
        ([(2, 2)], Verdict.PASS),
        ([(2, 4)], Verdict.FAIL),
        ([(2, 4), (4, 4)], Verdict.FAIL),  # quiet at the second look
        ([(2, 2), (4, 4)], Verdict.FAIL),  # between the looks
        ([(4, 2), (2, 2)], Verdict.PASS),  # the driver was loaded again, and counted through
    ],
)
def test_a_link_that_went_down_is_not_cleared_by_a_quiet_look(
    tmp_path: Path, looks: list[tuple[int, int]], verdict: Verdict
) -> None:
    for attempt, look in enumerate(looks, start=1):
        leave(tmp_path, LEG, ranks=flapped(*look), attempt=attempt)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is verdict
    assert verdict is Verdict.PASS or "carrier_changes of rail0 on n1 rose by 2" in str(report)


def test_a_start_that_died_with_its_link_is_told_too(tmp_path: Path) -> None:
    leave(tmp_path, LEG, ranks=flapped(2, 2), status="1\n")
    leave(tmp_path, LEG, ranks=flapped(4, 4), attempt=2)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.FAIL
    assert ObjectionKind.WIRE_EVENT in report.quantities[0].objections


# Unlike files of one library.


def test_nodes_that_loaded_unlike_files_of_one_library_are_invalid(tmp_path: Path) -> None:
    ranks = (rank(0, "digests libmpi.so.40=aa libucp.so.0=cc"), rank(1, "digests libmpi.so.40=bb"))
    leave(tmp_path, LEG, ranks=ranks)
    report = judge_leg(tmp_path, LEG).report
    assert report.verdict is Verdict.INVALID
    assert report.quantities[0].objections == (ObjectionKind.UNLIKE_LIBRARIES,)


def test_the_odd_node_is_named_by_number_or_by_the_file_itself(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so.40"
    library.write_bytes(b"built")
    built = hashlib.sha256(b"built").hexdigest()
    pair = [
        parse_rank(rank(number, f"digests libmpi.so.40={digest}"), "x")
        for number, digest in enumerate(("other", built))
    ]
    assert unlike_libraries(pair, str(library)).startswith("n1 loaded another libmpi.so.40")
    assert unlike_libraries(pair).startswith("the nodes loaded unlike files of libmpi.so.40")
    three = [*pair, parse_rank(rank(2, f"digests libmpi.so.40={built}"), "x")]
    assert unlike_libraries(three).startswith("n1 loaded another")
    assert unlike_libraries(pair[1:]) == ""
