"""``fabricproof preflight``: what the store last saw, judged by the site."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.records import append_records
from fabricproof.nodes.inventory.store import keep_looks

DATA = Path(__file__).resolve().parents[1] / "data" / "inventory"
FIRST, SECOND = "20261116T080000Z-a1b2c3", "20261118T080000Z-d4e5f6"

Command = Callable[..., Any]

SITE = """
[site]
name = "lab"
[[partitions]]
name = "hdr"
fabrics = ["hdr"]
stacks = ["mpi"]
[[partitions]]
name = "eth"
fabrics = ["eth"]
stacks = ["mpi"]
[[stacks]]
name = "mpi"
family = "openmpi"
version = "5"
"""

FABRIC = """
[[fabrics]]
name = "hdr"
link = "HDR 4x"
mtu = 4096
pcie = "4.0x16"
rails = [{ interface = "mlx5_0:1" }]
[fabrics.expect]
firmware = "20.41.1000"
[[fabrics]]
name = "eth"
link = "25GbE"
protocol = "tcp"
rails = [{ interface = "enp97s0f0np0" }]
"""


@pytest.fixture
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return perflogs of a site with two fabrics and two runs; the second saw a degraded node."""
    site = tmp_path / "sites" / "lab"
    site.mkdir(parents=True)
    (site / "site.toml").write_text(SITE)
    (site / "fabric.toml").write_text(FABRIC)
    monkeypatch.setenv("FABRICPROOF_SITES", str(site.parent))
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITE", "lab")
    folder = tmp_path / "perflogs" / "lab"
    runs: list[tuple[str, str, dict[str, str]]] = [
        (FIRST, "2026-11-16T08:01:00Z", {"n1": "mlx5-healthy", "n2": "mlx5-healthy"}),
        (SECOND, "2026-11-18T08:01:00Z", {"n2": "mlx5-degraded", "e1": "bnxt-healthy"}),
    ]
    for run_id, time, nodes in runs:
        looks = tmp_path / run_id
        looks.mkdir()
        for node, name in nodes.items():
            (looks / f"{node}.txt").write_bytes((DATA / f"{name}.json").read_bytes())
        keep_looks(folder / ".inventory", looks, nodes, run_id=run_id, time=time)
        for partition, fabric, mine in (("hdr", "hdr", "n"), ("eth", "eth", "e")):
            there = {node: "x" for node in nodes if node.startswith(mine)}
            record = {"kind": "leg", "run_id": run_id, "fabric": fabric, "inventory": there}
            append_records(folder / partition / "records.jsonl", [record])
    return folder


def test_each_node_is_judged_by_its_own_fabric(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("preflight")
    assert (ended.status, ended.err) == (1, "")
    assert "fabric hdr on 2 nodes: FAIL\n" in ended.out
    assert "fabric eth on 1 nodes: PASS\n" in ended.out
    assert "mlx5_0:1 on n2 runs at 100 of 200 Gb/s: it trained to HDR 2x" in ended.out
    assert "mlx5_0:1 on n2 has firmware 20.35.4030 instead of 20.41.1000" in ended.out
    assert "seen 2026-11-18T08:01:00Z, " in ended.out
    assert "does not exist" not in ended.out


def test_what_is_said_of_many_nodes_is_one_line(
    tmp_path: Path, perflogs: Path, fabricproof: Command
) -> None:
    nodes = [f"n{number}" for number in range(2, 12)]
    for node in nodes:
        (tmp_path / f"{node}.txt").write_bytes((DATA / "mlx5-degraded.json").read_bytes())
    looks = {"run_id": SECOND, "time": "2026-11-18T09:01:00Z"}
    keep_looks(perflogs / ".inventory", tmp_path, nodes, **looks)
    inventory = dict.fromkeys(nodes, "x")
    record = {"kind": "leg", "run_id": SECOND, "fabric": "hdr", "inventory": inventory}
    append_records(perflogs / "hdr" / "records.jsonl", [record])
    ended = fabricproof("preflight")
    trained = "mlx5_0:1 on n[2-11] runs at 100 of 200 Gb/s: it trained to HDR 2x"
    assert ended.out.count(" runs at 100 of 200 Gb/s") == ended.out.count(trained) == 1


def test_a_run_is_judged_as_it_saw_the_nodes(perflogs: Path, fabricproof: Command) -> None:
    ended = fabricproof("preflight", FIRST)
    assert ended.status == 0
    assert "PASS     mlx5_0:1: 11 of 11 (state, rate, mtu, pcie, firmware, fleet)" in ended.out


def test_the_command_that_looks_anew_names_the_site_by_its_folder(
    perflogs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    ended = fabricproof("preflight", FIRST)
    assert ended.out.endswith("look anew with  fabricproof run -n LinkPreflight --site lab\n")
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path / "others"))
    folder = tmp_path / "sites" / "lab"
    ended = fabricproof("preflight", FIRST, "--site", folder)
    assert ended.out.endswith(f"fabricproof run -n LinkPreflight --site {folder}\n")


