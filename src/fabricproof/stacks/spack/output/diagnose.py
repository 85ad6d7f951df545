"""One clear message for a failed call of Spack: what is wrong, where, and what to do next.

What ended a build is told by the end of its log.  Beside that a few causes are known by words that
Spack 1.1 really prints (``tests/data/spack`` has the recorded outputs): those that end with an exit
status of their own or need another next step.  They are tried from the most telling to the least: a
full disk is a full disk, whatever else broke because of it.  All others are shown in Spack's own
words and said to be unknown.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from fabricproof.core.errors import (
    ConfigError,
    DamagedDownloadError,
    FabricproofError,
    InterruptedBuildError,
    NeedsPrivilegeError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack.output.complaints import BuildFailure, build_failure, complaints
from fabricproof.stacks.spack.output.progress import plain

_AGAIN = "run the same command again: what is finished is kept"

#: characters of Spack's own words in one message
_WIDTH = 360
#: lines of an unknown message that are shown
_SHOWN = 3


class BuildError(UnavailableError):
    """A package could not be built, or Spack failed in a way nobody knows.

    Status 69 is what ``sysexits.h`` has for work that could not be done: the stack is not there.

    Attributes:
        failure: the package, its log and the log's last lines; None where nothing was built.
    """

    def __init__(self, problem: str, *, failure: BuildFailure | None, **facts: str | None) -> None:
        source, line = (failure.log, failure.line) if failure else (None, None)
        super().__init__(
            problem,
            source=source,
            line=line if source else None,
            expected=facts.get("expected"),
            got=facts.get("got"),
            next_step=facts.get("next_step"),
        )
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class _Cause:
    """A cause that Spack's words show: ``words`` are looked for in its error messages."""

    words: re.Pattern[str]
    error: type[FabricproofError]
    problem: str
    next_step: str


#: looked for in every line of the output and of the build's log
_DISK = _Cause(
    words=re.compile(r"No space left on device|Disk quota exceeded"),
    error=OutputError,
    problem="the disk is full, or the quota used up",
    next_step=f"free space where the stacks and the temporary files lie, then {_AGAIN}",
)
_CAUSES = (
    _Cause(
        words=re.compile(r"Read-only file system|write lock on read-only file"),
        error=OutputError,
        problem="Spack cannot write there",
        next_step="choose another root for the stacks, or build as the user who owns it",
    ),
    _Cause(
        words=re.compile(r"\[Errno 13\] Permission denied|cannot create lock '"),
        error=NeedsPrivilegeError,
        problem="Spack may not write or read there",
        next_step="choose another root for the stacks, or build as the user who owns it",
    ),
    _Cause(
        words=re.compile(r"^\w+ checksum failed for ", re.MULTILINE),
        error=DamagedDownloadError,
        problem="a download is not what its recipe promises",
        next_step="a short file was cut off, fetch it again; one of full length is another file",
    ),
    _Cause(
        words=re.compile(
            r"^All fetchers failed for|^Failed downloads:|No binary found when cache-only"
            r"|^cannot bootstrap ",
            re.MULTILINE,
        ),
        error=UnavailableError,
        problem="what Spack needs could not be downloaded",
        next_step="without a network, name a mirror in the site's spack/mirrors.yaml",
    ),
    _Cause(
        words=re.compile(
            r"^failed to concretize|is unsatisfiable|seconds to solve for|^cannot concretize"
            r"|^Package '[^']+' not found|^No version exists|^No such variant|^no such package"
            r"|^Version requirement|^unexpected characters in the spec|^no compiler configured"
            r"|^Query of package '.*' failed|error parsing YAML|^(?:.*: )?/\S+\.yaml:\d+: "
            r"|^Required path \(|^no environment in |^Invalid configuration scope",
            re.MULTILINE,
        ),
        error=ConfigError,
        problem="Spack refuses the recipe, the options or the site's configuration",
        next_step="correct what it names in spack-envs or the site's spack folder, or install it",
    ),
)

_REPOSITORY = re.compile(
    r"^==> Warning: Error constructing repository '(?P<place>[^']+)': (?P<why>.+)$", re.MULTILINE
)
#: what Spack misses where it has no recipes
_MISSED = r"no compiler configured|does not exist|not found|(?i:unknown) namespace|not supported"


