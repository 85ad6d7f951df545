"""Anybody's matrix, judged as a stranger calls it: whose fault, whose not, and what is missing."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matrices import Fault, both, hops, made, of_node, of_pair, written

from fabricproof.pairs import Order, Schedule, leaves_of

Command = Callable[..., Any]
Rows = list[dict[str, object]]
AT_24 = ("--reference", "24 GB/s", "--unit", "GB/s")
HDR = ("--link", "HDR 4x", "--unit", "GB/s")


@pytest.fixture
def judge(tmp_path: Path, fabricproof: Command) -> Callable[..., Any]:
    """Write rows and judge them, as text and as JSON; the answer has ``record`` and ``status``."""

    def run(rows: Rows, *options: str, leaf_of: Callable[[int], object] | None = None) -> Any:
        file = written(tmp_path / "m.csv", rows)
        if leaf_of is not None:
            names = sorted({str(row[end]) for row in rows for end in ("a", "b")})
            text = "".join(f"{name},leaf{leaf_of(int(name[1:]))}\n" for name in names)
            (tmp_path / "leaves.csv").write_text("node,leaf\n" + text)
            options = (*options, "--leaves", str(tmp_path / "leaves.csv"))
        told = fabricproof("pairs", "judge", file, *options)
        judged = fabricproof("pairs", "judge", file, "--json", *options)
        assert told.status == judged.status, told
        return judged

    return run


def blamed(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    return sorted(
        (each["fact"], each["name"], each["where"]["direction"]) for each in record["blame"]
    )


def node(number: int, side: str = "both") -> tuple[str, str, str]:
    return ("node", f"n{number:04}", side)


def in_rounds(num: int, count: int, fault: Fault, noise: float = 0.03) -> Rows:
    return [
        {**row, "round": number}
        for number in range(count)
        for row in made(num, fault, seed=number, noise=noise)
    ]


def of_columns(rows: Rows, **columns: object) -> Rows:
    return [{**row, **columns} for row in rows]


def ring(num: int, *arguments: Any) -> Rows:
    """Return the rows of neighbours in a ring."""
    return [
        row for row in made(num, *arguments)
        if (int(str(row["a"])[1:]) - int(str(row["b"])[1:])) % num in {1, num - 1}
    ]  # fmt: skip


def one_way(first: int, second: int, factor: float = 0.4) -> Fault:
    return lambda a, b, _: factor if (a, b) == (first, second) else 1.0


def times(one: Fault, other: Fault) -> Fault:
    return lambda a, b, rail: one(a, b, rail) * other(a, b, rail)


def leaf_fault(side: str, *, inside: bool = False) -> Fault:
    def fault(a: int, b: int, _: int) -> float:
        first, second = a // 4 == 1, b // 4 == 1
        if first and second:
            return 0.4 if inside else 1.0
        hit = (first and side != "receive") or (second and side != "transmit")
        return 0.4 if hit else 1.0

    return fault


# --- who is blamed


def rounds_from_a_table_program() -> Rows:
    return [
        {**row, "round": f"{number % 7}.0" if number % 3 else ""}
        for number, row in enumerate(made(8, of_node(3, 0.3)))
    ]


def in_two_units() -> Rows:
    rows = of_columns(made(12, of_node(3, 0.5)), unit="GB/s")
    for row in rows[1::2]:
        row |= {"value": float(str(row["value"])) * 1000, "unit": "MB/s"}
    return rows


def one_pair_a_row(side: str) -> Rows:
    return [
        {**row, "direction": "ab"} if str(row["a"]) < str(row["b"])
        else {**row, "a": row["b"], "b": row["a"], "direction": "ba"}
        for row in made(10, of_node(3, 0.3, side=side))
    ]  # fmt: skip


def of_sizes(fault: Fault, others: int) -> Rows:
    """Return a bandwidth with a fault, and latencies that do not show it."""
    rows = of_columns(made(12, fault, rails=2), size="4MiB", unit="GB/s")
    for other in range(others):
        fine = made(12, base=1.5, rails=2, seed=other + 2)
        rows += of_columns(fine, size=str(8 * 2**other), unit="us")
    return rows


TEN = both(*(of_node(number, 0.5) for number in range(10)))
THREE = both(of_node(3, 0.4), of_node(9, 0.6, side="receive", rail=0), of_pair(5, 6, 0.5))
SLOW = made(8, of_node(3, 0.3))
ITSELF: Rows = [{"a": f"n{at:04}", "b": f"n{at:04}", "value": 900.0} for at in range(8)]
OTHER_COLUMNS: Rows = [
    {"comment": "x", "VALUE": row["value"], "B": row["b"], "when": "now", "A": row["a"]}
    for row in SLOW
]
SIZES = [
    {**row, "size": size}
    for size, fault in (("4MiB", of_node(3, 0.5)), ("1MiB", of_node(3, 0.6, side="transmit")),
                        ("1KiB", of_node(7, 0.4)))
    for row in made(12, fault)
]  # fmt: skip
PAIR = ("pair", "n0002 - n0004", "both")


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        *((made(num, of_node(2, 0.3, side=side)), (), [node(2, side)])
          for num in (6, 16, 40) for side in ("both", "transmit", "receive")),
        (made(4, of_node(2, 0.7)), (), [node(2)]),
        *((made(16, of_node(3, 0.3, side=side, rail=1), rails=2), (),
           [("rail", "n0003 rail1", side)]) for side in ("both", "transmit", "receive")),
        (made(12, of_node(3, 0.3), rails=4), (), [node(3)]),
        (made(24, THREE, rails=2), (), [node(3), ("pair", "n0005 - n0006", "both"),
                                        ("rail", "n0009 rail0", "receive")]),
        (made(20, both(*(of_node(at, 0.5) for at in range(8)))), (), [node(at) for at in range(8)]),
        (made(16, TEN), AT_24, [node(at) for at in range(10)]),
        (made(16, times(hops(4, 1.6), of_node(5, 0.4))), (), [node(5)]),
        (made(12, of_node(3, 0.5), lower_is_better=True), ("--unit", "us"), [node(3)]),
        (made(12, of_node(3, 0.5)), ("--unit", "MiB/s"), [node(3)]),
        *((made(num, of_node(2, 0.3), triangle=True), (), [node(2)]) for num in (6, 8, 16, 40)),
        *((one_pair_a_row(side), (), [node(3, side)]) for side in ("transmit", "receive")),
        (made(12, times(lambda _a, _b, rail: 0.5 if rail else 1.0, of_node(3, 0.5, rail=1)),
              rails=2), (), [("rail", "n0003 rail1", "both")]),
        (made(8, of_node(3, 0.0)), (), [node(3)]),
        (in_two_units(), (), [node(3)]),
        (rounds_from_a_table_program(), (), [node(3)]),
        (SLOW + SLOW, (), [node(3)]),
        (SLOW + ITSELF, (), [node(3)]),
        (OTHER_COLUMNS, (), [node(3)]),
        # Of the first node only the transmit side was measured.
        (of_columns(made(12, of_node(0, 0.3), triangle=True), direction="ab"), (),
         [node(0, "transmit")]),
        # A pair that is low both ways in two looks, or among many; or one way in each look.
        *((in_rounds(num, rounds, of_pair(2, 4, 0.3)), (), [PAIR])
          for num, rounds in ((8, 2), (13, 1), (40, 1))),
        *((in_rounds(16, rounds, one_way(2, 4)), (), [("pair", "n0002 - n0004", "transmit")])
          for rounds in (2, 3)),
        (in_rounds(3, 2, of_node(0, 0.3)), AT_24, [node(0)]),
        # A fault that one size alone shows; what several show is told once.
        *((of_sizes(of_node(3, 0.5), others), (), [node(3)]) for others in (1, 3)),
        (of_sizes(of_node(3, 0.5, side="receive", rail=1), 1), (),
         [("rail", "n0003 rail1", "receive")]),
        (of_sizes(of_pair(3, 5, 0.5), 1), (), [("pair", "n0003 - n0005", "both")]),
        (SIZES, (), [node(3), node(7)]),
    ],
)  # fmt: skip
def test_who_is_blamed(
    judge: Any, rows: Rows, options: tuple[str, ...], expected: list[tuple[str, str, str]]
) -> None:
    ended = judge(rows, *options)
    assert (ended.status, blamed(ended.record), ended.record["undecided"]) == (1, expected, [])
    assert all(each["confidence"] > 0.7 for each in ended.record["blame"])
    if rows[: len(SLOW)] == SLOW:
        assert ended.record["measured"] == 56, "each direction once, and none of a node with itself"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (leaf_fault("both"), ("leaf", "leaf1", "both")),
        (leaf_fault("both", inside=True), ("leaf", "leaf1", "both")),
        (leaf_fault("transmit"), ("uplink", "leaf1", "transmit")),
        (leaf_fault("receive"), ("uplink", "leaf1", "receive")),
    ],
)
def test_a_leaf_and_its_uplinks(judge: Any, fault: Fault, expected: tuple[str, str, str]) -> None:
    ended = judge(made(16, fault), leaf_of=lambda number: number // 4)
    assert blamed(ended.record) == [expected]
    assert "node" not in ended.record["blame"][0]["where"]


def test_what_a_blame_holds(judge: Any) -> None:
    fault = of_node(3, 0.5, side="receive", rail=1)
    (blame,) = judge(made(16, fault, rails=2)).record["blame"]
    assert (blame["where"]["node"], blame["where"]["rail"]) == ("n0003", "rail1")
    assert blame["share"] == pytest.approx(0.5, rel=0.05)
    assert (blame["low_pairs"], blame["measured_pairs"], blame["drain"]) == (15, 15, blame["drain"])
    (blame,) = judge(made(12, of_node(3, 0.3), rails=1)).record["blame"]
    assert (blame["fact"], blame["where"]["rail"]) == ("node", "rail0")
    assert "n0003 rail0 alone" in blame["cannot_tell_from"]
    slow = made(12, of_node(3, 0.5), base=2.0, lower_is_better=True)
    record = judge(slow, "--unit", "usec").record
    assert (record["quantity"], record["healthy"][0]["unit"]) == ("latency", "us")
    assert record["blame"][0]["share"] == pytest.approx(0.5, rel=0.05)


def test_a_node_alone_on_its_leaf_is_not_told_from_it(judge: Any) -> None:
    rows = made(10, of_node(9, 0.4))
    (blame,) = judge(rows, leaf_of=lambda number: number // 3).record["blame"]
    assert (blame["fact"], blame["where"]["node"]) == ("node", "n0009")
    assert any(each.startswith("leaf3") for each in blame["cannot_tell_from"])


def test_the_same_rows_in_any_order_say_the_same(judge: Any) -> None:
    rows = made(12, both(of_node(3, 0.4), of_pair(5, 6, 0.5)))
    one = judge(rows).record
    np.random.default_rng(2).shuffle(rows)
    assert json.dumps(one["blame"]) == json.dumps(judge(rows).record["blame"])


# --- nobody is blamed


def without_values(rows: Rows, which: Any) -> Rows:
    return [{**row, "value": ""} if which(number, row) else row for number, row in enumerate(rows)]


def by_chance(part: float, num: int, *, triangle: bool, alike: bool) -> Rows:
    random = np.random.default_rng(3)

    def fault(*_: int) -> float:
        if random.random() >= part:
            return 1.0
        return 0.5 if alike else random.uniform(0.3, 0.8)

    return made(num, fault, triangle=triangle)


def of_a_slow_round() -> Rows:
    schedule = Schedule(order=Order.CIRCLE, leaves=leaves_of(16, 16))
    return [
        {"a": f"n{a:04}", "b": f"n{b:04}", "value": 10 if number == 4 else 24, "round": number}
        for number, pairs in enumerate(schedule.rounds())
        for a, b in pairs.tolist()
    ]


LOW = np.triu(np.random.default_rng(4).random((16, 16)) < 0.3, 1)
OF_TWO = [row for row in made(80, of_node(4, 0.5)) if int(str(row["a"])[1:]) // 2
          == int(str(row["b"])[1:]) // 2]  # fmt: skip
TWICE = in_rounds(8, 2, lambda *_: 1.0)
ONE_LOW_LOOK = in_rounds(8, 3, lambda *_: 1.0, noise=0.01)
ONE_LOW_LOOK[5]["value"] = 9
#: some nodes have links of half the rate
GENERATIONS = made(16, lambda a, b, _: 0.5 if min(a, b) < 4 else 1.0)
#: one rail, another, and both together
SUMS = made(8, rails=2, noise=0.005)
BOTH = of_columns(made(8, base=48.0, noise=0.005), rail="rail0+rail1")


@pytest.mark.parametrize(
    ("rows", "options", "verdict", "facts"),
    [
        *((made(num, triangle=triangle, noise=0.03 if num > 3 else 0.01), (), "UNJUDGED", [])
          for num in (2, 3, 5, 16, 40) for triangle in (True, False)),
        *((made(num, hops(per_leaf, 1.6), lower_is_better=unit == "us"), ("--unit", unit),
           "UNJUDGED", []) for num, per_leaf in ((8, 4), (16, 8), (40, 10), (12, 2))
          for unit in ("us", "GB/s")),
        (made(12), AT_24, "PASS", []),
        (made(12, noise=0.005), HDR, "PASS", []),
        (made(12, base=12.0), ("--unit", "GB/s"), "UNJUDGED", []),
        (made(12, base=12.0), HDR, "FAIL", []),
        (made(12, lambda _a, _b, rail: 0.5 if rail else 1.0, rails=2), AT_24, "FAIL", []),
        (made(12, base=26.0), HDR, "INVALID", []),
        (made(6, base=0.1), (*HDR[:-1], "us"), "INVALID", []),
        (made(12, of_node(3, 2.0)), (), "UNJUDGED", []),
        ([*made(8), {**made(8)[5], "value": 20.0}], (), "UNJUDGED", []),
        ([{**made(8)[5], "value": 20.0}, *made(8)], (), "UNJUDGED", []),
        (ONE_LOW_LOOK, (), "UNJUDGED", []),
        (without_values(TWICE, lambda number, _: number == 3), AT_24, "PASS", []),
        # One low value, or both of a pair among few, may be chance.
        *((made(16, one_way(2, 4, 0.3), triangle=triangle), (), "UNDECIDED", ["chance"])
          for triangle in (True, False)),
        *((made(num, of_pair(2, 4, 0.3)), (), "UNDECIDED", ["chance"] * 2) for num in (6, 8, 12)),
        (made(12, one_way(1, 2, 0.3)), AT_24, "UNDECIDED", ["chance"]),
        # Few values of a node, or a few of many, name it and blame nobody.
        *((made(num, of_node(2, 0.3), triangle=True), (), "UNDECIDED", ["node"]) for num in (4, 5)),
        (made(4, of_node(2, 0.3, side="transmit")), (), "UNDECIDED", ["node"]),
        (made(4, of_node(2, 0.3, rail=1), triangle=True, rails=2), (), "UNDECIDED", ["node"]),
        (made(24, lambda a, b, _: 0.4 if b == 3 and a in {5, 9, 14} else 1.0), (), "UNDECIDED",
         ["node"]),
        (ring(16, of_node(4, 0.5)), (), "UNDECIDED", ["node"]),
        (OF_TWO, (), "UNDECIDED", ["chance"] * 2),
        # Two or three nodes are not told apart.
        (made(2, of_node(0, 0.3, side="transmit")), (), "UNDECIDED", ["few"]),
        *((made(3, of_node(0, 0.3), triangle=triangle), (), "UNDECIDED", ["few"])
          for triangle in (True, False)),
        # Groups, contention, a slow round.
        (made(16, lambda a, b, _: 1.6 if (a < 12) == (b < 12) else 1.0), (), "UNDECIDED",
         ["group"]),
        (made(16, TEN), (), "UNDECIDED", ["group"]),
        *((by_chance(part, num, triangle=triangle, alike=alike), (), "UNDECIDED", ["contention"])
          for part in (0.1, 0.4, 0.55, 0.85) for num in (12, 40)
          for triangle in (True, False) for alike in (True, False)),
        (made(16, lambda a, b, _: 0.5 if (LOW | LOW.T)[a, b] else 1.0), (), "UNDECIDED",
         ["contention"]),
        (of_a_slow_round(), (), "UNDECIDED", ["contention"]),
        # Who has what is asked for is not red; what no network has is no PASS.
        (GENERATIONS, ("--reference", "10 GB/s", "--unit", "GB/s"), "UNDECIDED", ["reference"]),
        (made(12, one_way(1, 2, 10.0)), AT_24, "UNDECIDED", ["faster"]),
        (made(12, one_way(1, 2, 5.0), lower_is_better=True, base=1.2),
         ("--reference", "latency=2 us", "--unit", "us"), "UNDECIDED", ["faster"]),
        # As many links as a row names rails.
        (SUMS + BOTH, AT_24, "PASS", []),
        (SUMS + BOTH, HDR, "PASS", []),
        (SUMS + of_columns(made(8), rail="rail0+rail1"), AT_24, "FAIL", []),
    ],
)  # fmt: skip
def test_verdicts_that_blame_nobody(
    judge: Any, rows: Rows, options: tuple[str, ...], verdict: str, facts: list[str]
) -> None:
    ended = judge(rows, *options)
    found = [each["fact"] for each in ended.record["undecided"]]
    assert (ended.record["verdict"], ended.record["blame"], found) == (verdict, [], facts)
    statuses = {"PASS": 0, "FAIL": 1, "INVALID": 3, "UNJUDGED": 5, "UNDECIDED": 5}
    assert ended.status == statuses[verdict]
    assert not (ended.record["contention"] and verdict != "UNDECIDED")


@pytest.mark.parametrize("seed", range(10))
def test_chance_reds_blame_nobody(judge: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    ended = judge(made(30, lambda *_: 0.4 if random.random() < 0.01 else 1.0, seed=seed))
    assert (ended.record["blame"], ended.record["verdict"]) == ([], "UNDECIDED")


@pytest.mark.parametrize(
    "kind", ["node factors", "lognormal", "tail", "quantised", "drift", "same"]
)
@pytest.mark.parametrize("seed", range(5))
def test_other_kinds_of_healthy_noise_blame_nobody(judge: Any, kind: str, seed: int) -> None:
    random, num = np.random.default_rng(seed), 24
    of_a_node = 1 + 0.02 * np.clip(random.normal(size=num), -3, 3)
    count = iter(range(num * num))

    def noise(a: int, b: int, _: int) -> float:
        return {
            "node factors": float(of_a_node[a] * of_a_node[b]),
            "lognormal": float(np.exp(0.05 * random.normal())),
            "tail": float(1 / (1 + random.exponential(0.05))),
            "quantised": float(round(random.normal(20, 0.6)) / 20),
            "drift": 1 - 0.08 * next(count) / (num * num),
            "same": 1.0,
        }[kind]

    ended = judge(made(num, noise, noise=0.0 if kind in {"same", "quantised"} else 0.01))
    assert ended.record["blame"] == []
    assert ended.record["contention"] is (kind == "tail")


@pytest.mark.parametrize(
    ("num", "rounds", "shares", "verdict"),
    [
        *((num, 1, dict.fromkeys(range(num), share), verdict)
          for num in (2, 3)
          for share, verdict in ((0.5, "UNDECIDED"), (0.89, "UNDECIDED"), (0.91, "PASS"))),
        (2, 2, {0: 0.5, 1: 0.5}, "FAIL"),
        (2, 2, {1: 0.5}, "FAIL"),
        (2, 2, {}, "PASS"),
        (3, 2, {0: 0.5, 1: 0.5, 2: 0.5}, "FAIL"),
        (2, 1, {0: 0.92, 1: 0.87}, "UNDECIDED"),
    ],
)  # fmt: skip
def test_few_nodes_that_miss_the_reference_at_both_looks_are_red_and_not_blamed(
    judge: Any, num: int, rounds: int, shares: dict[int, float], verdict: str
) -> None:
    """90 % of the reference is good; a single look that misses it tells of nobody."""
    rows = in_rounds(num, rounds, lambda a, _b, _rail: shares.get(a, 1.0), noise=0.001)
    record = judge(rows, *AT_24).record
    assert (record["verdict"], record["blame"]) == (verdict, [])
    assert bool(record["undecided"]) is (verdict != "PASS")
    assert all(entry["where"]["nodes"] for entry in record["undecided"])


def test_what_one_more_round_would_tell(judge: Any) -> None:
    (entry,) = judge(made(4, of_node(2, 0.3, side="receive"))).record["undecided"]
    assert entry["next_step"] == "n0000, n0001, n0003 to n0002 once more"
    (entry,) = judge(ring(16, of_node(4, 0.5))).record["undecided"]
    assert entry["next_step"] == "n0004 with 1 node more"
    # Where the ends have few partners, good ones of both.
    for entry in judge(OF_TWO).record["undecided"]:
        assert "n0004 with n0000 and n0005 with n0001" in entry["next_step"] or (
            "n0005 with n0000 and n0004 with n0001" in entry["next_step"]
        )
    # Three alike pairs with one end in common: good partners of it tell.
    rows = made(24, lambda a, b, _: 0.4 if b == 3 and a in {5, 9, 14} else 1.0)
    (entry,) = judge(rows).record["undecided"]
    assert entry["where"]["nodes"] == ["n0003"]
    assert entry["next_step"].startswith("n0003 with n0000, n0001, n0002")
    # Rail and size are named.
    sizes = {"1MiB": lambda *_: 1.0, "4MiB": lambda a, b, rail: 0.4 if (a, b, rail) == (2, 4, 1)
             else 1.0}  # fmt: skip
    rows = [
        {**row, "size": size}
        for size, fault in sizes.items()
        for row in made(12, fault, rails=2, noise=0.01)
    ]
    (entry,) = judge(rows).record["undecided"]
    assert entry["next_step"] == "n0002 to n0004 over rail1 once more: bandwidth of 4MiB"


def test_rows_too_few_to_compare_do_not_doubt_the_others(judge: Any) -> None:
    rows = of_columns(made(12, of_node(3, 0.3)), rail="rail0")
    rows += [
        {"a": "n0000", "b": f"n{b:04}", "value": value, "rail": "rail1"}
        for b, value in ((1, 24), (2, 12))
    ]
    ended = judge(rows)
    assert [each["where"]["node"] for each in ended.record["blame"]] == ["n0003"]
    (entry,) = ended.record["undecided"]
    assert (entry["fact"], entry["where"]["nodes"]) == ("few", ["n0000", "n0001", "n0002"])


def test_a_group_of_fast_nodes_is_no_doubt_where_a_reference_says_the_others_are_good(
    judge: Any,
) -> None:
    rows = made(16, lambda a, b, _: 1.6 if a >= 10 and b >= 10 else 1.0)
    assert judge(rows).record["verdict"] == "UNDECIDED"
    assert judge(rows, *AT_24).status == 0
    # With a reference that only the fast ones reach, the others are slow.
    ended = judge(rows, "--reference", "38 GB/s", "--unit", "GB/s")
    assert blamed(ended.record) == [node(number) for number in range(10)]


# --- the values over all nodes


def test_both_ways_are_not_held_against_one_way(judge: Any) -> None:
    rows = of_columns(made(10, of_node(3, 0.5), base=3867, noise=0.005), direction="ab")
    rows += of_columns(made(10, base=7505, noise=0.005, triangle=True), direction="both")
    ended = judge(rows, "--link", "QDR 4x,pcie=3.0x8", "--unit", "MB/s")
    assert blamed(ended.record) == [node(3)]
    healthy = {each["quantity"]: each["value"] for each in ended.record["healthy"]}
    assert healthy == {
        "bandwidth": pytest.approx(3867, rel=0.01),
        "bandwidth both ways": pytest.approx(7505, rel=0.01),
    }
    assert [each["quantity"] for each in ended.record["population"]] == list(healthy)


def test_the_population_of_each_rail_and_distance(judge: Any) -> None:
    rows = made(16, of_node(3, 0.5, side="receive", rail=1), rails=2)
    for number, each in enumerate(judge(rows, "--unit", "GB/s").record["population"]):
        values = [float(str(row["value"])) for row in rows if row["rail"] == f"rail{number}"]
        assert (each["rail"], each["count"], each["least"]) == (f"rail{number}", 240, min(values))
        assert (each["mean"], each["deviation"]) == (
            pytest.approx(np.mean(values)), pytest.approx(np.std(values)),
        )  # fmt: skip
    rows = made(16, hops(4, 1.6), base=1.5, lower_is_better=True)
    ended = judge(rows, "--unit", "us", leaf_of=lambda number: number // 4)
    means = {each["distance"]: each["mean"] for each in ended.record["population"]}
    assert means["on one leaf"] == pytest.approx(1.5 / 1.6, rel=0.02)
    assert means["between leaves"] == pytest.approx(1.5, rel=0.02)


# --- what was not measured


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "NA", "-"])
def test_missing_and_empty_pairs_hide_no_fault(judge: Any, empty: str) -> None:
    kept = [row for number, row in enumerate(made(16, of_node(3, 0.3))) if number % 5]
    for row in kept[::7]:
        row["value"] = empty
    ended = judge(kept)
    assert [each["where"]["node"] for each in ended.record["blame"]] == ["n0003"]
    assert any("without a value" in each["text"] for each in ended.record["notes"])


def cut_by_a_third(*, triangle: bool) -> Rows:
    rows = made(16, triangle=triangle)
    gone = np.random.default_rng(1).choice(len(rows), len(rows) // 3, replace=False)
    return [row for number, row in enumerate(rows) if number not in gone]


def of_two(column: str, first: str, second: str) -> Rows:
    rows = of_columns(made(8), **{column: first}) + of_columns(made(8), **{column: second})
    return [row for row in rows if (row["a"], row[column]) != ("n0003", second)]


def has(row: dict[str, object], name: str) -> bool:
    return name in {row["a"], row["b"]}


def on_rail1(row: dict[str, object]) -> bool:
    return row["rail"] == "rail1"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (without_values(made(8, rails=2), lambda _, row: on_rail1(row)),
         "any bandwidth over rail1"),
        (without_values(made(8, rails=2), lambda _, row: on_rail1(row) and has(row, "n0003")),
         "any bandwidth of n0003 over rail1"),
        (of_columns(made(8), size="1KiB")
         + of_columns(without_values(made(8), lambda *_: True), size="4MiB"),
         "any bandwidth of 4MiB"),
        *((without_values(made(num), lambda _, row: row["a"] == "n0009"),
           f"{num - 1} of {num * (num - 1)} directions: n0009 to n0000, ") for num in (16, 80)),
        ([row for row in made(16) if row["a"] != "n0009"],
         "15 of 240 directions: n0009 to n0000, "),
        (without_values(ring(16), lambda number, _: number == 5),
         "1 of 32 directions: n0002 to n0003"),
        (cut_by_a_third(triangle=True), "40 of 120 pairs: "),
        (cut_by_a_third(triangle=False), "80 of 240 directions: "),
        ([row for row in made(16) if not has(row, "n0009") or row["b"] == "n0000"],
         "29 of 240 directions: n0000 to n0009, "),
        (of_two("rail", "rail0", "rail1"), "7 of 56 directions over rail1: n0003 to n0000, "),
        (of_two("size", "1MiB", "4MiB"), "7 of 56 directions: n0003 to n0000, "),
    ],
)  # fmt: skip
def test_what_should_be_there_and_is_not_is_missing(judge: Any, rows: Rows, said: str) -> None:
    ended = judge(rows, *AT_24)
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    (missing,) = ended.record["missing"]
    assert missing.startswith(said)
    assert missing in ended.record["reason"]


@pytest.mark.parametrize("kind", ["ring", "star", "rounds"])
def test_of_a_sample_absent_pairs_are_told_only(judge: Any, kind: str) -> None:
    rows = {
        "ring": ring(16),
        "star": [row for row in made(16) if has(row, "n0000")],
        "rounds": [row for row in made(16) if int(str(row["a"])[1:]) ^ int(str(row["b"])[1:]) < 5],
    }[kind]
    ended = judge(rows, *AT_24)
    assert (ended.status, ended.record["missing"]) == (0, [])
    told = [each["text"] for each in ended.record["notes"]]
    assert f"{len(rows) // 2} of 120 pairs measured: nothing is said of the others" in told
    assert any("one partner only" in each for each in told) is (kind == "star")


def test_no_value_at_all_is_missing(judge: Any) -> None:
    for rows in (of_columns(made(4), value=""), [{"a": "n1", "b": "n1", "value": 3.0}]):
        assert judge(rows).status == 4


@pytest.mark.parametrize("value", ["0", "inf", "-1", "self", ""])
def test_a_node_with_itself_may_have_any_value(judge: Any, value: str) -> None:
    rows = made(8, of_node(3, 0.3), lower_is_better=True) + of_columns(ITSELF, value=value)
    assert blamed(judge(rows, "--unit", "us").record) == [node(3)]


# --- what a stranger's file may look like


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.replace(",", ";").encode(),
        lambda text: text.replace(",", "\t").encode(),
        lambda text: text.replace(",", " , ").encode(),
        lambda text: ("# made by hand\n\n" + text + "\n\n").encode(),
        lambda text: text.removesuffix("\n").encode(),
        lambda text: "".join(
            ",".join(f'"{each}"' for each in line.split(",")) + "\n" for line in text.splitlines()
        ).encode(),
    ],
    ids=["crlf", "bom", "utf16", "semicolon", "tab", "blanks", "comments", "no end", "quoted"],
)
def test_other_ways_to_write_a_csv(
    tmp_path: Path, fabricproof: Command, change: Callable[[str], bytes]
) -> None:
    file = written(tmp_path / "m.csv", SLOW)
    file.write_bytes(change(file.read_text()))
    record = fabricproof("pairs", "judge", file, "--json").record
    assert (blamed(record), record["measured"]) == ([node(3)], 56)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n", "empty"),
        ("n1,n2,3.0\nn2,n1,3.0\n", "m.csv:1: no header"),
        ("a,b,value,a\nn1,n2,3,n1\n", "m.csv:1: a column stands twice"),
        ("a,b,value\nn1,n2,3.0\nn2,n1,-3.0\n", "m.csv:3: no value of a pair"),
        ("a,b,value\nn1,n2,inf\n", "m.csv:2: no value of a pair"),
        ("a,b,value\nn1,n2,3.0 GB/s\n", "m.csv:2: no value of a pair"),
        ("a,b,value\n\n# so\nn1,n2,3.0\nn1,,3.0\n", "m.csv:5: no node in column b"),
        ("a,b,value\nn1,n2,3.0\nn1,n3\n", "m.csv:3: a row has not as many fields"),
        ('# "so"\na,b,value\nn1,n2,3.0\nn1,n3', "m.csv:4: a row has not as many fields"),
        ('a,b,value\n"n1","n2","3.0"\n"n1","n3', "m.csv:3: a row has not as many fields"),
        ('a,b,value,x\n"n1","n2",3.0,"p,q"\nn1,n3,3\n', "m.csv:3: a row has not as many fields"),
        ("a,b,value\n", "m.csv: no rows"),
        ("a,b,value\nn1,n2,3,4\n", "m.csv:2: a row has not as many fields"),
        ("a,b,value,round\nn1,n2,3,1.5\n", "m.csv:2: no number of a round"),
        ("a,b,value,unit\nn1,n2,3,GB/s\nn1,n3,3,furlongs\n", "m.csv:3: unknown unit"),
        ("a,b,value,unit\nn1,n2,3,KiB\n", "m.csv:2: no unit of a pair's value"),
        ("a,b,value,unit\nn1,n2,0,us\n", "m.csv:2: no latency of a pair"),
        ("a,b,value,direction\nn1,n2,3,up\n", "m.csv:2: unknown direction"),
        ("a;b;value\nn1;n2;3,5\n", "m.csv:2: no value of a pair"),
    ],
)
def test_damaged_data_ends_with_65_and_the_line(
    tmp_path: Path, fabricproof: Command, text: str, said: str
) -> None:
    (tmp_path / "m.csv").write_text(text)
    ended = fabricproof("pairs", "judge", tmp_path / "m.csv", "--json")
    assert (ended.status, ended.out, len(ended.err.splitlines())) == (65, "", 1)
    assert said in ended.err


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--unit", "furlongs"), 78),
        (("--unit", "KiB"), 78),
        (("--pcie", "3.0x8"), 2),
        (("-o", "m.bmp"), 2),
        (("--leaves", "nowhere"), 66),
        (("--link", "HDR 4x"), 78),
        (("--unit", "GB/s", "--reference", "latency=2 us"), 78),
        (("-o", "/nowhere/at/all.svg"), 74),
    ],
)
def test_wrong_options(judge: Any, options: tuple[str, ...], status: int) -> None:
    ended = judge(made(4), *options)
    assert ended.status == status
    assert len(ended.err.splitlines()) == (1 if status != 2 else 4)  # click shows the usage
    if status == 74:
        assert ended.record["verdict"] == "UNJUDGED", "the verdict is told first"


def test_a_node_without_a_leaf_is_refused(tmp_path: Path, fabricproof: Command) -> None:
    (tmp_path / "leaves.csv").write_text("n0000,a\nn0001,b\n")
    file = written(tmp_path / "m.csv", made(3))
    ended = fabricproof("pairs", "judge", file, "--leaves", str(tmp_path / "leaves.csv"))
    assert (ended.status, "n0002" in ended.err) == (78, True)
    assert fabricproof("pairs", "judge", "nowhere.csv").status == 66


# --- for a person


def test_a_person_gets_a_sentence_a_line_to_review_and_a_table(
    tmp_path: Path, fabricproof: Command
) -> None:
    fault = of_node(3, 0.3, side="receive", rail=0)
    file = written(tmp_path / "m.csv", of_columns(made(16, fault, rails=2, noise=0.0), unit="GB/s"))
    ended = fabricproof("pairs", "judge", file, "-o", tmp_path / "m.html")
    assert "n0003 rail0 receives at 30 %: 15 of 15 pairs; its other rail is fine" in ended.out
    (line,) = [each for each in ended.out.splitlines() if "scontrol" in each]
    assert line.strip().startswith("# scontrol update NodeName=n0003 State=DRAIN Reason=")
    (line,) = [each for each in ended.out.splitlines() if "over rail0, GB/s" in each]
    assert line.split()[4] == "240"
    assert "bandwidth over rail0, GB/s" in (tmp_path / "m.html").read_text()


def test_the_picture(judge: Any, tmp_path: Path) -> None:
    plot = tmp_path / "m.svg"
    judge(made(16, of_node(3, 0.3)), "-o", str(plot))
    root = ET.parse(plot).getroot()
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("n0003 runs at 30 %" in each for each in texts)
    # The red cells are one row and one column of the node.
    red = next(root.iter("{http://www.w3.org/2000/svg}path")).attrib["d"]
    assert "M0 3h3v1H0z" in red
    assert "M3 0h1v1H3z" in red
    judge([row for row in made(16) if row["a"] != "n0009"], "-o", str(plot))
    assert "225 of 240 directions measured" in plot.read_text()


def test_names_of_any_kind(judge: Any, tmp_path: Path) -> None:
    rows = made(6, of_node(3, 0.3))
    for row in rows:
        row |= {end: f"rack 1/{row[end]};<b>$(reboot)" for end in ("a", "b")}
    ended = judge(rows, "-o", str(tmp_path / "m.svg"))
    assert ended.record["blame"][0]["where"]["node"].startswith("rack 1/n0003")
    assert ended.record["blame"][0]["drain"] is None
    assert "<b>" not in (tmp_path / "m.svg").read_text()


def test_thousand_nodes_in_seconds(tmp_path: Path, fabricproof: Command) -> None:
    values = 24 * (
        1 + 0.03 * np.clip(np.random.default_rng(1).normal(size=(1000, 1000)), -3.3, 3.3)
    )
    values[17, :] *= 0.5
    values[:, 400] *= 0.6
    lines = ["a,b,value"]
    for a in range(1000):
        row = values[a].tolist()
        lines += [f"n{a:04},n{b:04},{row[b]:.3f}" for b in range(1000) if a != b]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
    record = fabricproof("pairs", "judge", tmp_path / "m.csv", "--json").record
    assert blamed(record) == [node(17, "transmit"), node(400, "receive")]
    assert record["undecided"] == []
