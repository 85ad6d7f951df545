"""The running ReFrame session: which site it measures, who it is, and what it says at its end."""

from __future__ import annotations

import atexit
import functools
import json
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import reframe as rfm
import reframe.core.runtime as rt
from reframe.core.exceptions import ReframeFatalError
from reframe.core.systems import SystemPartition

from fabricproof.core.errors import ConfigError, ExitStatus, FabricproofError
from fabricproof.core.project import check_folders, project_root
from fabricproof.job.run import NODES_VARIABLE, new_run_id, wants_run, workplace
from fabricproof.physics import find_link
from fabricproof.site import FabricSpec, PartitionSpec, Site, load_site
from fabricproof.stacks.environment import shell_line
from fabricproof.stacks.stack import ResolvedStack, resolve

#: key of a partition's ``extras``: the folder of the site that says what is measured there
SITE_KEY = "fabricproof_site"

#: one identity for all checks of one session
RUN_VARIABLE = "FABRICPROOF_RUN_ID"

#: technologies that administrators select by tag; a site without one lists the checks as skipped
TAGGED_TECHNOLOGIES = ("ethernet", "infiniband")

#: stands for the fabrics of a session without a site
NO_SITE = "no-site"

#: checks of ours that took part in this session
took_part: set[str] = set()


@functools.cache
def current_site() -> Site:
    """Return the site of this ReFrame session.

    Raises:
        ConfigError: ReFrame's settings name none, or it is wrong.
        InputMissingError: it is not there.
    """
    system = rt.runtime().system
    named = {str(each.extras[SITE_KEY]) for each in system.partitions if SITE_KEY in each.extras}
    if named:
        return load_site(min(named))
    raise ConfigError(
        "these checks need a site of fabricproof",
        expected=f"a partition that it measures in ReFrame's system {system.name!r}",
        got=", ".join(each.name for each in system.partitions) or "no partition",
        next_step="site_configuration = fabricproof.rfm.extend(site_configuration, site=NAME) in "
        "your settings, or fabricproof run --site NAME",
    )


@functools.cache
def why_no_site() -> FabricproofError | None:
    """Return why nothing can be measured in this ReFrame session; None if it can.

    Nothing may raise while ReFrame loads a check file: it leaves the file out with a warning, and
    a run without its checks ends well (4.10, ``frontend/loader.py``).  So each check fails with
    this, whatever options selected it.
    """
    try:
        current_site()
    except FabricproofError as error:
        return error
    except ReframeFatalError:  # whoever imports a check without ReFrame: a test, a page's example
        return ConfigError("these checks run in a session of ReFrame")
    return None


def partition_of(partition: SystemPartition, options: Sequence[str] = ()) -> PartitionSpec:
    """Return the site's partition, submitted to and started on as ReFrame's settings say.

    ``options``: of the job, behind those of access (ReFrame's ``-J``).
    """
    spec = current_site().partition(partition.name)
    launcher = partition.launcher_type.registered_name.partition("-")[0]  # mpirun-openmpi
    known = launcher in {"srun", "mpirun", "mpiexec"}
    return spec.model_copy(
        update={
            "access": [*partition.access, *options],
            "scheduler": partition.scheduler.registered_name,
            "launcher": launcher if known else spec.launcher,
        }
    )


def technology(spec: FabricSpec) -> str:
    """Return the tag of a fabric: ``infiniband`` for verbs, RoCE included; else its link's own."""
    if spec.link is None:
        return "memory"
    link = find_link(spec.link)
    # Soft-RoCE is verbs whether its protocol is stated or not: no check knows that its HCA is soft.
    if link.is_soft or spec.protocol in {"rocev2", "ib"}:
        return "infiniband"
    return link.technology


def is_roce(spec: FabricSpec) -> bool:
    """Tell whether a fabric is RDMA over Ethernet, by its protocol or because its link is soft."""
    return spec.protocol == "rocev2" or (spec.link is not None and find_link(spec.link).is_soft)


