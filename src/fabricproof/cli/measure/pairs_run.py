"""``fabricproof pairs run``: measure every node with others, and say whose fault red is."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.measure.pairs_display import PICTURE, campaign_record, campaign_text, draw
from fabricproof.cli.measure.run import perform
from fabricproof.cli.output import STATUSES, Only, one_fitting, only_option
from fabricproof.cli.selection import nodes_named
from fabricproof.core.errors import ConfigError, ExitStatus
from fabricproof.core.project import project_root
from fabricproof.core.records import record_files
from fabricproof.core.units import natural
from fabricproof.core.whole_file import refusal_of
from fabricproof.history.store import LOOK_LABEL
from fabricproof.job.run import (
    RunResult,
    Workplace,
    check_scheduler,
    ends_as_interrupt,
    new_run_id,
    read_run,
    session_environment,
    workplace,
)
from fabricproof.pairs import Leaves, Order
from fabricproof.pairs.campaign.conduct import (
    Means,
    blank_campaign,
    conduct,
    default_size,
    pairs_at_once,
    planned_rounds,
    rounds_for,
    seconds_of_round,
    take_over,
)
from fabricproof.pairs.campaign.confirm import Confirmation, by_check, confirm, share_of_leg
from fabricproof.pairs.campaign.further import all_on_one
from fabricproof.pairs.campaign.ledger import Campaign, load, only_one, save
from fabricproof.pairs.campaign.nodes import Standing, ask_leaves, ask_standing
from fabricproof.pairs.campaign.verdict import pictures_of, places_of
from fabricproof.site import PartitionSpec, Site, site_of
from fabricproof.stacks.stack import ResolvedStack, resolve

_EPILOG = """\b
Examples:
  fabricproof pairs run                        # six rounds over each rail, then over all of them
  fabricproof pairs run --over rail0 --full    # every pair over one rail
  fabricproof pairs run --over all --for 30    # half an hour under load shows rare losses
  fabricproof pairs run --without n[7-8]       # these are left out on purpose: SKIPPED
  fabricproof pairs run --resume ID            # what is left: busy nodes, a job that was killed

