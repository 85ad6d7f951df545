"""The summary of HPC Challenge: each number stands there once, and the run has an end."""

from __future__ import annotations

import re

import pytest
from recordings import DATA

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError

TEXT = (DATA / "hpcc" / "hpcc-1.5.0-openmpi4-4-ranks.txt").read_text("utf-8")

SUMMARY = (
    "CommWorldProcs", "MinPingPongLatency_usec", "AvgPingPongLatency_usec",
    "MaxPingPongLatency_usec", "MinPingPongBandwidth_GBytes", "AvgPingPongBandwidth_GBytes",
    "MaxPingPongBandwidth_GBytes", "NaturallyOrderedRingLatency_usec",
    "RandomlyOrderedRingLatency_usec", "NaturallyOrderedRingBandwidth_GBytes",
    "RandomlyOrderedRingBandwidth_GBytes",
)  # fmt: skip


def test_the_units_are_those_of_the_source() -> None:
    (table,) = parse_text(TEXT)
    assert table.column("natural_ring_bandwidth_mb_s") == (960.787,)
    assert table.column("random_ring_latency_us") == (1.22823,)
    assert table.column("bandwidth_max_mb_s") == (16121.5,)
    assert table.attributes == {"num_processes": 4, "latency_message_size": 8, "success": 1}
    assert table.version == "1.5.0"


@pytest.mark.parametrize("name", SUMMARY)
def test_a_number_of_the_summary_that_is_lost_or_there_twice(name: str) -> None:
    line = next(each for each in TEXT.splitlines(keepends=True) if each.startswith(f"{name}="))
    for damaged in (TEXT.replace(line, ""), TEXT.replace(line, line * 2)):
        with pytest.raises(ParseError, match=f"one {name}"):
            parse_text(damaged)


@pytest.mark.parametrize("name", SUMMARY)
@pytest.mark.parametrize("value", ["0", "nan", "-1", "1e999", "", "1.2.3"])
def test_a_number_that_is_no_measurement(name: str, value: str) -> None:
    with pytest.raises(ParseError):
        parse_text(re.sub(rf"^{name}=.*$", f"{name}={value}", TEXT, flags=re.MULTILINE))


def without(words: str) -> str:
    return "".join(each for each in TEXT.splitlines(keepends=True) if not each.startswith(words))


BEGIN, END = "Begin of Summary section.", "End of Summary section."
NO_RINGS = re.sub(r"^(\w+(?:Ring|PingPong)\w+)=.*$", r"\1=-1", TEXT, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NO_RINGS, "the rings were not run"),
        (without("End of HPC Challenge tests."), "cut"),
        (TEXT + "slurmstepd: error: *** STEP 3.0 CANCELLED DUE TO TIME LIMIT ***\n", "ended badly"),
        (TEXT.replace(BEGIN, "X").replace(END, BEGIN).replace("X", END), ""),  # out of order
        (without(BEGIN), "Begin of Summary"),
        (without(END), "End of Summary"),
        (TEXT.replace(END, END + "\n" + END), "End of Summary"),
    ],
)
def test_a_run_that_is_not_whole_is_refused(text: str, said: str) -> None:
    assert text != TEXT
    with pytest.raises(ParseError, match=said or None):
        parse_text(text)


def test_two_runs_in_one_file_are_two_tables_and_a_failed_test_is_told() -> None:
    _, failed = parse_text(TEXT + TEXT.replace("Success=1", "Success=0"))
    assert failed.attributes["success"] == 0