def fabric_choices() -> list[str]:
    """Return the fabrics to measure, and ``no-<technology>`` for each the site does not have.

    The second kind is listed and skipped with a reason, so that ``-t infiniband`` on a site
    without InfiniBand says so instead of selecting nothing.
    """
    if why_no_site():
        return [NO_SITE]
    site = current_site()
    there = {technology(spec) for spec in site.fabrics}
    absent = [f"no-{name}" for name in TAGGED_TECHNOLOGIES if name not in there]
    return [spec.name for spec in site.fabrics] + absent


def run_id() -> str:
    """Return the identity of this session, from the environment or made once and put there."""
    if not os.environ.get(RUN_VARIABLE):
        os.environ[RUN_VARIABLE] = new_run_id()
    return os.environ[RUN_VARIABLE]


def asked_nodes() -> tuple[str, ...]:
    """Return the nodes that this session is to measure on; none: any will do.

    A confirmation looks at a red pair again where it was red, and with other partners.
    """
    return tuple(filter(None, os.environ.get(NODES_VARIABLE, "").split(",")))


#: stacks as dry runs found them, where nothing changes: partition, options, stack -> what it is
_found: dict[tuple[str, ...], ResolvedStack] = {}


def resolved(check: rfm.RegressionTest) -> ResolvedStack:
    """Return the stack of a check on its partition, as it stands now."""
    options, stack = tuple(check.job.cli_options), check.current_environ.name
    key = (check.current_partition.name, *options, stack)
    dry, site = check.is_dry_run(), current_site()
    if not dry or key not in _found:
        partition = partition_of(check.current_partition, options)
        _found[key] = resolve(site, partition, site.stack(stack), assumed=dry)
    return _found[key]


def tell_at_the_end(site: Site) -> None:
    """Have this session of ReFrame, if it runs checks, print their verdicts when it ends.

    Under ``fabricproof run`` that prints them.
    """
    if wants_run(sys.argv[1:]) and not os.environ.get(RUN_VARIABLE):
        atexit.register(_tell, site, run_id(), time.time())


def _tell(site: Site, run: str, began: float) -> None:
    """Print the verdicts, and end with their exit status: ReFrame's knows of no absent check."""
    report = _report_since(began)
    loaded = "fabricproof.rfm.checks.base" in sys.modules
    if not (took_part or (loaded and report is None)):
        return
    status: int = ExitStatus.MISSING
    if report is None:
        sys.stderr.write(
            "fabricproof: nothing was judged: ReFrame ran no check, or left no report "
            "(generate_file_reports, --report-file)\n"
        )
    else:
        place = workplace(project_root())
        kept = place.report_file(run)
        kept.parent.mkdir(parents=True, exist_ok=True)
        said = json.loads(report.read_text(encoding="utf-8"))
        said["session_info"]["cmdline"] = _without_our_checks(said["session_info"]["cmdline"])
        for case in (case for each in said["runs"] for case in each["testcases"]):
            case["system"] = site.name  # theirs may have another name
        kept.write_text(json.dumps(said), encoding="utf-8")
        sys.stdout.flush()
        words = [
            sys.executable,
            "-m",
            "fabricproof.cli",
            "report",
            run,
            "--site",
            str(site.folder.resolve()),
        ]
        status = subprocess.run(words, check=False).returncode
    if status:
        # Nothing else lets what ends with the interpreter change its status.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _without_our_checks(line: str) -> str:
    """Return ReFrame's command line without ``-c`` of all our checks: that leaves out none."""
    ours = {folder.resolve() for folder in check_folders(project_root())}
    left: list[str] = []
    for word in shlex.split(line):
        if left and left[-1] in {"-c", "--checkpath"} and Path(word).resolve() in ours:
            left.pop()
        else:
            left.append(word)
    return shell_line(left)


def _report_since(began: float) -> Path | None:
    """Return the report that ReFrame has written since then; None if none."""
    try:
        option = rt.runtime().get_option("general/0/report_file")
    except ReframeFatalError:  # it ended before it knew its system, and has said why
        return None
    pattern = Path(os.path.expandvars(option))
    found = pattern.parent.glob(pattern.name.replace("{sessionid}", "*"))
    new = [path for path in found if path.stat().st_mtime >= began - 1]
    return max(new, key=lambda path: path.stat().st_mtime, default=None)