The worst verdict is the exit status: 0 PASS, 1 FAIL (red, and a stock program saw it too),
3 INVALID (a path that was not taken, a value that physics forbids), 4 MISSING (a node or a pair
that was not measured), 5 UNJUDGED (no proof, no reference, or red that no stock program saw);
65 damaged record, 66 no such campaign, 69 no Slurm, 75 the campaign goes on elsewhere, 78 a wrong
option, 130 interrupted: what was measured is kept.
"""


@dataclass(frozen=True, kw_only=True)
class _Wishes:
    only: Only
    over: tuple[str, ...]
    full: bool
    minutes: float | None
    order: str
    seed: int
    size: str | None
    seconds: float | None
    both_ways: bool
    without: tuple[str, ...]
    skip_out: bool


@click.command(name="run", cls=options.OfGroup, epilog=_EPILOG)
@options.site
@only_option("partition", "stack", "fabric")
@click.option(
    "--over",
    multiple=True,
    metavar="each|all|RAIL",
    help="Each rail by itself, all at once, or one. Repeatable (default: each, then all).",
)
@click.option("--full", is_flag=True, help="Every pair, and not the ladder of six to ten rounds.")
@click.option(
    "--for",
    "minutes",
    type=options.RealNumber(0, 10_000, min_open=True),
    metavar="MINUTES",
    help="Then every pair again and again, so long in all, which shows rare losses.",
)
@options.order
@options.count("--seed", 0, "Of the rounds.")
@click.option("--size", metavar="SIZE", help="Large message (default: the partition's largest).")
@click.option(
    "--seconds",
    type=options.RealNumber(0, 600, min_open=True),
    metavar="S",
    help="For one measurement of a pair (default: the partition's leg_seconds).",
)
@click.option("--both-ways", is_flag=True, help="Also both ways at once.")
@click.option(
    "--without",
    callback=lambda _context, _option, text: nodes_named(text) if text else (),
    metavar="LIST",
    help="Nodes left out on purpose: SKIPPED.",
)
@click.option("--skip-out", is_flag=True, help="Nodes that are down or drained are SKIPPED, too.")
@click.option("--no-confirm", is_flag=True, help="Call red what the kernel alone saw.")
@click.option(
    "--resume",
    metavar="ID|FOLDER",
    help="Go on with a campaign, or with that of a check's job; other options do not count.",
)
@PICTURE
@options.of_group("as_json")
def run(
    site_name: str | None,
    no_confirm: bool,
    resume: str | None,
    files: Mapping[str, Path],
    as_json: bool,
    **wished: Any,
) -> None:
    """Measure every node with others, over each rail and over all, and say whose fault red is.

    On the site's first partition, its first stack and fabric, or those that --only names. One job
    for all rounds over a rail. Nodes that are busy now are left for --resume; those that are down
    are MISSING. What is red is measured again by a stock program before it is called so.
    """
    wishes = _Wishes(**wished)
    place = workplace(project_root())
    folder = _folder(place, resume)
    known = load(folder) if resume is not None else None
    site = _site(site_name, known)
    environment = session_environment(site, place, "pairs")
    check_scheduler(site, environment)
    campaign = known or _planned(site, wishes, folder, environment)
    means = Means(
        site=site,
        subject=_subject(site, campaign),
        folder=folder,
        environment=environment,
        standing=lambda: ask_standing(site.partition(campaign.partition), environment),
        say=lambda text: click.echo(f"[ pairs ] {text}", err=True),
    )
    with only_one(folder), ends_as_interrupt():
        if known:
            take_over(means)
        outcome = conduct(campaign, means)
        looks: tuple[Confirmation, ...] = ()
        if not no_confirm:
            look = by_check(outcome, partial(_looked, site), partial(_taken, site, place))
            outcome, looks = confirm(outcome, look)
    as_data = json.dumps(campaign_record(outcome, looks), indent=2) if as_json else None
    click.echo(as_data or campaign_text(outcome, looks))
    draw(files, pictures_of(outcome))
    sys.exit(int(STATUSES[outcome.verdict]))


def _site(named: str | None, known: Campaign | None) -> Site:
    site = site_of(named or (known.site if known else None))
    if known and known.site_name != site.name:
        raise ConfigError(
            f"campaign {known.id} is of another site, whose links judge it",
            expected=known.site_name,
            got=site.name,
            next_step="leave --site out",
        )
    return site


def _folder(place: Workplace, resume: str | None) -> Path:
    """Return the folder of a new campaign, or of the one to go on with, which a check's job has."""
    if resume and "/" in resume:
        return Path(resume).resolve()
    return place.root.resolve() / "pairs" / (resume or new_run_id())


def _looked(site: Site, asked: Sequence[str], nodes: tuple[str, ...]) -> RunResult | None:
    done = perform(site, asked, quiet=True, nodes=nodes, label=LOOK_LABEL)
    if done.status == ExitStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return None if done.left_nothing else done


def _taken(site: Site, place: Workplace, run_id: str, leg: str) -> float:
    """Return what share of a leg's time others cost it at most, by the records of its run."""
    records, _ = read_run(record_files(place.perflogs / site.name), run_id)
    return share_of_leg(records, leg)


def _planned(site: Site, wishes: _Wishes, folder: Path, environment: Mapping[str, str]) -> Campaign:
    where, stack, fabric = _chosen(site, wishes.only)
    blank = blank_campaign(site, where, fabric, stack, name=folder.name)
    blank = replace(
        blank,
        size=default_size(site, where.name, wishes.size),
        seconds=wishes.seconds or blank.seconds,
        both_ways=wishes.both_ways,
        is_full=wishes.full,
        seed=wishes.seed,
    )
    net_paths = _net_paths(blank, _subject(site, blank), wishes.over)
    standing = ask_standing(where, environment)
    campaign = _with_nodes(replace(blank, net_paths=net_paths), standing, wishes)
    campaign = replace(campaign, leaf_of=ask_leaves(campaign.nodes, environment))
    leaves = places_of(campaign) or all_on_one(len(campaign.nodes))
    at_once = pairs_at_once(site, campaign, os.cpu_count() or 1)
    campaign = _with_rounds(site, replace(campaign, at_once=at_once), leaves, wishes)
    _begin(folder, campaign)
    return campaign


