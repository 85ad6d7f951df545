"""hpcc in a folder of its own: what its wrapper writes, shows and refuses; what a run costs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.job import collective_commands as hpcc
from fabricproof.job.collective_commands import hpcc_command, hpcc_seconds, hpcc_traffic
from fabricproof.physics import Fabric, find_link
from fabricproof.physics.collective import RankLayout

SCRIPT = Path(fabricproof.job.__file__).with_name(hpcc.HPCC_FILE)

#: stands for hpcc: the first rank appends to its output, as hpcc does
PRETENDED = """#!/bin/bash
[ "$SLURM_PROCID" = 0 ] && { grep -c . hpccinf.txt; sed -n 12p hpccinf.txt; } >>hpccoutf.txt
exit ${ENDS:-0}
"""


def run(folder: Path, rank: int, ends: int = 0, program: str = PRETENDED) -> tuple[int, str]:
    pretended = folder / "pretended"
    pretended.write_text(program)
    pretended.chmod(0o755)
    ended = subprocess.run(
        ["bash", SCRIPT, pretended],
        env={
            "PATH": os.environ["PATH"],
            "FABRICPROOF_LEG": str(folder),
            "SLURM_PROCID": str(rank),
            "ENDS": str(ends),
        },
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_the_first_rank_writes_the_input_and_shows_the_output(tmp_path: Path) -> None:
    status, shown = run(tmp_path, 0)
    assert (status, shown.split()) == (0, ["36", "1", "Qs"])


def test_the_output_of_an_earlier_run_is_not_shown_again(tmp_path: Path) -> None:
    run(tmp_path, 0)
    assert run(tmp_path, 0)[1].count("36") == 1


def test_another_rank_shows_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, 1) == (0, "")


def test_a_program_that_fails_is_not_hidden(tmp_path: Path) -> None:
    assert run(tmp_path, 0, ends=7)[0] == 7
    assert run(tmp_path, 1, ends=7)[0] == 7


def test_a_program_that_leaves_nothing_is_no_success(tmp_path: Path) -> None:
    assert run(tmp_path, 0, program="#!/bin/bash\nexit 0\n")[0] == 74


def test_each_rank_is_told_the_program() -> None:
    assert hpcc_command(("/usr/bin/hpcc",)) == ("bash", "hpcc.sh", "/usr/bin/hpcc")


def test_every_node_sends_and_receives_the_least() -> None:
    assert (
        hpcc_traffic(RankLayout(num_ranks=8, ranks_per_node=2)).at_least
        == ((792_000_000, 792_000_000, 0),) * 4
    )


@pytest.mark.parametrize(("rate", "least", "most"), [("1GbE", 10, 25), ("100GbE", 6, 8)])
def test_a_run_takes_what_its_messages_take(rate: str, least: float, most: float) -> None:
    fabric = Fabric(link=find_link(rate), protocol="tcp", mtu=1500)
    seconds = hpcc_seconds(fabric, RankLayout(num_ranks=4))
    assert least < seconds < most
    assert hpcc_seconds(fabric, RankLayout(num_ranks=8, ranks_per_node=2)) > seconds


def test_more_pairs_than_fit_are_not_played() -> None:
    slow = Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500)
    hundreds = hpcc_seconds(slow, RankLayout(num_ranks=512))
    assert hundreds < hpcc_seconds(slow, RankLayout(num_ranks=4)) + 2 * hpcc.PING_PONG_SECONDS


def test_without_a_fabric_nobody_knows() -> None:
    assert hpcc_seconds(None, RankLayout(num_ranks=4)) == 0
