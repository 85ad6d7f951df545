"""``fabricproof pairs run``: measure every node with others, and say whose fault red is."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from fabricproof.core.measure import Verdict
from fabricproof.core.project import project_root
from fabricproof.core.records import read_json
from fabricproof.core.units import parse_size
from fabricproof.core.whole_file import refusal_of
from fabricproof.history.store import CAMPAIGN_LABEL
from fabricproof.job.evidence.leg_folder import read_text
from fabricproof.job.leg import CAMPAIGN_CHECK
from fabricproof.job.run import (
    RunResult,
    check_scheduler,
    ends_as_interrupt,
    new_run_id,
    session_environment,
    workplace,
)
from fabricproof.pairs import Order
from fabricproof.pairs.campaign.again import reds_of
from fabricproof.pairs.campaign.nodes import (
    Standing,
    ask_leaves,
    ask_standing,
    end_job,
    left_out_by_site,
    once_ended,
    with_nodes,
)
from fabricproof.pairs.campaign.plan import (
    Campaign,
    blank_campaign,
    load,
    only_one,
    save,
    with_rounds,
)
from fabricproof.pairs.campaign.record import LAUNCH_FILE, RECORD_FILE, left_over, measured
from fabricproof.pairs.campaign.verdict import pictures_of
from fabricproof.pairs.check.in_job import JOB_FILE, LOOKS_FILE, confirmed, outcome_of
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

#: reasons of a job that measured nothing, which are shown
_REASONS = 3


@dataclass(frozen=True, kw_only=True)
class _Wishes:
    only: Only
    over: tuple[str, ...] = ()
    full: bool = False
    minutes: float | None = None
    order: str = Order.LEAFWISE.value
    seed: int = 0
    size: str | None = None
    seconds: float | None = None
    both_ways: bool = False
    without: tuple[str, ...] = ()
    skip_out: bool = False


@click.command(name="run", cls=options.OfGroup, epilog=_EPILOG)
@options.site
@options.slurm(*options.SLURM)
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
    slurm: dict[str, str],
    no_confirm: bool,
    resume: str | None,
    files: Mapping[str, Path],
    as_json: bool,
    **wished: Any,
) -> None:
    """Measure every node with others, over each rail and over all, and say whose fault red is.

    On the site's first partition, its first stack and fabric, or those that --only names, by the
    check AllPairsCampaign: one job for all rounds. Nodes that are busy now are left for --resume;
    those that are down are MISSING. What is red is measured again by a stock program in the same
    job before it is called so.
    """
    place = workplace(project_root())
    is_folder = bool(resume and "/" in resume)
    folder = Path(resume or "") if is_folder else place.root / "pairs" / (resume or new_run_id())
    folder = folder.resolve()
    known = load(folder) if resume is not None else None
    site = site_of(site_name or (known.site if known else None))
    if known and known.site_name != site.name:
        raise ConfigError(
            f"campaign {known.id} is of another site, whose links judge it",
            expected=known.site_name,
            got=site.name,
            next_step="leave --site out",
        )
    environment = session_environment(site, place, "pairs")
    check_scheduler(site, environment)
    standing = partial(_standing, environment, slurm)
    if known is None:
        known = _planned(site, _Wishes(**wished), folder.name, environment, standing)
        with refusal_of("make", folder):
            folder.mkdir(parents=True)
        save(folder, known)
    partition = site.partition(known.partition)
    with only_one(folder, "run"), ends_as_interrupt():
        if end_job(read_text(folder / JOB_FILE).strip(), environment):
            _say("cancelled the job that an earlier program left")
        words = [] if not no_confirm else ["-S", f"{CAMPAIGN_CHECK}.confirms=no"]
        # Which nodes a job gets is chosen here.
        words += options.of_slurm({k: v for k, v in slurm.items() if k != "nodelist"})
        notes = _measure(site, folder, partial(standing, partition), words, confirms=not no_confirm)
    outcome, looks = (outcome_of(site, folder), ()) if no_confirm else confirmed(site, folder)
    outcome = replace(outcome, notes=(*notes, *outcome.notes))
    as_data = json.dumps(campaign_record(outcome, looks), indent=2) if as_json else None
    click.echo(as_data or campaign_text(outcome, looks))
    draw(files, pictures_of(outcome))
    sys.exit(int(STATUSES[outcome.verdict]))


def _say(text: str) -> None:
    click.echo(f"[ pairs ] {text}", err=True)


def _standing(
    environment: Mapping[str, str], slurm: Mapping[str, str], partition: PartitionSpec
) -> Standing:
    """Return how the nodes stand that Slurm's options leave to the campaign."""
    reservation, named = slurm.get("reservation", ""), slurm.get("nodelist")
    found = ask_standing(partition, environment, reservation=reservation)
    if named is None:
        return found
    mine = nodes_named(named)
    return Standing(
        free=tuple(node for node in found.free if node in mine),
        busy=tuple(node for node in found.busy if node in mine),
        ending=tuple(node for node in found.ending if node in mine),
        out={node: state for node, state in found.out.items() if node in mine},
    )