def _with_rounds(site: Site, campaign: Campaign, leaves: Leaves, wishes: _Wishes) -> Campaign:
    """Return the campaign with its rounds: a ladder or every pair, and more of them for so long."""
    how: dict[str, Any] = {
        "order": Order(wishes.order),
        "seed": wishes.seed,
        "at_once": campaign.at_once,
    }
    num_paths = len(campaign.net_paths)
    rounds = planned_rounds(leaves, num_paths, is_full=wishes.full, **how)
    # However short it is to be, it reaches the nodes that it would without.
    left = int(60 * (wishes.minutes or 0) / seconds_of_round(site, campaign)) - len(rounds)
    more = rounds_for(leaves, num_paths, count=max(left, 0), **how)
    added = (replace(each, number=len(rounds) + each.number) for each in more)
    return replace(campaign, rounds=(*rounds, *added))


def _chosen(site: Site, only: Only) -> tuple[PartitionSpec, str, str]:
    """Return partition, stack and fabric: those that ``--only`` names, else the first of each."""
    name = one_fitting("partition", only, [each.name for each in site.partitions])
    where = site.partition(name) if name else site.partitions[0]
    stack = one_fitting("stack", only, where.stacks) or where.stacks[0]
    fabric = one_fitting("fabric", only, where.fabrics) or where.fabrics[0]
    return where, site.stack(stack).name, site.fabric_spec(fabric).name


def _begin(folder: Path, campaign: Campaign) -> None:
    with refusal_of("make", folder):
        folder.mkdir(parents=True)
    save(folder, campaign)


def _subject(site: Site, campaign: Campaign) -> ResolvedStack:
    partition: PartitionSpec = site.partition(campaign.partition)
    return resolve(site, partition, site.stack(campaign.stack))


def _net_paths(
    campaign: Campaign, subject: ResolvedStack, over: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    mine = [net_path for net_path in subject.net_paths if net_path.fabric == campaign.fabric]
    able = [net_path.rails for net_path in mine if not net_path.refusal]
    wanted: dict[tuple[str, ...], None] = {}
    for each in over or ("each", "all"):
        chosen: list[tuple[str, ...]]
        if each == "each":
            chosen = [net_path.rails for net_path in mine if len(net_path.rails) == 1]
        elif each == "all":
            widest = max(mine, key=lambda net_path: len(net_path.rails))
            chosen = [widest.rails] if over or widest.rails in able else []
        else:
            chosen = [tuple(each.split("+"))]
        wanted |= dict.fromkeys(chosen)
    for rails in wanted:
        if rails not in able:
            why = next(
                (net_path.refusal for net_path in mine if net_path.rails == rails), "there is none"
            )
            raise ConfigError(
                f"{campaign.stack} cannot measure over {'+'.join(rails)}: {why}",
                source=subject.source,
                expected=" or ".join("+".join(each) for each in able) or "a rail",
            )
    return tuple(wanted)


def _with_nodes(campaign: Campaign, standing: Standing, wishes: _Wishes) -> Campaign:
    known = {*standing.free, *standing.busy, *standing.out}
    unknown = [each for each in wishes.without if each not in known]
    if unknown:
        raise ConfigError("--without names a node that the partition has not", got=unknown[0])
    skipped = dict.fromkeys(wishes.without, "left out by --without")
    out = {node: state for node, state in standing.out.items() if node not in skipped}
    if wishes.skip_out:
        skipped |= {node: f"{state}, and --skip-out" for node, state in out.items()}
        out = {}
    usable = {*standing.free, *standing.busy} - set(skipped)
    if len(usable) < 2:
        raise ConfigError("no pair can be made", expected="two nodes or more", got=str(len(usable)))
    return replace(campaign, nodes=tuple(sorted(usable, key=natural)), out=out, skipped=skipped)
