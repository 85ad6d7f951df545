"""Two real ranks on this machine under each installed stack (opt in: ``pytest -m mpi``)."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fabricproof.job.commands import make_job, plan_ping_pong
from fabricproof.stacks import witness as witness_module
from fabricproof.stacks.environment import stacks_root
from fabricproof.stacks.family import path_environment
from fabricproof.stacks.launch import plan_launch
from fabricproof.stacks.wheels import (
    InstallState,
    locate,
    observe,
    stack_environment,
    stack_python,
    wheel_stacks,
)
from fabricproof.stacks.witness import read_witnesses, world_fault
from fabricproof.stacks.workload import Segment, command_lines

pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def _opted_in(request: pytest.FixtureRequest) -> None:
    """Run only where the mark is asked for by name."""
    if "mpi" not in str(request.config.option.markexpr):
        pytest.skip("opt in: pytest -m mpi")


CATALOG = wheel_stacks()
ROOT = stacks_root()
#: the distribution's mpirun may be another MPI's (alternatives); its own name is never wrong.
EXACT = {"openmpi4": "mpirun.openmpi"}
SEGMENTS = [
    Segment(sizes=(1, 64), iterations=5, warmups=1, window_size=4),
    Segment(sizes=(16384,), iterations=2, warmups=1, window_size=4),
]


def _start(name: str, command: Sequence[str], *, ranks: int = 2) -> str:
    """Start ``ranks`` ranks over the loopback interface and return what they print."""
    stack = CATALOG[name]
    if observe(stack, ROOT).state is not InstallState.INSTALLED:
        pytest.skip(f"fabricproof stack install {name}")
    net_path = path_environment(
        stack.family,
        "tcp",
        ["lo"],
        version=stack.version,
        launcher="mpirun",
        oversubscribed=True,
    )
    # Two ranks on a machine with one core are too many for Open MPI without this.
    net_path |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    environment = stack_environment(stack, ROOT / name).applied_to({**os.environ, **net_path})
    launcher = EXACT.get(name) or plan_launch(stack.family, "mpirun").launcher
    done = subprocess.run(
        [launcher, "-n", str(ranks), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CATALOG)
def test_the_pinned_mpi_answers_two_ranks_of_one_world(name: str):
    python = str(stack_python(ROOT / name))
    out = _start(name, [python, "-EsP", str(witness_module.__file__)])
    witnesses = read_witnesses(out)
    assert world_fault(witnesses, num_ranks=2, num_nodes=1) is None
    assert all(CATALOG[name].answers[:9] in each.library for each in witnesses)


@pytest.mark.parametrize("program", ["osu_bw", "osu_latency", "osu_allgather"])
@pytest.mark.parametrize("name", CATALOG)
def test_a_port_prints_the_rows_it_was_told(name: str, program: str):
    argv = locate(CATALOG[name], ROOT, "osu-mpi4py", program).argv or ("absent",)
    (line,) = command_lines("osu-mpi4py", program, argv, SEGMENTS)
    lines = _start(name, line).splitlines()
    assert [row.split()[0] for row in lines if not row.startswith("#")] == ["1", "64", "16384"]
    assert len([row for row in lines if row.startswith("#")]) == 2


@pytest.mark.parametrize("name", ["intelmpi", "mpich5"])
def test_imb_runs_on_both_mpis_of_its_abi(name: str):
    argv = locate(CATALOG[name], ROOT, "imb", "PingPong").argv or ("absent",)
    effort = plan_ping_pong(
        max_size=2048, rate_mb_s=1e3, latency_us=10, seconds=1, sizes=(1024, 2048)
    )
    (line,) = make_job("imb", "PingPong", argv, replace(effort, iterations=12)).commands
    rows = [row.split() for row in _start(name, line).splitlines() if row.startswith(" ")]
    assert [row[:2] for row in rows if row[0].isdigit()] == [["1024", "12"], ["2048", "12"]]


def test_the_library_that_imb_loads_is_the_stacks_own():
    argv = locate(CATALOG["mpich5"], ROOT, "imb", "PingPong").argv or ("absent",)
    stack = CATALOG["mpich5"]
    environment = stack_environment(stack, ROOT / "mpich5").applied_to(dict(os.environ))
    ldd = subprocess.run(
        ["ldd", argv[0]], env=environment, capture_output=True, text=True, check=True
    )
    assert f"libmpi.so.12 => {ROOT}/mpich5/lib/libmpi.so.12" in ldd.stdout
