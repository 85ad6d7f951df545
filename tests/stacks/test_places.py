"""Where programs are, what environment a stack needs, how modules and launchers say it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.project import project_root
from fabricproof.stacks.catalog import load_catalog
from fabricproof.stacks.environment import (
    StackEnvironment,
    ports_folder,
    render_project_module,
    render_stack_module,
    stack_environment,
    write_project_module,
    write_stack_module,
)
from fabricproof.stacks.launch import find_pmi2_library, plan_launch
from fabricproof.stacks.programs import locate

STACKS = load_catalog().stacks
LMOD = Path("/usr/share/lmod/lmod/init/bash")


def _install(root: Path, name: str) -> None:
    """Put down the files that make programs be there."""
    folder = ports_folder(root / name)
    folder.mkdir(parents=True)
    (folder / "osu_bw.py").touch()
    (root / name / "bin").mkdir()
    for binary in ("IMB-MPI1", "IMB-P2P", "IMB-RMA"):
        (root / name / "bin" / binary).touch()


def test_ports_run_under_the_stacks_own_python(tmp_path: Path):
    _install(tmp_path, "openmpi5")
    argv = locate(STACKS["openmpi5"], tmp_path, "osu-mpi4py", "osu_bw").argv
    assert argv is not None
    assert str(tmp_path / "openmpi5" / "venv" / "bin" / "python") == argv[0]
    assert argv[-1].endswith("share/osu-mpi4py/osu_bw.py")


def test_imb_serves_intel_mpi_and_mpich_but_not_open_mpi(tmp_path: Path):
    _install(tmp_path, "intelmpi")
    binary = str(tmp_path / "intelmpi" / "bin" / "IMB-MPI1")
    for name in ("intelmpi", "mpich5"):
        assert (binary, "PingPong") == locate(STACKS[name], tmp_path, "imb", "PingPong").argv
    refused = locate(STACKS["openmpi5"], tmp_path, "imb", "PingPong")
    assert refused.argv is None
    assert "another ABI" in refused.reason


def test_p2p_benchmarks_are_told_from_their_namesakes(tmp_path: Path):
    _install(tmp_path, "intelmpi")
    argv = locate(STACKS["intelmpi"], tmp_path, "imb", "P2P/PingPong").argv
    assert (str(tmp_path / "intelmpi" / "bin" / "IMB-P2P"), "PingPong") == argv


@pytest.mark.parametrize(
    ("suite", "program", "reason"),
    [
        ("osu-mpi4py", "osu_mbw_mr", "no port of it"),
        ("osu-mpi4py", "osu_bw", "not installed: fabricproof stack install mpich5"),
        ("imb", "PingPong", "fabricproof stack install intelmpi"),
        ("imb", "osu_bw", "no IMB binary has osu_bw"),
        ("osu", "osu_bw", "build it with Spack"),
    ],
)
def test_what_is_not_there_has_a_reason(tmp_path: Path, suite: str, program: str, reason: str):
    located = locate(STACKS["mpich5"], tmp_path, suite, program)
    assert located.argv is None
    assert reason in located.reason


def test_a_wheel_stack_goes_first_in_every_path():
    environment = stack_environment(STACKS["intelmpi"], Path("/s/intelmpi"))
    applied = environment.applied_to({"PATH": "/usr/bin", "HOME": "/root"})
    assert applied["PATH"] == "/s/intelmpi/bin:/usr/bin"
    assert applied["LD_LIBRARY_PATH"] == "/s/intelmpi/lib"
    assert applied["FI_PROVIDER_PATH"] == "/s/intelmpi/lib"
    assert applied["MPI4PY_LIBMPI"] == "/s/intelmpi/lib/libmpi.so.12"
    assert applied["HOME"] == "/root"


def test_the_distributions_mpi_changes_no_path_and_no_prefix():
    environment = stack_environment(STACKS["openmpi4"], Path("/s/openmpi4"))
    assert environment.prepend == {}
    assert environment.settings["MPI4PY_LIBMPI"] == "libmpi.so.40"
    assert "OPAL_PREFIX" not in environment.settings
    wheel = stack_environment(STACKS["openmpi5"], Path("/s/openmpi5"))
    assert wheel.settings["OPAL_PREFIX"] == "/s/openmpi5"


def test_the_python_of_a_stack_is_never_put_on_path():
    for name, stack in STACKS.items():
        path = stack_environment(stack, Path("/s") / name).prepend.get("PATH", "")
        assert "venv" not in path


def test_nothing_to_apply_changes_nothing():
    assert StackEnvironment().applied_to({"A": "1"}) == {"A": "1"}


def test_modules_exclude_each_other_and_quote_what_they_set():
    text = render_stack_module(STACKS["openmpi5"], Path('/s/a "b"\\c'))
    assert 'family("mpi")' in text
    assert 'setenv("OPAL_PREFIX", "/s/a \\"b\\"\\\\c")' in text
    assert "family" not in render_project_module(Path("/p"))


@pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed")
def test_lmod_loads_and_swaps_the_modules_in_a_plain_script(tmp_path: Path):
    for name in ("openmpi5", "mpich5"):
        write_stack_module(STACKS[name], tmp_path)
    write_project_module(tmp_path)
    script = f"""
        . {LMOD}; module use {tmp_path}/modulefiles
        module load fabricproof openmpi5
        echo "$OPAL_PREFIX:$FABRICPROOF_STACK:$(command -v reframe)"
        module load mpich5 2>/dev/null
        echo "$OPAL_PREFIX:$FABRICPROOF_STACK:$MPI4PY_MPIABI"
    """
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert [f"{tmp_path}/openmpi5:openmpi5:{project_root()}/bin/reframe", ":mpich5:mpich"] == (
        done.stdout.split()
    )


def test_each_family_is_started_with_the_pmi_it_speaks():
    assert plan_launch("openmpi").options == ("--mpi=pmix",)
    assert plan_launch("mpich").options == ("--mpi=pmi2",)
    intel = plan_launch("intelmpi", pmi2_library="/l/libpmi2.so.0")
    assert intel.options == ("--mpi=pmi2",)
    assert intel.environment == {"I_MPI_PMI_LIBRARY": "/l/libpmi2.so.0"}


def test_a_familys_own_launcher_needs_no_pmi_of_slurm():
    launch = plan_launch("intelmpi", "mpiexec")
    assert (launch.launcher, launch.options, launch.environment) == ("mpirun", (), {})
    assert plan_launch("mpich", "mpirun").launcher == "mpiexec"


def test_what_cannot_start_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="unknown MPI family"):
        plan_launch("lam")
    with pytest.raises(ConfigError, match="unknown launcher"):
        plan_launch("openmpi", "prun")
    with pytest.raises(UnavailableError, match="apt-get install libpmi2-0"):
        find_pmi2_library((str(tmp_path / "libpmi2.so"),))
