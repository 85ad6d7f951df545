"""Start ReFrame for a site: environment, command line, progress, and what is checked before.

ReFrame runs as a program of its own, exactly as an administrator would start it; this module
never imports it.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.core.project import ROOT_VARIABLE, check_folders
from fabricproof.job.run.watch import Watch, ends_as_interrupt, patience_seconds
from fabricproof.nodes import slurm
from fabricproof.site import Site, check_access
from fabricproof.site.scheduling import (
    SlurmTraits,
    asked_partitions,
    find_troubles,
    read_traits,
)
from fabricproof.stacks.wheels import check_provisioned

#: how long the scheduler may take to say that it is there
SCHEDULER_PATIENCE_SECONDS = 20

#: stage folders of this many runs are kept
KEPT_STAGES = 20

#: nodes that the checks of a session are to measure on, joined by commas
NODES_VARIABLE = "FABRICPROOF_NODES"

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
    environment |= {
        # Absolute: ReFrame loads each check in the folder of its file.
        "FABRICPROOF_SITE": str(site.folder.resolve()),
        ROOT_VARIABLE: str(place.project),
        "FABRICPROOF_RUN_ID": run_id,
        "FABRICPROOF_PERFLOGS": str(place.perflogs),
        "FABRICPROOF_REFRAME_LOG": str(place.log_file(run_id)),
        "RFM_CONFIG_FILES": str(place.project / "reframe_settings.py"),
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
        "RFM_TRAP_JOB_ERRORS": "yes",
        "RFM_CLEAN_STAGEDIR": "yes",
        "RFM_GENERATE_FILE_REPORTS": "yes",
    }
    return environment


def _expand(text: str, environment: Mapping[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: environment.get(match[1], ""), text)


def wants_run(arguments: Sequence[str]) -> bool:
    """Tell whether ReFrame's ``arguments`` ask it to run checks (``-r``)."""
    return any(_RUN_FLAG.match(argument) for argument in arguments)


def check_scheduler(site: Site, environment: Mapping[str, str]) -> None:
    """Say at once when the scheduler is not there, instead of failing in every check.

    Raises:
        UnavailableError: its command is missing, does not answer, or knows no such partition.
    """
    if not any(each.uses_slurm for each in site.partitions):
        return
    hint = site.spec.start_hint or "start Slurm, or choose another site with --site"
    try:
        answer = slurm.ask(
            ["sinfo", "-h", "-o", "%P %T %D"], environment, seconds=SCHEDULER_PATIENCE_SECONDS
        )
    except UnavailableError as error:
        raise UnavailableError(
            error.problem,
            source=str(site.folder),
            expected=error.expected or "a list of partitions from sinfo",
            got=error.got,
            next_step=hint,
        ) from None
    marked = {line.split()[0] for line in answer.splitlines() if line.strip()}
    known = {name.rstrip("*") for name in marked}
    for partition in filter(lambda each: each.uses_slurm, site.partitions):
        asked = set(asked_partitions(partition.access)) or marked - known
        if asked and not (unknown := {name.rstrip("*") for name in asked} - known):
            continue
        raise UnavailableError(
            "Slurm has no such partition" if asked else "Slurm has no default partition",
            source=str(site.folder / "site.toml"),
            expected=f"one of: {', '.join(sorted(known)) or 'none at all'}",
            got=", ".join(map(repr, sorted(unknown))) if asked else "access that names none",
            next_step=f"correct access of partition {partition.name}, or: {hint}",
        )


def ask_traits(site: Site, environment: Mapping[str, str]) -> SlurmTraits:
    """Ask the Slurm of ``site`` what decides whether its partitions can be measured on.

    What does not answer is unknown: whether Slurm is there at all says :func:`check_scheduler`.
    """
    if not any(each.uses_slurm for each in site.partitions):
        return SlurmTraits()
    config, _ = ask(["scontrol", "show", "config"], environment)
    partitions, _ = ask(["scontrol", "-o", "show", "partition"], environment)
    # What was asked for is not there, and that is an answer; a database that is away is none.
    wanted = ["sacct", "-n", "-X", "-j", "1", "-o", "jobid"]
    keeps = any(each.scheduler == "slurm" for each in site.partitions)
    fault = ask(wanted, environment)[1] if keeps else None
    return read_traits(config, partitions, fault)


def ask(
    command: Sequence[str],
    environment: Mapping[str, str],
    patience_seconds: float = SCHEDULER_PATIENCE_SECONDS,
) -> tuple[str, str | None]:
    """Return what a command of Slurm printed, and what it said where it failed."""
    try:
        return slurm.ask(command, environment, seconds=patience_seconds), None
    except UnavailableError as error:
        return "", error.got or error.problem


def scheduling_troubles(site: Site, environment: Mapping[str, str]) -> list[Finding]:
    """Return what this Slurm will not do for the partitions of ``site``, before any job."""
    traits = ask_traits(site, environment)
    return [trouble for each in site.partitions for trouble in find_troubles(each, traits)]


def refuse_troubles(site: Site, troubles: Sequence[Finding]) -> None:
    """Refuse a run of which no number would count.

    Raises:
        ConfigError: the first that is FAIL, with its next step.
    """
    for trouble in troubles:
        if trouble.verdict is Verdict.FAIL:
            raise ConfigError(
                f"{trouble.text}: {trouble.means}",
                source=str(site.folder / "site.toml"),
                next_step=trouble.next_step,
            )


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


def scheduler_answers(site: Site, environment: Mapping[str, str]) -> bool:
    """Tell whether the scheduler of ``site`` is there and knows its partitions."""
    try:
        check_scheduler(site, environment)
    except UnavailableError:
        return False
    return True


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

    ``alive`` tells whether the scheduler answers; it is asked now and then while ReFrame runs.

    Raises:
        UnavailableError: the scheduler stopped answering; ReFrame was ended.
    """
    for key in ("RFM_REPORT_FILE", "FABRICPROOF_REFRAME_LOG"):
        Path(environment[key]).parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [reframe_command(), *arguments, *_stored_with(arguments, environment)],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    patience = patience_seconds()
    with ends_as_interrupt(), Watch(process, alive, patience=patience) as watch:
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
    if watch.gave_up:
        raise UnavailableError(
            f"the scheduler stopped answering during the run, for {patience:.0f} s",
            expected="an answer from sinfo",
            next_step="look at slurmctld; what had finished is kept",
        )
    return status


def _stored_with(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return what makes ReFrame's result store call the session by the identity of our run.

    ``reframe --performance-compare '?run_id=="A"/?run_id=="B"/median:'`` then asks for our runs.
    """
    if not wants_run(arguments) or "FABRICPROOF_RUN_ID" not in environment:
        return []
    return ["--session-extras", f"run_id={environment['FABRICPROOF_RUN_ID']}"]


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
