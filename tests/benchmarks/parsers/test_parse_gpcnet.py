"""GPCNeT's tables: whole ones, and the guards against each damage."""

from __future__ import annotations

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text, read_tables
from fabricproof.core.errors import ParseError

ALONE = (DATA / "gpcnet" / "network_test-1.3-64-nodes.txt").read_text("utf-8")
LOADED = (DATA / "gpcnet" / "network_load_test-1.3-64-nodes.txt").read_text("utf-8")


def test_each_test_is_a_table_with_its_numbers() -> None:
    tables = {table.program: table for table in parse_text(ALONE)}
    assert len(tables) == 8
    alltoall = tables["Multiple Alltoall"]
    assert alltoall.named_rows == [
        {
            "message_size": 4096.0,
            "rank_bandwidth_avg_mib_s": 2648.4,
            "rank_bandwidth_p99_mib_s": 2454.7,
        }
    ]
    assert (alltoall.suite, alltoall.version) == ("gpcnet", "1.3")
    assert alltoall.attributes == {"num_processes": 2048, "num_nodes": 64}


def test_under_load_a_table_has_both_numbers_and_the_impact() -> None:
    latency, bandwidth, allreduce = parse_text(LOADED)
    assert bandwidth.columns == (
        "message_size",
        *("rank_bandwidth_avg_mib_s", "rank_bandwidth_p99_mib_s"),
        *("loaded_rank_bandwidth_avg_mib_s", "loaded_rank_bandwidth_p99_mib_s"),
        *("impact_avg", "impact_p99"),
    )
    assert bandwidth.rows == ((131072.0, 4061.4, 2829.5, 4057.7, 2820.6, 1.0, 1.0),)
    assert allreduce.rows == ((8.0, 20.2, 22.2, 20.3, 22.2, 1.0, 1.0),)
    assert latency.attributes["victim_nodes"] == 13
    assert latency.attributes["congestor_nodes"] == 51


def test_two_runs_in_one_text_are_read_one_by_one() -> None:
    assert len(parse_text(f"before\n{ALONE}then\n{LOADED}")) == 11
    half = "\n".join(ALONE.split("\n")[:20])
    found = read_tables(f"{half}\n{LOADED}")
    assert (len(found.tables), len(found.damages)) == (3, 1)


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (changed(ALONE, "Network Tests v1.3\n", ""), "without its title"),
        (changed(ALONE, "(64 nodes)", "(64 node"), "damaged head"),
        (changed(LOADED, "  13 nodes running Network Tests\n", ""), "damaged head"),
        (changed(ALONE, "          2.9 |          4.4", "          0.0 |          4.4"), "no meas"),
        (changed(ALONE, "4.4 |         usec", "4.4 |   MiB/s/rank"), "another unit"),
        (changed(ALONE, "RR Get Lat", "RR Got Lat"), "damaged row"),
        (changed(ALONE, "Avg |          99% |", "99% |          Avg |"), "table"),
        (changed(LOADED, "4057.7", "2057.7"), "disagree"),
        (changed(LOADED, "                 1.0X |                1.0X",
                 "                 1.1X |                1.0X"), "disagree"),
        (ALONE.rstrip("\n") + "\n|         one more |\n", "behind the last"),
        (ALONE + "srun: error: node7: task 3: Killed\n", "ended badly"),
        (changed(ALONE, "2454.7 |   MiB/s/rank |\n+-", "2454.7 |   MiB/s/rank |\n+ "), "table"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_text(text)


def test_a_verbose_build_is_named() -> None:
    text = (DATA / "gpcnet" / "damaged" / "verbose.txt").read_text("utf-8")
    with pytest.raises(ParseError, match="-DVERBOSE"):
        parse_text(text)
