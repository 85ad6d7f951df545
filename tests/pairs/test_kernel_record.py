"""What the kernel wrote, whole, cut anywhere, and spoiled; and whether its bytes took the path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_alone import HAS_COMPILER, said_by_c

import fabricproof.job
import fabricproof.pairs.campaign
from fabricproof.core.errors import ConfigError, ParseError
from fabricproof.pairs.campaign.kernel import (
    Binary,
    KernelPlan,
    Mode,
    plan_steps,
    render_schedule,
)
from fabricproof.pairs.campaign.path import prove_pair
from fabricproof.pairs.campaign.record import read_record
from fabricproof.physics import find_link
from fabricproof.traffic import PathState

LINK = find_link("200MbE")

TEXT = (Path(__file__).parents[1] / "data" / "pairs" / "kernel" / "four_nodes.jsonl").read_text()
LINES = TEXT.splitlines()


def test_a_whole_record_has_its_rounds_pairs_and_values() -> None:
    record = read_record(TEXT, "r")
    assert record.is_done
    assert record.lost == []
    assert [each.number for each in record.rounds] == [0, 3]
    first, second = record.rounds
    assert set(first.pairs) == {("vc1", "vc3"), ("vc2", "vc4")}
    assert set(second.pairs) == {("vc1", "vc4")}
    modes = [(each.mode, each.source, each.destination) for each in second.values]
    assert modes == [
        (Mode.PINGPONG, "vc1", "vc4"),
        (Mode.UNI, "vc1", "vc4"),
        (Mode.UNI, "vc4", "vc1"),
    ]


def test_numbers_are_those_of_osu() -> None:
    (_, second) = read_record(TEXT, "r").rounds
    one_way = second.values[1]
    assert one_way.bandwidth_mb_s == pytest.approx(
        65536 * 4 * one_way.repetitions / one_way.total_us
    )
    assert 1.5 < one_way.bandwidth_mb_s < 3.2  # a rail of 25 Mb/s; bursts after a pause are free
    there_and_back = second.values[0]
    assert there_and_back.sent_messages == there_and_back.repetitions + 10


def test_a_record_says_which_binary_ran_with_which_library() -> None:
    """Of each rank: the library that the loader gave it there."""
    told = {"mpi": "MPICH Version:      5.0.2;MPICH ABI: 18", "build": "abi", "sha256": "0a" * 32}
    head, *lines = (json.loads(line) for line in LINES)
    places = iter(("/a/libmpi_abi.so.1", "/b/libmpi_abi.so.1", "/a/libmpi_abi.so.1", ""))
    text = "".join(
        json.dumps(each | ({"library": next(places)} if each["record"] == "rank" else {})) + "\n"
        for each in (head | told, *lines)
    )
    record = read_record(text, "r")
    libraries = ("/a/libmpi_abi.so.1", "/b/libmpi_abi.so.1")
    assert record.binary == Binary(
        mpi=told["mpi"], build="abi", sha256="0a" * 32, libraries=libraries
    )
    assert record.binary.sentence == (
        "kernel 0a0a0a0a0a0a (SHA-256), built against the standard MPI ABI, ran with "
        "MPICH Version: 5.0.2 (/a/libmpi_abi.so.1, /b/libmpi_abi.so.1)"
    )
    assert record.rounds[0].nodes["vc1"].library == libraries[0]


def test_an_older_record_says_nothing_of_its_binary() -> None:
    binary = read_record(TEXT, "r").binary
    assert binary is not None
    assert binary.mpi.startswith("Open MPI v5.0.11")
    assert (binary.build, binary.sha256, binary.libraries, binary.sentence) == ("", "", (), "")


@settings(deadline=None)
@given(st.integers(0, len(TEXT)))
def test_cut_anywhere_it_keeps_the_rounds_that_ended_and_no_more(at: int) -> None:
    whole = read_record(TEXT, "r").rounds
    cut = read_record(TEXT[:at], "r")
    ended = sum(json.loads(line)["record"] == "end" for line in TEXT[:at].split("\n")[:-1])
    assert cut.rounds == whole[:ended]
    assert cut.is_done == (at == len(TEXT))
    if not TEXT[:at].endswith("\n") and at:
        assert any("cut off" in each for each in cut.lost)


def _changed(kind: str, change: Callable[[dict[str, Any]], Any]) -> str:
    lines = list(LINES)
    at = next(n for n, line in enumerate(lines) if json.loads(line)["record"] == kind)
    fields = json.loads(lines[at])
    change(fields)
    lines[at] = json.dumps(fields)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("campaign", lambda each: each.update(format=2)),
        ("value", lambda each: each.update(total_us=-1.0)),
        ("value", lambda each: each.update(total_us=float("nan"))),
        ("value", lambda each: each.update(repetitions=0)),
        ("value", lambda each: each.update(repetitions=True)),
        ("value", lambda each: each.update(to="vc9")),
        ("value", lambda each: each.update(to=each["from"])),
        ("value", lambda each: each.update(mode="sideways")),
        ("value", lambda each: each.update(round=7)),
        ("value", lambda each: each.pop("size")),
        ("counters", lambda each: each.update(before=3)),
        ("counters", lambda each: each.update(gone=[["rail9", "tx_bytes"]])),
        ("counters", lambda each: each.update(node="vc9")),
        ("counters", lambda each: each["before"]["rail0"].update(tx_bytes="many")),
        ("counters", lambda each: each["after"]["rail0"].update(tx_bytes=2**64)),
        ("counters", lambda each: each["after"]["rail0"].update(tx_bytes=0.5)),
        ("counters", lambda each: each["after"]["rail0"].update(tx_bytes=True)),
        ("end", lambda each: each.update(round=5)),
        ("rank", lambda each: each.update(facts=[])),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    kind: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    with pytest.raises(ParseError) as caught:
        read_record(_changed(kind, change), "record.jsonl")
    assert caught.value.source == "record.jsonl"


@pytest.mark.parametrize("at", range(len(LINES)))
@pytest.mark.parametrize(
    "foreign", ["warning: no room", "[]", "{}", '{"record": "new"}', '{"record": []}', ""]
)
def test_a_foreign_line_between_is_refused(foreign: str, at: int) -> None:
    lines = [*LINES[:at], foreign, *LINES[at:]]
    with pytest.raises(ParseError) as caught:
        read_record("\n".join(lines) + "\n", "r")
    assert caught.value.line == at + 1


@pytest.mark.parametrize(
    "at", [n for n, line in enumerate(LINES) if json.loads(line)["record"] == "counters"]
)
def test_a_round_without_the_counters_of_a_node_is_refused(at: int) -> None:
    with pytest.raises(ParseError):
        read_record("\n".join([*LINES[:at], *LINES[at + 1 :]]) + "\n", "r")


def test_the_path_of_each_pair_is_proven_over_its_rail_and_no_other() -> None:
    for record in read_record(TEXT, "r").rounds:
        for pair, values in record.pairs.items():
            assert prove_pair(record, pair, values, ("rail0",), LINK).state is PathState.PROVEN
            assert prove_pair(record, pair, values, ("rail1",), LINK).state is PathState.WRONG
            both = prove_pair(record, pair, values, ("rail0", "rail1"), LINK)
            assert (
                both.state is not PathState.PROVEN
                or sum(value.sent_bytes[0] for value in values) < 4 * 2**20
            )  # too little to tell how two rails shared it
            assert prove_pair(record, pair, values, ("rail7",), LINK).state is PathState.UNKNOWN


def test_a_counter_that_was_gone_after_the_round_proves_nothing() -> None:
    text = _changed("counters", lambda each: each.update(gone=[["rail0", "tx_bytes"]]))
    record = read_record(text, "r").rounds[0]
    states = [
        prove_pair(record, pair, values, ("rail0",), LINK).state
        for pair, values in record.pairs.items()
    ]
    assert sorted(states) == [PathState.PROVEN, PathState.UNKNOWN]


def test_the_schedule_says_all_that_the_kernel_asks_for() -> None:
    steps = plan_steps(max_size=262144, rate_mb_s=2.9, latency_us=100.0, seconds=1.0)
    plan = KernelPlan(
        nodes=("vc1", "vc2", "vc3"), steps=steps, rounds=((4, ((0, 2),)),), share_cores=True
    )
    lines = render_schedule(plan).splitlines()
    assert lines[0] == "fabricproof-pairs 1"
    assert lines[-2:] == ["round 4 0 2", "end"]
    assert [line for line in lines if line.startswith("step uni")] == [
        "step uni 262144 4 3 2 1.000000"
    ]
    assert plan.limit_seconds > plan.seconds_per_round


@pytest.mark.parametrize(
    ("nodes", "pairs"),
    [
        (("a", "b"), ((0, 0),)),
        (("a", "b", "c"), ((0, 1), (1, 2))),
        (("a", "b"), ((0, 2),)),
        (("a b", "c"), ((0, 1),)),
        (("a\nend", "c"), ((0, 1),)),
        (("n" * 40, "c"), ((0, 1),)),
    ],
)
def test_what_the_kernel_would_refuse_is_not_written(
    nodes: tuple[str, ...], pairs: tuple[tuple[int, int], ...]
) -> None:
    with pytest.raises(ConfigError):
        render_schedule(KernelPlan(nodes=nodes, steps=(), rounds=((0, pairs),)))


@settings(deadline=None)
@given(
    size=st.sampled_from([1, 4096, 65536, 4 * 2**20]),
    rate=st.floats(0.5, 50_000),
    seconds=st.floats(0.1, 60),
)
def test_steps_obey_the_rules_of_all_legs(size: int, rate: float, seconds: float) -> None:
    steps = plan_steps(
        max_size=size, rate_mb_s=rate, latency_us=5.0, seconds=seconds, both_ways=True
    )
    assert [each.mode for each in steps] == [Mode.PINGPONG, Mode.UNI, Mode.BI]
    for each in steps:
        assert 1 <= each.window <= 64
        assert 3 <= each.repetitions <= 10_000
        assert each.warmups >= 2


def test_the_kernel_reads_the_counters_that_every_other_rank_reads() -> None:
    folder = Path(fabricproof.pairs.campaign.__file__).parent
    names = set(re.findall(r'"(\w+)"', _arrays((folder / "kernel.c").read_text())))
    script = (Path(fabricproof.job.__file__).parent / "rank.sh").read_text()
    assert len(names) > 50
    assert names <= set(re.findall(r"\w+", script))


def _arrays(text: str) -> str:
    return "".join(re.findall(r"static const char \*[A-Z_]+\[\] = \{([^}]*)\}", text))


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler")
@pytest.mark.parametrize("count", [1, 3, 19, 20, 21, 99, 100, 101, 1000])
def test_the_kernel_sorts_its_times_and_takes_the_nearest_rank(tmp_path: Path, count: int) -> None:
    times = ", ".join(str(float((7919 * at) % count + 1)) for at in range(count))
    said = json.loads(
        said_by_c(
            tmp_path,
            'struct step step = {"pingpong", 1, 1, 9, 2, 1.0}; say("%s", "");'
            f'double times[] = {{{times}}}; summarize(0, &step, "vc2", {count}, times);'
            "fwrite(out, 1, out_used, stdout);",
        )
    )
    # Times are 1 to the count, or its rest.
    assert (said["least_us"], said["median_us"], said["most_us"]) == (1, count // 2 + 1, count)
    assert (said["p95_us"], said["p99_us"]) == (-(-95 * count // 100), -(-99 * count // 100))
    # What the reader takes of a value is there, and what else there is does not stop it.
    line = next(each for each in LINES if '"value"' in each)
    more = {name: each for name, each in said.items() if name in {"p95_us", "p99_us"}}
    longer = TEXT.replace(line, json.dumps(json.loads(line) | more))
    assert read_record(longer, "r").rounds == read_record(TEXT, "r").rounds
