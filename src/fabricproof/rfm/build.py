"""The fixture that has Spack build a stack before anything is measured with it.

It is there only where the site has a stack of Spack.  What is built already costs one start of a
program; what is not is built once, and every check on that stack waits for it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Event, Thread

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import deferrable, run_after, run_before, sanity_function, variable
from reframe.core.logging import getlogger

from fabricproof.core.errors import FabricproofError
from fabricproof.job.evidence.leg_folder import read_text
from fabricproof.rfm.current import current_site
from fabricproof.stacks.environment import shell_line
from fabricproof.stacks.spack import layout_for, read_built

#: the build, and what it said, in the stage folder
SCRIPT_FILE = "build.sh"
OUTPUT_FILE = "build.out"
ERRORS_FILE = "build.err"
STATUS_FILE = "build.status"

#: lines of the Spack log that go with a failure
LOG_LINES = 12

#: how often the terminal hears how far a build is
PROGRESS_SECONDS = 20.0


class StackBuild(rfm.RunOnlyRegressionTest):
    """Build the stack of one environment, or find it built; a stack of another kind passes.

    No compile-only test: with ``trap_job_errors``, a guard of ours, ReFrame 4.10.4 asks a job for
    its exit code that such a test does not have (``check_sanity`` of its pipeline), and fails it.
    """

    #: why the stack is not there, for the report; and the end of what Spack said
    build_reason = variable(str, value="", loggable=True)
    build_log = variable(list, value=[], loggable=True)

    #: a build from source may compile an MPI and all below it; a hang ends here
    time_limit = "6h"
    local = True
    sourcesdir = None
    executable = "bash"
    executable_opts = [SCRIPT_FILE]  # noqa: RUF012 - ReFrame reads class attributes as variables

    @run_before("run")
    def write_what_to_run(self) -> None:
        """Write the one command; its status is judged here, so that its own words are kept."""
        site, folder = current_site(), Path(self.stagedir)
        stack = site.stack(self.current_environ.name)
        for name in (OUTPUT_FILE, ERRORS_FILE, STATUS_FILE):
            (folder / name).unlink(missing_ok=True)
        lines = build_commands(stack.name, site.folder) if stack.spack is not None else (":",)
        (folder / SCRIPT_FILE).write_text("\n".join([*lines, ""]), encoding="utf-8")
        if stack.spack is not None and not self.is_dry_run():
            _announce(stack.name, folder)

    @run_after("run")
    def say_no_more(self) -> None:
        """End the progress lines."""
        _be_quiet(Path(self.stagedir))

    @run_before("sanity")
    def say_what_did_not_load(self) -> None:
        """Give the reason where a stack that is not Spack's cannot even be loaded."""
        stack = current_site().stack(self.current_environ.name)
        if stack.spack is None and not self.is_dry_run() and self.job.exitcode:
            self.build_reason = loading_reason(read_text(Path(self.stagedir) / self.job.stderr))

    @sanity_function
    @deferrable
    def the_stack_is_there(self) -> bool:
        """Fail with the build's own reason, or where it left no record of what it built."""
        site = current_site()
        stack = site.stack(self.current_environ.name)
        if stack.spack is None:
            return True
        folder = Path(self.stagedir)
        try:
            there = read_built(layout_for(site.name, site.folder).built(stack.name)) is not None
        except FabricproofError as error:
            self.build_reason = str(error)
        else:
            self.build_reason = "" if there and _status(folder) == "0" else reason_of(folder)
        if self.build_reason:
            self.build_log = log_of(folder)
        sn.evaluate(sn.assert_false(self.build_reason, msg=self.build_reason))
        return True


def build_commands(stack: str, site: Path) -> tuple[str, ...]:
    """Return the lines of the build script; the last keeps the status and always ends well."""
    words = [sys.executable, "-E", "-m", "fabricproof.cli", "stack", "build", stack]
    command = shell_line([*words, "--site", str(site.absolute())])
    return (
        # A build wants neither this session's MPI nor its Python.
        "unset LD_LIBRARY_PATH PYTHONPATH",
        f"if {command} >{OUTPUT_FILE} 2>{ERRORS_FILE}",
        f"then echo 0 >{STATUS_FILE}; else echo $? >{STATUS_FILE}; fi",
    )


def _status(folder: Path) -> str:
    return read_text(folder / STATUS_FILE).strip()


def reason_of(folder: Path) -> str:
    """Return what the build gave as its reason, else how it ended."""
    for line in reversed(read_text(folder / ERRORS_FILE).splitlines()):
        for mark in ("fabricproof: ", "error: "):
            if line.lower().startswith(mark):
                return line[len(mark) :].strip().removeprefix("error: ")
    status = _status(folder)
    if not status:
        return "the build was cut off before its end"
    if status == "0":
        return "the build ended well and left no record of what it built"
    return f"the build ended with status {status}: {_last_line(folder) or 'it said nothing'}"


def loading_reason(said: str) -> str:
    """Return why a job that does nothing but load the site's own modules failed."""
    words = " ".join(said.split())
    return f"it does not load: {words[:160] or 'its job said nothing'}"


def log_of(folder: Path) -> list[str]:
    """Return the end of what was said, the reason itself left out."""
    lines = [line.rstrip() for line in read_text(folder / ERRORS_FILE).splitlines() if line.strip()]
    marks = ("fabricproof: ", "error: ")
    return [line for line in lines if not line.lower().startswith(marks)][-LOG_LINES:]


def _last_line(folder: Path) -> str:
    for name in (ERRORS_FILE, OUTPUT_FILE):
        lines = [line.strip() for line in read_text(folder / name).splitlines() if line.strip()]
        if lines:
            return lines[-1][-160:]
    return ""


#: builds whose progress is being told, by their stage folders
_telling: dict[Path, Event] = {}


def _announce(stack: str, folder: Path) -> None:
    """Tell the terminal now and then how far a build is, until :func:`_be_quiet`."""
    _be_quiet(folder)
    _telling[folder] = Event()
    Thread(target=_tell, args=(stack, folder, _telling[folder]), daemon=True).start()


def _be_quiet(folder: Path) -> None:
    ended = _telling.pop(folder, None)
    if ended is not None:
        ended.set()


def _tell(stack: str, folder: Path, ended: Event) -> None:
    begin = time.monotonic()
    while not ended.wait(PROGRESS_SECONDS):
        getlogger().info(progress_line(stack, time.monotonic() - begin, _last_line(folder)))


def progress_line(stack: str, seconds: float, said: str) -> str:
    """Return a line in the form of ReFrame's own, which ``fabricproof run`` passes on."""
    return f"[    BUILD ] ({stack}, {seconds:.0f} s) {said or 'started'}"