def diagnose(step: str, output: str, *, exit_status: int, log_tail: str = "") -> FabricproofError:
    """Return the error that says why a call of Spack failed.

    ``exit_status`` is as the shell or :mod:`subprocess` gives it: 137 and -9 are both signal 9.

    Returns:
        A :class:`BuildError` with the log's last lines where a package could not be built;
        otherwise the class that fits the cause.
    """
    said = complaints(output)
    lines = [plain(line).strip() for line in (*output.splitlines(), *log_tail.splitlines())]
    failure = build_failure(output, log_tail)
    if error := _interrupted(step, said, exit_status) or _caused(_DISK, lines):
        return error
    if error := _killed(said, lines, failure, exit_status):
        return error
    if error := _recipes_missed(step, output, said):
        return error
    for cause in _CAUSES:
        if error := _caused(cause, said):
            return error
    if failure is not None:
        return BuildError(
            f"{failure.package} could not be built",
            failure=failure,
            got=_short(failure.first_error or (said or ("",))[0]) or f"exit status {exit_status}",
            next_step="read the end of its build log",
        )
    return _unknown(step, said, lines, exit_status)


def recipes_absent(output: str) -> UnavailableError | None:
    """Return the error where Spack has no recipes: it only warns, and then misses packages."""
    found = _REPOSITORY.search("\n".join(map(plain, output.splitlines())))
    if found is None:
        return None
    fatal = re.search(r"^(?:fatal|error): .*$", output, re.MULTILINE)
    return UnavailableError(
        "Spack's package recipes are not there, or are not for this Spack",
        source=found["place"],
        got=_short(f"{fatal[0]}; {found['why']}" if fatal else found["why"]),
        next_step="name a folder that has them in the site's spack/repos.yaml",
    )


def _recipes_missed(step: str, output: str, said: tuple[str, ...]) -> FabricproofError | None:
    missed = step == "compiler find" or any(re.search(_MISSED, each) for each in said)
    return recipes_absent(output) if missed else None


def _caused(cause: _Cause, texts: list[str] | tuple[str, ...]) -> FabricproofError | None:
    for text in texts:
        if cause.words.search(text):
            return cause.error(cause.problem, got=_short(text), next_step=cause.next_step)
    return None


def _interrupted(step: str, said: tuple[str, ...], status: int) -> FabricproofError | None:
    """Ctrl-C: Spack says so and leaves with 2; a shell would make it 130."""
    words = any(re.match(r"Keyboard interrupt\.|KeyboardInterrupt", each) for each in said)
    if _signal(status) != signal.SIGINT and not (words and status in {2, 130}):
        return None
    return InterruptedBuildError(f"spack {step} was interrupted", next_step=_AGAIN)


def _signal(status: int) -> int | None:
    """Return the signal that ended Spack itself, None where none did."""
    if status < 0:
        return -status
    return status - 128 if 128 < status < 128 + signal.NSIG else None


def _killed(
    said: tuple[str, ...], lines: list[str], failure: BuildFailure | None, status: int
) -> FabricproofError | None:
    """A signal ended Spack, a build of its own, or a compiler."""
    of_build = next(
        filter(None, (re.search(r"stopped unexpectedly \(signal (\d+)\)", each) for each in said)),
        None,
    )
    of_compiler = any("Killed signal terminated program" in line for line in lines)
    number = int(of_build[1]) if of_build else signal.SIGKILL if of_compiler else _signal(status)
    if number is None:
        return None
    what = "the build" if of_build else "the compiler" if of_compiler else "Spack"
    names = {each.value: f" ({each.name})" for each in signal.Signals}
    return BuildError(
        f"{what} was killed" + (f" while {failure.package} was built" if failure else ""),
        failure=failure,
        got=f"signal {number}{names.get(number, '')}",
        next_step=_after_kill(number, whole=what == "Spack"),
    )


def _after_kill(number: int, *, whole: bool) -> str:
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
    return ", ".join(steps) + (", then " if steps else "") + _AGAIN


def _unknown(step: str, said: tuple[str, ...], lines: list[str], status: int) -> FabricproofError:
    words = said[0] if said else " ".join([line for line in lines if line][-_SHOWN:])
    return BuildError(
        f"spack {step} failed for a reason that fabricproof does not know",
        failure=None,
        expected="exit status 0",
        got=f"{status}, and the words {_short(words)!r}"
        if words
        else f"exit status {status} and no message",
        next_step="read the whole output in the log of this build",
    )


def _short(text: str) -> str:
    """Return ``text`` in one line that fits into a message."""
    line = re.sub(r"^(?:==> Error: )?(?:>> +)?(?:\d+ +)?", "", " ".join(text.split()))
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
