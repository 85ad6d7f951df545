"""Four ranks of each installed MPI on this machine, and what they really did (``pytest -m mpi``).

Open MPI says it itself: pml/monitoring counts the messages to each peer.  The others are seen on
the loopback interface, whose bytes tell the algorithms apart.
"""

import os
import subprocess
from pathlib import Path

import pytest

from fabricproof.stacks.environment import stacks_root
from fabricproof.stacks.family import path_environment
from fabricproof.stacks.launch import plan_launch
from fabricproof.stacks.wheels import (
    InstallState,
    observe,
    stack_environment,
    stack_python,
    wheel_stacks,
)
from fabricproof.tuning.knobs import Algorithm, Knobs, find_knobs

pytestmark = pytest.mark.mpi

CATALOG, ROOT = wheel_stacks(), stacks_root()
PROGRAM = Path(__file__).with_name("calls_of_a_collective.py")
LOOPBACK = Path("/sys/class/net/lo/statistics/tx_bytes")
TIMES = 20


@pytest.fixture(autouse=True)
def _opted_in(request: pytest.FixtureRequest) -> None:
    """Run only where the mark is asked for by name."""
    if "mpi" not in str(request.config.option.markexpr):
        pytest.skip("opt in: pytest -m mpi")


def knobs_of(family: str, version: str, collective: str) -> Knobs:
    knobs, reason = find_knobs(family, version, collective)
    assert knobs is not None, reason
    return knobs


def find(knobs: Knobs, algorithm: str) -> Algorithm:
    return next(each for each in knobs.algorithms if each.id == algorithm)


def start(name: str, collective: str, size: int, ranks: int, environment: dict[str, str]):
    """Run the collective on ``ranks`` ranks over the loopback interface."""
    stack = CATALOG[name]
    if observe(stack, ROOT).state is not InstallState.INSTALLED:
        pytest.skip(f"fabricproof stack install {name}")
    net_path = path_environment(
        stack.family, "tcp", ["lo"], version=stack.version, launcher="mpirun", oversubscribed=True
    )
    net_path |= {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    variables = stack_environment(stack, ROOT / name).applied_to(
        {**os.environ, **net_path, **environment}
    )
    launcher = (
        "mpirun.openmpi" if name == "openmpi4" else plan_launch(stack.family, "mpirun").launcher
    )
    python = [str(stack_python(ROOT / name)), "-EsP", str(PROGRAM)]
    return subprocess.run(
        [launcher, "-n", str(ranks), *python, collective, str(size), str(TIMES)], env=variables,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def peers_of_the_root(
    name: str, collective: str, size: int, ranks: int, environment: dict[str, str], folder: Path
) -> dict[int, int]:
    """Return the messages that rank 0 sends each peer for one call, as Open MPI counts them."""
    counts = folder / "counts"
    counts.mkdir(exist_ok=True)
    watch = {
        "OMPI_MCA_pml": "ob1,monitoring",
        "OMPI_MCA_pml_monitoring_enable": "2",
        "OMPI_MCA_pml_monitoring_enable_output": "3",
        "OMPI_MCA_pml_monitoring_filename": str(counts / "peers"),
    }
    done = start(name, collective, size, ranks, {**environment, **watch})
    assert done.returncode == 0, done.stderr
    found = {}
    for line in (counts / "peers.0.prof").read_text().splitlines():
        # I  0  2  204800 bytes  50 msgs sent ...: internal messages of rank 0 to rank 2
        words = line.split()
        if words[:2] == ["I", "0"]:
            found[int(words[2])] = int(words[5]) // TIMES
    return found


LINEAR, PIPELINE = {1: 1, 2: 1, 3: 1}, {1: 1}


@pytest.mark.parametrize("name", ["openmpi4", "openmpi5"])
def test_open_mpi_takes_the_algorithm_that_is_forced(name: str, tmp_path: Path):
    knobs = knobs_of("openmpi", CATALOG[name].version, "bcast")
    for algorithm, peers in (("1", LINEAR), ("3", PIPELINE)):
        forced = knobs.forcing(find(knobs, algorithm))
        assert peers_of_the_root(name, "bcast", 4096, 4, forced, tmp_path) == peers
        neutral = {**forced, **knobs.neutral}
        assert peers_of_the_root(name, "bcast", 4096, 4, neutral, tmp_path) == {1: 1, 2: 1}


def loopback_bytes(name: str, collective: str, size: int, ranks: int, environment) -> float:
    """Return what crosses the loopback interface for one call, in payloads of ``size``."""
    # A start with nothing to move costs some bytes as well.
    before = int(LOOPBACK.read_text())
    idle = start(name, "barrier", 0, ranks, environment)
    between = int(LOOPBACK.read_text())
    done = start(name, collective, size, ranks, environment)
    after = int(LOOPBACK.read_text())
    assert idle.returncode == done.returncode == 0, done.stderr
    return ((after - between) - (between - before)) / TIMES / size


def test_mpich_takes_the_algorithm_that_is_forced():
    """Of 4 ranks a binomial tree moves 3 payloads, scatter and ring 1 + 3."""
    knobs = knobs_of("mpich", CATALOG["mpich5"].version, "bcast")
    assert loopback_bytes("mpich5", "bcast", 1 << 19, 4, {}) == pytest.approx(3, rel=0.1)
    forced = knobs.forcing(find(knobs, "scatter_ring_allgather"))
    assert loopback_bytes("mpich5", "bcast", 1 << 19, 4, forced) == pytest.approx(4, rel=0.1)


def test_mpich_ends_where_it_cannot_take_the_forced_algorithm():
    knobs = knobs_of("mpich", CATALOG["mpich5"].version, "allgather")
    forced = knobs.forcing(find(knobs, "recursive_doubling"))
    assert start("mpich5", "allgather", 64, 4, forced).returncode == 0
    done = start("mpich5", "allgather", 64, 3, forced)
    assert done.returncode != 0
    assert "not usable" in done.stdout + done.stderr
    assert "recursive_doubling" in {each.algorithm.id for each in knobs.usable(3)[1]}


def test_intel_mpi_takes_the_preset_that_is_forced():
    """Of 4 ranks preset 1 of bcast moves 3 payloads (a tree), preset 2 moves 4 (scatter first)."""
    knobs = knobs_of("intelmpi", CATALOG["intelmpi"].version, "bcast")
    for preset, payloads in (("1", 3), ("2", 4)):
        forced = knobs.forcing(find(knobs, preset))
        moved = loopback_bytes("intelmpi", "bcast", 1 << 19, 4, forced)
        assert moved == pytest.approx(payloads, rel=0.1)


def test_intel_mpi_ends_where_it_would_fall_back():
    """Recursive doubling (allgather's preset 1) wants a power of two of ranks."""
    knobs = knobs_of("intelmpi", CATALOG["intelmpi"].version, "allgather")
    forced = knobs.forcing(find(knobs, "1"))
    assert start("intelmpi", "allgather", 64, 4, forced).returncode == 0
    assert start("intelmpi", "allgather", 64, 3, forced).returncode != 0
