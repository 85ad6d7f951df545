"""What HPC Challenge prints twice must agree, stand there once, and have an end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
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

DETAILS = (
    "Detailed benchmark results:",
    "On naturally ordered ring: ",
    "On randomly  ordered ring: ",
    " The ring communication was done",
)


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


@pytest.mark.parametrize("words", DETAILS)
def test_a_line_of_the_details_that_is_lost(words: str) -> None:
    line = next(each for each in TEXT.splitlines(keepends=True) if each.startswith(words))
    with pytest.raises(ParseError):
        parse_text(TEXT.replace(line, ""))


@given(st.sampled_from(SUMMARY), st.integers(0, 5), st.integers(1, 9))
def test_a_digit_that_changed_is_noticed(name: str, place: int, by: int) -> None:
    match = re.search(rf"^{name}=(\S+)$", TEXT, flags=re.MULTILINE)
    assert match is not None
    digits = [at for at, letter in enumerate(match[1]) if letter.isdecimal()]
    # The details print ns and less than six digits of short times: the first three must agree.
    telling = [at for at in digits if match[1][: at + 1].strip("0.")][:3]
    if not telling:
        return
    at = match.start(1) + telling[min(place, len(telling) - 1)]
    changed = TEXT[:at] + str((int(TEXT[at]) + by) % 10) + TEXT[at + 1 :]
    with pytest.raises(ParseError):
        parse_text(changed)


def test_another_number_of_processes_in_the_details() -> None:
    with pytest.raises(ParseError, match="4 processes"):
        parse_text(TEXT.replace("both directions on 4 processes", "both directions on 8 processes"))


def test_rings_that_were_not_run_are_no_damage() -> None:
    text = re.sub(r"^(\w+(?:Ring|PingPong)\w+)=.*$", r"\1=-1", TEXT, flags=re.MULTILINE)
    with pytest.raises(ParseError) as caught:
        parse_text(text)
    assert caught.value.problem == "the rings were not run"


def test_a_run_without_its_end() -> None:
    with pytest.raises(ParseError, match="cut"):
        parse_text(TEXT.replace("End of HPC Challenge tests.\n", ""))


def test_a_run_that_was_killed() -> None:
    with pytest.raises(ParseError, match="ended badly"):
        parse_text(TEXT + "slurmstepd: error: *** STEP 3.0 CANCELLED DUE TO TIME LIMIT ***\n")


def test_two_runs_in_one_file_are_two_tables() -> None:
    assert len(parse_text(TEXT + TEXT)) == 2


def test_summaries_out_of_their_order() -> None:
    swapped = TEXT.replace("Begin of Summary section.", "X").replace(
        "End of Summary section.", "Begin of Summary section."
    )
    with pytest.raises(ParseError):
        parse_text(swapped.replace("X", "End of Summary section."))


def test_a_failed_test_of_the_suite_is_told() -> None:
    (table,) = parse_text(TEXT.replace("Success=1", "Success=0"))
    assert table.attributes["success"] == 0
