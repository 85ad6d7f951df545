"""What LinkTest 1.2 itself printed on six nodes, and its analysis program of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.pairs import Judged, MatrixVerdict, judge_matrix, limits_of, read_matrices, say

FOLDER = Path(__file__).parents[1] / "data" / "pairs" / "linktest"


def judged(name: str) -> Judged:
    (matrix,) = read_matrices(str(FOLDER / name))
    return judge_matrix(matrix, limits=limits_of([matrix])[0])


def test_healthy_nodes_one_pair_at_a_time_blame_nobody() -> None:
    result = judged("serial.txt")
    assert result.verdict is MatrixVerdict.UNJUDGED  # nobody says how fast a pair should be
    assert (len(result.matrix), result.matrix.missing) == (30, ())
    assert result.matrix.nodes == tuple(f"vc{number}" for number in range(1, 7))
    assert result.yardsticks[0] == pytest.approx(2.68, abs=0.01)


@pytest.mark.parametrize("name", ["serial_slow.txt", "parallel_slow_analysis.txt"])
def test_a_rail_at_30_percent_is_blamed_on_its_node(name: str) -> None:
    result = judged(name)
    assert result.verdict is MatrixVerdict.FAIL
    (blame,) = say(result).blame
    assert (blame.where.node, blame.where.direction) == ("vc3", "both")
    assert blame.share == pytest.approx(0.32, abs=0.02)


def test_all_pairs_at_once_print_the_slowest_alone_and_nobody_is_blamed() -> None:
    result = judged("parallel_slow.txt")
    assert result.verdict is MatrixVerdict.MISSING
    assert say(result).blame == ()
    assert all("vc3" in pair for pair in _pairs(result))
    assert "all but the slowest 6 of 30 values" in result.matrix.missing[0]


def _pairs(result: Judged) -> set[frozenset[str]]:
    nodes = result.matrix.nodes
    ends = zip(result.matrix.source, result.matrix.destination, strict=True)
    return {frozenset((nodes[one], nodes[other])) for one, other in ends}
