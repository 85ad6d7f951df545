"""The command: one line for bad input, a status for scripts, JSON for machines."""

import json
import re
import subprocess

import pytest
from click.testing import CliRunner
from doctor_facts import COMPUTE, facts

from fabricproof.cli.site import doctor, stack
from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.nodes.doctor.examination import examine, make_shell, run_command, start_world
from fabricproof.nodes.doctor.facts import Answer


@pytest.fixture
def answered(monkeypatch):
    """Let every examination end with these facts."""

    def give(seen):
        monkeypatch.setattr(doctor, "examine", lambda *_, **__: seen)

    return give


def run(*arguments):
    return CliRunner().invoke(stack.command, ["doctor", *arguments, "--site", "vcluster"])


def test_healthy_ends_with_0(answered):
    answered(facts("openmpi5"))
    result = run("openmpi5")
    assert result.exit_code == 0
    assert "status 0" in result.output
    assert "is forced by" not in result.output
    assert re.search(r"\(\d+ of them not shown, --all shows them\); status 0", result.output)
    whole = run("openmpi5", "--all").output
    assert "is forced by" in whole
    assert "not shown" not in whole


def test_an_error_ends_with_78_in_json_too(answered):
    answered(facts("openmpi5", options=("--mpi=pmi2",)))
    result = run("openmpi5", "--json")
    assert result.exit_code == 78
    said = json.loads(result.output)
    assert (said["verdict"], said["status"]) == ("FAIL", 78)
    assert "FAIL" in {each.get("verdict") for each in said["findings"]}
    assert {each["name"] for each in said["net_paths"]} >= {"eth0/rail0", "eth0/rail1"}


def test_a_stack_that_the_site_lacks():
    assert isinstance(run("nosuch").exception, ConfigError)


def test_no_node_is_said_in_one_line():
    busy = Answer(command="srun", output="srun: error: Requested nodes are busy\n", status=1)
    local = COMPUTE.model_copy(update={"scheduler": "local"})
    subject = facts("openmpi5", partition=local).subject
    with pytest.raises(UnavailableError, match="Requested nodes are busy"):
        examine(subject, lambda *_: busy, lambda *_: busy)


def test_a_command_that_hangs_is_ended_with_its_children():
    answer = run_command(["bash", "-s"], {"PATH": "/usr/bin:/bin"}, 0.3, "sleep 61.25 & sleep 60")
    assert answer.status == 124
    left = subprocess.run(["pgrep", "-f", "sleep 61.25"], capture_output=True, check=False)
    assert left.stdout == b""


def test_a_launcher_that_is_not_there_is_no_traceback():
    shell = make_shell({"PATH": "/nonexistent"}, ["srun"])
    assert shell("true", 5).fault == "no such command"


def test_a_stack_without_a_program_cannot_be_run(tmp_path):
    subject = facts("openmpi5").subject
    with pytest.raises(UnavailableError, match="nothing to start"):
        start_world(subject, {}, tmp_path, wait_seconds=1)
