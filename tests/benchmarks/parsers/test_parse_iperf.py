"""iperf and iperf3: the one number of a run, where it stands, and when it must not be believed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from recordings import DATA

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.errors import ParseError
from fabricproof.core.findings import texts_of
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules, at_least


def text_of(name: str) -> str:
    return (DATA / name).read_text("utf-8")


REPORT = text_of("iperf3/two-streams-report.txt")
TWO = text_of("iperf3/two-streams.txt")


def one(name: str) -> Table:
    (table,) = parse_text(text_of(name), name)
    return table


def refuse(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_text(text, "job.out")
    return caught.value


@pytest.mark.parametrize(
    ("name", "rate", "facts"),
    [
        ("iperf3/document-001-one-stream", 1182.5, {}),
        # the receiver counts
        ("iperf3/document-001-four-streams", 3162.5, {"sent_mb_s": 3175.0}),
        ("iperf/document-001-one-stream", 1181.25, {}),
        ("iperf/document-001-36-streams", 11625.0, {}),
        # streams of iperf3 share a thread before 3.16, those of iperf have their own
        (
            "iperf3/two-streams-report",
            13038285294.211653 / 8e6,
            {"retransmits": 0, "protocol": "TCP", "threads": 1, "moved_bytes": 1631715328}
            | {"mss_bytes": 32768, "path_mtu_bytes": 65535},
        ),
        # printed: 44.6 Gbits/sec in 2.0010 s; its clock stops before the last stream
        (
            "iperf/two-streams",
            pytest.approx(5575.0 * 2.0010 / 2.0127),
            {"threads": 2, "duration_s": 2.0127},
        ),
        # a server counts what arrived
        ("iperf3/server-two-streams", 6670 / 8, {}),
        ("iperf3/server-verbose", 10200 / 8, {}),
    ],
)
def test_rates_of_recordings(name: str, rate: float, facts: dict[str, object]) -> None:
    table = one(f"{name}.txt")
    assert (table.suite, table.column("bandwidth_mb_s")) == (name.partition("/")[0], (rate,))
    assert facts.items() <= table.attributes.items()


def test_streams_of_iperf3_have_threads_from_3_16_on() -> None:
    (later,) = parse_text(REPORT.replace("iperf 3.12", "iperf 3.16"))
    assert (later.version, later.attributes["threads"]) == ("3.16", 2)


def test_both_tools_in_one_text() -> None:
    text = TWO + text_of("iperf/one-stream.txt") + REPORT
    assert [table.suite for table in parse_text(text)] == ["iperf3", "iperf", "iperf3"]


def test_bytes_moved_are_the_fewest_that_print_so() -> None:
    text = one("iperf3/document-001-one-stream.txt").attributes
    assert 4.39 * 2**30 < text["moved_bytes"] < 4.40 * 2**30


def without(text: str, *words: str) -> str:
    return "\n".join(line for line in text.split("\n") if not all(word in line for word in words))


ONE_2, TWO_2 = text_of("iperf/one-stream.txt"), text_of("iperf/two-streams.txt")
SERVED = text_of("iperf3/server-two-streams.txt")
CUT_SERVED, ACCEPTED = SERVED[: SERVED.index("- - -")], SERVED.index("Accepted")
(RATE_2,) = [line for line in ONE_2.splitlines() if "bits/sec" in line]


def with_streams(kept: int) -> str:
    report = json.loads(REPORT)
    report["end"]["streams"] = (2 * report["end"]["streams"])[:kept]
    return json.dumps(report)


def of_both_directions(**start: object) -> str:
    """Invented after iperf_print_results of iperf3 3.7 and later: one way is as asked, one half."""
    report = json.loads(REPORT)
    report["start"]["test_start"]["bidir"] = 1
    report["start"] |= start
    end = report["end"]
    end["streams"] *= 2
    for side in ("sum_sent", "sum_received"):
        half = {name: end[side][name] / 2 for name in ("bytes", "bits_per_second")}
        end[f"{side}_bidir_reverse"] = {"seconds": end[side]["seconds"], "retransmits": 4, **half}
    return json.dumps(report)


def with_intervals(*moved: int, omitted: bool = False) -> str:
    report = json.loads(REPORT)
    report["intervals"] = [{"streams": [], "sum": {"bytes": each}} for each in moved]
    report["intervals"][0]["sum"]["omitted"] = omitted
    return json.dumps(report)


#: iperf3 3.1 over UDP, in the form of a fixture of PerfKitBenchmarker; the numbers are ours
OLD_UDP = """\
Connecting to host 10.0.0.3, port 5201
[  4] local 10.0.0.4 port 49526 connected to 10.0.0.3 port 5201
[ ID] Interval           Transfer     Bandwidth       Total Datagrams
[  4]   0.00-1.00   sec   118 MBytes   990 Mbits/sec  15104
[  4]   1.00-2.00   sec   118 MBytes   990 Mbits/sec  15105
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams
[  4]   0.00-2.00   sec   236 MBytes   990 Mbits/sec  0.072 ms  15104/30209 (50%)
[  4] Sent 30209 datagrams

