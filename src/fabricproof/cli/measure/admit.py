"""``fabricproof admit``: whether users may have a node that is new or was repaired."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from fabricproof.cli import options
from fabricproof.cli.measure.run import perform
from fabricproof.cli.output import STATUSES, Only, emit, one_fitting, only_option
from fabricproof.cli.selection import nodes_named
from fabricproof.core.errors import ConfigError
from fabricproof.core.project import project_root
from fabricproof.history.store import ADMISSION_LABEL
from fabricproof.job.run import check_scheduler, session_environment, workplace
from fabricproof.nightly.admission import AdmissionMeans, Admittance, admit
from fabricproof.nightly.admission import plan as plan_of
from fabricproof.pairs.campaign.nodes import ask_leaves, ask_standing
from fabricproof.report.text.drain import Blamed
from fabricproof.site import site_of

_EPILOG = """\b
Examples:
  fabricproof admit n17                        # measure it with partners on other leaves
  fabricproof admit n[101-116] --plan          # what that would cost; nothing is started
  fabricproof admit n17 --reservation admit-n17    # while users are kept away
  fabricproof admit n17 --with n[1-4]          # with these partners and no others

A drained node gets no job: the output then has the lines that put it into a reservation.  Nothing
is changed in Slurm; what is to be run by a person is printed with a # before it.

The worst verdict of the nodes is the exit status: 0 PASS (users may have them), 1 FAIL, 3 INVALID
(traffic took another path), 4 MISSING (not measured, or with fewer than two good partners),
5 UNJUDGED (low, and nobody knows whose fault; or too few packets to rule out losses); 69 no Slurm,
78 no such node or a wrong option, 130 interrupted.
"""


@click.command(name="admit", epilog=_EPILOG)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@options.site
@only_option("partition")
@click.option("--with", "partners", metavar="LIST", help="Partners; none else is taken.")
@options.slurm("reservation", "account", "qos")
@click.option("--plan", "only_plan", is_flag=True, help="Say what it would cost, and stop.")
@options.as_json
def command(
    nodes: tuple[str, ...],
    site_name: str | None,
    only: Only,
    partners: str | None,
    slurm: dict[str, str],
    *,
    only_plan: bool,
    as_json: bool,
) -> None:
    """Say whether users may have nodes that are new or were repaired.

    Each is looked at and measured over every rail with four partners, on other leaves where there
    are any, until so many packets went that a loss of 1 in 10,000 would show.  The partners measure
    among themselves too: a node is held against them, never against itself, and a partner that is
    bad is replaced.
    """
    names = tuple(dict.fromkeys(each for words in nodes for each in nodes_named(words)))
    chosen = nodes_named(partners) if partners else ()
    if both := [each for each in chosen if each in names]:
        raise ConfigError("--with names a node that is to be admitted", got=both[0])
    site = site_of(site_name)
    partition = one_fitting("partition", only, [each.name for each in site.partitions])
    spec = site.partition(partition) if partition else site.partitions[0]
    environment = session_environment(site, workplace(project_root()), "admit")
    check_scheduler(site, environment)

    def leaf_of(asked: Sequence[str]) -> Mapping[str, str]:
        found = ask_leaves(asked, environment)
        return dict(zip(asked, found, strict=True)) if found else {}

    reservation, words = slurm.get("reservation", ""), options.of_slurm(slurm)
    means = AdmissionMeans(
        site=site,
        partition=spec,
        run=lambda asked, where: perform(
            site, [*asked, *words], quiet=as_json, nodes=where, label=ADMISSION_LABEL
        ),
        standing=lambda: ask_standing(spec, environment, reservation=reservation),
        leaf_of=leaf_of,
        say=lambda text: click.echo(f"[ admit ] {text}", err=True),
        drain=_drain_line,
        reservation=reservation,
        partners=chosen,
    )
    if only_plan:
        lines = plan_of(names, means)
        emit({"plan": lines}, lines, as_json=as_json)
        return
    found = admit(names, means)
    emit(found.record(), _lines(found), as_json=as_json)
    sys.exit(found.status or int(STATUSES[found.verdict]))


def _drain_line(node: str, run_id: str, reason: str) -> str:
    return Blamed(node=node, run_id=run_id, rails=(), reason=reason, evidence=()).line


def _lines(found: Admittance) -> Iterator[str]:
    for each in found.nodes:
        yield f"{each.verdict.value}: {each.node}: {each.reasons[0]}"
        yield from (f"  {reason}" for reason in each.reasons[1:])
        yield from (f"  note: {note}" for note in each.notes)
        yield from (f"  {line}" for line in each.lines)
    for partner, reason in found.bad_partners.items():
        yield f"no partner: {partner}: {reason}"
    for run_id, partners in found.runs:
        yield f"run {run_id or '(none)'} with {', '.join(partners)}"
