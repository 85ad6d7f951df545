"""Stacks of wheels: pinned, whole or not at all, answering as pinned, laid out as oneAPI too."""

import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.stacks import wheels as room
from fabricproof.stacks.environment import ROOT_VARIABLE, stacks_root
from fabricproof.stacks.family import FAMILIES
from fabricproof.stacks.wheels import (
    DATA,
    InstallState,
    WheelStack,
    find_wheels,
    install,
    lay_out,
    locate,
    observe,
    ports_folder,
    remove,
    stack_environment,
    stack_python,
    wheel_stacks,
    write_stack_module,
)

STACK = find_wheels("mpich5")
LMOD = Path("/usr/share/lmod/lmod/init/bash")


def _quiet(_line: str) -> None:
    """Report nothing."""


def test_every_wheel_is_pinned_and_the_ports_are_of_the_same_mpi4py():
    stacks = wheel_stacks()
    assert list(stacks) == ["openmpi5", "mpich5", "intelmpi", "openmpi4"]
    assert [each.name for each in stacks.values() if each.is_system] == ["openmpi4"]
    assert {each.family for each in stacks.values()} <= set(FAMILIES)
    assert all("==" in pin for each in stacks.values() for pin in (*each.wheels, each.mpi4py[0]))
    version = STACK.mpi4py[0].partition("==")[2]
    assert f"mpi4py-{version}-ports.zip" == STACK.mpi4py[1]
    assert (DATA.parent / STACK.mpi4py[1]).is_file()
    with pytest.raises(ConfigError, match=r"unknown stack.*openmpi5.*'mpi6'"):
        find_wheels("mpi6")


