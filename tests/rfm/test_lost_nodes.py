"""Which nodes Slurm lost, asked of a pretended ``sinfo``, and the words of a job that ended so."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.records import QuantityRecord
from fabricproof.job.run.join import _complaint
from fabricproof.rfm.slurm_nodes import lost_nodes


def _sinfo(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "sinfo"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_nodes_that_are_down_are_lost_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sinfo(tmp_path, "printf 'vc1 idle\\nvc2 down*\\nvc3 drain\\n'", monkeypatch)
    assert lost_nodes(["vc1", "vc2", "vc3"]) == ("vc2",)


@pytest.mark.parametrize("body", ["exit 1", "printf 'down\\n'", "true"])
def test_nothing_is_lost_where_slurm_says_nothing(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sinfo(tmp_path, body, monkeypatch)
    assert lost_nodes(["vc1"]) == ()


def test_a_job_without_nodes_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sinfo(tmp_path, "echo vc1 down", monkeypatch)
    assert lost_nodes([]) == ()


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            {"job_state": "NODE_FAIL", "lost_nodes": ["vc2"]},
            "; the job ended NODE_FAIL: Slurm lost vc2",
        ),
        ({"job_state": "NODE_FAIL"}, "; the job ended NODE_FAIL"),
        ({"job_state": "COMPLETED", "lost_nodes": ["vc2"]}, ""),
    ],
)
def test_a_job_says_which_node_it_lost(record: dict[str, object], words: str) -> None:
    quantity = {"quantity_verdict": "FAIL", "quantity_reason": "cut off", **record}
    assert _complaint([QuantityRecord.read(quantity)]).partition("cut off")[2] == words
