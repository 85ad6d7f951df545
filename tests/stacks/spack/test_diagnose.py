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
from fabricproof.stacks.spack.complaints import build_failure, complaints, read_log_tail
from fabricproof.stacks.spack.diagnose import BuildError, diagnose

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


#: recording -> class, status, what the message must say.
EXPECTED: dict[str, tuple[type[FabricproofError], int, str]] = {
    "no-sources": (
        UnavailableError,
        69,
        (
            "the sources of compiler-wrapper-1.1.0 could not be downloaded: expected them in a "
            "mirror or at their home, got file:///mirror has it not; https://github.com: "
            "Name or service not known; next: without a network, use --mirror DIR"
        ),
    ),
    "no-binary": (UnavailableError, 69, "the build cache has no gcc-runtime"),
    "checksum-cut-archive": (
        DamagedDownloadError,
        65,
        (
            "IMB-v2021.7.tar.gz is not what its recipe promises: expected sha256 "
            "acee02cc719a74e6853194576cb7e6bf1fdc74f8971578e1b2141306c3c19477, got "
            "f021b4bf2d07c505954ea1dc78f95ea23a9c62169a866fec93643d7917b6490e (100000 bytes)"
        ),
    ),
    "download-half": (DamagedDownloadError, 65, "(11767 bytes)"),
    "unpack-cut-archive": (DamagedDownloadError, 65, "IMB-v2021.7.tar.gz cannot be unpacked"),
    "mirror-offline": (
        UnavailableError,
        69,
        (
            "3 of the stack's archives could not be downloaded: compiler-wrapper@1.1.0, "
            "intel-mpi-benchmarks@2021.7, osu-micro-benchmarks@7.2: got file:///mirror has it not"
        ),
    ),
    "push-disk-full": (OutputError, 74, "/stacks/spack/bc/blobs/sha256/4a/4a16d38f56143f251e668f"),
    "push-not-installed": (
        UnavailableError,
        69,
        "3 of the stack's packages could not go into the build cache",
    ),
    "compile-error-whole-log": (BuildError, 69, "spack-build-out.txt:12: intel-mpi-benchmarks"),
    "disk-full-prefix": (OutputError, 74, "the disk is full"),
    "disk-full-compile": (OutputError, 74, "/usr/bin/ld: final link failed: No space left"),
    "disk-full-stage": (OutputError, 74, "Cannot write: No space left on device"),
    "disk-full-environment": (OutputError, 74, "the disk is full"),
    "read-only": (OutputError, 74, "/stacks/spack/install: Spack cannot write there"),
    "lock-not-ours": (OutputError, 74, "/stacks/spack/install/.spack-db/prefix_lock: Spack cannot"),
    "no-permission": (NeedsPrivilegeError, 77, "/stacks/spack/install: Spack may not write"),
    "lock-timeout": (
        UnavailableError,
        69,
        (
            "/stacks/spack/install/.spack-db/lock: another Spack works in the same tree and did "
            "not let go of its lock: expected a read lock, got none after 3.007s"
        ),
    ),
    "interrupted": (
        InterruptedBuildError,
        130,
        "spack install was interrupted while intel-mpi-benchmarks was installed",
    ),
    "killed-spack": (
        BuildError,
        69,
        "Spack was killed: got signal 9 (SIGKILL); next: look whether",
    ),
    "terminated-spack": (BuildError, 69, "got signal 15 (SIGTERM); next: see that no build of it"),
    "killed-build": (BuildError, 69, "the build was killed while intel-mpi-benchmarks was inst"),
    "killed-compiler": (BuildError, 69, "spack-build-out.txt:52: the compiler was killed while"),
    "beside-orphan": (BuildError, 69, "got FileExistsError: [Errno 17] File exists"),
    "compile-error": (
        BuildError,
        69,
        (
            "spack-build-out.txt:12: intel-mpi-benchmarks could not be built: got <command-line>: "
            "fatal error: nosuch.h: No such file or directory"
        ),
    ),
    "compile-error-colour": (BuildError, 69, "spack-build-out.txt:12: intel-mpi-benchmarks could"),
    "configure-error": (BuildError, 69, "configure: error: C compiler cannot create executables"),
    "missing-tool": (UnavailableError, 69, "there is no no-such-tool on PATH"),
    "recipe-raises": (BuildError, 69, "'super' object has no attribute 'no_such_folder'"),
    "recipe-syntax": (BuildError, 69, "the recipe of broken-syntax is broken"),
    "no-solver": (UnavailableError, 69, "Spack has no clingo and cannot fetch it"),
    "no-solver-offline": (UnavailableError, 69, "no clingo and cannot fetch it: expected clingo"),
    "no-compiler": (UnavailableError, 69, "there is no compiler that Spack can use"),
    "compiler-missing": (UnavailableError, 69, "there is no compiler that Spack can use"),
    "external-missing": (
        ConfigError,
        78,
        "/opt/nowhere/openmpi5: openmpi is not whole where it should lie: expected its headers",
    ),
    "recipes-offline": (UnavailableError, 69, "recipes could not be fetched: got fatal: unable"),
    "recipes-missing": (ConfigError, 78, "recipes are not where repos.yaml says"),
    "yaml-syntax-environment": (ConfigError, 78, "yaml-syntax/spack.yaml:2: a damaged YAML file"),
    "yaml-schema-environment": (ConfigError, 78, "yaml-schema/spack.yaml:2: Spack does not take"),
    "yaml-syntax-scope": (ConfigError, 78, "/site/spack/packages.yaml:6: a damaged YAML file"),
    "yaml-schema-scope": (ConfigError, 78, "/site/spack/packages.yaml:3: Spack does not take"),
    "include-missing": (ConfigError, 78, "/site/spack: a part of Spack's configuration is not"),
    "environment-missing": (ConfigError, 78, "envs/nosuch: a part of Spack's configuration"),
    "spec-syntax": (ConfigError, 78, "unexpected characters in the spec string: osu-micro-ben"),
    "unknown-package": (ConfigError, 78, "Spack knows no package 'osu-micro-benchmark'"),
    "unknown-version": (ConfigError, 78, "these input specs: osu-micro-benchmarks@99.9"),
    "unknown-variant": (ConfigError, 78, "No such variant {'fancy'}"),
    "mpi-not-declared": (ConfigError, 78, "Version requirement 5.0.11 on mpi for openmpi"),
    "unsatisfiable": (
        ConfigError,
        78,
        (
            "Spack finds no solution for osu-micro-benchmarks@7.2: got Cannot satisfy "
            "'osu-micro-benchmarks@5.9' and 'osu-micro-benchmarks@7.2' (and 2 more)"
        ),
    ),
    "unsatisfiable-target": (ConfigError, 78, "cannot satisfy constraint 'target=z80'"),
    "unsatisfiable-compiler": (ConfigError, 78, "no solution for osu-micro-benchmarks %clang"),
    "unsatisfiable-two-mpi": (ConfigError, 78, "no solution for osu-micro-benchmarks@7.2 ^mpich"),
}


