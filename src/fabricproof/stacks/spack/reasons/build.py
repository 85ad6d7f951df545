"""Reasons that lie in a package that is built, in its recipe, or in Spack itself."""

from __future__ import annotations

import re

from fabricproof.core.errors import FabricproofError, UnavailableError
from fabricproof.stacks.spack.complaints import build_failure, failures
from fabricproof.stacks.spack.reasons.case import BuildError, Case, short


def missing_tool(case: Case) -> FabricproofError | None:
    """A program that Spack or a build calls is not on PATH."""
    said = case.complaint(r"^spack requires '(?P<tool>[^']+)'\. Make sure it is in your path")
    if said is None:
        return None
    return UnavailableError(
        f"there is no {said[1]['tool']} on PATH",
        expected=f"{said[1]['tool']}, which Spack calls",
        got="none",
        next_step="install it, or load the module that has it",
    )


def broken_recipe(case: Case) -> FabricproofError | None:
    """A recipe that is no Python, or asks for what is not there."""
    said = case.complaint(r"^cannot load package '(?P<name>[^']+)' from the '(?P<repo>[^']+)'.*$")
    if said is None:
        return None
    return BuildError(
        f"the recipe of {said[1]['name']} is broken",
        failure=None,
        got=short(said[1][0]),
        next_step=f"correct it in the repository {said[1]['repo']!r}, or take the repository out",
    )


def failed(case: Case) -> FabricproofError | None:
    """A package that did not compile, configure or install: its log says why."""
    failure = build_failure(case.output, case.log_tail)
    if failure is None:
        return None
    complaint = case.complaints[0] if case.complaints else None
    words = f"{complaint.kind}: {complaint.text}" if complaint else case.status_word
    return BuildError(
        f"{failure.package} could not be built",
        failure=failure,
        got=short(failure.first_error or words.strip(": ")),
        next_step="read the end of its build log",
    )


def spack_broke(case: Case) -> FabricproofError | None:
    """Spack itself fell over: a Python traceback, or a package that ended without a log."""
    if "Traceback (most recent call last)" in case.text:
        last = [
            line
            for line in case.text.splitlines()
            if re.match(r"\w[\w.]*(?:Error|Exception)", line)
        ]
        return BuildError(
            f"spack {case.step} ended in an error of its own",
            failure=None,
            got=short(last[-1] if last else "a Python traceback"),
            next_step="run it again with spack --debug, and look for the message among its issues",
        )
    lost = failures(case.output)
    if not lost:
        return None
    return BuildError(
        f"{lost[0].package} could not be installed",
        failure=None,
        got=short(lost[0].reason),
        next_step="read the whole output in the log of this build",
    )