iperf Done.
"""

#: iperf 2.0 with ``--dualtest``, in the form of a string of nokia/moler; the numbers are ours
DUAL = """\
Server listening on TCP port 5001
TCP window size: 85.3 KByte (default)
------------------------------------------------------------
Client connecting to 10.0.0.2, TCP port 5001
TCP window size: 85.3 KByte (default)
------------------------------------------------------------
[  5] local 10.0.0.1 port 40944 connected with 10.0.0.2 port 5001
[  4] local 10.0.0.1 port 5001 connected with 10.0.0.2 port 33016
[ ID] Interval       Transfer     Bandwidth
[  5]  0.0-10.0 sec  1.09 GBytes   936 Mbits/sec
[  4]  0.0-10.0 sec   558 MBytes   468 Mbits/sec
"""

DAMAGE = {
    "no receiver": (without(TWO, "receiver"), "no result"),
    "no sum": (without(TWO, "SUM", "receiver"), "a line is missing"),
    "no sums at all": (without(TWO, "SUM"), "a line is missing"),
    "a stream lost": (without(TWO, "[  7]", "receiver"), "a line is missing"),
    "no end": (without(TWO, "iperf Done."), "the output is cut"),
    "cut line": (TWO.replace("Gbits/sec", "Gbi"), "damaged row"),
    "unknown unit": (TWO.replace("Gbits/sec", "furlongs"), "damaged row"),
    "died": (TWO + "Killed\n", "the test failed"),
    "interrupted": (TWO + "iperf3: interrupt - the client has terminated\n", "the test failed"),
    "cut report": (REPORT[:-40], "broken JSON"),
    "report without result": (REPORT.replace("sum_received", "other"), "not a whole report"),
    "report of nothing": ("{}\n", "no benchmark table"),
    "report with error": ('{"error": "unable to connect"}\n', "the test failed"),
    "text for a number": (REPORT.replace("13038285294.211653", '"fast"'), "not a whole report"),
    "endless number": (REPORT.replace("13038285294.211653", "1e999"), "not a whole report"),
    "report, then death": (REPORT + "\nKilled\n", "the job ended badly"),
    "both ways": (TWO.replace("]   0", "][TX-C]   0"), "two directions at once"),
    "both ways by their server": (
        of_both_directions(accepted_connection={"host": "10.0.0.1", "port": 1}),
        "the server of two directions"),
    "intervals of 1 under a sum": (
        with_intervals(1, 1, 1), "the intervals are not those of the sum"),
    "text of slow intervals": (
        TWO.replace("2.92 GBytes  25.1 Gbits", "2.92 MBytes  25.1 Mbits"),
        "the intervals are not those of the sum"),
    **{f"{kept} of two streams": (with_streams(kept), "a stream is missing") for kept in (0, 1, 3)},
    "intervals without their summary": (
        "\n".join(TWO_2.split("\n")[:-4]) + "\n", "the output is cut"),
    "streams asked for and not there": ("$ iperf -c node1 -P 4\n" + TWO_2, "a stream is missing"),
    "the sum of the sender alone": (
        text_of("iperf3/udp-report.txt").replace("sum_received", "sum_oops"), "not a whole report"),
    "a server that broke off": (
        CUT_SERVED + "iperf3: error - unable to receive results\n", "the test failed"),
    "a server without result": (CUT_SERVED, "no result"),
    "both ends in one text": (
        SERVED[:ACCEPTED] + TWO[:40] + "\n" + SERVED[ACCEPTED:] + TWO, "both ends in one text"),
    "a server that called itself": (
        text_of("iperf/damaged/server-dualtest-both-ends.txt"), "two directions at once"),
    "both ways of iperf 2": (DUAL, "the text of a server of iperf 2"),
    "a server of iperf 2": (
        text_of("iperf/damaged/server-one-stream.txt"), "the text of a server of iperf 2"),
    "full duplex": (
        text_of("iperf/damaged/full-duplex.txt"), "two directions at once"),
    "both ways of iperf 2 without the first lines": (
        DUAL[DUAL.index("Client"):], "several tests in one text"),
    "iperf3 3.1 over UDP, which shows no receiver": (OLD_UDP, "no result"),
    "a sum of other streams": (
        TWO_2.replace("10.4 GBytes", "14.4 GBytes"), "the sum is not that of its streams"),
    "no time": (
        ONE_2.replace(RATE_2, "[  1] 0.0000-0.0000 sec  0.00 Bytes  0.00 bits/sec"),
        "no time passed"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_an_error(text: str, problem: str) -> None:
    error = refuse(text)
    assert error.problem == problem
    assert error.line is not None


def test_a_report_of_both_directions_is_their_sum() -> None:
    (table,) = parse_text(of_both_directions())
    (one_way,) = parse_text(REPORT)
    rates = [each.column("bandwidth_mb_s")[0] for each in (table, one_way)]
    assert rates[0] == pytest.approx(1.5 * rates[1])
    assert table.attributes["both_ways"] == 1
    assert table.attributes["retransmits"] == 4
    assert reading_of(table).bidirectional
    assert table.column("num_streams") == (2,)


def test_retransmissions_that_nobody_counted_are_none() -> None:
    (table,) = parse_text(REPORT.replace('"retransmits":\t0', '"retransmits":\t-1'))
    assert "retransmits" not in table.attributes


def test_intervals_that_were_omitted_are_no_part_of_the_sum() -> None:
    moved = json.loads(REPORT)["end"]["sum_sent"]["bytes"]
    (table,) = parse_text(with_intervals(moved, moved // 2, moved // 2, omitted=True))
    assert table.rows == parse_text(REPORT)[0].rows


def test_what_a_run_was_limited_to_is_told_for_all_its_streams() -> None:
    text = REPORT.replace('"target_bitrate":\t0', '"target_bitrate":\t1000000000')
    (table,) = parse_text(text)
    assert table.attributes["target_mb_s"] == 250.0


def test_report_survives_json_round_trip() -> None:
    compact = "{" + json.dumps(json.loads(REPORT), indent=1)[1:]
    assert parse_text(compact)[0].rows == parse_text(REPORT)[0].rows


#: iperf 2.0 with ``-u -P 2``, in the form of a string of nokia/moler; the numbers are ours
TWO_UDP = """\
Client connecting to 10.0.0.2, UDP port 5001
Sending 1470 byte datagrams, IPG target: 11215.21 us (kalman adjust)
UDP buffer size:  208 KByte (default)
------------------------------------------------------------
[  4] local 10.0.0.1 port 37033 connected with 10.0.0.2 port 5001
[  3] local 10.0.0.1 port 56390 connected with 10.0.0.2 port 5001
[ ID] Interval       Transfer     Bandwidth
[  4]  0.0- 5.0 sec   615 KBytes  1008 Kbits/sec
[  4] Sent 428 datagrams
[  3]  0.0- 5.0 sec   615 KBytes  1008 Kbits/sec
[  3] Sent 428 datagrams
[SUM]  0.0- 5.0 sec  1230 KBytes  2016 Kbits/sec
[  3] Server Report:
[  3]  0.0- 5.0 sec   153 KBytes   251 Kbits/sec   0.043 ms  322/  428 (75%)
[  3]  0.0- 5.0 sec  1 datagrams received out-of-order
[  4] Server Report:
[  4]  0.0- 5.0 sec   152 KBytes   249 Kbits/sec   0.040 ms  322/  428 (75%)
"""


def verdict_of(text: str, link: str) -> Verdict:
    (table,) = parse_text(text)
    return judge_table(table, Rules(fabric=Fabric(link=find_link(link)))).quantities[-1].verdict


def test_old_report_of_udp_is_the_senders_less_what_was_lost() -> None:
    report = json.loads(text_of("iperf3/udp-report.txt"))
    end = report["end"]
    rate = end["sum_sent"]["bits_per_second"]
    end["sum"] = {**end["sum_sent"], "lost_packets": 191, "packets": 382, "jitter_ms": 0.0}
    del end["sum_sent"], end["sum_received"]
    (table,) = parse_text(json.dumps(report))
    assert table.column("bandwidth_mb_s")[0] == pytest.approx(rate / 16e6)
    assert table.column("loss_percent") == (50.0,)


def test_streams_of_udp_are_what_their_server_reports_say() -> None:
    (table,) = parse_text(TWO_UDP)
    assert table.column("bandwidth_mb_s")[0] == pytest.approx((251 + 249) / 8000)
    assert table.attributes["lost_datagrams"] == 644
    assert verdict_of(TWO_UDP, "2MbE") is Verdict.FAIL
    notes = texts_of(judge_table(table, Rules(fabric=None)).findings)
    assert any(note.startswith("644 of 856 datagrams (75.23%) were lost") for note in notes)


def test_udp_without_a_server_report_of_each_stream_is_no_result() -> None:
    for stream in ("3", "4"):
        less = without(TWO_UDP, f"[  {stream}]", "0.0- 5.0", "(75%)")
        assert refuse(less).problem == "what arrived is not shown"
    assert refuse(without(TWO_UDP, "(75%)")).problem == "what arrived is not shown"


def test_both_ends_of_a_lossy_run_tell_the_same() -> None:
    client, server = (one(f"iperf3/{side}udp-lossy.txt") for side in ("", "server-"))
    assert client.rows == server.rows
    assert client.attributes["sent_mb_s"] > 2 * client.column("bandwidth_mb_s")[0]


def test_a_server_that_does_not_know_what_was_sent_prints_0() -> None:
    """Issue 408 of esnet/iperf: "0.00 Bytes  0.00 bits/sec  sender" beside 3.31 Gbits/sec."""
    line = "[  5]   0.00-10.04  sec  {}                  {}\n"
    text = (
        "Accepted connection from 10.0.0.1, port 40172\n"
        "[  5] local 10.0.0.2 port 5201 connected to 10.0.0.1 port 40174\n"
        + line.format("0.00 Bytes  0.00 bits/sec", "sender")
        + line.format("3.87 GBytes  3.31 Gbits/sec", "receiver")
    )
    (table,) = parse_text(text)
    assert table.column("bandwidth_mb_s") == (413.75,)
    assert "sent_mb_s" not in table.attributes
    assert judge_table(table, Rules(fabric=None)).verdict is Verdict.UNJUDGED


def test_times_before_each_line_are_no_part_of_it() -> None:
    for name in ("timestamps.txt", "server-timestamps.txt"):
        text = (DATA / "iperf3" / name).read_text("utf-8")
        bare = "\n".join(line[25:] for line in text.split("\n"))
        assert [table.rows for table in parse_text(text)] == [
            table.rows for table in parse_text(bare)
        ]


def test_each_test_of_a_server_of_iperf3_is_a_table_and_waiting_is_none() -> None:
    served = text_of("iperf3/server-two-streams.txt")
    waits = (
        "Server listening on 5201 (test #3)\n-----\niperf3: interrupt - the server has terminated\n"
    )
    assert len(parse_text(served + served + waits)) == 2
    assert refuse(waits).problem == "no benchmark table"


BANNER = "iperf 3.12\nLinux node1 6.1.0 #1 SMP x86_64\n"


@pytest.mark.parametrize(
    "waits",
    [
        BANNER,
        BANNER + "-----\nServer listening on 5201 (test #2)\n-----\n",
        # Its last words come first: what was written to a file is in a buffer.
        BANNER + "iperf3: interrupt - the server has terminated\n"
        "-----\nServer listening on 5201 (test #2)\n-----\n",
    ],
)
def test_a_verbose_server_names_its_version_before_each_wait(waits: str) -> None:
    served = text_of("iperf3/server-verbose.txt")
    assert len(parse_text(served + waits)) == 1
    assert len(parse_text(served + served + waits)) == 2
    assert refuse(waits).problem == "no benchmark table"


@pytest.mark.parametrize("word", ["error - unable to connect", "interrupt - the client has ended"])
def test_a_verbose_client_that_came_to_nothing_is_an_error(word: str) -> None:
    assert refuse(BANNER + f"iperf3: {word}\n").problem == "the test failed"


# A run that contradicts itself.


def between_two_nodes(text: str) -> str:
    """Return a recording, all of which called their own node, as one of two nodes."""
    return re.sub(r"(local(?:_host\":\s*\")? ?)127\.0\.0\.1", r"\g<1>10.0.0.1", text)


def edited(**changes: object) -> str:
    text = text_of("iperf3/one-stream-report.txt")
    report = json.loads(between_two_nodes(text))
    for path, value in changes.items():
        side, _, name = path.partition("__")
        report["end"][side][name] = value
    return json.dumps(report)


@pytest.mark.parametrize(
    "changes",
    [
        {"sum_received__bytes": 1},
        {"sum_received__bytes": 0, "sum_received__seconds": 0},
        {"sum_received__seconds": 100.0},
        {"sum_sent__bits_per_second": 1.0},
        {"sum_sent__bits_per_second": 0},
    ],
    ids=str,
)
def test_a_report_that_contradicts_itself_is_invalid(changes: dict[str, object]) -> None:
    (whole,) = parse_text(edited())
    good = judge_table(whole, Rules(fabric=None))
    assert good.verdict is Verdict.UNJUDGED
    (table,) = parse_text(edited(**changes))
    report = judge_table(table, Rules(fabric=None))
    assert report.verdict is Verdict.INVALID
    assert "contradicts itself" in report.quantities[-1].reason


@pytest.mark.parametrize(
    "path",
    [path for tool in ("iperf", "iperf3") for path in sorted((DATA / tool).glob("*.txt"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_no_recorded_run_contradicts_itself(path: Path) -> None:
    (table,) = parse_text(between_two_nodes(path.read_text("utf-8")))
    report = judge_table(table, Rules(fabric=None))
    assert report.verdict is Verdict.UNJUDGED, report.quantities


@pytest.mark.parametrize("name", ["iperf/one-stream", "iperf3/one-stream", "iperf3/udp-report"])
def test_a_run_of_a_node_with_itself_is_no_measurement_of_a_network(name: str) -> None:
    text = text_of(f"{name}.txt")
    rules = Rules(fabric=None, references={"bandwidth": at_least(1.0, origin="test")})
    for own in ("127.0.0.1", "10.0.0.1", "fd00::1"):
        (table,) = parse_text(text.replace("127.0.0.1", own))
        (judged,) = judge_table(table, rules).quantities
        assert judged.verdict is Verdict.INVALID
        assert f"both ends have the address {own}" in judged.reason
    (table,) = parse_text(between_two_nodes(text))
    assert judge_table(table, rules).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("rate", "link", "printed", "verdict"),
    [
        (24.7511, "25GbE,mtu=9000", "24.8 Gbits/sec", Verdict.PASS),
        (37.9714, "40GbE,mtu=1500", "38.0 Gbits/sec", Verdict.PASS),
        (25.0, "25GbE,mtu=9000", "25.0 Gbits/sec", Verdict.INVALID),
    ],
)
def test_a_true_number_that_is_printed_above_its_ceiling_is_possible(
    rate: float, link: str, printed: str, verdict: Verdict
) -> None:
    """Invented: the payload of a full wire, in iperf's three digits."""
    name, _, mtu = link.partition(",mtu=")
    moved = f"{rate * 1e10 / 8 / 2**30:.1f} GBytes"
    head = "Connecting to host n2, port 5201\n"
    line = f"[  5]   0.00-10.00  sec  {moved}  {printed}                  "
    text3 = f"{head}{line}sender\n{line}receiver\n\niperf Done.\n"
    text2 = f"[  3]  0.0-10.0 sec  {moved}  {printed}\n"
    for text in (text3, text2):
        (table,) = parse_text(text)
        fabric = Fabric(link=find_link(name), mtu=int(mtu))
        assert judge_table(table, Rules(fabric=fabric)).verdict is verdict


