"""Reasons that lie in the machine: disks, rights, signals, locks, and tools that are not there."""

from __future__ import annotations

import re
import signal

from fabricproof.core.errors import (
    FabricproofError,
    InterruptedBuildError,
    NeedsPrivilegeError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack.complaints import build_failure
from fabricproof.stacks.spack.reasons.case import BuildError, Case, short, words_of

AGAIN = "run the same command again: what is finished is kept"
_QUOTED_PATH = re.compile(r"(?<=[:\s])'(/[^']+)'")
_FULL = ("No space left on device", "Disk quota exceeded")


def interrupted(case: Case) -> FabricproofError | None:
    """Ctrl-C: Spack says so and leaves with 2; a shell would make it 130."""
    said = case.complaint(r"^Keyboard interrupt\.|KeyboardInterrupt")
    if case.signal != signal.SIGINT and not (said and case.status in {2, 130}):
        return None
    return InterruptedBuildError(
        f"spack {case.step} was interrupted{_during(case)}", next_step=AGAIN
    )


def _during(case: Case) -> str:
    return f" while {case.package} was installed" if case.package else ""


def disk_full(case: Case) -> FabricproofError | None:
    """A full disk or a quota, wherever it was first felt."""
    line = case.line_with(*_FULL)
    if line is None:
        return None
    quota = _FULL[1] in line
    return OutputError(
        "the disk quota is used up" if quota else "the disk is full",
        source=_path(line),
        got=words_of(line),
        next_step=f"free space where the stacks and the temporary files lie, then {AGAIN}",
    )


def _path(line: str) -> str | None:
    """Return the file that could not be written: the last, where one was copied to another."""
    found = _QUOTED_PATH.findall(line)
    return found[-1] if found else None


def read_only(case: Case) -> FabricproofError | None:
    """A file system or a lock that cannot be written."""
    said = case.complaint(
        r"Read-only file system.*|Can't take write lock on read-only file: (?P<lock>\S+)"
    )
    if said is None:
        return None
    found = said[1]
    return OutputError(
        "Spack cannot write there",
        source=found["lock"] or _path(found[0]),
        expected="a place that can be written",
        got=words_of(found[0].partition(": /")[0] if found["lock"] else "a read-only file system"),
        next_step="choose another root for the stacks, or build as the user who owns it",
    )


def not_permitted(case: Case) -> FabricproofError | None:
    """No right to a file."""
    said = case.complaint(r"\[Errno 13\] Permission denied.*|cannot create lock '(?P<lock>[^']+)'")
    if said is None:
        return None
    found = said[1]
    return NeedsPrivilegeError(
        "Spack may not write or read there",
        source=found["lock"] or _path(found[0]),
        got=words_of(found[0]),
        next_step="choose another root for the stacks, or build as the user who owns it",
    )


def killed(case: Case) -> FabricproofError | None:
    """A signal ended Spack, a build of its own, or a compiler."""
    said = case.complaint(r"stopped unexpectedly \(signal (?P<signal>\d+)\)")
    compiler = case.line_with("Killed signal terminated program")
    if said:
        number: int | None = int(said[1]["signal"])
    else:
        number = signal.SIGKILL if compiler else case.signal
    if number is None:
        return None
    what = "the compiler" if compiler and not said else "the build" if said else "Spack"
    failure = build_failure(case.output, case.log_tail)
    package = failure.package if failure else case.package
    if said and not package:
        package = _failed_package(case)
    return BuildError(
        f"{what} was killed" + (f" while {package} was installed" if package else ""),
        failure=failure,
        got=_signal_name(number),
        next_step=_after(number, whole=what == "Spack"),
    )


def _failed_package(case: Case) -> str | None:
    found = re.search(r"^==> Error: Failed to install (\S+) due to", case.text, re.MULTILINE)
    return found[1] if found else None


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _after(number: int, *, whole: bool) -> str:
    """Return what to do next; ``whole``: Spack itself is gone, and maybe not what it started.

    A build goes on without the Spack that began it, and without its lock: a second one in the
    same tree then breaks both (seen with 1.1.1, SIGKILL and SIGTERM alike).
    """
    steps = []
    if number == signal.SIGKILL:
        steps.append("look whether memory ran out (dmesg, or the job's State in sacct)")
    if whole:
        steps.append("see that no build of it still runs (ps)")
    elif number == signal.SIGKILL:
        steps.append("build with fewer jobs")
    return ", ".join(steps) + (", then " if steps else "") + AGAIN


def locked(case: Case) -> FabricproofError | None:
    """Another Spack holds a lock of the same tree."""
    said = case.complaint(
        r"Timed out waiting for a (?P<kind>\w+) lock after (?P<time>\S+?)\.?$"
        r"(?:\s+Made .* on file: (?P<file>\S+))?"
    )
    if said is None:
        return None
    found = said[1]
    return UnavailableError(
        "another Spack works in the same tree and did not let go of its lock",
        source=found["file"],
        expected=f"a {found['kind']} lock",
        got=f"none after {found['time']}",
        next_step=f"wait for the other one, or see what holds it (fuser -v FILE), then {AGAIN}",
    )


def no_spack(case: Case) -> FabricproofError | None:
    """The program itself did not start."""
    line = case.line_with("spack: command not found", "spack: not found")
    python = case.line_with("spack could not find a python interpreter")
    if not (line or python or case.status == 127):
        return None
    return UnavailableError(
        "Spack has no Python to run with" if python else "there is no Spack",
        expected="a spack program that starts",
        got=words_of(line or python or "") or case.status_word,
        next_step="name one with --spack, or leave it out and let one be fetched",
    )


def no_solver(case: Case) -> FabricproofError | None:
    """Neither clingo nor a way to get it; likewise other programs that Spack fetches itself."""
    said = case.complaint(
        r"cannot bootstrap (?:the \"(?P<module>[^\"]+)\"|any of the (?P<programs>.+?) executables)"
        r"[^:]*:?\s*(?P<why>.*)"
    )
    if said is None:
        return None
    complaint, found = said
    what = found["module"] or found["programs"]
    network = re.search(r"errored with: (?:\[Errno -?\d+\] )?(?P<why>.+)", complaint.whole)
    why = network["why"] if network else found["why"] or " ".join(complaint.details)
    return UnavailableError(
        f"Spack has no {what} and cannot fetch it",
        expected=f"{what} in Spack's Python or on PATH",
        got=short(why) or "no bootstrap source",
        next_step="install it into Spack's Python (pip install clingo), or use --mirror DIR",
    )


def no_compiler(case: Case) -> FabricproofError | None:
    """No compiler is declared and none is found, or the declared ones do not run."""
    said = case.complaint(r"^no compiler configured.*|^.*could not find a compiler.*")
    reasons = [
        line for each in case.complaints for line in each.details if re.match(r"\s+\d+\. ", line)
    ]
    only = "Only external, or concrete, compilers are allowed"
    if not said and not (reasons and all(only in line for line in reasons)):
        return None
    return UnavailableError(
        "there is no compiler that Spack can use",
        expected="a compiler on PATH, or one in the site's packages.yaml whose programs are there",
        got=short(said[1][0] if said else re.sub(r"^\s+\d+\. ", "", reasons[0])),
        next_step="install one (gcc, g++), or correct its paths in packages.yaml",
    )