def test_some_nodes_and_one_fabric_as_json(perflogs: Path, fabricproof: Command) -> None:
    record = fabricproof("preflight", "n2", "--only", "fabric=h*", "--json").record
    assert record["verdict"] == "FAIL"
    assert set(record["seen"]) == {"n2"}
    (fabric,) = record["fabrics"]
    rate = next(each for each in fabric["findings"] if each["fact"] == "rate")
    assert rate["where"] == {"node": "n2", "rail": "mlx5_0:1"}
    number = rate["quantity"]
    assert (number["name"], number["value"], number["unit"]) == ("n2.rate", 100000, "Mb/s")
    assert (number["reference"], number["verdict"]) == (200000, "FAIL")


def test_a_node_that_left_nothing_is_missing(perflogs: Path, fabricproof: Command) -> None:
    looks = perflogs.parent / "empty"
    looks.mkdir()
    keep_looks(perflogs / ".inventory", looks, ["n9"], run_id=SECOND, time="2026-11-18T09:00:00Z")
    record = {"kind": "leg", "run_id": SECOND, "fabric": "hdr", "inventory": {"n9": None}}
    append_records(perflogs / "hdr" / "records.jsonl", [record])
    ended = fabricproof("preflight", "n9")
    assert ended.status == 4
    assert "mlx5_0:1 on n9 was never seen" in ended.out


def test_a_node_that_was_measured_over_no_link_is_judged_by_all(
    perflogs: Path, tmp_path: Path, fabricproof: Command
) -> None:
    """The deliberate bad case: no fabric took it, and the green of the others was said."""
    with (tmp_path / "sites" / "lab" / "fabric.toml").open("a") as file:
        file.write('[[fabrics]]\nname = "memory"\nrails = [{ interface = "lo" }]\n')
    looks = perflogs.parent / "third"
    looks.mkdir()
    (looks / "n3.txt").write_bytes((DATA / "mlx5-degraded.json").read_bytes())
    keep_looks(perflogs / ".inventory", looks, ["n3"], run_id=SECOND, time="2026-11-18T09:00:00Z")
    record = {"kind": "leg", "run_id": SECOND, "fabric": "memory", "inventory": {"n3": "x"}}
    append_records(perflogs / "hdr" / "records.jsonl", [record])
    ended = fabricproof("preflight", "n1", "n3")
    assert ended.status == 1
    assert "mlx5_0:1 on n3 runs at 100 of 200 Gb/s" in ended.out


def test_a_fabric_whose_legs_never_began_is_judged_with_its_partition(
    perflogs: Path, tmp_path: Path, fabricproof: Command
) -> None:
    """Its job never started, say; the look of the other's job shows its rail all the same."""
    site = tmp_path / "sites" / "lab" / "site.toml"
    site.write_text(SITE.replace('fabrics = ["hdr"]', 'fabrics = ["hdr", "eth"]'))
    record = {"kind": "leg", "run_id": FIRST, "partition": "hdr", "fabric": "hdr"}
    append_records(perflogs / "hdr" / "records.jsonl", [{**record, "inventory": {"n1": "x"}}])
    ended = fabricproof("preflight", "n1")
    assert ended.status == 1
    assert "fabric hdr on 1 nodes: PASS\n" in ended.out
    assert "enp97s0f0np0 on n1 does not exist" in ended.out
    # A record that names no partition: the fabric of its leg.
    ended = fabricproof("preflight", f"n2@{FIRST}")
    assert (ended.status, "fabric eth" in ended.out) == (0, False)


