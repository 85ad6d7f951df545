"""Anybody's matrix, judged as a stranger calls it: whose fault, and whose not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matrices import Fault, both, hops, made, of_node, of_pair, written

Command = Callable[..., Any]


@pytest.fixture
def judge(tmp_path: Path, fabricproof: Command) -> Callable[..., Any]:
    """Write rows and judge them; the answer has ``record`` and ``status``."""

    def run(rows: list[dict[str, object]], *options: str, **columns: str) -> Any:
        file = written(tmp_path / "m.csv", rows, **columns)
        return fabricproof("pairs", "judge", file, "--json", *options)

    return run


def blamed(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["fact"], each["name"], each["where"]["direction"]) for each in record["blame"]]


# --- one fault


@pytest.mark.parametrize(
    ("num", "side"),
    [
        (4, "both"),
        *((num, side) for num in (6, 8, 16, 40) for side in ("both", "transmit", "receive")),
    ],
)
@pytest.mark.parametrize("factor", [0.3, 0.7])
def test_a_slow_node_is_blamed(judge: Any, num: int, side: str, factor: float) -> None:
    ended = judge(made(num, of_node(2, factor, side=side)))
    assert ended.status == 1
    assert blamed(ended.record) == [("node", "n0002", side)]
    blame = ended.record["blame"][0]
    assert blame["where"]["node"] == "n0002"
    assert blame["share"] == pytest.approx(factor, rel=0.05)
    assert blame["confidence"] > 0.9
    assert ended.record["undecided"] == []


@pytest.mark.parametrize("side", ["both", "transmit", "receive"])
def test_one_rail_of_a_node(judge: Any, side: str) -> None:
    ended = judge(made(16, of_node(3, 0.3, side=side, rail=1), rails=2))
    assert blamed(ended.record) == [("rail", "n0003 rail1", side)]
    blame = ended.record["blame"][0]
    assert (blame["where"]["node"], blame["where"]["rail"]) == ("n0003", "rail1")
    assert "15 of 15 pairs; its other rail is fine" in blame["text"]


def test_with_one_rail_measured_node_and_rail_are_not_told_apart(judge: Any) -> None:
    blame = judge(made(12, of_node(3, 0.3), rails=1)).record["blame"][0]
    assert (blame["fact"], blame["where"]["rail"]) == ("node", "rail0")
    assert "n0003 rail0 alone" in blame["cannot_tell_from"]


@pytest.mark.parametrize(("num", "rounds"), [(8, 2), (13, 1), (16, 1), (40, 1)])
def test_a_pair_that_is_low_both_ways(judge: Any, num: int, rounds: int) -> None:
    rows = [
        {**row, "round": number}
        for number in range(rounds)
        for row in made(num, of_pair(2, 4, 0.3), seed=number)
    ]
    record = judge(rows).record
    assert blamed(record) == [("pair", "n0002 - n0004", "both")]
    assert "node" not in record["blame"][0]["where"]


@pytest.mark.parametrize("num", [8, 12])
def test_a_pair_that_is_low_both_ways_once_among_few_nodes_may_be_chance(
    judge: Any, num: int
) -> None:
    record = judge(made(num, of_pair(2, 4, 0.3))).record
    assert (record["verdict"], record["blame"]) == ("UNDECIDED", [])
    named = {name for entry in record["undecided"] for name in entry["where"]["nodes"]}
    assert named == {"n0002", "n0004"}


@pytest.mark.parametrize("triangle", [True, False])
def test_a_pair_that_was_measured_once_is_not_blamed(judge: Any, triangle: bool) -> None:
    rows = made(16, lambda a, b, _: 0.3 if (a, b) == (2, 4) else 1.0, triangle=triangle)
    ended = judge(rows)
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (5, "UNDECIDED", [])
    (entry,) = ended.record["undecided"]
    assert (entry["fact"], entry["where"]["nodes"]) == ("chance", ["n0002", "n0004"])
    assert "once more" in entry["next_step"]


# --- several, and none


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("num", [2, 3, 5, 16, 40])
@pytest.mark.parametrize("triangle", [True, False])
def test_a_healthy_matrix_blames_nobody_and_is_no_pass(
    judge: Any, num: int, seed: int, triangle: bool
) -> None:
    noise = 0.03 if num > 3 else 0.01
    ended = judge(made(num, seed=seed, triangle=triangle, noise=noise))
    assert (ended.status, ended.record["verdict"]) == (5, "UNJUDGED")
    assert ended.record["blame"] == ended.record["undecided"] == []


@pytest.mark.parametrize("seed", range(10))
def test_chance_reds_blame_nobody(judge: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    ended = judge(made(30, lambda *_: 0.4 if random.random() < 0.01 else 1.0, seed=seed))
    assert ended.record["blame"] == []
    assert ended.record["verdict"] == "UNDECIDED"


@pytest.mark.parametrize("part", [0.1, 0.25, 0.4])
@pytest.mark.parametrize("num", [12, 40])
@pytest.mark.parametrize("triangle", [True, False])
def test_many_low_pairs_that_no_node_explains(
    judge: Any, part: float, num: int, triangle: bool
) -> None:
    random = np.random.default_rng(3)
    ended = judge(made(num, lambda *_: 0.5 if random.random() < part else 1.0, triangle=triangle))
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (5, "UNDECIDED", [])
    assert ended.record["contention"] is True
    assert ended.record["undecided"][0]["fact"] == "contention"


@pytest.mark.parametrize("num", [2, 3])
@pytest.mark.parametrize("triangle", [True, False])
def test_two_or_three_nodes_cannot_be_told_apart(judge: Any, num: int, triangle: bool) -> None:
    fault = of_node(0, 0.3, side="transmit") if num == 2 else of_node(0, 0.3)
    if (num, triangle) == (2, True):
        return  # one value
    ended = judge(made(num, fault, triangle=triangle))
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (5, "UNDECIDED", [])
    (entry,) = ended.record["undecided"]
    assert entry["fact"] == "few"
    assert "two nodes more" in entry["next_step"]


def test_with_a_reference_three_nodes_that_were_measured_twice_are_enough(judge: Any) -> None:
    rows = made(3, of_node(0, 0.3))
    once = judge(rows, "--reference", "23 GB/s", unit="GB/s")
    assert (once.record["verdict"], blamed(once.record)) == ("UNDECIDED", [])
    assert once.record["undecided"][0]["where"]["nodes"] == ["n0000"]
    twice = [{**row, "round": number} for number in range(2) for row in rows]
    ended = judge(twice, "--reference", "23 GB/s", unit="GB/s")
    assert blamed(ended.record) == [("node", "n0000", "both")]


@pytest.mark.parametrize(
    ("num", "rounds", "slow", "verdict"),
    [
        (2, 1, {0, 1}, "UNDECIDED"),
        (2, 2, {0, 1}, "FAIL"),
        (2, 2, {1}, "FAIL"),
        (2, 2, set(), "PASS"),
        (3, 1, {0, 1, 2}, "UNDECIDED"),
        (3, 2, {0, 1, 2}, "FAIL"),
    ],
)
def test_few_nodes_that_miss_the_reference_at_both_looks_are_red_and_not_blamed(
    judge: Any, num: int, rounds: int, slow: set[int], verdict: str
) -> None:
    rows = [
        {**row, "round": number}
        for number in range(rounds)
        for row in made(num, lambda a, _b, _rail: 0.5 if a in slow else 1.0, seed=number)
    ]
    record = judge(rows, "--reference", "24 GB/s", unit="GB/s").record
    assert (record["verdict"], record["blame"]) == (verdict, [])
    if verdict == "FAIL":
        (entry,) = record["undecided"]
        assert (entry["fact"], len(entry["where"]["nodes"])) == ("few", num)
        assert f"{num} nodes do not tell" in record["reason"]


@pytest.mark.parametrize("num", [2, 3])
@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.5, "UNDECIDED"), (0.88, "UNDECIDED"), (0.89, "UNDECIDED"), (0.91, "PASS"), (0.97, "PASS")],
)
def test_few_values_that_all_miss_the_reference_by_a_little_are_no_pass(
    judge: Any, num: int, share: float, verdict: str
) -> None:
    """90 % of the reference is good; a single look that misses that tells of nobody."""
    rows = made(num, lambda _a, _b, _rail: share, noise=0.001)
    record = judge(rows, "--reference", "24 GB/s", unit="GB/s").record
    assert (record["verdict"], record["blame"]) == (verdict, [])
    assert bool(record["undecided"]) is (verdict == "UNDECIDED")
    assert all(entry["where"]["nodes"] for entry in record["undecided"])


@pytest.mark.parametrize("num", [2, 3])
def test_one_of_few_values_that_misses_the_reference_by_a_little_is_no_pass(
    judge: Any, num: int
) -> None:
    """That another value reaches the reference says nothing of the one that does not."""
    rows = made(num, lambda a, _b, _rail: 0.92 if a == 0 else 0.87, noise=0.001)[:5]
    record = judge(rows, "--reference", "24 GB/s", unit="GB/s").record
    # Of three nodes one direction is not there.
    assert (record["verdict"], record["blame"]) == ({2: "UNDECIDED", 3: "MISSING"}[num], [])
    assert record["undecided"]
    assert all(entry["where"]["nodes"] for entry in record["undecided"])


def test_one_of_few_values_that_reached_the_reference_in_other_rounds_is_told_only(
    judge: Any,
) -> None:
    rows = [{**row, "round": number} for number in range(2) for row in made(2, noise=0.001)]
    rows[1]["value"] = 24 * 0.87
    record = judge(rows, "--reference", "24 GB/s", unit="GB/s").record
    assert (record["verdict"], record["undecided"]) == ("PASS", [])
    assert any("were good in most other rounds" in each["text"] for each in record["notes"])


# --- few values


@pytest.mark.parametrize(
    ("num", "fault", "triangle", "rails", "again"),
    [
        (4, of_node(2, 0.3), True, 0, "n0002 with n0000, n0001, n0003 once more"),
        (5, of_node(2, 0.3), True, 0, "n0002 with n0000, n0001, n0003, n0004 once more"),
        (4, of_node(2, 0.3, side="transmit"), False, 0, "n0002 to n0000, n0001, n0003 once more"),
        (4, of_node(2, 0.3, side="receive"), False, 0, "n0000, n0001, n0003 to n0002 once more"),
        (4, of_node(2, 0.3, rail=1), True, 2,
         "n0002 with n0000, n0001, n0003 over rail1 once more"),
    ],
)  # fmt: skip
def test_of_few_values_a_node_is_named_and_not_blamed(
    judge: Any, num: int, fault: Fault, triangle: bool, rails: int, again: str
) -> None:
    ended = judge(made(num, fault, triangle=triangle, rails=rails))
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (5, "UNDECIDED", [])
    (entry,) = ended.record["undecided"]
    assert (entry["fact"], entry["where"]["nodes"], entry["next_step"]) == (
        "node",
        ["n0002"],
        again,
    )


def test_a_pair_among_few_is_not_blamed(judge: Any) -> None:
    ended = judge(made(6, of_pair(2, 4, 0.3)))
    assert (ended.record["verdict"], ended.record["blame"]) == ("UNDECIDED", [])
    said = [entry["next_step"] for entry in ended.record["undecided"]]
    assert [each.split(" once more")[0] for each in sorted(said)] == [
        "n0002 to n0004",
        "n0004 to n0002",
    ]


def test_what_is_to_be_measured_again_names_rail_and_size(judge: Any) -> None:
    rows = [
        {**row, "size": size, "unit": "GB/s"}
        for size in ("1MiB", "4MiB")
        for row in made(
            12, lambda a, b, rail: 0.4 if (a, b, rail) == (2, 4, 1) else 1.0, rails=2, noise=0.01
        )
    ]
    for row in rows:
        if row["size"] == "1MiB" and (row["a"], row["b"]) == ("n0002", "n0004"):
            row["value"] = 24
    (entry,) = judge(rows).record["undecided"]
    assert entry["next_step"] == "n0002 to n0004 over rail1 once more: bandwidth of 4MiB"


def test_a_low_value_that_was_good_in_other_rounds_is_told_only(judge: Any) -> None:
    rows = [{**row, "round": number} for number in range(3) for row in made(8, noise=0.01)]
    rows[5]["value"] = 9
    ended = judge(rows)
    assert (ended.record["verdict"], ended.record["undecided"]) == ("UNJUDGED", [])
    assert any("were good in most other rounds" in each["text"] for each in ended.record["notes"])


def test_rows_too_few_to_compare_do_not_doubt_the_others(judge: Any) -> None:
    rows = made(12, of_node(3, 0.3), rails=1)
    rows += [
        {"a": "n0000", "b": f"n{b:04}", "value": value, "rail": "rail1"}
        for b, value in ((1, 24), (2, 12))
    ]
    ended = judge(rows)
    assert ended.record["blame"][0]["where"]["node"] == "n0003"
    (entry,) = ended.record["undecided"]
    assert (entry["fact"], entry["where"]["nodes"]) == ("few", ["n0000", "n0001", "n0002"])
    assert "over rail1" in entry["next_step"]


# --- most of it low


@pytest.mark.parametrize("part", [0.55, 0.7, 0.8, 0.85])
@pytest.mark.parametrize("num", [12, 40])
@pytest.mark.parametrize("triangle", [True, False])
@pytest.mark.parametrize("alike", [True, False])
def test_more_than_half_of_the_values_low_by_chance(
    judge: Any, part: float, num: int, triangle: bool, alike: bool
) -> None:
    random = np.random.default_rng(3)

    def fault(*_: int) -> float:
        if random.random() >= part:
            return 1.0
        return 0.5 if alike else random.uniform(0.3, 0.8)

    ended = judge(made(num, fault, triangle=triangle))
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (5, "UNDECIDED", [])
    assert ended.record["contention"] is True
    (entry,) = ended.record["undecided"]
    assert entry["fact"] == "contention"
    assert "(--leaves)" in entry["next_step"]


def test_a_group_of_fast_nodes_is_no_doubt_where_a_reference_says_the_others_are_good(
    judge: Any,
) -> None:
    rows = made(16, lambda a, b, _: 1.6 if a >= 10 and b >= 10 else 1.0)
    assert judge(rows, unit="GB/s").record["verdict"] == "UNDECIDED"
    ended = judge(rows, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["undecided"]) == (0, [])
    # With a reference that only the fast ones reach, the others are slow.
    ended = judge(rows, "--reference", "38 GB/s", unit="GB/s")
    assert ended.record["verdict"] == "FAIL"
    assert {each["where"]["node"] for each in ended.record["blame"]} == {
        f"n{n:04}" for n in range(10)
    }


# --- distance


@pytest.mark.parametrize(("num", "per_leaf"), [(8, 4), (16, 4), (16, 8), (40, 10), (12, 2)])
@pytest.mark.parametrize("triangle", [True, False])
@pytest.mark.parametrize("unit", ["us", "GB/s"])
def test_near_pairs_faster_than_far_ones_are_no_fault(
    judge: Any, num: int, per_leaf: int, triangle: bool, unit: str
) -> None:
    rows = made(num, hops(per_leaf, 1.6), triangle=triangle, lower_is_better=unit == "us")
    ended = judge(rows, unit=unit)
    assert ended.record["verdict"] == "UNJUDGED"
    assert ended.record["blame"] == ended.record["undecided"] == []


def test_leaves_of_unlike_size_blame_nobody(judge: Any) -> None:
    rows = made(16, lambda a, b, _: 1.6 if (a < 12) == (b < 12) else 1.0)
    ended = judge(rows)
    assert (ended.record["verdict"], ended.record["blame"]) == ("UNDECIDED", [])
    assert ended.record["undecided"][0]["fact"] == "group"
    assert set(ended.record["undecided"][0]["where"]["nodes"]) == {
        f"n{n:04}" for n in range(12, 16)
    }


def test_one_fast_group_is_either_near_or_the_only_healthy_part(judge: Any) -> None:
    fault = both(*(of_node(node, 0.5) for node in range(10)))
    ended = judge(made(16, fault))
    assert ended.record["verdict"] == "UNDECIDED"
    assert set(ended.record["undecided"][0]["where"]["nodes"]) == {
        f"n{n:04}" for n in range(10, 16)
    }


# --- with leaves


def leaves_file(folder: Path, num: int, per_leaf: int) -> str:
    file = folder / "leaves.csv"
    rows = [f"n{node:04},leaf{node // per_leaf}" for node in range(num)]
    file.write_text("node,leaf\n" + "\n".join(rows) + "\n")
    return str(file)


def leaf_fault(side: str, *, inside: bool = False) -> Fault:
    def fault(a: int, b: int, _: int) -> float:
        first, second = a // 4 == 1, b // 4 == 1
        if first and second:
            return 0.4 if inside else 1.0
        hit = (first and side != "receive") or (second and side != "transmit")
        return 0.4 if hit else 1.0

    return fault


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (leaf_fault("both"), ("leaf", "leaf1", "both")),
        (leaf_fault("both", inside=True), ("leaf", "leaf1", "both")),
        (leaf_fault("transmit"), ("uplink", "leaf1", "transmit")),
        (leaf_fault("receive"), ("uplink", "leaf1", "receive")),
    ],
)
def test_a_leaf_and_its_uplinks(
    judge: Any, tmp_path: Path, fault: Fault, expected: tuple[str, str, str]
) -> None:
    ended = judge(made(16, fault), "--leaves", leaves_file(tmp_path, 16, 4))
    assert blamed(ended.record) == [expected]
    assert "node" not in ended.record["blame"][0]["where"]


def test_a_node_alone_on_its_leaf_is_not_told_from_it(judge: Any, tmp_path: Path) -> None:
    file = tmp_path / "leaves.csv"
    file.write_text(
        "".join(f"n{n:04},{'a' if n < 5 else 'b' if n < 9 else 'c'}\n" for n in range(10))
    )
    ended = judge(made(10, of_node(9, 0.4)), "--leaves", str(file))
    (blame,) = ended.record["blame"]
    assert (blame["fact"], blame["where"]["node"]) == ("node", "n0009")
    assert any(each.startswith("c") for each in blame["cannot_tell_from"])


def test_a_slow_round_is_contention(judge: Any) -> None:
    from fabricproof.pairs import Order, Schedule, leaves_of  # noqa: PLC0415

    rows: list[dict[str, object]] = []
    schedule = Schedule(order=Order.CIRCLE, leaves=leaves_of(16, 16))
    for number, pairs in enumerate(schedule.rounds()):
        for a, b in pairs.tolist():
            value = 10 if number == 4 else 24
            rows.append({"a": f"n{a:04}", "b": f"n{b:04}", "value": value, "round": number})
    ended = judge(rows)
    assert (ended.record["verdict"], ended.record["blame"]) == ("UNDECIDED", [])
    assert "round 4" in ended.record["undecided"][0]["text"]


# --- units


@pytest.mark.parametrize("unit", ["us", "ms", "usec"])
def test_of_a_latency_less_is_better(judge: Any, unit: str) -> None:
    ended = judge(made(12, of_node(3, 0.5), base=2.0, lower_is_better=True), unit=unit)
    assert blamed(ended.record) == [("node", "n0003", "both")]
    assert ended.record["quantity"] == "latency"
    assert ended.record["blame"][0]["share"] == pytest.approx(0.5, rel=0.05)
    assert "2 times the usual latency" in ended.record["blame"][0]["text"]


def test_sizes_and_quantities_are_held_against_their_like(judge: Any) -> None:
    rows = [{**row, "size": "4MiB", "unit": "GB/s"} for row in made(12, of_node(3, 0.5))]
    rows += [{**row, "size": "8", "unit": "us"} for row in made(12, base=1.5)]
    ended = judge(rows)
    assert ended.record["quantity"] == "bandwidth and latency"
    (healthy_,) = [each for each in ended.record["healthy"] if each["quantity"] == "latency"]
    assert healthy_["value"] == pytest.approx(1.5, rel=0.02)


# --- the level


def test_all_equally_slow_is_a_fail_with_a_reference_only(judge: Any) -> None:
    rows = made(12, base=12.0)
    assert judge(rows, unit="GB/s").record["verdict"] == "UNJUDGED"
    ended = judge(rows, "--link", "HDR 4x", unit="GB/s")
    assert (ended.status, ended.record["verdict"], ended.record["blame"]) == (1, "FAIL", [])


def test_a_level_without_a_unit_is_refused(judge: Any) -> None:
    ended = judge(made(4), "--link", "HDR 4x")
    assert (ended.status, ended.out) == (78, "")
    assert "unit" in ended.err


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
    file = written(tmp_path / "m.csv", made(8, of_node(3, 0.3)))
    file.write_bytes(change(file.read_text()))
    record = fabricproof("pairs", "judge", file, "--json").record
    assert blamed(record) == [("node", "n0003", "both")]
    assert record["measured"] == 56


@pytest.mark.parametrize("empty", ["", "nan", "NaN", "NA", "-"])
def test_missing_and_empty_pairs(judge: Any, empty: str) -> None:
    rows = made(16, of_node(3, 0.3))
    kept = [row for number, row in enumerate(rows) if number % 5]
    for row in kept[::7]:
        row["value"] = empty
    ended = judge(kept)
    assert [each["where"]["node"] for each in ended.record["blame"]] == ["n0003"]
    assert any("without a value" in each["text"] for each in ended.record["notes"])


@pytest.mark.parametrize("whole", [False, True])
def test_a_rail_without_any_value_is_missing(judge: Any, whole: bool) -> None:
    rows = made(8, rails=2)
    for row in rows:
        if row["rail"] == "rail1" and (whole or "n0003" in {row["a"], row["b"]}):
            row["value"] = ""
    ended = judge(rows, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    whose = "" if whole else " of n0003"
    assert f"any bandwidth{whose} over rail1" in ended.record["reason"]


def test_the_size_that_the_reference_speaks_of_without_any_value_is_missing(judge: Any) -> None:
    rows = [{**row, "size": "1KiB"} for row in made(8)]
    rows += [{**row, "size": "4MiB", "value": ""} for row in made(8)]
    ended = judge(rows, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    assert "any bandwidth of 4MiB" in ended.record["reason"]


@pytest.mark.parametrize("num", [16, 80])
@pytest.mark.parametrize("empty", [True, False])
def test_a_direction_that_was_not_measured_is_missing(judge: Any, num: int, *, empty: bool) -> None:
    rows = made(num)
    for row in rows:
        if row["a"] == "n0009":
            row["value"] = ""
    kept = [row for row in rows if empty or row["value"]]
    ended = judge(kept, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    (said,) = ended.record["missing"]
    assert said.startswith(f"{num - 1} of {num * (num - 1)} directions: n0009 to n0000, n0009 to ")
    assert said in ended.record["reason"]
    assert f"{num - 1} pairs measured one way only" in ended.record["notes"][0]["text"]


def test_a_row_without_a_value_is_missing_of_a_sample_too(judge: Any) -> None:
    rows = ring(made(16), 16)
    rows[5]["value"] = ""
    ended = judge(rows, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    assert ended.record["missing"] == ["1 of 32 directions: n0002 to n0003 (bandwidth)"]


@pytest.mark.parametrize("triangle", [True, False])
def test_a_table_of_which_a_third_is_absent_is_missing(judge: Any, triangle: bool) -> None:
    rows = made(16, triangle=triangle)
    gone = np.random.default_rng(1).choice(len(rows), len(rows) // 3, replace=False)
    kept = [row for number, row in enumerate(rows) if number not in gone]
    ended = judge(kept, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    each = "pairs" if triangle else "directions"
    assert f"{len(gone)} of {len(rows)} {each}: " in ended.record["missing"][0]


def test_a_node_with_one_partner_is_not_told_from_it(judge: Any) -> None:
    kept = [row for row in made(16) if "n0009" not in {row["a"], row["b"]} or row["b"] == "n0000"]
    ended = judge(kept, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
    (said,) = ended.record["missing"]
    assert said.startswith("29 of 240 directions: n0000 to n0009, n0001 to n0009, ")
    assert "with one partner only, and not told from it: n0009" in [
        each["text"] for each in ended.record["notes"]
    ]


def test_rows_that_another_rail_or_size_has_are_missing(judge: Any) -> None:
    for column, first, second in (("rail", "rail0", "rail1"), ("size", "1MiB", "4MiB")):
        rows = [{**row, column: value} for value in (first, second) for row in made(8)]
        kept = [row for row in rows if (row["a"], row[column]) != ("n0003", second)]
        ended = judge(kept, "--reference", "24 GB/s", unit="GB/s")
        assert (ended.status, ended.record["verdict"]) == (4, "MISSING")
        (said,) = ended.record["missing"]
        assert said.startswith("7 of 56 directions")
        assert second in said
        assert "n0003 to n0000, n0003 to n0001" in said


@pytest.mark.parametrize("kind", ["ring", "star", "rounds"])
def test_of_a_sample_absent_pairs_are_told_only(judge: Any, kind: str) -> None:
    num = 16
    rows = made(num)
    if kind == "ring":
        rows = ring(rows, num)
    elif kind == "star":
        rows = [row for row in rows if "n0000" in {row["a"], row["b"]}]
    else:
        rows = [row for row in rows if int(str(row["a"])[1:]) ^ int(str(row["b"])[1:]) < 5]
    ended = judge(rows, "--reference", "24 GB/s", unit="GB/s")
    assert (ended.status, ended.record["missing"]) == (0, [])
    total = num * (num - 1) // 2
    told = f"{len(rows) // 2} of {total} pairs measured: nothing is said of the others"
    assert told in [each["text"] for each in ended.record["notes"]]
    assert any("one partner only" in each["text"] for each in ended.record["notes"]) is (
        kind == "star"
    )


def test_no_value_at_all_is_missing(judge: Any) -> None:
    rows = [{**row, "value": ""} for row in made(4)]
    assert judge(rows).status == 4
    assert judge([{"a": "n1", "b": "n1", "value": 3.0}]).status == 4


@pytest.mark.parametrize("value", ["0", "inf", "-1", "self", ""])
def test_a_node_with_itself_may_have_any_value(judge: Any, value: str) -> None:
    rows = made(8, of_node(3, 0.3), lower_is_better=True)
    rows += [{"a": f"n{n:04}", "b": f"n{n:04}", "value": value} for n in range(8)]
    assert blamed(judge(rows, unit="us").record) == [("node", "n0003", "both")]


@pytest.mark.parametrize(
    "kind", ["node factors", "lognormal", "tail", "quantised", "drift", "same"]
)
@pytest.mark.parametrize("seed", range(5))
def test_other_kinds_of_healthy_noise_blame_nobody(judge: Any, kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    num = 24
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


def test_one_direction_only(judge: Any) -> None:
    rows = made(12, of_node(5, 0.3), triangle=True)
    ended = judge(rows, direction="ab")
    assert [each["where"]["node"] for each in ended.record["blame"]] == ["n0005"]
    # Of the first node only the transmit side was measured, and nothing is said of the other.
    ended = judge(made(12, of_node(0, 0.3), triangle=True), direction="ab")
    assert blamed(ended.record) == [("node", "n0000", "transmit")]


def test_names_of_any_kind(judge: Any, tmp_path: Path) -> None:
    rows = made(6, of_node(3, 0.3))
    for row in rows:
        for end in ("a", "b"):
            row[end] = f"rack 1/{row[end]};<b>$(reboot)"
    plot = tmp_path / "m.svg"
    ended = judge(rows, "-o", str(plot))
    assert ended.record["blame"][0]["where"]["node"].startswith("rack 1/n0003")
    assert ended.record["blame"][0]["drain"] is None
    assert "<b>" not in plot.read_text()


# --- refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("n1,n2,3.0\nn2,n1,3.0\n", "m.csv:1: no header"),
        ("a,b\nn1,n2\n", "m.csv:1: no header"),
        ("a,b,value,a\nn1,n2,3,n1\n", "m.csv:1: a column stands twice"),
        ("a,b,value\nn1,n2,3.0\nn2,n1,-3.0\n", "m.csv:3: no value of a pair"),
        ("a,b,value\nn1,n2,inf\n", "m.csv:2: no value of a pair"),
        ("a,b,value\nn1,n2,fast\n", "m.csv:2: no value of a pair"),
        ("a,b,value\nn1,n2,3.0 GB/s\n", "m.csv:2: no value of a pair"),
        ("a,b,value\n\n# so\nn1,n2,3.0\nn1,,3.0\n", "m.csv:5: no node in column b"),
        ("a,b,value\nn1,n2,3.0\nn1,n3\n", "m.csv:3: a row has not as many fields"),
        ('a,b,value\n"n1","n2",3.0\n"n1","n3"\n', "m.csv:3: a row has not as many fields"),
        ('# "so"\na,b,value\nn1,n2,3.0\nn1,n3', "m.csv:4: a row has not as many fields"),
        ('a,b,value\n"n1","n2","3.0"\n"n1","n3', "m.csv:3: a row has not as many fields"),
        ('a,b,value,x\n"n1","n2",3.0,"p,q"\nn1,n3,3\n', "m.csv:3: a row has not as many fields"),
        ('a,b,value\n"n1","n2",3.0,4\n', "m.csv:2: a row has not as many fields"),
        ("a,b,value\n", "m.csv: no rows"),
        ("a,b,value\nn1,n2,3,4\n", "m.csv:2: a row has not as many fields"),
        ("a,b,value,round\nn1,n2,3,x\n", "m.csv:2: no number of a round"),
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
    file = tmp_path / "m.csv"
    file.write_text(text)
    ended = fabricproof("pairs", "judge", file, "--json")
    assert (ended.status, ended.out) == (65, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--unit", "furlongs"), 78),
        (("--unit", "KiB"), 78),
        (("--pcie", "3.0x8"), 2),
        (("-o", "m.bmp"), 2),
        (("--leaves", "nowhere"), 66),
        (("--reference", "latency=2 us"), 78),
        (("-o", "/nowhere/at/all.svg"), 74),
    ],
)
def test_wrong_options(judge: Any, options: tuple[str, ...], status: int) -> None:
    columns = {} if "--unit" in options else {"unit": "GB/s"}
    ended = judge(made(4), *options, **columns)
    assert ended.status == status
    assert len(ended.err.splitlines()) == (1 if status != 2 else 4)  # click shows the usage


def test_a_picture_that_cannot_be_written_hides_no_verdict(judge: Any) -> None:
    ended = judge(made(4), "-o", "/nowhere/at/all.svg")
    assert (ended.status, ended.record["verdict"]) == (74, "UNJUDGED")


def test_a_node_without_a_leaf_is_refused(judge: Any, tmp_path: Path) -> None:
    ended = judge(made(6), "--leaves", leaves_file(tmp_path, 5, 2))
    assert ended.status == 78
    assert "n0005" in ended.err


# --- for a person


def test_a_person_gets_a_sentence_and_a_line_to_review(
    tmp_path: Path, fabricproof: Command
) -> None:
    fault = of_node(3, 0.3, side="receive", rail=0)
    file = written(tmp_path / "m.csv", made(16, fault, rails=2, noise=0.0))
    ended = fabricproof("pairs", "judge", file)
    assert ended.status == 1
    assert "n0003 rail0 receives at 30 %: 15 of 15 pairs; its other rail is fine" in ended.out
    (line,) = [each for each in ended.out.splitlines() if "scontrol" in each]
    assert line.strip().startswith("# scontrol update NodeName=n0003 State=DRAIN Reason=")


def test_the_same_rows_in_any_order_say_the_same(judge: Any) -> None:
    rows = made(12, both(of_node(3, 0.4), of_pair(5, 6, 0.5)))
    one = judge(rows).record
    np.random.default_rng(2).shuffle(rows)
    other = judge(rows).record
    assert json.dumps(one["blame"]) == json.dumps(other["blame"])


def test_the_picture(judge: Any, tmp_path: Path) -> None:
    import xml.etree.ElementTree as ET  # noqa: PLC0415 - needed here only

    plot = tmp_path / "m.svg"
    judge(made(16, of_node(3, 0.3)), "-o", str(plot))
    root = ET.parse(plot).getroot()
    texts = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("n0003 runs at 30 %" in each for each in texts)
    # The red cells are one row and one column of the node.
    red = next(root.iter("{http://www.w3.org/2000/svg}path")).attrib["d"]
    assert "M0 3h3v1H0z" in red
    assert "M3 0h1v1H3z" in red


def test_the_picture_says_what_was_not_measured(judge: Any, tmp_path: Path) -> None:
    plot = tmp_path / "m.svg"
    judge([row for row in made(16) if row["a"] != "n0009"], "-o", str(plot))
    text = plot.read_text()
    assert "225 of 240 directions measured" in text
    assert "15 of 240 directions: n0009 to n0000, " in text


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
    file = tmp_path / "m.csv"
    file.write_text("\n".join(lines) + "\n")
    ended = fabricproof("pairs", "judge", file, "--json", "-o", str(tmp_path / "m.svg"))
    assert sorted(blamed(ended.record)) == [
        ("node", "n0017", "transmit"),
        ("node", "n0400", "receive"),
    ]
    assert ended.record["undecided"] == []


# --- few partners, and one way of a pair


def ring(rows: list[dict[str, object]], num: int) -> list[dict[str, object]]:
    """Return the rows of neighbours in a ring."""
    return [
        row for row in rows
        if (int(str(row["a"])[1:]) - int(str(row["b"])[1:])) % num in {1, num - 1}
    ]  # fmt: skip


def test_a_node_with_two_partners_is_not_told_from_its_ways(judge: Any) -> None:
    ended = judge(ring(made(16, of_node(4, 0.5)), 16))
    assert (ended.record["verdict"], ended.record["blame"]) == ("UNDECIDED", [])
    (entry,) = ended.record["undecided"]
    assert (entry["fact"], entry["where"]["nodes"]) == ("node", ["n0004"])
    assert "measured with 2 nodes only" in entry["text"]
    assert entry["next_step"] == "n0004 with 1 node more"


@pytest.mark.parametrize("rounds", [2, 3])
def test_one_way_of_a_pair_that_is_low_in_every_look(judge: Any, rounds: int) -> None:
    rows = [
        {**row, "round": number}
        for number in range(rounds)
        for row in made(16, lambda a, b, _: 0.4 if (a, b) == (2, 4) else 1.0, seed=number)
    ]
    ended = judge(rows)
    assert blamed(ended.record) == [("pair", "n0002 - n0004", "transmit")]
    assert ended.record["undecided"] == []


# --- several sizes and quantities


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (of_node(3, 0.5), ("node", "n0003", "both")),
        (of_node(3, 0.5, side="receive", rail=1), ("rail", "n0003 rail1", "receive")),
        (of_pair(3, 5, 0.5), ("pair", "n0003 - n0005", "both")),
    ],
)
@pytest.mark.parametrize("others", [1, 3])
def test_a_fault_that_one_size_shows_is_blamed(
    judge: Any, fault: Fault, expected: tuple[str, str, str], others: int
) -> None:
    rows = [{**row, "size": "4MiB", "unit": "GB/s"} for row in made(12, fault, rails=2)]
    for other in range(others):
        fine = made(12, base=1.5, rails=2, seed=other + 2)
        rows += [{**row, "size": str(8 * 2**other), "unit": "us"} for row in fine]
    ended = judge(rows)
    assert (blamed(ended.record), ended.record["undecided"]) == ([expected], [])
    assert ended.record["blame"][0]["confidence"] > 0.7


# --- the values over all nodes (document 002)


def test_both_ways_are_not_held_against_one_way(judge: Any) -> None:
    rows = [{**row, "direction": "ab"} for row in made(10, of_node(3, 0.5), base=3867, noise=0.005)]
    rows += [
        {**row, "direction": "both"} for row in made(10, base=7505, noise=0.005, triangle=True)
    ]
    ended = judge(rows, "--link", "QDR 4x,pcie=3.0x8", unit="MB/s")
    assert blamed(ended.record) == [("node", "n0003", "both")]
    healthy_ = {each["quantity"]: each["value"] for each in ended.record["healthy"]}
    assert healthy_ == {
        "bandwidth": pytest.approx(3867, rel=0.01),
        "bandwidth both ways": pytest.approx(7505, rel=0.01),
    }
    assert [each["quantity"] for each in ended.record["population"]] == list(healthy_)


def test_the_population_of_each_rail(judge: Any) -> None:
    rows = made(16, of_node(3, 0.5, side="receive", rail=1), rails=2)
    population = judge(rows, unit="GB/s").record["population"]
    for number, each in enumerate(population):
        values = [float(str(row["value"])) for row in rows if row["rail"] == f"rail{number}"]
        assert (each["rail"], each["count"]) == (f"rail{number}", 240)
        assert each["least"] == min(values)
        assert each["most"] == max(values)
        assert each["mean"] == pytest.approx(np.mean(values))
        assert each["deviation"] == pytest.approx(np.std(values))


def test_the_latency_by_distance(judge: Any, tmp_path: Path) -> None:
    rows = made(16, hops(4, 1.6), base=1.5, lower_is_better=True)
    ended = judge(rows, "--leaves", leaves_file(tmp_path, 16, 4), unit="us")
    means = {each["distance"]: each["mean"] for each in ended.record["population"]}
    assert means["on one leaf"] == pytest.approx(1.5 / 1.6, rel=0.02)
    assert means["between leaves"] == pytest.approx(1.5, rel=0.02)


# --- who is blamed, and which verdict, of many a matrix


def node(number: int, side: str = "both") -> tuple[str, str, str]:
    return ("node", f"n{number:04}", side)


def rounds_from_a_table_program() -> list[dict[str, object]]:
    return [
        {**row, "round": f"{number % 7}.0" if number % 3 else ""}
        for number, row in enumerate(made(8, of_node(3, 0.3)))
    ]


def in_two_units() -> list[dict[str, object]]:
    rows = [{**row, "unit": "GB/s"} for row in made(12, of_node(3, 0.5))]
    for row in rows[1::2]:
        row |= {"value": float(str(row["value"])) * 1000, "unit": "MB/s"}
    return rows


def one_pair_a_row(side: str) -> list[dict[str, object]]:
    return [
        {**row, "direction": "ab"} if str(row["a"]) < str(row["b"])
        else {**row, "a": row["b"], "b": row["a"], "direction": "ba"}
        for row in made(10, of_node(3, 0.3, side=side))
    ]  # fmt: skip


def times(one: Fault, other: Fault) -> Fault:
    return lambda a, b, rail: one(a, b, rail) * other(a, b, rail)


TEN = both(*(of_node(number, 0.5) for number in range(10)))
THREE = both(of_node(3, 0.4), of_node(9, 0.6, side="receive", rail=0), of_pair(5, 6, 0.5))
SLOW = made(8, of_node(3, 0.3))
ITSELF = [{"a": f"n{at:04}", "b": f"n{at:04}", "value": 900.0} for at in range(8)]
OTHER_COLUMNS = [
    {"comment": "x", "VALUE": row["value"], "B": row["b"], "when": "now", "A": row["a"]}
    for row in SLOW
]
SIZES = [
    {**row, "size": size}
    for size, fault in (("4MiB", of_node(3, 0.5)), ("1MiB", of_node(3, 0.6, side="transmit")),
                        ("1KiB", of_node(7, 0.4)))
    for row in made(12, fault)
]  # fmt: skip
AT_24 = ("--reference", "24 GB/s", "--unit", "GB/s")


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        (made(12, of_node(3, 0.3), rails=4), (), [node(3)]),
        (made(16, both(of_node(3, 0.4), of_node(9, 0.6))), (), [node(3), node(9)]),
        (made(24, THREE, rails=2), (), [node(3), ("pair", "n0005 - n0006", "both"),
                                        ("rail", "n0009 rail0", "receive")]),
        (made(20, both(*(of_node(at, 0.5) for at in range(8)))), (), [node(at) for at in range(8)]),
        (made(16, TEN), AT_24, [node(at) for at in range(10)]),
        (made(16, times(hops(4, 1.6), of_node(5, 0.4))), (), [node(5)]),
        (made(12, of_node(3, 0.5), lower_is_better=True), ("--unit", "us"), [node(3)]),
        *((made(12, of_node(3, 0.5)), ("--unit", unit), [node(3)])
          for unit in ("GB/s", "MB/s", "Gb/s", "MiB/s")),
        *((made(num, of_node(2, 0.3), triangle=True), (), [node(2)]) for num in (6, 8, 16, 40)),
        *((one_pair_a_row(side), (), [node(3, side)]) for side in ("transmit", "receive")),
        (made(12, times(lambda _a, _b, rail: 0.5 if rail else 1.0, of_node(3, 0.5, rail=1)),
              rails=2), (), [("rail", "n0003 rail1", "both")]),
        (made(12, of_node(3, 2.0)), (), []),
        (made(8, of_node(3, 0.0)), (), [node(3)]),
        (in_two_units(), (), [node(3)]),
        (rounds_from_a_table_program(), (), [node(3)]),
        (SLOW + SLOW, (), [node(3)]),
        (SLOW + ITSELF, (), [node(3)]),
        (OTHER_COLUMNS, (), [node(3)]),
        (SIZES, (), [node(3), node(7)]),
    ],
)  # fmt: skip
def test_who_is_blamed(
    judge: Any, rows: Any, options: tuple[str, ...], expected: list[tuple[str, str, str]]
) -> None:
    record = judge(rows, *options).record
    assert sorted(blamed(record)) == expected
    if rows[: len(SLOW)] == SLOW:
        assert record["measured"] == 56, "each direction once, and none of a node with itself"
    if "--unit" in options:
        assert record["healthy"][0]["unit"] == options[-1]


def without_values(rows: list[dict[str, object]], which: Any) -> list[dict[str, object]]:
    return [{**row, "value": ""} if which(number, row) else row for number, row in enumerate(rows)]


LOW = np.triu(np.random.default_rng(4).random((16, 16)) < 0.3, 1)
OF_TWO = [row for row in made(80, of_node(4, 0.5)) if int(str(row["a"])[1:]) // 2
          == int(str(row["b"])[1:]) // 2]  # fmt: skip
TWICE = [{**row, "round": number} for number in range(2) for row in made(8)]
HDR = ("--link", "HDR 4x", "--unit", "GB/s")


@pytest.mark.parametrize(
    ("rows", "options", "verdict", "status"),
    [
        (made(12), AT_24, "PASS", 0),
        (made(12, noise=0.005), HDR, "PASS", 0),
        (without_values(TWICE, lambda number, _: number == 3), AT_24, "PASS", 0),
        (made(12, lambda _a, _b, rail: 0.5 if rail else 1.0, rails=2), AT_24, "FAIL", 1),
        (made(12, base=26.0), HDR, "INVALID", 3),
        (made(6, base=0.1), (*HDR[:-1], "us"), "INVALID", 3),
        (without_values(made(8), lambda _, row: "n0003" in {row["a"], row["b"]}), AT_24,
         "MISSING", 4),
        (made(2, triangle=True), (), "UNJUDGED", 5),
        ([*made(8), {**made(8)[5], "value": 2.0}], (), "UNJUDGED", 5),
        ([{**made(8)[5], "value": 2.0}, *made(8)], (), "UNJUDGED", 5),
        (made(12, lambda a, b, _: 0.3 if (a, b) == (1, 2) else 1.0), AT_24, "UNDECIDED", 5),
        (made(24, lambda a, b, _: 0.4 if 3 in {a, b} and (a + b) % 2 else 1.0), AT_24,
         "UNDECIDED", 5),
        (made(16, lambda a, b, _: 0.5 if (LOW | LOW.T)[a, b] else 1.0), (), "UNDECIDED", 5),
        (OF_TWO, (), "UNDECIDED", 5),
    ],
)  # fmt: skip
def test_verdicts_that_blame_nobody(
    judge: Any, rows: Any, options: tuple[str, ...], verdict: str, status: int
) -> None:
    ended = judge(rows, *options)
    assert (ended.record["verdict"], ended.status) == (verdict, status)
    assert ended.record["blame"] == []
    assert not (ended.record["contention"] and verdict != "UNDECIDED")
    assert bool(ended.record["undecided"]) is (verdict == "UNDECIDED")


def test_a_node_that_flaps_is_named_as_undecided(judge: Any) -> None:
    rows = made(24, lambda a, b, _: 0.4 if 3 in {a, b} and (a + b) % 2 else 1.0)
    ended = judge(rows, *AT_24)
    assert "n0003" in ended.record["undecided"][0]["where"]["nodes"]


def test_no_such_file(fabricproof: Command) -> None:
    assert fabricproof("pairs", "judge", "nowhere.csv").status == 66


def test_the_population_in_the_terminal_and_the_page(tmp_path: Path, fabricproof: Command) -> None:
    page = tmp_path / "m.html"
    file = written(tmp_path / "m.csv", made(8, of_node(3, 0.3), rails=2), unit="GB/s")
    (line,) = [each for each in fabricproof("pairs", "judge", file, "-o", page).out.splitlines()
               if "over rail0, GB/s" in each]  # fmt: skip
    assert line.split()[4] == "56"
    assert "bandwidth over rail0, GB/s" in page.read_text()
