"""What the model leaves is what a job leaves: every file is read by the product without a word."""

from __future__ import annotations

import random

import pytest

from fabricproof.benchmarks.parsers import parse_text
from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.disturbance import read_other_jobs
from fabricproof.job.evidence.leg_folder import read_ranks, read_status, read_table
from fabricproof.job.outcome import judge_leg
from proof.machine.model import SOCKETS, VERBS, ModelMachine, NoiseKind
from proof.machine.night import CHECKS, legs_of
from proof.machine.scene import Scene


def machine(fabric, noise=NoiseKind.LOGNORMAL, seed=1):
    return ModelMachine(
        fabric=fabric, nodes=("n01", "n02"), chance=random.Random(seed), noise=noise
    )


def played(tmp_path, fabric, leg, **changes):
    made = machine(fabric)
    Scene(machine=made, leg=leg, nodes=made.nodes, **changes).play(tmp_path)
    (folder,) = (tmp_path / "legs").iterdir()
    return folder


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("fabric", [VERBS, SOCKETS], ids=lambda each: each.name)
def test_its_files_are_read_and_its_numbers_pass(tmp_path, fabric, check):
    leg = legs_of(check, fabric, ("n01", "n02"))[0]
    folder = played(tmp_path, fabric, leg)
    ranks, trouble = read_ranks(folder)
    assert trouble is None
    assert len(ranks) == 2 * len(leg.commands)
    assert read_status(folder) == 0
    assert read_table(folder, leg)[1] is None
    assert read_other_jobs(folder, ["n01"]) == ()
    outcome = judge_leg(tmp_path, leg)
    assert outcome.report.verdict is Verdict.PASS
    assert {each.share for each in outcome.attempts[0].disturbances.found} == {0.0}


def test_tables_are_those_of_the_programs(tmp_path):
    folder = played(tmp_path, VERBS, legs_of("ImbPingPong", VERBS, ("n01", "n02"))[0])
    (table,) = parse_text((folder / "stdout").read_text(), "x")
    assert (table.suite, table.program, table.version) == ("imb", "PingPong", "2021.11")


def test_counters_go_on_from_leg_to_leg(tmp_path):
    made = machine(SOCKETS)
    leg, other, *_ = legs_of("OsuLatency", SOCKETS, made.nodes)
    for each in (leg, other):
        Scene(machine=made, leg=each, nodes=made.nodes).play(tmp_path)
    first, _ = read_ranks(tmp_path / "legs" / "eth0.1")
    second, _ = read_ranks(tmp_path / "legs" / "eth1.1")
    assert second[0].before["eth0"]["tx_bytes"] == first[1].after["eth0"]["tx_bytes"]


@pytest.mark.parametrize("noise", NoiseKind)
def test_noise_only_ever_costs(noise):
    made = machine(VERBS, noise)
    costs = [made.number_cost() for _ in range(2000)]
    assert min(costs) >= 0
    assert sum(costs) / len(costs) < 0.05
