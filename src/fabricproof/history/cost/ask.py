"""Ask ReFrame in a dry run what it would submit: nothing runs, no scheduler is needed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.history.cost.case import Case, read_cases
from fabricproof.job.run import read_report
from fabricproof.job.run.start import (
    Workplace,
    new_run_id,
    run_reframe,
    session_environment,
    unloadable,
)
from fabricproof.site import Site
from fabricproof.site.roll import with_whole_stacks


def ask_reframe(site: Site, project: Path, stacks: str | None = None) -> list[Case]:
    """Return every case of the site as the checks plan it, due or not.

    Args:
        site: the site.
        project: the folder that holds ``checks``.
        stacks: name of a stack, or a pattern as ReFrame's ``-p`` takes it; None for all.

    Raises:
        ConfigError: a check file cannot be loaded; a plan of the others would be too cheap.
        UnavailableError: ReFrame ended without saying what it would run.
        ParseError: its report or a plan is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="fabricproof-plan-") as name:
        root = Path(name)
        place = Workplace(project=project, root=root, perflogs=root / "perflogs")
        run_id = new_run_id()
        environment = session_environment(site, place, run_id)
        chosen = with_whole_stacks(["-p", stacks] if stacks else [], [s.name for s in site.stacks])
        arguments = ["--dry-run", "--keep-stage-files", *chosen]
        lines: list[str] = []
        status = run_reframe(arguments, environment, lines.append)
        return _answer(site, place, run_id, lines, status)


def _answer(
    site: Site, place: Workplace, run_id: str, lines: Sequence[str], status: int
) -> list[Case]:
    report = place.report_file(run_id)
    broken = list(unloadable(lines))
    if broken:
        raise ConfigError(broken[0], source=str(place.project / "checks"), next_step="mend it")
    if report.exists():
        one_node = [each.name for each in site.partitions if each.same_node]
        return read_cases(read_report(report), one_node)
    if any("Running 0 check(s)" in line for line in lines):
        return []
    raise UnavailableError(
        f"ReFrame did not say what it would run, it ended with status {status}",
        expected="the report of a dry run",
        got=" ".join(" ".join(lines[-3:]).split())[:300] or "nothing",
    )
