"""A container stack: it is entered as in a job, and what is said of that."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from doctor_facts import facts

from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes.doctor.examination import diagnose
from fabricproof.nodes.doctor.facts import Answer, Facts
from fabricproof.nodes.doctor.probes import CONTAINER, node_probes
from fabricproof.stacks.container import Container, enter

APPTAINER = enter("apptainer", "/images/osu.sif")


def _facts(
    output: str, status: int = 0, container: Container = APPTAINER, *, is_node: bool = True
) -> Facts:
    base = facts("intelmpi", container=container, kind="container")
    answer = Answer(command="apptainer", output=output, status=status)
    return replace(base, container=answer, node=replace(base.node, host="n1", is_node=is_node))


def _said(seen: Facts) -> Finding:
    (found,) = (each for each in diagnose(seen) if each.fact == "container")
    return found


def test_an_image_that_starts_with_all_rails_is_ok() -> None:
    found = _said(_facts("root 8:2\nroot 7:1\n"))
    assert (found.verdict, found.text) == (Verdict.PASS, "a program starts in /images/osu.sif")


def test_a_container_without_devices_is_an_error_with_what_mends_it() -> None:
    found = _said(_facts("root 8:2\nroot 7:1\nlacks /dev/infiniband/uverbs0 that it may open\n"))
    assert found.verdict is Verdict.FAIL
    assert found.text == "the container on n1 has no /dev/infiniband/uverbs0 that it may open"
    assert found.next_step.startswith("bind /dev/infiniband and /sys into it")


def test_a_login_node_without_devices_is_no_error() -> None:
    lines = "root 8:2\nroot 7:1\nlacks interface rail0\n"
    found = _said(_facts(lines, is_node=False))
    assert (found.verdict, found.text) == (
        Verdict.PASS,
        "a program starts in /images/osu.sif; no interface rail0 on this machine",
    )


@pytest.mark.parametrize("lines", ["root 8:2\nroot 8:2\n", "root 8:2\n"])
def test_a_program_that_is_in_no_image_is_an_error(lines: str) -> None:
    assert _said(_facts(lines)).verdict is Verdict.FAIL


def test_a_runtime_that_is_not_there_is_an_error() -> None:
    found = _said(_facts("root 8:2\nbash: apptainer: command not found\n", 127))
    assert found.verdict is Verdict.MISSING
    assert "apptainer does not start /images/osu.sif" in found.text
    assert "command not found" in found.text


def test_pyxis_is_not_started_and_nothing_is_claimed() -> None:
    pyxis = enter("pyxis", "reg#osu:7")
    assert _said(_facts("--container-image=", container=pyxis)).verdict is Verdict.UNJUDGED
    found = _said(_facts("", 1, container=pyxis))
    assert found.text.startswith("Pyxis does not start reg#osu:7")


def test_the_probe_enters_as_a_job_does(tmp_path: Path) -> None:
    """With a runtime that runs the words as they stand: no image, and so one root twice."""
    container = Container(image="none", inner=("env", "FOLDER={folder}"))
    subject = facts("intelmpi", container=container).subject
    (probe,) = (each for each in node_probes(subject) if each.name == CONTAINER)
    done = subprocess.run(
        ["bash", "-c", probe.command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, *lacks = done.stdout.splitlines()
    assert first == second
    assert first.startswith("root ")
    assert lacks == ["lacks interface rail0", "lacks interface rail1"]
    assert not list(tmp_path.iterdir())
