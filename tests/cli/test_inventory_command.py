"""``fabricproof inventory``: show what nodes are made of, and what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.records import append_records
from fabricproof.nodes.inventory.store import INDEX_FILE, keep_looks

DATA = Path(__file__).resolve().parents[1] / "data" / "inventory"
FIRST, SECOND = "20261116T080000Z-a1b2c3", "20261118T080000Z-d4e5f6"

Command = Callable[..., Any]


@pytest.fixture
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return perflogs of the site vcluster with two runs: n1 got a new cable, n2 was degraded."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    folder = tmp_path / "perflogs" / "vcluster"
    runs: list[tuple[str, str, dict[str, str]]] = [
        (FIRST, "2026-11-16T08:01:00Z", {"n1": "mlx5-healthy", "n2": "mlx5-healthy"}),
        (SECOND, "2026-11-18T08:01:00Z", {"n1": "mlx5-new-cable", "n2": "mlx5-degraded"}),
    ]
    for run_id, time, nodes in runs:
        looks = tmp_path / run_id
        looks.mkdir()
        for node, name in nodes.items():
            (looks / f"{node}.txt").write_bytes((DATA / f"{name}.json").read_bytes())
        keep_looks(folder / ".inventory", looks, [*nodes, "n3"], run_id=run_id, time=time)
    rank = {"rank": 0, "node": "n1", "cpus": "40-41"}
    of = dict.fromkeys(("unique_name", "partition", "stack", "job_id"), "1")
    record = {"run_id": FIRST, "kind": "environment", "environment": {"ranks": [rank]}, **of}
    append_records(folder / "compute" / "records.jsonl", [record])
    return folder


def test_nodes_that_are_alike_stand_together(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "show", FIRST)
    assert (ended.status, ended.err) == (0, "")
    assert f"n[1-2]: 2 alike; shown is n1, seen 2026-11-16T08:01:00Z in run {FIRST}" in ended.out
    assert ended.out.count("  port mlx5_0:1\n") == 1
    assert "    PSID                      MT_0000000222\n" in ended.out
    assert "    PCIe link                 PCIe 4.0, 16 lanes\n" in ended.out


def test_a_run_says_how_far_cards_are_from_its_ranks(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "show", f"n1@{FIRST}")
    assert "rank 0 on CPUs 40-41: interface ib0 on NUMA node 0: distance 21 (far)" in ended.out


def test_without_a_run_each_node_is_as_last_seen(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "show")
    assert "n2, seen 2026-11-18T08:01:00Z" in ended.out
    assert "less than it could: port mlx5_0:1: trained to PCIe 4.0 x8" in ended.out
    assert "n3, seen" in ended.out
    assert "unknown: the look at it left nothing" in ended.out


def test_show_as_json_is_complete(perflogs: Path, fabricproof: Command) -> None:
    record = fabricproof("inventory", "show", "n1@2026-11-16", "n3", "--json").record
    first, third = record["nodes"]
    assert record["site"] == "vcluster"
    assert first["facts"]["port mlx5_0:1"]["firmware"] == "20.41.1000"
    assert (first["run_id"], first["node"]) == (FIRST, "n1")
    assert (perflogs / ".inventory" / "n1" / f"{first['digest']}.json").exists()
    assert (third["digest"], third["facts"]) == (None, {})


def test_diff_of_two_nodes_says_what_it_may_mean(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "diff", "n1", "n2")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(
        "n1 (seen 2026-11-18T08:01:00Z) against n2 (seen 2026-11-18T08:01:00Z): "
    )
    assert "half the PCIe rate on n2" in ended.out
    assert "serial" not in ended.out


def test_diff_of_a_node_then_and_now(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "diff", "n1@2026-11-16", "n1")
    assert ": 1 difference\n" in ended.out
    assert "MT2217VS05123 on n1@2026-11-16, MT2301VS00042 on n1: the cable was repl" in ended.out


@pytest.mark.parametrize("sides", [("2026-11-16", "2026-11-18"), (FIRST, SECOND)])
def test_diff_of_two_dates_or_runs_compares_each_node(
    sides: tuple[str, str], perflogs: Path, fabricproof: Command
) -> None:
    record = fabricproof("inventory", "diff", *sides, "--json").record
    pairs = {pair["first"]["node"]: pair for pair in record["pairs"]}
    assert list(pairs) == ["n1", "n2", "n3"]
    assert [each["fact"] for each in pairs["n1"]["differences"]] == ["cable_serial"]
    assert {"pcie", "rate_gbit_s", "width", "firmware", "kernel"} <= {
        each["fact"] for each in pairs["n2"]["differences"]
    }
    assert pairs["n3"]["unknown"][0].startswith(f"n3 on {sides[0]}: the look at it left nothing")


def test_diff_of_what_is_the_same_says_so(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "diff", "n1@2026-11-16", "n2@2026-11-16")
    assert ended.out.endswith(": no difference\n")
    many = fabricproof("inventory", "diff", FIRST, "2026-11-17")
    assert "no difference: n1, n2\n" in many.out


def test_a_node_that_nobody_knows_is_one_message(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("inventory", "diff", "n1", "n9")
    assert (ended.status, ended.out) == (66, "")
    assert "no inventory of 'n9': expected a node that is known: n1, n2, n3" in ended.err
    assert ended.err.endswith("; next: fabricproof inventory show --site vcluster\n")


def test_a_site_without_a_run_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    ended = fabricproof("inventory", "show", "--site", "local")
    assert ended.status == 66
    assert "nobody has looked at the nodes of local yet" in ended.err
    assert "fabricproof run --site local" in ended.err


def test_a_damaged_inventory_is_one_message(perflogs: Path, fabricproof: Command) -> None:
    for path in (perflogs / ".inventory" / "n1").iterdir():
        path.write_text(json.dumps({"format": 1}))
    ended = fabricproof("inventory", "show", "n1")
    assert ended.status == 65
    assert "no readable inventory" in ended.err


def test_a_torn_line_of_the_index_is_noted_and_passed_over(
    perflogs: Path, fabricproof: Command
) -> None:
    with (perflogs / ".inventory" / INDEX_FILE).open("a") as file:
        file.write('{"format": 1, "no')
    ended = fabricproof("inventory", "diff", "n1", "n2")
    assert ended.status == 0
    assert "torn by a crash" in ended.err
