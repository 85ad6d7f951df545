"""Every recorded failure of Spack becomes one clear message of the right class, and no guess."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import (
    ConfigError,
    DamagedDownloadError,
    FabricproofError,
    InterruptedBuildError,
    NeedsPrivilegeError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack.output.complaints import build_failure, complaints, read_log_tail
from fabricproof.stacks.spack.output.diagnose import BuildError, diagnose

DATA = Path(__file__).resolve().parents[2] / "data" / "spack"
RUNS = json.loads((DATA / "runs.json").read_text())
FAILED = sorted(name for name, run in RUNS.items() if run["status"])


def output_of(name: str) -> str:
    return (DATA / f"{name}.out").read_text()


def diagnosed(name: str, **changed: object) -> FabricproofError:
    commands = ("concretize", "mirror create", "buildcache push", "install")
    step = next(each for each in commands if each in RUNS[name]["command"])
    facts = {"exit_status": RUNS[name]["status"], **changed}
    return diagnose(step, output_of(name), **facts)  # type: ignore[arg-type]


DISK = (OutputError, 74, "the disk is full, or the quota used up: got ")
READ_ONLY = (OutputError, 74, "Spack cannot write there: got ")
DAMAGED = (DamagedDownloadError, 65, "a download is not what its recipe promises: got sha256 ")
NO_DOWNLOAD = (UnavailableError, 69, "what Spack needs could not be downloaded: got ")
NO_RECIPES = (UnavailableError, 69, "package recipes are not there, or are not for this Spack")
REFUSED = (ConfigError, 78, "Spack refuses the recipe, the options or the site's configuration")
NOT_BUILT = (BuildError, 69, " could not be built: got ")
UNKNOWN = (BuildError, 69, "for a reason that fabricproof does not know")

#: recording -> class, status and problem, what the message must say beside.
EXPECTED: dict[str, tuple[tuple[type[FabricproofError], int, str], str]] = {
    "no-sources": (NO_DOWNLOAD, "All fetchers failed for spack-stage-compiler-wrapper-1.1.0-"),
    "no-binary": (NO_DOWNLOAD, "No binary found when cache-only was specified"),
    "no-solver": (NO_DOWNLOAD, 'cannot bootstrap the "clingo" Python module'),
    "no-solver-offline": (NO_DOWNLOAD, "https://mirror.spack.io"),
    "mirror-offline": (NO_DOWNLOAD, "Failed downloads: compiler-wrapper@1.1.0 intel-mpi-bench"),
    "checksum-cut-archive": (DAMAGED, "f021b4bf2d07c505954ea1dc78f95ea23a9c62169a866fec93643d7917"),
    "download-half": (DAMAGED, "compiler-wrapper-1.1.0.tar.gz"),
    "push-disk-full": (DISK, "gcc-runtime@12.2.0/hjeguoo"),
    "disk-full-prefix": (DISK, "OSError: [Errno 28] No space left on device"),
    "disk-full-compile": (DISK, "/usr/bin/ld: final link failed"),
    "disk-full-stage": (DISK, "Cannot write: No space left on device"),
    "disk-full-environment": (DISK, "[Errno 28]"),
    "read-only": (READ_ONLY, "'/stacks/spack/install'"),
    "lock-not-ours": (READ_ONLY, "/stacks/spack/install/.spack-db/prefix_lock"),
    "no-permission": (
        (NeedsPrivilegeError, 77, "Spack may not write or read there"), "/stacks/spack/install"),
    "interrupted": ((InterruptedBuildError, 130, "spack install was interrupted"), "same command"),
    "killed-spack": (
        (BuildError, 69, "Spack was killed: got signal 9 (SIGKILL)"), "next: look whether"),
    "terminated-spack": (
        (BuildError, 69, "got signal 15 (SIGTERM)"), "next: see that no build of it"),
    "killed-build": ((BuildError, 69, "the build was killed"), "fewer jobs"),
    "killed-compiler": (
        (BuildError, 69, "the compiler was killed while"), "spack-build-out.txt:52: "),
    "beside-orphan": (NOT_BUILT, "[Errno 17] File exists"),
    "compile-error": (
        NOT_BUILT,
        ("spack-build-out.txt:12: intel-mpi-benchmarks could not be built: got <command-line>: "
        "fatal error: nosuch.h: No such file or directory")),
    "compile-error-colour": (NOT_BUILT, "spack-build-out.txt:12: intel-mpi-benchmarks"),
    "compile-error-whole-log": (NOT_BUILT, "spack-build-out.txt:12: intel-mpi-benchmarks"),
    "configure-error": (NOT_BUILT, "configure: error: C compiler cannot create executables"),
    "missing-tool": (NOT_BUILT, "spack requires 'no-such-tool'. Make sure it is in your path"),
    "recipe-raises": (NOT_BUILT, "'super' object has no attribute 'no_such_folder'"),
    "recipes-offline": (NO_RECIPES, "got fatal: unable to access"),
    "recipes-missing": (NO_RECIPES, "No repo.yaml found in"),
    "no-compiler": (REFUSED, "no compiler configured, and Spack cannot find working compilers"),
    "compiler-missing": (REFUSED, "Only external, or concrete, compilers are allowed"),
    "external-missing": (REFUSED, "prefix : /opt/nowhere/openmpi5"),
    "yaml-syntax-environment": (REFUSED, "yaml-syntax/spack.yaml, 1, 9"),
    "yaml-schema-environment": (REFUSED, "yaml-schema/spack.yaml:2: "),
    "yaml-syntax-scope": (REFUSED, "/site/spack/packages.yaml, 1, 2"),
    "yaml-schema-scope": (REFUSED, "/site/spack/packages.yaml:3: "),
    "include-missing": (REFUSED, "Required path (/site/spack) does not exist"),
    "environment-missing": (REFUSED, "no environment in envs/nosuch"),
    "spec-syntax": (REFUSED, "unexpected characters in the spec string osu-micro-ben"),
    "unknown-package": (REFUSED, "'osu-micro-benchmark' does not exist"),
    "unknown-version": (REFUSED, "these input specs: osu-micro-benchmarks@99.9"),
    "unknown-variant": (REFUSED, "No such variant {'fancy'}"),
    "mpi-not-declared": (REFUSED, "Version requirement 5.0.11 on mpi for openmpi"),
    "unsatisfiable": (REFUSED, "Cannot satisfy 'osu-micro-benchmarks@7.2'"),
    "unsatisfiable-target": (REFUSED, "cannot satisfy"),
    "unsatisfiable-compiler": (REFUSED, "Spack concretizer internal error"),
    "unsatisfiable-two-mpi": (REFUSED, "Spack concretizer internal error"),
    "unpack-cut-archive": (UNKNOWN, "/usr/bin/tar"),
    "push-not-installed": (UNKNOWN, "The following 3 errors occurred while pushing specs"),
    "lock-timeout": (UNKNOWN, "/stacks/spack/install/.spack-db/lock"),
    "recipe-syntax": (UNKNOWN, "cannot load package 'broken-syntax'"),
}  # fmt: skip


def test_every_recorded_failure_is_in_the_table() -> None:
    assert sorted(EXPECTED) == FAILED


@pytest.mark.parametrize("name", FAILED)
def test_a_recorded_failure(name: str) -> None:
    (kind, status, problem), words = EXPECTED[name]
    error = diagnosed(name)
    assert type(error) is kind
    assert error.exit_status == status
    assert problem in str(error)
    assert words in str(error)


@pytest.mark.parametrize("name", FAILED)
def test_a_message_is_one_line_with_a_next_step(name: str) -> None:
    error = diagnosed(name)
    assert "\n" not in str(error)
    assert error.next_step
    assert len(str(error)) < 800


@pytest.mark.parametrize("name", FAILED)
def test_without_its_errors_nothing_is_guessed_from_the_rest(name: str) -> None:
    """What is left when Spack's own complaints are cut away names no cause."""
    kept = [line for line in output_of(name).splitlines() if line.startswith(("[+]", "==> No "))]
    error = diagnose("install", "\n".join(kept), exit_status=1)
    assert "does not know" in str(error)