def _measure(
    site: Site,
    folder: Path,
    standing: Callable[[], Standing],
    words: Sequence[str],
    *,
    confirms: bool,
) -> tuple[str, ...]:
    """Start the check until nothing is left that can be had now, or a job measures nothing new.

    Returns what the last job says of why something is left.
    """
    notes: tuple[str, ...] = ()
    before = -1
    while True:
        campaign = load(folder)
        done = measured(folder, campaign)
        count = sum(len(record.pairs) for _, record in done.rounds)
        left = left_over(campaign, done)
        is_open = confirms and not left and not (folder / LOOKS_FILE).exists()
        if count == before or not (left or (is_open and reds_of(outcome_of(site, folder)))):
            return notes if left else ()
        before = count
        had = once_ended(campaign.nodes, standing).free
        nodes = tuple(node for node in campaign.nodes if node in had)
        can = any(
            campaign.names(pair) <= set(nodes)
            for rounds in left.values()
            for each in rounds
            for pair in each.pairs
        )
        if len(nodes) < 2 or (left and not can):
            return notes
        (folder / LOOKS_FILE).unlink(missing_ok=True)
        with _followed(folder, campaign):
            result = perform(
                site,
                [*arguments(campaign, folder), *words],
                quiet=True,
                nodes=nodes,
                label=CAMPAIGN_LABEL,
            )
        if result.status == ExitStatus.INTERRUPTED:
            _say(f"interrupted; later: {campaign.resume}")
            sys.exit(int(ExitStatus.INTERRUPTED))
        notes = _reasons(result)


def _reasons(result: RunResult) -> tuple[str, ...]:
    """Return why a job measured nothing, or not all."""
    said = [leg.reason for leg in result.legs if leg.verdict in {Verdict.MISSING, Verdict.SKIPPED}]
    return tuple(dict.fromkeys(filter(None, [result.stopped, *said])))[:_REASONS]


def arguments(campaign: Campaign, folder: Path) -> list[str]:
    """Return ReFrame's options that measure a campaign, and nothing else."""
    return [
        *("-r", f"--system={campaign.site_name}:{campaign.partition}"),
        *("-p", f"^{campaign.stack}$"),
        *("-n", f"^{CAMPAIGN_CHECK}%fabric={campaign.fabric}($|[%~])"),
        *("-S", f"{CAMPAIGN_CHECK}.campaign_folder={folder}"),
    ]


@contextlib.contextmanager
def _followed(folder: Path, campaign: Campaign) -> Iterator[None]:
    """Say of each round that it has been measured, while a job writes the records."""
    said: Counter[Path] = Counter()
    over = threading.Event()

    def look() -> None:
        for path in sorted(folder.glob(f"launch.*/{RECORD_FILE}")):
            ends = [line for line in read_text(path).split("\n")[:-1] if '"record":"end"' in line]
            for line in ends[said[path] :] if path in said or path not in before else ():
                name = campaign.path_name(int(read_json(path.parent / LAUNCH_FILE)["net_path"]))
                _say(f"{name}: round {json.loads(line)['round']}: measured")
            said[path] = len(ends)

    def follow() -> None:
        while not over.wait(1):
            with contextlib.suppress(OSError, ValueError, KeyError):
                look()

    before = set(folder.glob(f"launch.*/{RECORD_FILE}"))
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _planned(
    site: Site,
    wishes: _Wishes,
    name: str,
    environment: Mapping[str, str],
    standing: Callable[[PartitionSpec], Standing],
) -> Campaign:
    where, stack, fabric = _chosen(site, wishes.only)
    blank = blank_campaign(site, where, fabric, stack, name=name)
    blank = replace(
        blank,
        size=parse_size(wishes.size) if wishes.size else blank.size,
        seconds=wishes.seconds or blank.seconds,
        both_ways=wishes.both_ways,
        is_full=wishes.full,
        seed=wishes.seed,
    )
    subject = resolve(site, where, site.stack(stack))
    blank = replace(blank, net_paths=_net_paths(blank, subject, wishes.over))
    campaign = _with_nodes(blank, where, standing(where), wishes)
    campaign = replace(campaign, leaf_of=ask_leaves(campaign.nodes, environment))
    return with_rounds(site, campaign, order=Order(wishes.order), minutes=wishes.minutes or 0)


def _chosen(site: Site, only: Only) -> tuple[PartitionSpec, str, str]:
    """Return partition, stack and fabric: those that ``--only`` names, else the first of each."""
    name = one_fitting("partition", only, [each.name for each in site.partitions])
    where = site.partition(name) if name else site.partitions[0]
    stack = one_fitting("stack", only, where.stacks) or where.stacks[0]
    fabric = one_fitting("fabric", only, where.fabrics) or where.fabrics[0]
    return where, site.stack(stack).name, site.fabric_spec(fabric).name


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


def _with_nodes(
    campaign: Campaign, partition: PartitionSpec, standing: Standing, wishes: _Wishes
) -> Campaign:
    known = {*standing.free, *standing.busy, *standing.out}
    unknown = [each for each in wishes.without if each not in known]
    if unknown:
        raise ConfigError("--without names a node that the partition has not", got=unknown[0])
    left_out = left_out_by_site(partition) | dict.fromkeys(wishes.without, "left out by --without")
    if wishes.skip_out:
        out = {node: f"{state}, and --skip-out" for node, state in standing.out.items()}
        left_out = out | left_out
    found = with_nodes(campaign, standing, left_out)
    if len(found.nodes) < 2:
        got = str(len(found.nodes))
        raise ConfigError("no pair can be made", expected="two nodes or more", got=got)
    return found
