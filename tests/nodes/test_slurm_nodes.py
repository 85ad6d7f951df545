"""Which nodes Slurm has for a job, by the options that the job will have; sinfo is pretended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import ParseError, UnavailableError
from fabricproof.nodes.slurm import ask_states, read_states, satisfies, usable
from fabricproof.site.schema import PartitionSpec

#: of a made-up cloud: two racks, a node with a GPU, one powered down, one under maintenance
NODES = """
a1 idle rack1,ib
a2 mix rack1,ib
a3 idle~ rack1,ib,cloud
b1 maint rack2,ib
b2 alloc rack2,ib
b3 resv rack2,gpu
c1 down~ rack2,gpu
"""
ALL = ("a1", "a2", "a3", "b1", "b2", "b3", "c1")

#: "mending" is on; b2 runs a job that began before, "later" is not yet
RESERVATIONS = """
ReservationName=mending Nodes=b[1-2] NodeCnt=2 Flags=MAINT,IGNORE_JOBS State=ACTIVE
ReservationName=bendy Nodes=b3 NodeCnt=1 Flags=MAINT,FLEX State=ACTIVE
ReservationName=later Nodes=a[1-3] NodeCnt=3 Flags= State=INACTIVE
ReservationName=empty Nodes=(null) NodeCnt=0 State=INACTIVE
"""


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "nodes").write_text(NODES.lstrip())
    (tmp_path / "reservations").write_text(RESERVATIONS.lstrip())
    for name, body in (
        ("sinfo", f"cat {tmp_path}/nodes"),
        ("scontrol", f'grep -- "ReservationName=$4" {tmp_path}/reservations'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("access", "there", "to_be_had"),
    [
        ([], ALL, "a1 a3 a2"),
        (["--constraint=rack1"], ALL[:3], "a1 a3 a2"),
        (["-C rack1&cloud"], ("a3",), "a3"),
        (["-C", "(rack1&cloud)|gpu"], ("a3", "b3", "c1"), "a3"),
        (["--exclude=a[1-2]"], ALL[2:], "a3"),
        (["-x a1", "-w a[1,3]"], ("a3",), "a3"),
        (["--reservation=mending"], ("b1", "b2"), "b1 b2"),
        # With FLEX its jobs may have nodes beside it.
        (["--reservation=bendy"], ALL, "a1 a3 b3 a2 b2"),
    ],
)
def test_a_job_gets_the_nodes_that_its_options_leave(
    slurm: dict[str, str], access: list[str], there: tuple[str, ...], to_be_had: str
) -> None:
    spec = PartitionSpec(
        name="compute", access=["-p batch", *access], fabrics=["f"], stacks=["mpi"]
    )
    states = ask_states(spec, slurm)
    assert tuple(states) == there
    assert " ".join(usable(states)) == to_be_had


def test_a_busy_node_that_a_maintenance_has_next_is_not_to_be_had(slurm: dict[str, str]) -> None:
    spec = PartitionSpec(name="compute", access=["-p batch"], fabrics=["f"], stacks=["mpi"])
    states = ask_states(spec, slurm)
    assert {node: states[node] for node in ("b1", "b2", "b3")} == {
        "b1": "maint",
        "b2": "resv",
        "b3": "resv",
    }


@pytest.mark.parametrize("access", ["-C no-such-feature", "-w z1", "--exclude=a[1-3],b[1-3],c1"])
def test_options_that_leave_no_node_are_missing_and_named(
    slurm: dict[str, str], access: str
) -> None:
    spec = PartitionSpec(name="compute", access=["-p batch", access], fabrics=["f"], stacks=["mpi"])
    with pytest.raises(UnavailableError, match=access.rsplit(maxsplit=1)[-1].replace("[", r"\[")):
        ask_states(spec, slurm)


def test_a_reservation_that_is_not_there_is_said(slurm: dict[str, str]) -> None:
    spec = PartitionSpec(name="compute", access=["-p batch"], fabrics=["f"], stacks=["mpi"])
    with pytest.raises(UnavailableError, match="scontrol failed"):
        ask_states(spec, slurm, reservation="typo")


def test_a_line_that_is_no_node_is_refused() -> None:
    with pytest.raises(ParseError, match="a node and its state"):
        read_states("vc1\n")


@given(st.sets(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd"), min_size=1))
def test_all_of_a_list_and_any_of_a_list(features: set[str], words: list[str]) -> None:
    assert satisfies(features, "&".join(words)) == all(word in features for word in words)
    assert satisfies(features, "|".join(words)) == any(word in features for word in words)
    assert satisfies(features, f"[{'|'.join(words)}]*4&a") == (
        any(word in features for word in words) and "a" in features
    )