def test_the_environment_moves_the_stacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    assert tmp_path == stacks_root()
    monkeypatch.delenv(ROOT_VARIABLE)
    assert stacks_root().name == ".stacks"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace what needs the network; the list tells what was asked for."""
    calls: list[str] = []

    def unpack(_stack: WheelStack, prefix: Path, _downloads: Path) -> None:
        stack_python(prefix).parent.mkdir(parents=True)
        stack_python(prefix).touch()

    monkeypatch.setattr(room, "_download", lambda wheels, _: calls.append(" ".join(wheels)))
    monkeypatch.setattr(room, "_install_wheels", unpack)
    monkeypatch.setattr(room, "_answer", lambda _stack, _prefix: "MPICH Version: 5.0.2")
    return calls


def test_install_is_instant_where_it_is_there_and_replaces_what_is_stale(
    fake: list[str], tmp_path: Path
):
    assert InstallState.ABSENT is observe(STACK, tmp_path).state
    entry = install(STACK, tmp_path, _quiet)
    assert (entry.state, entry.answer) == (InstallState.INSTALLED, "MPICH Version: 5.0.2")
    ports = {path.name for path in ports_folder(entry.prefix).iterdir()}
    assert {"osu_bw.py", "osu_latency.py", "osu_alltoall.py", "LICENSE.rst"} < ports
    install(STACK, tmp_path, _quiet)
    assert len(fake) == 1
    newer = dataclasses.replace(STACK, wheels=("mpich==5.0.3",))
    assert InstallState.STALE is observe(newer, tmp_path).state
    assert InstallState.INSTALLED is install(newer, tmp_path, _quiet).state
    assert "mpich==5.0.3" in fake[1]


def test_a_failed_installation_leaves_what_was_there(
    fake: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    left = tmp_path / f".partial-mpich5-{os.getpid() + 1}" / "lib"
    left.mkdir(parents=True)
    install(STACK, tmp_path, _quiet)
    assert not left.exists()

    def fail(*_arguments: object) -> str:
        raise UnavailableError("the index is down")

    monkeypatch.setattr(room, "_answer", fail)
    with pytest.raises(UnavailableError):
        install(dataclasses.replace(STACK, wheels=("mpich==5.0.3",)), tmp_path, _quiet)
    assert InstallState.INSTALLED is observe(STACK, tmp_path).state
    assert not list(tmp_path.glob(".partial-*"))


@pytest.mark.parametrize("stamp", ["", "[]", "{broken"])
def test_a_damaged_stamp_counts_as_absent(fake: list[str], tmp_path: Path, stamp: str):
    install(STACK, tmp_path, _quiet)
    (tmp_path / "mpich5" / "stamp.json").write_text(stamp)
    assert InstallState.ABSENT is observe(STACK, tmp_path).state
    assert InstallState.INSTALLED is install(STACK, tmp_path, _quiet).state


def test_remove_takes_the_stack_and_its_module_and_keeps_downloads(fake: list[str], tmp_path: Path):
    install(STACK, tmp_path, _quiet)
    module = tmp_path / "modulefiles" / "mpich5" / "5.0.2.lua"
    assert module.is_file()
    assert remove(STACK, tmp_path, _quiet)
    assert not (tmp_path / "mpich5").exists()
    assert not module.exists()
    assert (tmp_path / "downloads").is_dir()
    assert not remove(STACK, tmp_path, _quiet)


def test_pips_failure_is_its_own_error_line():
    failure = room._failure("downloading x", "WARNING: a\nERROR: No matching distribution\n")
    assert "downloading x failed: ERROR: No matching distribution" in str(failure)
    full = room._failure("installing x", "OSError: [Errno 28] No space left on device")
    assert isinstance(full, OutputError)


def test_another_mpi_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPAL_PREFIX", "/other")
    python = stack_python(tmp_path)
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "Open MPI v4.1.4$OPAL_PREFIX"\n')
    python.chmod(0o755)
    with pytest.raises(UnavailableError, match=r"another MPI than MPICH 5\.0\.2.*v4\.1\.4'"):
        room._answer(STACK, tmp_path)
    python.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(UnavailableError, match="apt-get install openmpi-bin libopenmpi3"):
        room._answer(find_wheels("openmpi4"), tmp_path)


def test_a_stack_goes_first_in_every_path_and_its_python_in_none():
    for stack in wheel_stacks().values():
        environment = stack_environment(stack, Path("/s/x"))
        applied = environment.applied_to({"PATH": "/usr/bin", "HOME": "/root"})
        first = "" if stack.is_system else "/s/x/bin:"
        assert applied["PATH"] == f"{first}/usr/bin"
        assert applied.get("LD_LIBRARY_PATH") == (None if stack.is_system else "/s/x/lib")
        assert applied["HOME"] == "/root"
        inside = stack.library if stack.is_system else f"/s/x/{stack.library}"
        assert applied["MPI4PY_LIBMPI"] == inside
        assert applied.get("OPAL_PREFIX") == ("/s/x" if stack.name == "openmpi5" else None)


@pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed")
def test_lmod_loads_and_swaps_the_modules_in_a_plain_script(tmp_path: Path):
    root = tmp_path / 'a "b"\\c'
    for name in ("openmpi5", "mpich5"):
        write_stack_module(find_wheels(name), root)
    script = f"""
        . {LMOD}; module use '{root}/modulefiles'
        module load openmpi5; echo "$OPAL_PREFIX:$FABRICPROOF_STACK"
        module load mpich5 2>/dev/null
        echo "$OPAL_PREFIX:$FABRICPROOF_STACK:$MPI4PY_MPIABI"
    """
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.splitlines() == [f"{root}/openmpi5:openmpi5", ":mpich5:mpich"]


def _put(root: Path, name: str) -> None:
    """Put down the files that make programs be there."""
    folder = ports_folder(root / name)
    folder.mkdir(parents=True)
    (folder / "osu_bw.py").touch()
    (root / name / "bin").mkdir()
    for binary in ("IMB-MPI1", "IMB-P2P", "IMB-RMA"):
        (root / name / "bin" / binary).touch()


def test_programs_are_found(tmp_path: Path):
    _put(tmp_path, "openmpi5")
    _put(tmp_path, "intelmpi")
    argv = locate(find_wheels("openmpi5"), tmp_path, "osu-mpi4py", "osu_bw").argv
    assert argv is not None
    assert str(stack_python(tmp_path / "openmpi5")) == argv[0]
    assert argv[-1].endswith("share/osu-mpi4py/osu_bw.py")
    folder = tmp_path / "intelmpi" / "bin"
    for name in ("intelmpi", "mpich5"):
        found = locate(find_wheels(name), tmp_path, "imb", "PingPong").argv
        assert found == (str(folder / "IMB-MPI1"), "PingPong")
    p2p = locate(find_wheels("intelmpi"), tmp_path, "imb", "P2P/PingPong").argv
    assert p2p == (str(folder / "IMB-P2P"), "PingPong")


@pytest.mark.parametrize(
    ("name", "suite", "program", "reason", "lost"),
    [
        ("mpich5", "osu-mpi4py", "osu_mbw_mr", "no port of osu_mbw_mr", False),
        ("mpich5", "osu-mpi4py", "osu_bw", "fabricproof stack install mpich5", True),
        ("mpich5", "imb", "PingPong", "fabricproof stack install intelmpi", False),
        ("intelmpi", "imb", "PingPong", "fabricproof stack install intelmpi", True),
        ("openmpi5", "imb", "PingPong", "another ABI", False),
        ("mpich5", "imb", "osu_bw", "no IMB binary has osu_bw", False),
        ("mpich5", "osu", "osu_bw", "build it with Spack", False),
        ("openmpi5", "hpcc", "hpcc", "only the distribution's", False),
    ],
)
def test_what_is_not_there_has_a_reason(
    tmp_path: Path, name: str, suite: str, program: str, reason: str, lost: bool
):
    located = locate(find_wheels(name), tmp_path, suite, program)
    assert (located.argv, located.lost) == (None, lost)
    assert reason in located.reason


def test_the_distributions_open_mpi_has_the_distributions_hpcc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stack = find_wheels("openmpi4")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert locate(stack, tmp_path, "hpcc", "hpcc").argv is None
    (tmp_path / "hpcc").touch(mode=0o755)
    assert locate(stack, tmp_path, "hpcc", "hpcc").argv == (str(tmp_path / "hpcc"),)


SCRIPT = """\
#!/bin/sh
prefix="I_MPI_SUBSTITUTE_INSTALLDIR"
exec_prefix=__EXEC_PREFIX_TO_BE_FILLED_AT_INSTALL_TIME__
echo "$prefix$exec_prefix"
"""


def test_intels_wheels_are_laid_out_as_oneapi(tmp_path: Path):
    prefix, final = tmp_path / ".partial-intelmpi", tmp_path / "intel mpi; $(exit) \" '"
    for folder in ("bin", "lib/mpi", "include", "etc"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "bin" / "mpicc").write_text(SCRIPT)
    (prefix / "bin" / "mpicc").chmod(0o755)
    (prefix / "bin" / "mpigcc").symlink_to("mpicc")
    (prefix / "bin" / "hydra").write_bytes(b"\x7fELF I_MPI_SUBSTITUTE_INSTALLDIR")
    (prefix / "lib" / "libmpi.so.12").write_text("library")
    lay_out(prefix, "2021.18", final)
    again = lay_out(prefix, "2021.18", final)
    assert (again / "bin" / "hydra").read_bytes() == (prefix / "bin" / "hydra").read_bytes()
    assert (prefix / "bin" / "mpicc").read_text() == SCRIPT
    prefix.rename(final)
    tree = final / "oneapi" / "mpi" / "2021.18"
    assert (tree / "lib" / "release" / "libmpi.so.12").read_text() == "library"
    assert [path for path in tree.rglob("*") if not path.exists()] == []
    text = (tree / "bin" / "mpicc").read_text()
    assert f'prefix="{tree}"\nexec_prefix={tree}\n' in text
    assert (tree / "bin" / "mpigcc").readlink() == Path("mpicc")
    script = '. "$1"/env/vars.sh; echo "$I_MPI_ROOT|$LD_LIBRARY_PATH|$PATH|$FI_PROVIDER_PATH"'
    asked = subprocess.run(
        ["bash", "-c", script, "bash", tree],
        env={"LD_LIBRARY_PATH": "/mine", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = f"{tree}|{tree}/lib:/mine|{tree}/bin:/usr/bin:/bin|{tree}/lib\n"
    assert asked.stdout == seen
