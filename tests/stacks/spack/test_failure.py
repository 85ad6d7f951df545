"""A failed call of Spack is told in its own words, with where its log lies and what comes next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.core.errors import (
    FabricproofError,
    InterruptedBuildError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack.failure import failure_of
from fabricproof.stacks.spack.tool import SpackAnswer

DATA = Path(__file__).resolve().parents[2] / "data" / "spack"
RUNS = json.loads((DATA / "runs.json").read_text())

#: recording -> class, what the message says.
EXPECTED: dict[str, tuple[type[FabricproofError], str]] = {
    "interrupted": (InterruptedBuildError, "spack install was interrupted; next: run the same"),
    "disk-full-compile": (OutputError, "final link failed: No space left on device"),
    "disk-full-environment": (OutputError, "[Errno 28] No space left on device"),
    "disk-full-prefix": (OutputError, "[Errno 28] No space left on device"),
    "disk-full-stage": (OutputError, "configure.ac: Cannot write: No space left on device"),
    "killed-spack": (UnavailableError, "Spack was killed: got signal 9 (Killed); next: look"),
    "terminated-spack": (UnavailableError, "Spack was killed: got signal 15 (Terminated)"),
    "killed-build": (UnavailableError, "The process has stopped unexpectedly (signal 9)"),
    "killed-compiler": (UnavailableError, "spack-build-out.txt: spack install failed"),
    "compile-error": (UnavailableError, "<command-line>: fatal error: nosuch.h: No such file"),
    "compile-error-colour": (UnavailableError, "fatal error: nosuch.h: No such file"),
    "missing-tool": (UnavailableError, "spack-build-out.txt: spack install failed"),
    "no-sources": (UnavailableError, "All fetchers failed for spack-stage-compiler-wrapper-1.1.0"),
    "no-binary": (UnavailableError, "No binary found when cache-only was specified"),
    "checksum-cut-archive": (UnavailableError, "ChecksumError: sha256 checksum failed for"),
    "no-permission": (UnavailableError, "[Errno 13] Permission denied: '/stacks/spack/install'"),
    "lock-timeout": (UnavailableError, "Timed out waiting for a read lock"),
    "no-compiler": (UnavailableError, "no compiler configured, and Spack cannot find working"),
    "unsatisfiable": (UnavailableError, "Cannot satisfy 'osu-micro-benchmarks@7.2'"),
    "unknown-package": (UnavailableError, "'osu-micro-benchmark' does not exist"),
    "yaml-schema-scope": (UnavailableError, "/site/spack/packages.yaml:3: "),
    "recipes-offline": (UnavailableError, "Failed to clone repository builtin"),
    "recipes-missing": (UnavailableError, "No repo.yaml found in"),
}


def test_every_recorded_failure_is_in_the_table() -> None:
    assert sorted(EXPECTED) == sorted(name for name, run in RUNS.items() if run["status"])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_failure_is_one_line_in_spacks_words(name: str) -> None:
    kind, words = EXPECTED[name]
    output = (DATA / f"{name}.out").read_text()
    step = RUNS[name]["command"].split()[-1 if "install" in RUNS[name]["command"] else 3]
    error = failure_of(step, SpackAnswer(status=RUNS[name]["status"], output=output))
    assert type(error) is kind
    assert words in str(error)
    assert "\n" not in str(error)
    assert error.next_step
    assert len(str(error)) < 800


@given(st.text(max_size=300), st.integers(-64, 255))
def test_whatever_spack_prints_is_one_line(output: str, status: int) -> None:
    error = failure_of("install", SpackAnswer(status=status, output=output))
    assert "\n" not in str(error)
    assert str(error)