def test_where_nobody_looked_there_is_nothing_to_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    ended = fabricproof("preflight", "--site", "vcluster")
    assert ended.status == 66
    assert "nobody has looked" in ended.err


@pytest.mark.parametrize(("words", "status"), [(("n7",), 66), (("--only", "fabric=none"), 78)])
def test_what_is_not_there_is_refused(
    perflogs: Path, fabricproof: Command, words: tuple[str, ...], status: int
) -> None:
    ended = fabricproof("preflight", *words)
    assert ended.status == status
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(("link", "status"), [("Soft-RoCE 80 Mb/s", 0), ("rxe 100M", 1)])
def test_every_line_about_a_software_device_says_so(
    link: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fabricproof: Command,
) -> None:
    site = tmp_path / "sites" / "soft"
    site.mkdir(parents=True)
    (site / "site.toml").write_text(SITE.replace('"lab"', '"soft"').replace('["eth"]', '["hdr"]'))
    rails = '[{ interface = "rxe0:1" }]'
    (site / "fabric.toml").write_text(
        f'[[fabrics]]\nname = "hdr"\nlink = "{link}"\nmtu = 4096\nrails = {rails}\n'
    )
    monkeypatch.setenv("FABRICPROOF_SITES", str(site.parent))
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    looks = tmp_path / "looks"
    looks.mkdir()
    (looks / "vc1.txt").write_bytes((DATA / "soft-roce-guest.json").read_bytes())
    folder = tmp_path / "perflogs" / "soft"
    keep_looks(folder / ".inventory", looks, ["vc1"], run_id=FIRST, time="2026-11-16T08:01:00Z")
    record = {"kind": "leg", "run_id": FIRST, "fabric": "hdr", "inventory": {"vc1": "x"}}
    append_records(folder / "hdr" / "records.jsonl", [record])
    ended = fabricproof("preflight", "--site", "soft")
    assert (ended.status, ended.err) == (status, "")
    told = [line for line in ended.out.splitlines() if "rxe0" in line or line.startswith("fabric")]
    assert len(told) >= 3
    assert [line for line in told if "Soft-RoCE" not in line and "software" not in line] == []
    (fabric,) = fabricproof("preflight", "--site", "soft", "--json").record["fabrics"]
    assert fabric["device"] == "Soft-RoCE"


def test_this_node_is_judged_at_once_in_one_line(
    perflogs: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    """A look that a node left, as this one's: by the fabric of which it has a rail."""
    monkeypatch.setenv("SLURMD_NODENAME", "n9")
    for name, status, line in (
        ("mlx5-healthy", 0, "PASS n9: hdr: 5 facts as declared\n"),
        ("bnxt-healthy", 0, "PASS n9: eth: 2 facts as declared\n"),
        ("mlx5-degraded", 1, "FAIL n9: mlx5_0:1 on n9 runs at 100 of 200 Gb/s"),
    ):
        text = (DATA / f"{name}.json").read_text()
        monkeypatch.setattr(
            "fabricproof.nodes.preflight.judge.run_group", lambda *_, said=text, **__: (0, said, "")
        )
        ended = fabricproof("preflight", "--here")
        assert (ended.status, ended.err) == (status, "")
        assert ended.out.startswith(line)
        assert ended.out.count("\n") == 1


def test_here_is_no_other_node(fabricproof: Command) -> None:
    assert fabricproof("preflight", "--here", "n9").status == 2


def test_a_node_that_lost_all_its_cards_is_red(perflogs: Path, fabricproof: Command) -> None:
    """A real look at this machine, which has none of the rails of the site."""
    ended = fabricproof("preflight", "--here")
    assert ended.status == 1
    assert "does not exist" in ended.out
    record = fabricproof("preflight", "--here", "--json").record
    assert {each["fabric"] for each in record["fabrics"]} == {"hdr", "eth"}


@pytest.mark.parametrize("said", ["", "#== host\n"])
def test_a_look_that_hung_blames_no_card(
    perflogs: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command, said: str
) -> None:
    """A dead file server below a tool is no missing card: nothing was seen, nothing is red."""
    monkeypatch.setattr(
        "fabricproof.nodes.preflight.judge.run_group", lambda *_, **__: (None, said, "")
    )
    ended = fabricproof("preflight", "--here")
    assert ended.status == 5
    assert "whether it exists is not known" in ended.out
