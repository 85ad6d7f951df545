"""Start ReFrame for a site: folders, environment, the process and a watch over its scheduler.

ReFrame runs as a program of its own, exactly as an administrator would start it; this module
never imports it.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any

from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.core.project import ROOT_VARIABLE, check_folders, entry_point
from fabricproof.site import Site, check_access
from fabricproof.stacks.wheels import check_provisioned

#: stage folders of this many runs are kept
KEPT_STAGES = 20

#: nodes that the checks of a session are to measure on, joined by commas
NODES_VARIABLE = "FABRICPROOF_NODES"

#: how long the scheduler may be silent during a run, in seconds; the variable overrides it
PATIENCE_SECONDS = 180.0
PATIENCE_VARIABLE = "FABRICPROOF_SCHEDULER_PATIENCE"

#: how often it is asked, as a share of the patience
ASKS_PER_PATIENCE = 6

#: how long ReFrame may take to cancel its jobs when it is told to stop, in seconds
FAREWELL_SECONDS = 30.0

#: -r by itself, after flags without a value (-vr), before more of them (-rv) or a tag (-rtquick)
_RUN_FLAG = re.compile(r"^(-[vqR]*r|--run$)")
#: what load_from_file and _validate_check of reframe/frontend/loader.py say, and check_performance
#: of core/pipeline.py of a number that it cannot read, before it passes the check; a file that is
#: no Python ends the session, as _validate_source parses it before anything is tried
_CANNOT_LOAD = re.compile(
    r"WARNING: (skipping (?:test|evaluation of performance variable) .*|.* is not copyable; .*)"
    r"|ERROR: run session stopped: (syntax error: .*)"
)
#: what ReFrame and we say of a file that could not be written (reframe/frontend/cli.py, executors/
#: and printer.py; core.records; "error: [(" is shutil's, of a copied folder); what a node printed
#: of its own disk stands among ReFrame's lines
_NOT_WRITTEN = re.compile(
    r"(failed to generate report in |failed to store results in |could not save log file: "
    r"|could not log performance data for |run session stopped: |\* Reason: (?i:os ?error): "
    r"|\* Reason: error: \[\(|cannot keep the records: ).*(No space left on device|disk is full)"
)


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """Where a session keeps its things, all below one folder that the nodes share.

    ``root`` holds stage and output folders; ``perflogs`` the perflogs and ReFrame's store.
    """

    project: Path
    root: Path
    perflogs: Path

    def report_file(self, run_id: str) -> Path:
        """Return where ReFrame's JSON report of ``run_id`` goes."""
        return self.perflogs / "reports" / f"{run_id}.json"

    def stage_folder(self, run_id: str) -> Path:
        """Return where the jobs of ``run_id`` run; its own, so that no other run touches it."""
        return self.root / "stage" / run_id

    def output_folder(self, run_id: str) -> Path:
        """Return where ReFrame keeps what the jobs of ``run_id`` that passed printed."""
        return self.root / "output" / run_id

    def log_file(self, run_id: str) -> Path:
        """Return where ReFrame's debug log of ``run_id`` goes."""
        return self.root / "logs" / f"{run_id}.log"

    def note_file(self, run_id: str) -> Path:
        """Return where our own note of ``run_id`` goes (``job.run.collection.RunNote``)."""
        return self.root / "logs" / f"{run_id}.run"


def workplace(project: Path) -> Workplace:
    """Return the workplace of ``project``; FABRICPROOF_WORK and FABRICPROOF_PERFLOGS move it."""
    return Workplace(
        project=project,
        root=Path(os.environ.get("FABRICPROOF_WORK", project / "work")),
        perflogs=Path(os.environ.get("FABRICPROOF_PERFLOGS", project / "perflogs")),
    )


def prune_stages(place: Workplace, keep: int = KEPT_STAGES) -> None:
    """Remove the stage and output folders of all but the ``keep`` newest runs, and empty stages.

    ReFrame removes the stage folders of what passed, and keeps their texts in the output folder;
    what is left is evidence of what did not.  An empty output folder may be of a run that is on.
    """
    stages, outputs = (
        sorted(path for path in (place.root / kind).glob("*Z-*") if path.is_dir())
        for kind in ("stage", "output")
    )
    old = [*stages[: max(0, len(stages) - keep)], *outputs[: max(0, len(outputs) - keep)]]
    hollow = [folder for folder in stages if not any(p.is_file() for p in folder.rglob("*"))]
    for folder in {*old, *hollow}:
        shutil.rmtree(folder, ignore_errors=True)


