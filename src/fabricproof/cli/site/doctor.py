"""``fabricproof stack doctor``: explain what a stack will use, before anything runs."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from fabricproof.cli import options
from fabricproof.cli.output import emit
from fabricproof.core.errors import ConfigError
from fabricproof.core.project import project_root
from fabricproof.job.run import session_environment, workplace
from fabricproof.nodes.doctor import (
    diagnose,
    examine,
    exit_status,
    heading,
    make_shell,
    node_launcher,
    plain_lines,
    record,
    start_world,
    summary,
)
from fabricproof.site import site_of
from fabricproof.stacks.stack import ResolvedStack, resolve, with_build_checked


@click.command(
    name="doctor",
    cls=options.OfGroup,
    epilog="Exit status: 0 without FAIL or MISSING; 69 where what should be examined is MISSING "
    "(stack not installed or built, module not found, Slurm or the node does not answer); 78 with "
    "a FAIL. UNJUDGED is never PASS, and never a FAIL.",
)
@click.argument("name")
@options.of_group("site_name", "as_json")
@click.option(
    "--partition",
    "partition_name",
    metavar="NAME",
    help="Partition of Slurm.  [default: the first that has the stack]",
)
@click.option("--on-node", is_flag=True, help="Look at a node of the partition, not this machine.")
@click.option("--run", "live", is_flag=True, help="Also start two ranks, and ask for their world.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.IntRange(1, 3600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long --on-node and --run wait for nodes.",
)
@options.everything
def command(
    name: str,
    site_name: str | None,
    partition_name: str | None,
    on_node: bool,
    live: bool,
    wait_seconds: int,
    whole: bool,
    as_json: bool,
) -> None:
    r"""Explain what the stack NAME will use before anything runs, and what would go wrong.

    The MPI library is asked itself (version, UCX transports, libfabric providers), its PMI is
    compared with Slurm's, the programs' libraries and the rails of fabric.toml are looked up.
    Every finding says what was seen and by which command, what it means, and the line that
    mends it.

    \b
    fabricproof stack doctor openmpi5 --on-node
    fabricproof stack doctor intelmpi --site mysite --partition gpu --on-node --run --json
    """
    subject, environment = _prepare(name, site_name, partition_name)
    here = make_shell(environment)
    node = None
    if on_node and subject.partition.uses_slurm:
        node = make_shell(environment, node_launcher(subject, wait_seconds))
    facts = examine(subject, here, node, wait_seconds=wait_seconds)
    if live and not subject.absent and subject.launch is not None:
        folder = workplace(project_root()).root / "doctor"
        world = start_world(subject, environment, folder, wait_seconds=wait_seconds)
        facts = replace(facts, world=world)
    findings = diagnose(facts)
    # Forced variables are shown with --all only.
    shown = [each for each in findings if whole or each.verdict or each.fact != "setting"]
    end = summary(findings, hidden=len(findings) - len(shown))
    lines = [heading(facts), *plain_lines(shown), end]
    emit(record(facts, findings), lines, as_json=as_json)
    sys.exit(int(exit_status(findings)))


def _prepare(
    name: str, site_name: str | None, partition_name: str | None
) -> tuple[ResolvedStack, dict[str, str]]:
    """Return what is examined, and the environment of the site's commands."""
    site = site_of(site_name)
    stack = site.stack(name)
    having = [each for each in site.partitions if name in each.stacks]
    if not having and not partition_name:
        raise ConfigError(
            f"no partition has the stack {name!r}",
            source=str(site.folder / "site.toml"),
            expected=f'stacks = [..., "{name}"] in a partition, or --partition',
        )
    partition = site.partition(partition_name) if partition_name else having[0]
    environment = session_environment(site, workplace(project_root()), "doctor")
    return with_build_checked(resolve(site, partition, stack), site), environment