def test_every_recorded_failure_is_in_the_table() -> None:
    assert sorted(EXPECTED) == FAILED


@pytest.mark.parametrize("name", FAILED)
def test_a_recorded_failure(name: str) -> None:
    kind, status, words = EXPECTED[name]
    error = diagnosed(name)
    assert type(error) is kind
    assert error.exit_status == status
    assert words in str(error)
    assert "does not know" not in str(error)


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


def test_a_kill_in_the_middle_names_the_package() -> None:
    text = output_of("install")
    error = diagnose("install", text[: text.index("phase: 'configure'")], exit_status=-9)
    assert "Spack was killed while osu-micro-benchmarks was installed" in str(error)


def test_no_guess_at_memory_where_the_signal_is_another() -> None:
    assert "memory" not in str(diagnosed("terminated-spack"))


def test_status_two_without_the_words_is_no_interrupt() -> None:
    error = diagnose("install", "usage: spack install [-h]\n", exit_status=2)
    assert not isinstance(error, InterruptedBuildError)


@pytest.mark.parametrize("text", ["bash: line 1: spack: command not found\n", ""])
def test_no_spack(text: str) -> None:
    error = diagnose("install", text, exit_status=127)
    assert type(error) is UnavailableError
    assert "there is no Spack" in str(error)


def test_no_python_for_spack() -> None:
    text = "==> Error: spack could not find a python interpreter!\n"
    assert "Spack has no Python to run with" in str(diagnose("install", text, exit_status=1))


def test_recipes_that_are_newer_than_spack_are_said_where_a_package_is_missed() -> None:
    warning = output_of("recipes-newer").splitlines()[0]
    error = "==> Error: cannot concretize 'x', since 'x' does not exist"
    told = diagnose("concretize", f"{warning}\n{error}\n", exit_status=1)
    assert type(told) is UnavailableError
    assert "do not fit together" in str(told)


def test_a_repository_that_nobody_missed_is_not_blamed() -> None:
    warning = output_of("recipes-newer").splitlines()[0]
    told = diagnose("concretize", f"{warning}\n{output_of('unsatisfiable')}", exit_status=1)
    assert "no solution" in str(told)


def test_a_full_disk_in_the_build_log_is_a_full_disk() -> None:
    log = "gcc -c a.c\na.c: fatal error: error writing to /tmp/x.s: No space left on device\n"
    error = diagnosed("configure-error", log_tail=log)
    assert type(error) is OutputError


def test_a_quota_is_not_called_a_full_disk() -> None:
    text = "==> Error: OSError: [Errno 122] Disk quota exceeded: '/stacks/spack/x'\n"
    error = diagnose("install", text, exit_status=3)
    assert str(error).startswith("/stacks/spack/x: the disk quota is used up")


def test_a_traceback_is_an_error_of_spack_itself() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/spack/bin/spack", line 54, in <module>\n'
        "    sys.exit(main())\n"
        "RuntimeError: dictionary changed size during iteration\n"
    )
    error = diagnose("install", text, exit_status=1)
    assert type(error) is BuildError
    assert "an error of its own: got RuntimeError: dictionary changed size" in str(error)


def test_a_solver_that_gives_up() -> None:
    text = "==> Error: Spack is taking more than 60 seconds to solve for osu, stopping\n"
    assert "no solution for osu: got no answer after 60 s" in str(
        diagnose("concretize", text, exit_status=1)
    )


def test_a_solver_whose_reasons_have_another_form_is_quoted() -> None:
    text = "==> Error: failed to concretize `osu` for the following reasons:\n   too many cooks\n"
    error = diagnose("concretize", text, exit_status=1)
    assert "no solution for osu: got too many cooks" in str(error)


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
    assert [(each.kind, each.text) for each in complaints(output_of("disk-full-stage"))] == [
        ("ProcessError", "Command exited with status 2:"),
        (
            "FetchError",
            (
                "All fetchers failed for "
                "spack-stage-intel-mpi-benchmarks-2021.7-lazdcpxwxwvf6utk64s44eogdx7kmvpj"
            ),
        ),
    ]


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