def test_an_unknown_message_is_shown_and_said_to_be_unknown() -> None:
    error = diagnose("install", "==> Error: the moon is full\n    and so it is\n", exit_status=1)
    assert type(error) is BuildError
    assert str(error) == (
        "spack install failed for a reason that fabricproof does not know: expected exit status 0, "
        "got 1, and the words 'the moon is full and so it is'; "
        "next: read the whole output in the log of this build"
    )


def test_no_message_at_all() -> None:
    error = diagnose("install", "", exit_status=1)
    assert "got exit status 1 and no message" in str(error)


def test_an_unknown_ending_shows_the_last_lines() -> None:
    error = diagnose("find", "one\ntwo\nthree\nfour\n", exit_status=1)
    assert "'two three four'" in str(error)


@pytest.mark.parametrize("status", [137, -9])
def test_a_kill_of_the_solver_is_a_kill_however_the_status_says_it(status: int) -> None:
    error = diagnose("concretize", "", exit_status=status)
    assert str(error).startswith("Spack was killed: got signal 9 (SIGKILL)")
    assert "memory" in str(error)


def test_no_guess_at_memory_where_the_signal_is_another() -> None:
    assert "memory" not in str(diagnosed("terminated-spack"))


def test_status_two_without_the_words_is_no_interrupt() -> None:
    error = diagnose("install", "usage: spack install [-h]\n", exit_status=2)
    assert not isinstance(error, InterruptedBuildError)