def new_run_id() -> str:
    """Return an identity for a run: its start in UTC and six random digits."""
    stamp = datetime.datetime.now(tz=datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{stamp}-{uuid.uuid4().hex[:6]}"


def session_environment(site: Site, place: Workplace, run_id: str) -> dict[str, str]:
    """Return the environment in which plain ``reframe`` finds site, checks and folders.

    Raises:
        ConfigError: a stack is to be one of the catalogue's and is none: no session could measure.
    """
    check_access(site)
    check_provisioned(site)
    environment = dict(os.environ)
    environment["FABRICPROOF_VCLUSTER"] = environment.get("FABRICPROOF_VCLUSTER") or "vcluster"
    lmod = Path("/usr/share/lmod/lmod/libexec/lmod")
    if lmod.exists():
        environment.setdefault("LMOD_CMD", str(lmod))
    folders = [_expand(folder, environment) for folder in site.spec.path]
    environment["PATH"] = os.pathsep.join(
        [*folders, str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    )
    for name, value in site.spec.environment.items():
        environment[name] = _expand(value, environment)
    ours = str(entry_point(place.project))
    theirs = environment.get("RFM_CONFIG_FILES", "").split(os.pathsep)
    theirs = [file for file in theirs if file and file != ours]
    environment |= {
        # Absolute: ReFrame loads each check in the folder of its file.
        "FABRICPROOF_SITE": str(site.folder.resolve()),
        ROOT_VARIABLE: str(place.project),
        "FABRICPROOF_RUN_ID": run_id,
        "FABRICPROOF_PERFLOGS": str(place.perflogs),
        "FABRICPROOF_REFRAME_LOG": str(place.log_file(run_id)),
        # Behind the caller's own settings, as ReFrame reads its list.
        "RFM_CONFIG_FILES": os.pathsep.join(dict.fromkeys([*theirs, ours])),
        "RFM_SYSTEM": site.name,
        "RFM_CHECK_SEARCH_PATH": os.pathsep.join(map(str, check_folders(place.project))),
        "RFM_CHECK_SEARCH_RECURSIVE": "yes",
        "RFM_STAGE_DIR": str(place.stage_folder(run_id)),
        "RFM_OUTPUT_DIR": str(place.output_folder(run_id)),
        "RFM_PERFLOG_DIR": str(place.perflogs),
        "RFM_REPORT_FILE": str(place.report_file(run_id)),
        "RFM_SQLITE_DB_FILE": str(place.perflogs / "results.db"),
        "RFM_COLORIZE": "no",
        # Guards: the caller's environment may not switch them off.
        "RFM_TRAP_JOB_ERRORS": "yes" if knows_exit_statuses(site) else "no",
        "RFM_CLEAN_STAGEDIR": "yes",
        "RFM_GENERATE_FILE_REPORTS": "yes",
    }
    return environment


def knows_exit_statuses(site: Site) -> bool:
    """Tell whether ReFrame learns how the site's jobs ended.

    Its backend ``squeue`` never does, and ``trap_job_errors`` would then fail every check (4.10):
    there a job's own last file decides.
    """
    return all(each.scheduler != "squeue" for each in site.partitions)


def _expand(text: str, environment: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: environment.get(match[1], ""), text)


def wants_run(arguments: Sequence[str]) -> bool:
    """Tell whether ReFrame's ``arguments`` ask it to run checks (``-r``)."""
    return any(_RUN_FLAG.match(argument) for argument in arguments)


def reframe_command() -> str:
    """Return ReFrame's own program, the one installed beside this library."""
    beside = Path(sys.executable).parent / "reframe"
    if beside.exists():
        return str(beside)
    found = shutil.which("reframe")
    if found is None:
        raise UnavailableError(
            "ReFrame is not installed", expected="its reframe command", next_step="make install"
        )
    return found


def run_reframe(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    *,
    alive: Callable[[], bool] = lambda: True,
) -> int:
    """Run ReFrame and hand every line of its output to ``on_line``; return its exit status.

    Ctrl-C reaches ReFrame too, which cancels its jobs; this waits for it to finish doing so.
    Another signal that would end us is handed to it as one.

    ``alive`` tells whether the scheduler answers; it is asked now and then while ReFrame runs: with
    accounting up and the controller dead, ``sacct`` goes on saying RUNNING, and ReFrame would wait
    for ever.

    Raises:
        UnavailableError: the scheduler stopped answering; ReFrame was ended.
    """
    for key in ("RFM_REPORT_FILE", "FABRICPROOF_REFRAME_LOG"):
        Path(environment[key]).parent.mkdir(parents=True, exist_ok=True)
    # ReFrame's result store then calls the session by our run: reframe --performance-compare
    # '?run_id=="A"/?run_id=="B"/median:' asks for it.
    stored = "FABRICPROOF_RUN_ID" in environment and wants_run(arguments)
    extras = [f"--session-extras=run_id={environment['FABRICPROOF_RUN_ID']}"] if stored else []
    process = subprocess.Popen(
        [reframe_command(), *arguments, *extras],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    over, gave_up = threading.Event(), threading.Event()
    patience = PATIENCE_SECONDS
    with contextlib.suppress(ValueError):  # a value that is no positive number is ignored
        chosen = float(os.environ.get(PATIENCE_VARIABLE, ""))
        patience = chosen if 0 < chosen < float("inf") else patience
    watch = threading.Thread(
        target=_watch, args=(process, alive, patience, over, gave_up), daemon=True
    )
    with ends_as_interrupt():
        watch.start()
        try:
            for line in process.stdout:
                on_line(line.rstrip("\n"))
        except KeyboardInterrupt:
            for line in process.stdout:
                on_line(line.rstrip("\n"))
            process.wait()
            raise
        finally:
            process.stdout.close()
            status = process.wait()
            over.set()
            watch.join()
    if gave_up.is_set():
        raise UnavailableError(
            f"the scheduler stopped answering during the run, for {patience:.0f} s",
            expected="an answer from sinfo",
            next_step="look at slurmctld; what had finished is kept",
        )
    return status


def _watch(
    process: subprocess.Popen[str],
    alive: Callable[[], bool],
    patience: float,
    over: threading.Event,
    gave_up: threading.Event,
) -> None:
    """End the process once ``alive`` has said no for as long as the patience."""
    answered = time.monotonic()
    while not over.wait(patience / ASKS_PER_PATIENCE):
        asked = time.monotonic()
        if alive():
            answered = asked
        elif time.monotonic() - answered >= patience:
            gave_up.set()
            process.send_signal(_ending_signal())
            try:
                process.wait(FAREWELL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            return


@contextlib.contextmanager
def ends_as_interrupt() -> Iterator[None]:
    """Take SIGTERM and SIGHUP as Ctrl-C: what runs is told too, and what had finished is kept.

    A timer, ``timeout`` or ``kill`` ends the main process only: ReFrame and its jobs would go on.
    Threads cannot take signals (Python's signal module): in one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for task in Path("/proc/self/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in task.read_text(encoding="ascii").split():
                    os.kill(int(child), _ending_signal())
        raise KeyboardInterrupt

    # polars, once imported, has reading go on after Ctrl-C (SA_RESTART) until somebody writes.
    signal.siginterrupt(signal.SIGINT, True)
    before: dict[int, Callable[..., Any] | int | None] = {
        number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signal() -> signal.Signals:
    """Return what a child of ours listens to: it ignores SIGINT where we were started so.

    A shell without job control starts ``fabricproof run &`` with SIGINT ignored, and every child
    inherits that.  SIGTERM then has ReFrame cancel its jobs likewise.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return signal.SIGTERM if ignored else signal.SIGINT


def describe_checks(site: Site, place: Workplace) -> list[dict[str, Any]]:
    """Return what ``reframe --describe`` says of all checks for ``site``; needs no scheduler.

    Raises:
        ConfigError: a check file cannot be loaded; what is left would be no complete list.
        UnavailableError: ReFrame could not describe its checks.
    """
    environment = session_environment(site, place, new_run_id())
    lines: list[str] = []
    status = run_reframe(["--describe"], environment, lines.append)
    broken = list(unloadable(lines))
    if broken:
        raise ConfigError(broken[0], source=str(place.project / "checks"), next_step="mend it")
    start = lines.index("[") if "[" in lines else len(lines)
    try:
        described: list[dict[str, Any]] = json.loads("\n".join(lines[start:]))
    except ValueError:
        raise UnavailableError(
            f"ReFrame could not describe its checks, it ended with status {status}",
            expected="a JSON array",
            got=" ".join(lines[-1:])[:200] or "nothing",
        ) from None
    return described


def refuse_full_disk(lines: Sequence[str]) -> None:
    """Say that the disk is full where a file of the run was not written; a node's disk is its own.

    Raises:
        OutputError: its report or its store was not written; nothing of the run can count.
    """
    for line in lines:
        if _NOT_WRITTEN.search(line):
            said = re.sub(r"^.*\w+Error: ", "", " ".join(line.split()))
            raise OutputError(
                "the disk is full, and nothing of this run counts",
                source=said.partition("; next:")[0][:200],
                next_step="make room and run again; what the jobs printed is in the stage folder",
            )


def unloadable(lines: Sequence[str]) -> Iterator[str]:
    """Yield what ReFrame says of check files that it could not load."""
    for line in lines:
        match = _CANNOT_LOAD.search(line)
        if match:
            yield match[1] or f"{match[2]}: no check of any file ran"


# How far a run is: one line of JSON of a check for each of its jobs.  Nothing is judged by it.

#: set where the reader of ReFrame's output takes these lines
LISTENS_VARIABLE = "FABRICPROOF_LISTENS"

#: set where checks are to tell their plans and do nothing else
PLANS_VARIABLE = "FABRICPROOF_PLANS"

_START = '{"fabricproof_job": '


class JobEvent(StrEnum):
    """What became of a job."""

    PLANNED = "planned"
    SUBMITTED = "submitted"
    JUDGED = "judged"


def tell(event: JobEvent, facts: Mapping[str, Any]) -> None:
    """Print one event, where somebody listens; that nobody does any more is no trouble."""
    if os.environ.get(LISTENS_VARIABLE):
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps({"fabricproof_job": event, **facts}) + "\n")
            sys.stdout.flush()


def heard(line: str) -> tuple[JobEvent, dict[str, Any]] | None:
    """Return the event of a line of ReFrame's output; None if the line is none."""
    if line.startswith(_START):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            facts = json.loads(line)
            return JobEvent(facts.pop("fabricproof_job")), facts
    return None
