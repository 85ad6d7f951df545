"""What a run would start, as the checks themselves plan it, and what its jobs took last time.

One case is one check on one stack and fabric.  ReFrame is asked in a dry run in which each check
tells its plan and is skipped, so that a new check needs nothing to be planned.
"""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.records import read_json
from fabricproof.core.units import by_key
from fabricproof.job.run import (
    LISTENS_VARIABLE,
    PLANS_VARIABLE,
    Workplace,
    heard,
    new_run_id,
    read_report,
    run_reframe,
    session_environment,
    unloadable,
)
from fabricproof.site import Site
from fabricproof.site.roll import with_whole_stacks

#: the levels, from the smallest to the one that leaves nothing out: what is run how often; each is
#: run with all that follow it
LEVELS = ("quick", "nightly", "full")

#: what identifies a case from run to run: check, fabric, partition, stack
Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One job that ReFrame would submit, or why it would not.

    Attributes:
        check: name of the class.
        fabric: of the site, or ``no-<technology>``.
        tags: all tags of the check.
        nodes: nodes that the job takes.
        limit_seconds: its time limit.
        legs: names of its legs, in their order.
        skipped: why it would be SKIPPED; empty where it is due.
        lost: why it would be MISSING although it is due; empty where it can run.
    """

    check: str
    fabric: str
    partition: str
    stack: str
    tags: tuple[str, ...] = ()
    nodes: int = 0
    limit_seconds: float = 0.0
    legs: tuple[str, ...] = ()
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


def _key(record: Mapping[str, Any]) -> Key:
    """Return the key of a test case of ReFrame's report, or of what a check tells."""
    check = str(record["name"]).split(" ", maxsplit=1)[0]
    fabric = str(record.get("fabric", ""))
    return check, fabric, str(record["partition"]), str(record["environ"])


def _name(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(record["unique_name"]), str(record["partition"]), str(record["environ"])


def _names(key: Key) -> dict[str, Any]:
    return dict(zip(("check", "fabric", "partition", "stack"), key, strict=True))


def ask_reframe(
    site: Site, project: Path, tags: Sequence[str] = (), stacks: str | None = None
) -> list[Case]:
    """Return the cases of the site as the checks plan them, due or not.

    Raises:
        ConfigError: a check file cannot be loaded; a plan of the others would be too cheap.
        UnavailableError: ReFrame ended without saying what it would run.
        ParseError: its report is damaged.
    """
    one_node = {each.name for each in site.partitions if each.same_node}
    # By ReFrame's own names: variants of a check have one key.
    cases: dict[tuple[str, str, str], Case] = {}
    lines: list[str] = []

    def take(line: str) -> None:
        if (event := heard(line)) is None:
            lines.append(line)
            return
        facts = event[1]
        cases[_name(facts)] = Case(
            **_names(_key(facts)),
            tags=tuple(facts["tags"]),
            nodes=1 if facts["partition"] in one_node else int(facts["num_nodes"]),
            limit_seconds=float(facts["time_limit"]),
            legs=tuple(facts["legs"]),
        )

    with tempfile.TemporaryDirectory(prefix="fabricproof-plan-") as name:
        place = Workplace(project=project, root=Path(name), perflogs=Path(name, "perflogs"))
        run_id = new_run_id()
        environment = session_environment(site, place, run_id)
        environment |= {LISTENS_VARIABLE: "1", PLANS_VARIABLE: "1"}
        chosen = with_whole_stacks(["-p", stacks] if stacks else [], [s.name for s in site.stacks])
        wanted = [word for tag in tags for word in ("-t", tag)]
        status = run_reframe(["--dry-run", *wanted, *chosen], environment, take)
        if broken := list(unloadable(lines)):
            raise ConfigError(broken[0], source=str(project / "checks"), next_step="mend it")
        if place.report_file(run_id).exists():
            return [*cases.values(), *_not_planned(read_report(place.report_file(run_id)), cases)]
    if any("Running 0 check(s)" in line for line in lines):
        return []
    raise UnavailableError(
        f"ReFrame did not say what it would run, it ended with status {status}",
        expected="the report of a dry run",
        got=" ".join(" ".join(lines[-3:]).split())[:300] or "nothing",
    )


def _not_planned(
    records: Iterable[Mapping[str, Any]], planned: Container[tuple[str, str, str]]
) -> Iterable[Case]:
    """Yield the cases of ReFrame's report that told no plan; builds and other fixtures are none."""
    for record in records:
        key = _key(record)
        if "fabric" not in record or record["fixture"] or _name(record) in planned:
            continue
        reason = str(record.get("fail_reason") or "")
        if record["result"] == "skip":
            skipped = str(record.get("skip_reason") or reason or "the check says no more")
            yield Case(**_names(key), skipped=skipped)
        else:
            # After its first line ReFrame shows where in the source the error was raised.
            lost = reason.strip().partition("\n")[0].rstrip(": ") or "its legs were not planned"
            yield Case(**_names(key), lost=lost)


def last_seconds(
    perflogs: Path, site: str, cases: Iterable[Case]
) -> tuple[dict[Key, float], list[str]]:
    """Return what the job of each case took in its newest run, and notes on damaged reports.

    That is from submission to end, in seconds, as ReFrame reports it: waiting in the queue is in
    it.  A case without a finished job has none.  Reports are read from the newest on, until each
    case has one.
    """
    wanted = {case.key for case in cases if case.is_due}
    found: dict[Key, float] = {}
    notes = []
    for path in sorted((perflogs / "reports").glob("*.json"), reverse=True):
        if not wanted - found.keys():
            break
        try:
            runs = read_json(path)["runs"]
            for record in (each for run in runs for each in run["testcases"]):
                begin, end = record.get("job_submit_time"), record.get("job_completion_time_unix")
                if begin and end and record["system"] == site and "fabric" in record:
                    found.setdefault(_key(record), max(0.0, float(end) - float(begin)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            notes.append(f"{path}: no readable report, passed over")
    return {key: found[key] for key in wanted & found.keys()}, notes


def refusals(cases: Sequence[Case]) -> list[tuple[str, str, list[Case]]]:
    """Return (SKIPPED or MISSING, reason, cases) of what would not run, the most frequent first."""
    rows = []
    for word, name in (("SKIPPED", "skipped"), ("MISSING", "lost")):
        by_reason = by_key((getattr(case, name), case) for case in cases if getattr(case, name))
        ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
        rows += [(word, reason, these) for reason, these in ordered]
    return rows
