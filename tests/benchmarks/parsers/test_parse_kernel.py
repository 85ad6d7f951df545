"""The kernel of a campaign as the program of a leg: its record is a table, or none."""

from __future__ import annotations

import json
import re

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import name_of_mpi, parse_text
from fabricproof.core.errors import ParseError
from fabricproof.pairs.campaign.record import read_record

FOLDER = DATA / "pairs" / "kernel"
MODES = ("uni", "bi", "pingpong")


def text(mode: str) -> str:
    """Return what was recorded; of both ways at once, what one way would be of them."""
    if mode == "bi":
        lines = text("uni").splitlines(keepends=True)
        one_way = (line for line in lines if '"from":"vc2"' not in line)
        return "".join(one_way).replace('"mode":"uni"', '"mode":"bi"')
    return (FOLDER / f"leg_{mode}.jsonl").read_text("utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_the_table_is_what_a_campaign_reads_of_the_first_ranks_values(mode: str) -> None:
    (table,) = parse_text(text(mode))
    (round_,) = read_record(text(mode), "r").rounds
    mine = [each for each in round_.values if each.source == "vc1"]
    values = [
        each.total_us / each.repetitions / 2 if mode == "pingpong" else each.bandwidth_mb_s
        for each in mine
    ]
    assert (table.suite, table.program) == ("fabricproof", mode)
    assert table.rows == tuple(zip((each.size for each in mine), values, strict=True))
    assert table.attributes == {"mpi": "Open MPI v5.0.11"}


def test_the_table_says_which_binary_ran_with_which_library() -> None:
    told = '"mpi":"Intel(R) MPI Library 2021.18.1 for Linux* OS;","build":"abi","sha256":"0a"'
    library = "/stacks/intelmpi/lib/libmpi_abi.so.1"
    said = re.sub(r'"mpi":"[^"]*"', told, text("uni"), count=1)
    said = said.replace('"rank":0,', f'"rank":0,"library":"{library}",')
    (table,) = parse_text(said)
    assert table.attributes == {
        "mpi": "Intel(R) MPI Library 2021.18.1 for Linux* OS",
        "build": "abi",
        "sha256": "0a",
        "library": library,
    }


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("MPICH Version:      5.0.2;MPICH Release date: Fri;", "MPICH Version: 5.0.2"),
        ("MPICH Version:      5.0.2 MPICH Release date: Fri", "MPICH Version: 5.0.2"),
        ("Open MPI v4.1.4, package: Debian OpenMPI", "Open MPI v4.1.4"),
        ("", ""),
    ],
)
def test_a_library_is_called_by_name_and_version(said: str, name: str) -> None:
    assert name_of_mpi(said) == name


def test_two_outputs_are_two_tables() -> None:
    assert [each.program for each in parse_text(text("uni") + text("bi"))] == ["uni", "bi"]


def spoiled(**changes: object) -> str:
    lines = [json.loads(line) for line in text("uni").splitlines()]
    (head, *rest) = lines
    values = [{**each, **changes} if each["record"] == "value" else each for each in rest]
    head |= {name: changes[name] for name in ("ranks",) if name in changes}
    return "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in (head, *values))


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (text("uni").replace('{"record":"done"}\n', ""), "cut off"),
        (text("uni").replace('"total_us"', '"total"', 1), "damaged record"),
        (text("uni").replace('"size":', '"size":,', 1), "damaged record"),
        (spoiled(total_us=0), "damaged record"),
        (
            text("uni").replace('"repetitions":', '"repetitions":Infinity,"was":', 1),
            "damaged record",
        ),
        (text("uni").replace('"size":', f'"size":{"9" * 400},"was":', 1), "damaged record"),
        (text("pingpong").replace('"size":', '"size":1e400,"was":', 1), "damaged record"),
        (text("pingpong").replace('"size":', '"size":NaN,"was":', 1), "damaged record"),
        (text("uni").replace('"size":', '"size":1024.5,"was":', 1), "damaged record"),
        (spoiled(deep="DEEP").replace('"DEEP"', "[" * 3000 + "]" * 3000, 1), "damaged record"),
        (spoiled(mode="strange"), "damaged record"),
        (spoiled(size=1024), "not one pair"),
        (spoiled(ranks=4), "not one pair"),
        (text("uni").replace('"mode":"uni"', '"mode":"bi"', 1), "not one pair"),
        (text("uni") + "slurmstepd: error: *** JOB 1 CANCELLED ***\n", "ended badly"),
    ],
)
def test_what_is_no_whole_record_of_one_pair_is_no_table(damaged: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_text(damaged)


def with_tails(**changes: object) -> str:
    lines = [json.loads(line) for line in text("pingpong").splitlines()]
    tails = {"p95_us": 60.0, "p99_us": 90.0, **changes}
    values = [{**each, **tails} if each["record"] == "value" else each for each in lines]
    return "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in values)


def test_a_slow_message_beyond_any_number_is_damage() -> None:
    with pytest.raises(ParseError, match="damaged record"):
        parse_text(with_tails(repetitions=500, p95_us=10**400))


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"repetitions": 500}, {"latency_p95_us": 30.0, "latency_p99_us": 45.0}),
        ({"repetitions": 499}, {"latency_p95_us": 30.0}),
        ({"repetitions": 99}, {}),
        ({"repetitions": 500, "p99_us": None}, {"latency_p95_us": 30.0}),
    ],
)
def test_slow_messages_are_columns_where_five_are_slower(
    changes: dict[str, object], columns: dict[str, float]
) -> None:
    (table,) = parse_text(with_tails(**changes))
    assert table.columns == ("message_size", "latency_us", *columns)
    assert [row[2:] for row in table.rows] == [tuple(columns.values())] * len(table.rows)
