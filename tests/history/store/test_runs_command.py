"""``fabricproof runs``: what there is, what changed, and names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_records import leg, quantity, run_id

from fabricproof.cli.measure import run
from fabricproof.core.records import append_records
from fabricproof.history.store import labels
from fabricproof.nodes.inventory.store import keep_looks
from fabricproof.site import load_site

DATA = Path(__file__).resolve().parents[2] / "data" / "inventory"
FIRST, SECOND, THIRD = run_id(1), run_id(2), run_id(3)

Command = Callable[..., Any]


@pytest.fixture
def perflogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return perflogs of the site vcluster: three runs, and before the second n1 got a cable."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    folder = tmp_path / "perflogs" / "vcluster"
    for run_, cable in ((FIRST, "mlx5-healthy"), (SECOND, "mlx5-new-cable"), (THIRD, None)):
        looks = tmp_path / run_
        looks.mkdir()
        if cable:
            (looks / "n1.txt").write_bytes((DATA / f"{cable}.json").read_bytes())
        seen = keep_looks(folder / ".inventory", looks, ["n1"], run_id=run_, time="2026-11-01")
        identity = {"digest": "ffff" if run_ == THIRD else "0123"}
        own = {"inventory": seen, "site": "vcluster", "stack_identity": identity}
        verdict = "FAIL" if run_ == THIRD else "PASS"
        records = [quantity(run_, **own), leg(run_), leg(run_, verdict, leg="rail1")]
        append_records(folder / "compute" / "records.jsonl", records)
    return tmp_path / "perflogs"


def test_runs_stand_oldest_first_with_what_changed_before_each(
    perflogs: Path, fabricproof: Command
) -> None:
    """The new cable is named before the second run; a run that saw nothing changed nothing."""
    record = fabricproof("runs", "--json").record
    assert [each["run_id"] for each in record["runs"]] == [FIRST, SECOND, THIRD]
    first, second, third = record["runs"]
    assert first["changed"] == []
    assert second["changed"] == [{"field": "interface ib0 serial of the cable", "nodes": ["n1"]}]
    assert third["changed"] == [{"field": "build of openmpi5", "nodes": []}]
    assert (third["worst"], third["legs"]) == ("FAIL", {"FAIL": 1, "PASS": 1})
    assert (second["worst"], second["quantities"]) == ("PASS", 1)


def test_a_leg_that_was_skipped_beside_a_pass_is_not_the_worst(
    perflogs: Path, fabricproof: Command
) -> None:
    append_records(
        perflogs / "vcluster" / "compute" / "records.jsonl",
        [leg(SECOND, "SKIPPED"), leg(THIRD, "SKIPPED")],
    )
    _, second, third = fabricproof("runs", "--json").record["runs"]
    assert (second["worst"], second["legs"]) == ("PASS", {"SKIPPED": 1, "PASS": 2})
    assert third["worst"] == "FAIL"


def test_the_table_has_the_same_for_a_person(perflogs: Path, fabricproof: Command) -> None:
    """One line for each run, and how many there are."""
    ended = fabricproof("runs")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [FIRST, SECOND, THIRD]
    assert "interface ib0 serial of the cable on n1" in lines[2]
    assert "1 FAIL, 1 PASS" in lines[3]
    assert lines[4] == "3 of 3 runs of vcluster"


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (["2026-11-02.."], [SECOND, THIRD]),
        (["..2026-11-02"], [FIRST, SECOND]),
        (["..2026-11-02T01:59"], [FIRST]),
        (["2026-11-02T02:00:01.."], [THIRD]),
        (["last:1"], [THIRD]),
        (["last:1@2026-11-02"], [SECOND]),
        (["list", "..9998-12-31"], [FIRST, SECOND, THIRD]),
    ],
)
def test_a_span_of_time_is_chosen(
    options: list[str], runs: list[str], perflogs: Path, fabricproof: Command
) -> None:
    """A day ends at its end; changes are still those since the run before."""
    record = fabricproof("runs", *options, "--json").record
    assert [each["run_id"] for each in record["runs"]] == runs


def test_a_date_that_is_none_is_said(perflogs: Path, fabricproof: Command) -> None:
    """What was expected, what was got."""
    ended = fabricproof("runs", "yesterday..")
    assert ended.status == 2
    assert "expected 2026-11-01" in ended.err


def test_a_label_is_given_shown_and_taken_away(perflogs: Path, fabricproof: Command) -> None:
    """By identity, by its beginning, or as the latest."""
    ended = fabricproof("runs", "label", FIRST[:8], "latest", "swap")
    assert (ended.status, ended.out) == (0, "swap: 2 added, 2 runs have it now\n")
    assert labels(perflogs, "vcluster") == {"swap": (FIRST, THIRD)}
    shown = [each["labels"] for each in fabricproof("runs", "--json").record["runs"]]
    assert shown == [["swap"], [], ["swap"]]
    ended = fabricproof("runs", "label", "--remove", FIRST, "swap")
    assert ended.out == "swap: 1 removed, 1 run has it now\n"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["2026", "swap"], 2, "3 runs begin so"),
        (["2031", "swap"], 2, "nothing is called so: '2031'"),
        (["latest", "2026-11-01"], 65, "no label: expected a letter"),
        (["latest", "Latest"], 65, "no label: expected none of"),
        (["latest", "a..b"], 65, "no label: expected none of"),
        (["swap"], 2, "expected RUNS... NAME"),
        (["--remove", "latest", "swap"], 66, "has no label swap"),
    ],
)
def test_a_label_that_cannot_be_is_refused(
    words: list[str], status: int, said: str, perflogs: Path, fabricproof: Command
) -> None:
    """One clear message each, and nothing written."""
    ended = fabricproof("runs", "label", *words)
    assert ended.status == status
    assert said in ended.err
    assert labels(perflogs, "vcluster") == {}


def test_a_site_without_runs_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    """No empty table."""
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path))
    ended = fabricproof("runs", "--site", "vcluster")
    assert ended.status == 66
    assert "next: fabricproof run" in ended.err


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_run_is_not_begun_with_a_name_that_none_can_have(
    by_variable: bool, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    """An hour of measuring must not end in a name that is refused."""
    monkeypatch.setattr(
        "fabricproof.cli.measure.run.perform", lambda *_, **__: pytest.fail("begun")
    )
    if by_variable:
        monkeypatch.setenv("FABRICPROOF_LABEL", "2026-11-01")
    words = () if by_variable else ("--label", "2026-11-01")
    ended = fabricproof("run", "--site", "vcluster", "-t", "quick", *words)
    assert ended.status == 65
    assert "no label" in ended.err


def test_a_run_has_its_name_at_its_end(perflogs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that cannot be kept is said and changes no verdict."""
    run.label_run("after-swap", load_site("vcluster"), THIRD)
    assert labels(perflogs, "vcluster") == {"after-swap": (THIRD,)}
    path = perflogs / "vcluster" / "labels.jsonl"
    path.unlink()
    path.mkdir()
    said: list[str] = []
    monkeypatch.setattr("click.echo", lambda text, **_: said.append(text))
    run.label_run("after-swap", load_site("vcluster"), THIRD)
    assert f"run {THIRD} has no label" in said[0]
