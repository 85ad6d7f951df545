"""``fabricproof report``: exit statuses, files, and one message for each bad input."""

from __future__ import annotations

import errno
import importlib.resources
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from report_data import DOWN, HEALTHY, NEWEST, SLOW, recorded

from fabricproof.core.records import append_records, read_records
from fabricproof.pairs import judge_matrix, picture_of, read_matrices, say

sys.path.insert(0, str(Path(__file__).parents[1] / "pairs"))
from matrices import made, of_node, written

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the site vcluster have the recorded history; return a folder for what is written."""
    recorded(tmp_path)
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "perflogs"))
    monkeypatch.setenv("FABRICPROOF_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("FABRICPROOF_SITE", "vcluster")
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize(("run_id", "status"), [(HEALTHY, 0), (SLOW, 1), (DOWN, 4), (NEWEST, 0)])
def test_the_status_is_that_of_the_run(run_id: str, status: int, fabricproof: Command) -> None:
    for options in ([], ["--json"], ["--drain"]):
        ended = fabricproof("report", run_id, *options)
        assert (ended.status, ended.err) == (status, "")


@pytest.mark.parametrize("options", [[SLOW], [NEWEST, "same-inventory"], [DOWN]])
def test_json_is_what_its_schema_says(options: list[str], fabricproof: Command) -> None:
    folder = importlib.resources.files("fabricproof.report")
    schema = json.loads(folder.joinpath("report.schema.json").read_text(encoding="utf-8"))
    record = json.loads(fabricproof("report", *options, "--json").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(record, schema)
    assert record["format"] == 3
    assert record["site"] == "vcluster"
    assert (record["comparison"] is not None) == ("same-inventory" in options)
    # The schema tells: a verdict that is none is refused.
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**record, "verdict": "GREEN"}, schema)


def test_json_has_no_number_that_is_none(fabricproof: Command) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads(fabricproof("report", DOWN, "--json").out, parse_constant=refuse)


def test_the_matrices_of_a_check_stand_in_the_page_each_with_its_stack(
    tmp_path: Path, place: Path, fabricproof: Command
) -> None:
    """A check keeps the record of a picture beside the identity of its job."""
    rows = made(16, of_node(3, 0.3, side="receive"), noise=0.0)
    file = written(tmp_path / "m.csv", rows, unit="MB/s")
    judged = judge_matrix(*read_matrices(str(file)))
    record = picture_of(judged, say(judged), "bandwidth over rail0").record()
    path = tmp_path / "perflogs" / "vcluster" / "compute" / "records.jsonl"
    job = next(each for each in read_records(path) if each["run_id"] == NEWEST)
    append_records(path, [{**job, "stack": each, **record} for each in ("openmpi5", "mpich")])
    ended = fabricproof("report", NEWEST, "-o", place / "r.html")
    # The verdict is that of the legs: the check says of its campaign by its own.
    assert (ended.status, ended.out.split()[0]) == (0, "PASS")
    page = (place / "r.html").read_text()
    assert page.count("n0003 receives at 30 %: 15 of 15 pairs") == 2
    for stack in ("openmpi5", "mpich"):
        assert f"<h3>bandwidth over rail0, {stack}, compute: " in page


def test_all_files_at_once(place: Path, fabricproof: Command) -> None:
    paths = {kind: place / f"report.{kind}" for kind in ("html", "xml", "prom", "tar.gz")}
    options = [part for path in paths.values() for part in ("-o", path)]
    ended = fabricproof("report", SLOW, *options)
    assert ended.status == 1
    assert ended.out.startswith("FAIL  vcluster")
    assert all(f"written: {path}" in ended.err for path in paths.values())
    assert paths["html"].read_text().startswith("<!DOCTYPE html>")
    assert ElementTree.parse(paths["xml"]).getroot().attrib["failures"] == "3"
    assert 'fabricproof_run_verdict{site="vcluster"} 1\n' in paths["prom"].read_text()
    with tarfile.open(paths["tar.gz"]) as tar:
        assert f"fabricproof-{SLOW}/manifest.json" in tar.getnames()


def test_drain_lines_are_commented_out(fabricproof: Command) -> None:
    out = fabricproof("report", SLOW, "--drain").out
    assert all(line.startswith("#") for line in out.splitlines())
    assert (
        f'# scontrol update NodeName=vc1 State=DRAIN Reason="fabricproof {SLOW}: '
        'rail1 on vc1 runs at 100 of 200 Mb/s"\n'
    ) in out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nowhere"], 66, "no run 'nowhere': expected a run's identity"),
        (["2031-01-01"], 66, "no run '2031-01-01'"),
        (["firmware=99"], 2, "firmware"),
        ([NEWEST, "no-such-label"], 2, "no-such-label"),
        ([NEWEST, NEWEST], 2, "run"),
        ([NEWEST, "2031-01-01"], 6, "an empty side"),
        (["--json", "--drain"], 2, "leave --drain out"),
        (["-o", "report.pdf"], 2, "no such kind of file"),
        (["--site", "nowhere"], 66, "nowhere"),
    ],
)
def test_bad_input_is_one_message(
    arguments: list[str], status: int, words: str, fabricproof: Command
) -> None:
    ended = fabricproof("report", *arguments)
    assert ended.status == status
    assert words in ended.err
    assert ended.out == ""


@pytest.mark.parametrize("name", ["r.html", "r.xml", "r.prom", "r.tar.gz"])
def test_a_file_that_cannot_be_written_is_one_message(
    name: str, place: Path, fabricproof: Command
) -> None:
    ended = fabricproof("report", SLOW, "-o", place / "gone" / name)
    assert ended.status == 74
    assert f"{place / 'gone' / name}: cannot write" in ended.err
    assert "FAIL" in ended.out.splitlines()[0], "the verdict is told all the same"


def test_one_file_that_cannot_be_written_keeps_no_other_from_being_written(
    place: Path, fabricproof: Command
) -> None:
    gone = [place / "gone" / name for name in ("r.html", "b.tar.gz")]
    ended = fabricproof(
        *("report", SLOW, "-o", gone[0], "-o", place / "p.prom"),
        *("-o", place / "r.xml", "--output", gone[1]),
    )
    assert ended.status == 74
    assert all(f"{path}: cannot write" in ended.err for path in gone)
    assert f"written: {place / 'p.prom'}\n" in ended.err
    assert ElementTree.parse(place / "r.xml").getroot().attrib["failures"] == "3"
    assert (place / "p.prom").exists()
    assert f"written: {gone[0]}" not in ended.err


def test_two_files_of_a_kind_are_refused(place: Path, fabricproof: Command) -> None:
    """Which of them would be meant nobody can say."""
    ended = fabricproof("report", SLOW, "-o", place / "r.html", "-o", place / "s.html")
    assert ended.status == 2
    assert "two files of .html" in ended.err
    assert list(place.iterdir()) == []


def test_no_run_yet_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    monkeypatch.setenv("FABRICPROOF_PERFLOGS", str(tmp_path / "empty"))
    ended = fabricproof("report")
    assert ended.status == 66
    assert "nothing was run on this site yet" in ended.err


def test_damaged_records_are_named_with_their_line(tmp_path: Path, fabricproof: Command) -> None:
    path = tmp_path / "perflogs" / "vcluster" / "compute" / "records.jsonl"
    with path.open("a") as file:
        file.write("rubbish\n")
    ended = fabricproof("report")
    assert ended.status == 65
    assert f"{path}:" in ended.err
    assert "damaged record" in ended.err


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "perflogs" / "vcluster" / "compute" / "records.jsonl"


def _refuse(monkeypatch: pytest.MonkeyPatch, name: str, below: Path) -> None:
    """Have a method of all paths refuse those below a folder, and the folder itself."""
    real = getattr(Path, name)

    def refusing(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.is_relative_to(below):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, name, refusing)


@pytest.mark.parametrize(
    "command", [["report"], ["report", "--drain"], ["preflight"]], ids=" ".join
)
def test_what_cannot_be_read_is_not_said_to_be_unwritable(
    command: list[str], records: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    """It was 74, a full disk; `runs` said 66 of the same file."""
    _refuse(monkeypatch, "open", records.parents[2])
    ended = fabricproof(*command)
    assert ended.status == 66
    assert "cannot be read: Permission denied" in ended.err
    assert str(records.parents[1]) in ended.err


@pytest.mark.parametrize("command", [["report"], ["baseline", "list"]], ids=" ".join)
def test_a_partition_that_cannot_be_read_is_not_said_to_be_empty(
    command: list[str], records: Path, monkeypatch: pytest.MonkeyPatch, fabricproof: Command
) -> None:
    _refuse(monkeypatch, "iterdir", records.parent)
    ended = fabricproof(*command)
    assert ended.status == 66
    assert f"{records.parent}: cannot be read: Permission denied" in ended.err