@pytest.mark.parametrize(("unit", "mb_s"), [("K", 0.001024), ("M", 1.048576), ("G", 1073.741824)])
def test_rates_in_bytes_are_of_powers_of_1024(unit: str, mb_s: float) -> None:
    """``-f K`` to ``-f T``: unit_snprintf of both.  The text is invented."""
    line = f"0.0-10.0 sec  1.09 GBytes   112 {unit}Bytes/sec"
    (table,) = parse_text(f"Client connecting to n2, TCP port 5001\n[  3]  {line}\n")
    assert (table.suite, table.column("bandwidth_mb_s")[0]) == ("iperf", pytest.approx(112 * mb_s))
    assert table.attributes["bandwidth_rounding_mb_s"] == pytest.approx(0.5 * mb_s)
    end = "\n\niperf Done.\n"
    (table,) = parse_text(f"Connecting to host n2, port 5201\n[  5]  {line}  receiver{end}")
    assert (table.suite, table.column("bandwidth_mb_s")[0]) == ("iperf3", pytest.approx(112 * mb_s))


def stream_of(name: str) -> list[str]:
    """Return a recorded report as ``--json-stream`` prints it: an event a line, no blanks."""
    report = json.loads((DATA / "iperf3" / name).read_text("utf-8"))
    events = [("start", report["start"]), *(("interval", each) for each in report["intervals"])]
    return [
        json.dumps({"event": kind, "data": data}, separators=(",", ":"))
        for kind, data in (*events, ("end", report["end"]))
    ]