def test_recipes_that_are_newer_than_spack_are_said_where_a_package_is_missed() -> None:
    warning = output_of("recipes-newer").splitlines()[0]
    error = "==> Error: cannot concretize 'x', since 'x' does not exist"
    told = diagnose("concretize", f"{warning}\n{error}\n", exit_status=1)
    assert type(told) is UnavailableError
    assert "are not for this Spack" in str(told)


def test_a_repository_that_nobody_missed_is_not_blamed() -> None:
    warning = output_of("recipes-newer").splitlines()[0]
    told = diagnose("concretize", f"{warning}\n{output_of('unsatisfiable')}", exit_status=1)
    assert "Spack refuses" in str(told)


def test_a_full_disk_in_the_build_log_is_a_full_disk() -> None:
    log = "gcc -c a.c\na.c: fatal error: error writing to /tmp/x.s: No space left on device\n"
    error = diagnosed("configure-error", log_tail=log)
    assert type(error) is OutputError


def test_a_script_that_ends_too_early_is_no_cut_archive() -> None:
    log = "install.sh: line 9: syntax error: unexpected end of file\n"
    assert "could not be built" in str(diagnosed("configure-error", log_tail=log))


def test_a_signal_without_a_name_is_a_number() -> None:
    text = "==> Error: InstallError: The process has stopped unexpectedly (signal 99)\n"
    assert "got signal 99;" in str(diagnose("install", text, exit_status=1))


def test_a_failed_build_brings_its_log_along() -> None:
    error = diagnosed("compile-error", log_tail="make: entering\n\nlast words\n")
    assert isinstance(error, BuildError)
    assert error.failure is not None
    assert error.failure.package == "intel-mpi-benchmarks"
    assert error.failure.line == 12
    assert error.failure.last_lines == ("make: entering", "last words")


def test_without_a_log_the_excerpt_is_shown_with_its_wrapped_lines_joined() -> None:
    failure = build_failure(output_of("compile-error"))
    assert failure is not None
    assert (
        "/opt/openmpi5/bin/mpic++ -Ihelpers -I../src_c -DMPI1 -I. -g -O0 -Wall -Wextra -pedantic "
        "-Wno-long-long -c -o imb.o imb.cpp" in failure.last_lines
    )
    assert failure.last_lines[-1] == "make: *** [Makefile:36: IMB-MPI1] Error 2"


def test_no_build_failed() -> None:
    assert build_failure(output_of("install")) is None


def test_a_first_error_is_found_in_a_log_where_spack_shows_no_excerpt() -> None:
    failure = build_failure(output_of("recipe-raises"), "x.c:3:1: error: expected ';'\nmore\n")
    assert failure is not None
    assert (failure.first_error, failure.line) == ("x.c:3:1: error: expected ';'", None)


def test_the_end_of_the_log_is_read_where_spack_says_it_lies(tmp_path: Path) -> None:
    log = tmp_path / "spack-build-out.txt"
    log.write_bytes(b"early\n" * 100_000 + b"the end \xff\n")
    text = output_of("configure-error")
    named = next(line for line in text.splitlines() if line.endswith("spack-build-out.txt"))
    tail = read_log_tail(text.replace(named, f"  {log}"))
    assert tail.endswith("the end �\n")
    assert len(tail) < 300_000
    assert read_log_tail(text) == ""
    assert read_log_tail("") == ""


def test_complaints_come_once_and_without_closing_words() -> None:
    first, second = complaints(output_of("disk-full-stage"))
    assert first.startswith("Command exited with status 2:\n")
    assert second.startswith(
        "All fetchers failed for "
        "spack-stage-intel-mpi-benchmarks-2021.7-lazdcpxwxwvf6utk64s44eogdx7kmvpj\n"
    )


@given(st.text(), st.integers(-40, 255), st.text(max_size=80))
def test_any_text_is_one_message(text: str, status: int, log: str) -> None:
    error = diagnose("install", text, exit_status=status, log_tail=log)
    assert isinstance(error, FabricproofError)
    assert len(str(error).splitlines()) == 1


@given(st.sampled_from(FAILED), st.data())
def test_an_output_that_was_cut_is_still_one_message(name: str, data: st.DataObject) -> None:
    text = output_of(name)
    cut = text[: data.draw(st.integers(0, len(text)))]
    error = diagnose("install", cut, exit_status=1)
    assert len(str(error).splitlines()) == 1
