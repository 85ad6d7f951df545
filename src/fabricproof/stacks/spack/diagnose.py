"""One clear message for a failed call of Spack: what is wrong, where, and what to do next.

Each cause is known by words that Spack 1.1 really prints (``tests/data/spack`` has the recorded
outputs).  A cause that the text does not show is never named: what nobody knows is shown as it
is, and said to be unknown.  Causes are tried from the most telling to the least: a full disk is a
full disk, whatever else broke because of it.
"""

from __future__ import annotations

from collections.abc import Callable

from fabricproof.core.errors import FabricproofError
from fabricproof.stacks.spack.complaints import build_failure
from fabricproof.stacks.spack.reasons import build, download, machine, site
from fabricproof.stacks.spack.reasons.case import BuildError, Case, short

__all__ = ["BuildError", "diagnose"]

#: Lines of an unknown message that are shown.
_SHOWN = 3

_REASONS: tuple[Callable[[Case], FabricproofError | None], ...] = (
    machine.interrupted,
    machine.disk_full,
    machine.read_only,
    machine.not_permitted,
    machine.killed,
    machine.locked,
    machine.no_spack,
    machine.no_solver,
    site.repository,
    site.damaged_file,
    site.missing_file,
    machine.no_compiler,
    site.external_missing,
    site.unknown_package,
    site.unsatisfiable,
    download.checksum,
    download.cut_archive,
    download.nothing_fetched,
    download.no_binary,
    download.mirror_incomplete,
    download.not_pushed,
    build.missing_tool,
    build.broken_recipe,
    build.failed,
    build.spack_broke,
)


def diagnose(step: str, output: str, *, exit_status: int, log_tail: str = "") -> FabricproofError:
    """Return the error that says why a call of Spack failed.

    Args:
        step: Spack's command: ``concretize``, ``install``, ...
        output: all it printed, both streams in order.
        exit_status: as the shell or :mod:`subprocess` gives it: 137 and -9 are both signal 9.
        log_tail: the end of the build log that ``output`` names
            (:func:`~fabricproof.stacks.spack.complaints.read_log_tail`).

    Returns:
        A :class:`BuildError` with the log's last lines where a package could not be built;
        otherwise the class that fits the cause.
    """
    case = Case(step=step, output=output, status=exit_status, log_tail=log_tail)
    for reason in _REASONS:
        if error := reason(case):
            return error
    return _unknown(case)


def _unknown(case: Case) -> FabricproofError:
    words = [line.strip() for line in case.text.splitlines() if line.strip()]
    first = case.complaints[0].whole.splitlines() if case.complaints else words[-_SHOWN:]
    return BuildError(
        f"spack {case.step} failed for a reason that fabricproof does not know",
        failure=build_failure(case.output, case.log_tail),
        expected="exit status 0",
        got=f"{case.status}, and the words {short(' '.join(first))!r}"
        if first
        else case.status_word,
        next_step="read the whole output in the log of this build",
    )
