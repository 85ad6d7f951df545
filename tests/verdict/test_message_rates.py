"""Small messages at the rate of the link: no adapter posts so many, no link has room for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.measure import Table, Verdict
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.table import judge_table
from fabricproof.verdict.value import Rules
from tables import bandwidths, table

DATA = Path(__file__).parents[1] / "data"
SIZES = [2**power for power in range(23)]
RATE = ("message_size", "bandwidth_mb_s", "message_rate_per_s")

#: what was PASS: programs that printed what nothing can have sent
IMPOSSIBLE = {
    "ib_write_bw -s 2": table(
        "ib_write_bw",
        (*RATE[:2], "iterations", RATE[2]),
        [(2, 24471.0, 5000, 12.2e9)],
        suite="perftest",
    ),
    "one row of osu_bw": bandwidths({1: 24471.0}),
    "osu_bw, one number at all sizes": bandwidths(dict.fromkeys(SIZES, 24471.0)),
    "osu_mbw_mr": table("osu_mbw_mr", RATE, [(1, 20000.0, 20e9)], num_pairs=1),
}


def judged(made: Table, link: str) -> dict[str, Verdict]:
    report = judge_table(made, Rules(fabric=Fabric(link=find_link(link))))
    return {each.name: each.verdict for each in report.quantities}


@pytest.mark.parametrize("made", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize("link", ["EDR", "HDR", "NDR"])
def test_no_adapter_posts_ten_thousand_million_messages_a_second(made: Table, link: str) -> None:
    assert next(iter(judged(made, link).values())) is Verdict.INVALID


def test_pairs_on_nodes_that_nobody_knows_may_have_an_adapter_each() -> None:
    rows = [(1, 30 * 740.0, 30 * 740e6)]
    one, many = (table("osu_mbw_mr", RATE, rows, num_pairs=pairs) for pairs in (1, 32))
    assert judged(one, "NDR")["bandwidth_1B"] is Verdict.INVALID
    assert judged(many, "NDR")["bandwidth_1B"] is not Verdict.INVALID


@pytest.mark.parametrize(("value", "invalid"), [(8650.0, False), (9000.0, True)])
def test_perftest_sends_a_packet_for_each_message(value: float, invalid: bool) -> None:
    """64 of 90 bytes of an EDR link: 8.69 GB/s after its code."""
    rate = value / 64 * 1e6
    rows = [(64, 5000, value, value, rate)]
    columns = ("message_size", "iterations", "bandwidth_peak_mb_s", "bandwidth_mb_s", RATE[2])
    made = table("ib_write_bw", columns, rows, suite="perftest")
    assert (judged(made, "EDR")["bandwidth_64B"] is Verdict.INVALID) is invalid
    assert judged(bandwidths({64: value}), "EDR")["bandwidth_64B"] is not Verdict.INVALID


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("perftest/ib_send_bw-mlx4-all.txt", "QDR"),
        ("perftest/ib_read_bw-mlx4-all.txt", "QDR"),
        ("perftest/ib_write_bw-ndr-gbits.txt", "NDR"),
        ("perftest/ib_send_bw-ndr.txt", "NDR"),
        ("perftest/ib_write_bw-both-ways-gbits.txt", "400GbE"),
        ("perftest/ib_atomic_bw-mlx4.txt", "QDR"),
    ],
)
def test_what_was_measured_stays_possible(name: str, link: str) -> None:
    tables = parse_text((DATA / name).read_text(), source=name)
    for made in tables:
        assert Verdict.INVALID not in judged(made, link).values()
