"""iperf and iperf3: the one number of a run, where it stands, and when it must not be believed."""

from __future__ import annotations

import json

import pytest
from recordings import DATA

from fabricproof.errors import ParseError
from fabricproof.measure import Table
from fabricproof.parsers import parse_text

REPORT = (DATA / "iperf3/two-streams-report.txt").read_text("utf-8")
TWO = (DATA / "iperf3/two-streams.txt").read_text("utf-8")


def one(name: str) -> Table:
    (table,) = parse_text((DATA / name).read_text("utf-8"), name)
    return table


def refuse(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out")
    return caught.value


@pytest.mark.parametrize(
    ("name", "suite", "streams", "rate"),
    [
        ("iperf3/document-001-one-stream.txt", "iperf3", 1, 1182.5),
        ("iperf3/document-001-four-streams.txt", "iperf3", 4, 3162.5),
        ("iperf/document-001-one-stream.txt", "iperf", 1, 1181.25),
        ("iperf/document-001-36-streams.txt", "iperf", 36, 11625.0),
    ],
)
def test_published_rates_of_document_001(name: str, suite: str, streams: int, rate: float) -> None:
    table = one(name)
    assert table.suite == suite
    assert table.rows == ((streams, rate),)


def test_receiver_counts_and_not_the_sender() -> None:
    table = one("iperf3/document-001-four-streams.txt")
    assert table.attributes["sent_mb_s"] == 3175.0
    assert table.column("bandwidth_mb_s") == (3162.5,)


def test_report_gives_the_exact_rate_and_the_facts() -> None:
    table = one("iperf3/two-streams-report.txt")
    assert table.column("bandwidth_mb_s") == (13038285294.211653 / 8e6,)
    assert table.version == "3.12"
    assert table.attributes["retransmits"] == 0
    assert table.attributes["protocol"] == "TCP"


def test_streams_of_iperf3_share_a_thread_before_3_16() -> None:
    assert one("iperf3/two-streams-report.txt").attributes["threads"] == 1
    (later,) = parse_text(REPORT.replace("iperf 3.12", "iperf 3.16"))
    assert later.attributes["threads"] == 2


def test_streams_of_iperf_have_threads_of_their_own() -> None:
    assert one("iperf/two-streams.txt").attributes["threads"] == 2


def test_sum_of_iperf_stops_its_clock_before_the_last_stream_and_is_put_right() -> None:
    table = one("iperf/two-streams.txt")
    assert table.attributes["duration_s"] == 2.0127
    # printed: 44.6 Gbits/sec in 2.0010 s
    assert table.rows == ((2, pytest.approx(5575.0 * 2.0010 / 2.0127)),)


def test_bytes_moved_are_the_fewest_that_print_so() -> None:
    text = one("iperf3/document-001-one-stream.txt").attributes
    assert 4.39 * 2**30 < text["moved_bytes"] < 4.40 * 2**30
    assert one("iperf3/two-streams-report.txt").attributes["moved_bytes"] == 1631715328


def test_report_tells_the_segment_and_the_path() -> None:
    facts = one("iperf3/two-streams-report.txt").attributes
    assert (facts["mss_bytes"], facts["path_mtu_bytes"]) == (32768, 65535)


def test_both_tools_in_one_text() -> None:
    text = TWO + (DATA / "iperf/one-stream.txt").read_text("utf-8") + REPORT
    assert [table.suite for table in parse_text(text)] == ["iperf3", "iperf", "iperf3"]


def without(text: str, *words: str) -> str:
    return "\n".join(line for line in text.split("\n") if not all(word in line for word in words))


DAMAGE = {
    "no receiver": (without(TWO, "receiver"), "no result"),
    "no sum": (without(TWO, "SUM", "receiver"), "a line is missing"),
    "no sums at all": (without(TWO, "SUM"), "the sum is missing"),
    "a stream lost": (without(TWO, "[  7]", "receiver"), "a line is missing"),
    "no end": (without(TWO, "iperf Done."), "the output is cut"),
    "cut line": (TWO.replace("Gbits/sec", "Gbi"), "damaged row"),
    "unknown unit": (TWO.replace("Gbits/sec", "furlongs"), "damaged row"),
    "died": (TWO + "Killed\n", "the test failed"),
    "interrupted": (TWO + "iperf3: interrupt - the client has terminated\n", "the test failed"),
    "cut report": (REPORT[:-40], "broken JSON"),
    "report without result": (REPORT.replace("sum_received", "other"), "not a whole report"),
    "report of nothing": ("{}\n", "not a whole report"),
    "report with error": ('{"error": "unable to connect"}\n', "the test failed"),
    "text for a number": (REPORT.replace("13038285294.211653", '"fast"'), "not a whole report"),
    "endless number": (REPORT.replace("13038285294.211653", "1e999"), "not a whole report"),
    "report, then death": (REPORT + "\nKilled\n", "the job ended badly"),
    "both ways": (TWO.replace("]   0", "][TX-C]   0"), "two directions at once"),
}


@pytest.mark.parametrize(("text", "problem"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_an_error(text: str, problem: str) -> None:
    error = refuse(text)
    assert error.problem == problem
    assert error.line is not None


def test_server_log_may_hold_several_runs_and_is_refused() -> None:
    error = refuse((DATA / "iperf/damaged/server.txt").read_text("utf-8"))
    assert error.line == 2


def test_interval_report_cut_before_its_summary() -> None:
    text = (DATA / "iperf/two-streams.txt").read_text("utf-8")
    cut = "\n".join(text.split("\n")[:-4]) + "\n"
    assert refuse(cut).problem == "the output is cut"


def test_streams_asked_for_and_not_there() -> None:
    text = (DATA / "iperf/two-streams.txt").read_text("utf-8")
    assert refuse("$ iperf -c node1 -P 4\n" + text).problem == "a stream is missing"


def test_report_survives_json_round_trip() -> None:
    compact = "{" + json.dumps(json.loads(REPORT), indent=1)[1:]
    assert parse_text(compact)[0].rows == parse_text(REPORT)[0].rows


def test_sum_of_the_sender_does_not_stand_in_for_the_receiver() -> None:
    text = (DATA / "iperf3/udp-report.txt").read_text("utf-8")
    assert refuse(text.replace("sum_received", "sum_oops")).problem == "not a whole report"
