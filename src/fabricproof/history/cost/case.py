"""What is due, as the checks themselves plan it: one case is one check on one stack and fabric."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.history.cost.model import model_seconds
from fabricproof.job.plan.plan_file import PLAN_FILE, read_plan
from fabricproof.job.relations.rounds import LEAST
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

#: what identifies a case from run to run: check, fabric, partition, stack
Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class NetPath:
    """One leg of a case.

    Attributes:
        name: the path in a word: ``rail0+rail1``.
        sizes: the message sizes that are measured, in bytes.
        starts: how often the launcher is started for it, rounds of a relation included.
        seconds: what the effort model says that all of them measure, without any start.
    """

    name: str
    sizes: tuple[int, ...]
    starts: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Case:
    """One job that ReFrame would submit, or why it would not.

    Attributes:
        check: name of the class.
        fabric: of the site, or ``no-<technology>``.
        partition: of the site.
        stack: of the site.
        suite: the suite that would run.
        tags: all tags of the check.
        nodes: nodes that the job takes.
        limit_seconds: the job's time limit.
        net_paths: its legs, in their order.
        skipped: why it would be SKIPPED; empty where it is due.
        lost: why it would be MISSING although it is due; empty where it can run.
    """

    check: str
    fabric: str
    partition: str
    stack: str
    suite: str
    tags: tuple[str, ...]
    nodes: int
    limit_seconds: float
    net_paths: tuple[NetPath, ...] = ()
    skipped: str = ""
    lost: str = ""

    @property
    def key(self) -> Key:
        """What this case is called in every run."""
        return self.check, self.fabric, self.partition, self.stack

    @property
    def is_due(self) -> bool:
        """Whether a job would be submitted."""
        return not self.skipped and not self.lost

    @property
    def technology(self) -> str:
        """The tag of the fabric's technology; ``other`` where the check has none."""
        known = ("infiniband", "ethernet", "memory")
        return next((name for name in known if name in self.tags), "other")


def key_of(record: Mapping[str, Any]) -> Key:
    """Return the key of a test case of ReFrame's report."""
    check = str(record["name"]).split(" ", maxsplit=1)[0]
    return (
        check,
        str(record.get("fabric", "")),
        str(record["partition"]),
        str(record["environ"]),
    )


def read_cases(records: Sequence[Mapping[str, Any]], one_node: Collection[str] = ()) -> list[Case]:
    """Return the cases of a dry run's report; builds and other fixtures are none.

    Args:
        records: the test cases.
        one_node: partitions where all ranks run on one node.

    Raises:
        ParseError: a plan that a check left is damaged.
    """
    ours = [record for record in records if "fabric" in record and not record["fixture"]]
    return [_case(record, one_node) for record in ours]


def _case(record: Mapping[str, Any], one_node: Collection[str]) -> Case:
    check, fabric, partition, stack = key_of(record)
    folder = Path(record["stagedir"] or "")
    is_whole = record["result"] == "pass" and (folder / PLAN_FILE).is_file()
    tasks, per_node = int(record["num_tasks"] or 1), int(record["num_tasks_per_node"] or 1)
    return Case(
        check=check,
        fabric=fabric,
        partition=partition,
        stack=stack,
        suite=str(record["suite"]),
        tags=tuple(sorted(record["tags"])),
        nodes=1 if partition in one_node else -(-tasks // per_node),
        limit_seconds=float(record["time_limit"] or 0),
        net_paths=_net_paths(folder) if is_whole else (),
        skipped=_skipped(record),
        lost="" if is_whole or record["result"] == "skip" else _lost(record),
    )


def _skipped(record: Mapping[str, Any]) -> str:
    if record["result"] != "skip":
        return ""
    return str(record.get("skip_reason") or record.get("fail_reason") or "the check says no more")


def _lost(record: Mapping[str, Any]) -> str:
    # After its first line ReFrame shows where in the source the error was raised.
    words, _, _ = str(record.get("fail_reason") or "").strip().partition("\n")
    return words.rstrip(": ") or "its legs were not planned"


def _net_paths(folder: Path) -> tuple[NetPath, ...]:
    """Return the legs, each with the rounds that a relation measures of it at the least."""
    plan = read_plan(folder)
    legs = {leg.name: leg for leg in plan.legs}
    turns = {leg: turn for each in plan.relations for leg, turn in each.turns.items()}
    net_paths = []
    for leg in plan.legs:
        if leg.in_turn:
            continue
        again = [legs[turns[leg.name]]] * (LEAST - 1) if leg.name in turns else []
        net_paths.append(
            NetPath(
                name=leg.name,
                sizes=leg.expected_sizes,
                starts=sum(len(each.commands) for each in (leg, *again)),
                seconds=sum(model_seconds(each) for each in (leg, *again)),
            )
        )
    return tuple(net_paths)


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
