"""``fabricproof stack doctor``: explain what a stack will use, before anything runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from fabricproof.cli import options
from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import Finding
from fabricproof.core.project import project_root
from fabricproof.job.run import session_environment, workplace
from fabricproof.nodes.doctor import (
    Facts,
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
    facts = _examine(subject, environment, on_node=on_node, live=live, wait_seconds=wait_seconds)
    findings = diagnose(facts)
    if as_json:
        click.echo(json.dumps(record(facts, findings), indent=2))
    else:
        _show(facts, findings, everything=whole)
    sys.exit(int(exit_status(findings)))


def _prepare(
    name: str, site_name: str | None, partition_name: str | None
) -> tuple[ResolvedStack, dict[str, str]]:
    """Return what is examined, and the environment of the site's commands."""
    site = site_of(site_name)
    stack = site.stack(name)
    having = [each for each in site.partitions if name in each.stacks]
    if partition_name:
        partition = site.partition(partition_name)
    elif having:
        partition = having[0]
    else:
        raise ConfigError(
            f"no partition has the stack {name!r}",
            source=str(site.folder / "site.toml"),
            expected=f'stacks = [..., "{name}"] in a partition, or --partition',
        )
    environment = session_environment(site, workplace(project_root()), "doctor")
    return with_build_checked(resolve(site, partition, stack), site), environment


def _examine(
    subject: ResolvedStack,
    environment: dict[str, str],
    *,
    on_node: bool,
    live: bool,
    wait_seconds: int,
) -> Facts:
    here = make_shell(environment)
    node = None
    if on_node and subject.partition.uses_slurm:
        node = make_shell(environment, node_launcher(subject, wait_seconds))
    facts = examine(subject, here, node, wait_seconds=wait_seconds)
    if not live or subject.absent or subject.launch is None:
        return facts
    folder = workplace(project_root()).root / "doctor"
    world = start_world(subject, environment, folder, wait_seconds=wait_seconds)
    return replace(facts, world=world)


def _show(facts: Facts, findings: Sequence[Finding], *, everything: bool) -> None:
    shown = findings if everything else _without_noise(findings)
    click.echo(heading(facts))
    click.echo("\n".join(plain_lines(shown)))
    click.echo(summary(findings, hidden=len(findings) - len(shown)))


def _without_noise(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without what only --all shows: forced variables."""
    return [each for each in findings if each.verdict or each.fact != "setting"]
