"""``fabricproof stack``: what it prints and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ExitStatus


def test_list_as_json_has_one_object_per_stack(fabricproof: Callable[..., Any], tmp_path: Path):
    ended = fabricproof("stack", "list", "--json", "--root", tmp_path)
    records = json.loads(ended.out)
    assert [each["name"] for each in records] == ["openmpi5", "mpich5", "intelmpi", "openmpi4"]
    assert {"absent"} == {each["state"] for each in records}
    assert str(tmp_path / "mpich5") == records[1]["prefix"]


def test_list_for_people_has_one_line_per_stack(fabricproof: Callable[..., Any], tmp_path: Path):
    ended = fabricproof("stack", "list", "--root", tmp_path)
    assert len(ended.out.splitlines()) == 4
    assert "absent" in ended.out


def test_an_unknown_stack_is_one_message_and_a_config_status(
    fabricproof: Callable[..., Any], tmp_path: Path
):
    ended = fabricproof("stack", "install", "mpi9", "--root", tmp_path)
    assert ended.status == ExitStatus.CONFIG
    assert len(ended.err.splitlines()) == 1


def test_removing_what_is_not_there_says_so(fabricproof: Callable[..., Any], tmp_path: Path):
    ended = fabricproof("stack", "remove", "mpich5", "--root", tmp_path)
    assert (ended.status, ended.out) == (0, "mpich5: was not installed\n")


def test_json_may_stand_before_the_name_and_after_it(
    fabricproof: Callable[..., Any], tmp_path: Path
):
    where = ("--json", "--root", tmp_path)
    for words in (("remove", "mpich5", *where), (*where, "remove", "mpich5")):
        ended = fabricproof("stack", *words)
        assert json.loads(ended.out) == [{"name": "mpich5", "removed": False}]