@pytest.mark.parametrize(
    "name", ["one-stream-report.txt", "two-streams-report.txt", "udp-report.txt"]
)
def test_a_stream_of_events_says_what_its_report_says(name: str) -> None:
    (streamed,) = parse_text("\n".join(stream_of(name)) + "\n")
    whole = one(f"iperf3/{name}")
    assert (streamed.rows, streamed.attributes) == (whole.rows, whole.attributes)
    assert len(parse_text("\n".join(2 * stream_of(name)) + "\n")) == 2


def test_a_stream_that_is_not_whole_is_refused() -> None:
    start, *between, end = stream_of("two-streams-report.txt")
    failed = '{"event":"error","data":"unable to connect"}'
    for lines, problem in (
        ([start, *between], "the output is cut"),
        ([*between, end], "the output is cut"),
        ([start, *between, failed], "the test failed"),
        ([start, *between, end, end], "a second event of its kind"),
        ([start, *between, end[:-9]], "broken JSON"),
        ([start, end, "Killed"], "the job ended badly"),
        ([REPORT, *between, end], "the output is cut"),
    ):
        assert refuse("\n".join(lines) + "\n").problem == problem


@pytest.mark.parametrize(
    ("rate", "verdict"), [("957", Verdict.PASS), ("962", Verdict.PASS), ("968", Verdict.INVALID)]
)
def test_fragments_of_a_long_datagram_have_one_header_of_udp(rate: str, verdict: Verdict) -> None:
    """Invented: ``iperf3 -u -l 65507`` over 1 GbE; 1480 of 1538 bytes are 962 Mb/s."""
    moved = f"{float(rate) * 1e7 / 8 / 2**30:.2f} GBytes"
    line = f"[  5]   0.00-10.00  sec  {moved}  {rate} Mbits/sec  0.010 ms  0/18345 (0%)  "
    text = f"Connecting to host n2, port 5201\n{line}sender\n{line}receiver\n\niperf Done.\n"
    (table,) = parse_text(text)
    fabric = Fabric(link=find_link("1GbE"), mtu=1500)
    assert judge_table(table, Rules(fabric=fabric)).verdict is verdict
