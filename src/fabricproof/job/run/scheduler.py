"""What the scheduler of a site says before a run, and whether a run there can be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.findings import Finding
from fabricproof.core.measure import Verdict
from fabricproof.nodes import slurm
from fabricproof.site import Site
from fabricproof.site.scheduling import asked_partitions, find_troubles, read_traits

#: how long the scheduler may take to say that it is there
SCHEDULER_PATIENCE_SECONDS = 20


def check_scheduler(site: Site, environment: Mapping[str, str]) -> None:
    """Say at once when the scheduler is not there, instead of failing in every check.

    Raises:
        UnavailableError: its command is missing, does not answer, or knows no such partition.
    """
    partitions = [each for each in site.partitions if each.uses_slurm]
    if not partitions:
        return
    hint = site.spec.start_hint or "start Slurm, or choose another site with --site"
    try:
        command = ["sinfo", "-h", "-o", "%P %T %D"]
        answer = slurm.ask(command, environment, seconds=SCHEDULER_PATIENCE_SECONDS)
    except UnavailableError as error:
        expected = error.expected or "a list of partitions from sinfo"
        raise UnavailableError(
            error.problem, source=str(site.folder), expected=expected, got=error.got, next_step=hint
        ) from None
    marked = {line.split()[0] for line in answer.splitlines() if line.strip()}
    known = {name.rstrip("*") for name in marked}
    for partition in partitions:
        asked = set(asked_partitions(partition.access)) or marked - known
        unknown = {name.rstrip("*") for name in asked} - known
        if unknown or not asked:
            raise UnavailableError(
                "Slurm has no such partition" if asked else "Slurm has no default partition",
                source=str(site.folder / "site.toml"),
                expected=f"one of: {', '.join(sorted(known)) or 'none at all'}",
                got=", ".join(map(repr, sorted(unknown))) if asked else "access that names none",
                next_step=f"correct access of partition {partition.name}, or: {hint}",
            )


def scheduler_answers(site: Site, environment: Mapping[str, str]) -> bool:
    """Tell whether the scheduler of ``site`` is there and knows its partitions."""
    try:
        check_scheduler(site, environment)
    except UnavailableError:
        return False
    return True


def scheduling_troubles(site: Site, environment: Mapping[str, str]) -> list[Finding]:
    """Return what this Slurm will not do for the partitions of ``site``, before any job.

    What does not answer is unknown: whether Slurm is there at all says :func:`check_scheduler`.
    """
    if not any(each.uses_slurm for each in site.partitions):
        return []

    def ask(command: Sequence[str]) -> tuple[str, str | None]:
        try:
            return slurm.ask(command, environment, seconds=SCHEDULER_PATIENCE_SECONDS), None
        except UnavailableError as error:
            return "", error.got or error.problem

    commands = [["scontrol", "show", "config"], ["scontrol", "-o", "show", "partition"]]
    if any(each.scheduler == "slurm" for each in site.partitions):
        # The job is not there, and that is an answer; a database that is away is none.
        commands.append(["sacct", "-n", "-X", "-j", "1", "-o", "jobid"])
    with ThreadPoolExecutor() as pool:
        (config, _), (partitions, _), *accounts = pool.map(ask, commands)
    traits = read_traits(config, partitions, accounts[0][1] if accounts else None)
    return [trouble for each in site.partitions for trouble in find_troubles(each, traits)]


def ready_to_run(site: Site, environment: Mapping[str, str]) -> list[Finding]:
    """Return what this Slurm will not do, before a run; raise as the two functions around this."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(scheduling_troubles, site, environment)
        check_scheduler(site, environment)
        troubles = asked.result()
    return refused_troubles(site, troubles)


def refused_troubles(site: Site, troubles: list[Finding]) -> list[Finding]:
    """Return the troubles; refuse a run of which no number would count.

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
    return troubles
