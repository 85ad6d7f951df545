"""Every way in which ranks can fail to be the world that was asked for."""

import dataclasses

import pytest

from fabricproof.stacks.witness import Witness, read_witnesses, world_fault


def _rank(rank: int, size: int = 2, node: str | None = None, library: str = "MPICH 5") -> Witness:
    return Witness(rank=rank, size=size, node=node or f"n{rank}", cpus=(0, 1), library=library)


GOOD = (_rank(0), _rank(1))


def test_two_ranks_of_one_world_on_two_nodes_are_right():
    assert world_fault(GOOD, num_ranks=2, num_nodes=2) is None


@pytest.mark.parametrize(
    ("witnesses", "complaint"),
    [
        ((_rank(0),), "1 answered"),
        ((_rank(0, 1, "n0"), _rank(0, 1, "n1")), "own world of one"),
        ((_rank(0), _rank(0)), "do not form one world"),
        ((_rank(0), _rank(1, 3)), "do not form one world"),
        ((_rank(0, node="n0"), _rank(1, node="n0")), "the ranks are on n0"),
    ],
)
def test_each_fault_is_told_in_words(witnesses: tuple[Witness, ...], complaint: str):
    fault = world_fault(witnesses, num_ranks=2, num_nodes=2)
    assert fault is not None
    assert complaint in fault


def test_lines_are_found_among_chatter_even_on_one_line():
    line = (
        'fabricproof-witness {"rank": %d, "size": 2, "node": "n%d", "cpus": [0, 1], '
        '"library": "MPICH 5"}'
    )
    text = f"slurm says hello\n{line % (1, 1)}{line % (0, 0)}\nbye"
    assert read_witnesses(text) == GOOD


def test_no_line_is_no_witness():
    assert read_witnesses("MPI_Init failed") == ()
    assert {"rank", "size", "node", "cpus", "library"} == {
        each.name for each in dataclasses.fields(Witness)
    }
