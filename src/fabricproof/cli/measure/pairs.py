"""``fabricproof pairs``: every node with every node, and whose fault a slow pair is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.judge.judge import fraction, given_references
from fabricproof.cli.measure.pairs_display import PICTURE, drain_line, draw
from fabricproof.cli.measure.pairs_run import run
from fabricproof.cli.output import STATUSES, fabric_option
from fabricproof.cli.selection import nodes_named
from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.units import first_few, natural
from fabricproof.nodes.topology import parse_topology
from fabricproof.pairs import (
    MORE_ROUNDS,
    USUAL_ROUNDS,
    Judged,
    Leaves,
    Order,
    Said,
    Schedule,
    Score,
    Setting,
    healthy_words,
    judge_matrix,
    leaves_by_name,
    leaves_of,
    limits_of,
    loads_of,
    picture_of,
    population_lines,
    populations_of,
    read_matrix,
    run_campaign,
    say,
    score,
    text_map,
)
from fabricproof.pairs.campaign.plan import plan_steps, round_seconds
from fabricproof.physics import Fabric
from fabricproof.site import PartitionSpec

#: time budget of one measurement where a site says nothing else, in seconds
LEG_SECONDS: float = PartitionSpec.model_fields["leg_seconds"].default

_JUDGE_EPILOG = """\b
Examples:
  fabricproof pairs judge matrix.csv                        # whose fault is what is slow
  fabricproof pairs judge matrix.csv --unit us              # values are latencies
  fabricproof pairs judge matrix.csv --link 'HDR 4x'        # and is the level good enough
  fabricproof pairs judge matrix.csv --reference '24 GB/s' --tolerance 5%
  fabricproof pairs judge matrix.csv --leaves topo --spines 16 -o matrix.svg

\b
FILE is a CSV with a header; columns in any order, others are ignored:
  a,b       two nodes; the row is what a sends to b
  value     a number; empty where the pair was not measured
  rail, round, size, unit, direction    where there; direction is ab, ba or both
Usual other names are understood, and a unit beside the value: source,destination,latency_us.
A pair that stands once, in a file without direction, is both ways, unless a quarter of the pairs
stand twice.  More than half of all pairs: the file means to be whole, and what it lacks is MISSING.
FILE may also be Parquet with these columns, the output of LinkTest 1.2 or mpiGraph, or mapping.dat
and gnuplotinput.dat of LinkTest's pingponganalysis, one after the other.

The exit status is 0 only for PASS: nobody stands out, and --link or --reference says that the
level is good. 1 FAIL (somebody is blamed, or the level is too low), 3 INVALID (a value that
physics forbids), 4 MISSING (pairs without a value, or a cut output), 5 UNJUDGED (nobody stands
out, and nobody said how fast it should be) and UNDECIDED (something is low, and the matrix cannot
tell whose fault it is); 65 damaged data, 66 no such file, 74 cannot write, 78 a wrong option.
"""


@click.group(name="pairs", cls=options.HelpGroup)
@options.as_json
def command(**_: object) -> None:
    """Every node with every node: rounds, and whose fault a slow pair is.

    ``judge`` needs nothing but a file.  docs/pairs.md says how to read it.
    """


command.add_command(run)


def _read_leaves(name: str) -> dict[str, str]:
    """Read node -> leaf from ``scontrol show topology`` or a CSV of ``node,leaf``."""
    try:
        text = Path(name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputMissingError(
            f"cannot read: {error.strerror}",
            source=name,
            expected="node,leaf rows, or what scontrol show topology prints",
        ) from None
    if "=" in text:
        topology = parse_topology(text, name)
        return {node: topology.leaf(node) for node in topology.nodes}
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip() for field in line.split(",")]
        if not line.strip() or line.startswith("#") or fields == ["node", "leaf"]:
            continue
        if len(fields) != 2 or not all(fields) or found.get(fields[0], fields[1]) != fields[1]:
            raise ConfigError(
                "no row of node and leaf",
                source=name,
                line=number,
                expected="node,leaf, each node once",
                got=repr(line),
            )
        found[fields[0]] = fields[1]
    return found


@command.command(name="judge", epilog=_JUDGE_EPILOG)
@click.argument("file", metavar="FILE")
@fabric_option(required=False)
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="[QUANTITY=]VALUE",
    help="What a pair should reach: '24 GB/s', 'latency=2 us'. Repeatable.",
)
@click.option(
    "--tolerance",
    callback=fraction,
    metavar="FRACTION",
    help="A pair is low from this part off on, 0.1 or 10% (default 10% bandwidth, 20% latency).",
)
@click.option("--unit", default="", metavar="UNIT", help="Unit of rows that name none: 'us'.")
@options.leaves
@options.spines
@PICTURE
@options.of_group("as_json")
def judge(
    file: str,
    references: tuple[str, ...],
    tolerance: float | None,
    unit: str,
    leaves: str | None,
    spines: int,
    files: Mapping[str, Path],
    as_json: bool,
    fabric: Fabric | None,
) -> None:
    """Give a verdict on a matrix of pairs, and say whose fault low ones are.

    FILE is a CSV of a,b,value that anybody's program wrote, or what LinkTest or mpiGraph printed
    ('-' for standard input).
    """
    given = given_references(references, tolerance)
    if spines and leaves is None:
        raise ConfigError("--spines says nothing without the leaves", expected="--leaves FILE")
    matrix = read_matrix(file, unit=unit)
    limits = limits_of(matrix, fabric=fabric, references=given, tolerance=tolerance)
    places = leaves_by_name(matrix.nodes, _read_leaves(leaves), spines) if leaves else None
    judged = judge_matrix(matrix, leaves=places, limits=limits)
    said = say(judged)
    click.echo(json.dumps(_record(judged, said), indent=2) if as_json else _text(judged, said))
    draw(files, [picture_of(judged, said, matrix.origin)])
    sys.exit(int(STATUSES[judged.verdict.as_verdict]))


def _record(judged: Judged, said: Said) -> dict[str, Any]:
    matrix = judged.matrix
    quantities = dict.fromkeys(kind.quantity for kind in matrix.kinds)
    return {
        "verdict": judged.verdict.value,
        "quantity": " and ".join(quantities) or "nothing",
        "reason": judged.reason,
        "nodes": len(matrix.nodes),
        "rails": [rail for rail in matrix.rails if rail],
        "measured": len(matrix),
        "missing": list(matrix.missing),
        "contention": judged.is_contention,
        "healthy": [
            {
                "quantity": matrix.kinds[kind].quantity,
                "size": matrix.kinds[kind].size or None,
                "rail": matrix.rails[rail] or None,
                "value": value,
                "unit": matrix.kinds[kind].unit or None,
            }
            for (kind, rail), value in sorted(judged.yardsticks.items())
        ],
        "population": [each.record() for each in populations_of(judged)],
        "blame": [{**each.record(), "drain": drain_line(each) or None} for each in said.blame],
        "undecided": [each.record() for each in said.undecided],
        "findings": list(said.findings),
    }


def _text(judged: Judged, said: Said) -> str:
    matrix = judged.matrix
    lines = [f"{judged.verdict.value}: {judged.reason}"]
    lines += healthy_words(judged)
    for each in said.blame:
        lines += ["", f"{each.kind.value}: {each.sentence} (confidence {each.confidence:.3g})"]
        if each.cannot_tell_from:
            lines.append(f"  cannot be told from: {', '.join(each.cannot_tell_from)}")
        lines.append(f"  would tell: {each.would_tell}")
        drain = drain_line(each)
        if drain:
            lines.append(f"  {drain}")
    for entry in said.undecided:
        lines += ["", f"undecided: {entry.sentence}", f"  would tell: {entry.would_tell}"]
    table = population_lines(populations_of(judged))
    lines += ["", *table] if table else []
    if said.findings:
        lines += ["", *said.findings]
    drawn = "" if matrix.is_selection else text_map(judged)
    return "\n".join([*lines, *(["", drawn] if drawn and len(matrix) else [])])


@command.command(name="plan")
@click.option("--nodes", metavar="N|LIST", help="How many nodes, or 'n[001-128]'.")
@click.option("--per-leaf", type=click.IntRange(1), metavar="K", help="Nodes on each leaf.")
@options.leaves
@options.spines
@options.order
@options.count("--seed", 0, "Of random.")
@click.option(
    "--rounds", type=click.IntRange(1), metavar="R", help="Show so many rounds (default: 4)."
)
@options.of_group("as_json")
def plan(
    nodes: str | None,
    per_leaf: int | None,
    leaves: str | None,
    spines: int,
    order: str,
    seed: int,
    rounds: int | None,
    as_json: bool,
) -> None:
    r"""Show rounds in which every node meets every other once, and how they load the links.

    \b
    Examples:
      fabricproof pairs plan --nodes 128 --per-leaf 16 --spines 8
      fabricproof pairs plan --leaves topology.txt --order random --rounds 4 --json
    """
    names, tree = _planned_nodes(nodes, per_leaf, leaves, spines)
    schedule = Schedule(order=Order(order), leaves=tree, seed=seed)
    record = _plan_record(schedule, names, rounds or 4)
    click.echo(json.dumps(record, indent=2) if as_json else _plan_text(record))


def _planned_nodes(
    nodes: str | None, per_leaf: int | None, leaves: str | None, spines: int
) -> tuple[list[str], Leaves]:
    if leaves is not None:
        places = _read_leaves(leaves)
        names = sorted(places, key=natural) if nodes is None else _named(nodes)
        return names, leaves_by_name(names, places, spines)
    if nodes is None:
        raise ConfigError("no nodes", expected="--nodes N, --nodes LIST or --leaves FILE")
    names = _named(nodes)
    return names, leaves_of(len(names), per_leaf or max(len(names), 1), spines)


def _named(text: str) -> list[str]:
    if text.isascii() and text.isdecimal():
        if int(text) > 1_000_000:
            raise ConfigError("too many nodes", expected="at most a million", got=text)
        return [f"node{number}" for number in range(int(text))]

    return list(nodes_named(text))


def _plan_record(schedule: Schedule, names: list[str], rounds: int) -> dict[str, Any]:
    tree = schedule.leaves
    shown = []
    for number in range(min(rounds, schedule.num_rounds)):
        pairs = schedule.round(number)
        loads = loads_of(pairs, tree)
        shown.append(
            {
                "round": number,
                "pairs": [[names[first], names[second]] for first, second in pairs.tolist()],
                "byes": len(names) - 2 * len(pairs),
                "flows_on_the_busiest_uplink": loads.most_between_switches
                if tree.num_spines
                else None,
                "flows_out_of_the_busiest_leaf": int(loads.up.sum(axis=1).max(initial=0)),
            }
        )
    return {
        "order": schedule.order.value,
        "leaf_by_leaf": schedule.is_leafwise,
        "nodes": len(names),
        "leaves": tree.num_leaves,
        "spines": tree.num_spines or None,
        "pairs": len(names) * (len(names) - 1) // 2,
        "rounds": schedule.num_rounds,
        "ladder": _ladder_record(len(names), schedule.num_rounds),
        "shown": shown,
    }


def _ladder_record(num_nodes: int, full_rounds: int) -> dict[str, Any]:
    """Return what the ladder of ``pairs run`` costs over each path, by the usual budget."""
    # Budgets are of time: rate, latency and size change how often is measured, and not how long.
    steps = plan_steps(max_size=2**22, rate_mb_s=1.0, latency_us=1.0, seconds=LEG_SECONDS)
    each = round_seconds(steps)
    return {
        "rounds": USUAL_ROUNDS,
        "more_rounds_at_most": MORE_ROUNDS,
        "leg_seconds": LEG_SECONDS,
        "seconds_per_round": each,
        "node_seconds": each * USUAL_ROUNDS * num_nodes,
        "node_seconds_more_at_most": each * MORE_ROUNDS * num_nodes,
        "node_seconds_full_matrix": each * full_rounds * num_nodes,
    }


def _ladder_words(told: dict[str, Any]) -> str:
    return (
        f"pairs run: {told['rounds']} rounds over each path, {told['node_seconds']:.0f} "
        f"node-seconds (leg_seconds {told['leg_seconds']:g}); up to {told['more_rounds_at_most']} "
        f"rounds more while somebody is undecided, {told['node_seconds_more_at_most']:.0f} "
        f"node-seconds at most; --full: {told['node_seconds_full_matrix']:.0f} node-seconds"
    )


def _plan_text(record: dict[str, Any]) -> str:
    size = f"{record['nodes']} nodes on {record['leaves']} leaves"
    lines = [
        f"{size}: {record['pairs']} pairs in {record['rounds']} rounds, {record['order']} order"
    ]
    if record["order"] == "leafwise" and not record["leaf_by_leaf"]:
        lines.append("the leaves are too unlike, or only one: a circle in their order")
    for each in record["shown"]:
        pairs = first_few([f"{one}-{other}" for one, other in each["pairs"]], between=" ")
        load = each["flows_on_the_busiest_uplink"]
        flows = f"; at most {load} flows on a link between switches" if load is not None else ""
        lines.append(f"round {each['round']}: {pairs}; {each['byes']} byes{flows}")
    return "\n".join([*lines, _ladder_words(record["ladder"])])


@command.command(name="simulate")
@options.count("--nodes", 64, "How many.", 4, 200_000)
@options.count("--per-leaf", 8, "Nodes on each leaf, and spines.", 1)
@options.count("--rails", 2, "Of each node.", 1, 16)
@options.count("--faults", 3, "Of each campaign.")
@options.count("--campaigns", 10, "How many.", 1)
@options.count("--seed", 0, "Of the first.")
@click.option("--full", is_flag=True, help="All pairs, and not the ladder.")
@options.of_group("as_json")
def simulate(
    nodes: int,
    per_leaf: int,
    rails: int,
    faults: int,
    campaigns: int,
    seed: int,
    full: bool,
    as_json: bool,
) -> None:
    r"""Simulate campaigns with faults, and say how right the blame is.

    Faults are of nodes, rails, leaves and uplinks; the same seed draws the same ones.  Values have
    3 % of noise, and 1 % of them are low without a fault.  Nothing is judged here: the exit status
    is 0 whatever comes out.

    \b
    Example:
      fabricproof pairs simulate --nodes 1000 --per-leaf 20 --faults 10 --campaigns 5
    """
    setting = Setting(
        num_nodes=nodes,
        per_leaf=per_leaf,
        num_rails=rails,
        num_faults=faults,
        is_full=full,
    )
    ended = [run_campaign(setting, seed + number) for number in range(campaigns)]
    total = score(ended)
    if as_json:
        record = {"score": asdict(total), "campaigns": [asdict(each) for each in ended]}
        click.echo(json.dumps(record, indent=2))
        return
    for each in ended:
        wrong = [name for name in each.blamed if name not in each.faults]
        missed = [name for name in each.faults if name not in each.blamed]
        text = f"seed {each.seed}: {len(each.faults)} faults, {each.num_rounds} rounds"
        text += f"; missed: {', '.join(missed)}" if missed else ""
        text += f"; wrongly blamed: {', '.join(wrong)}" if wrong else ""
        click.echo(text)
    click.echo(_score_words(total))


def _score_words(total: Score) -> str:
    rates = (
        ("of the blamed are at fault", total.precision),
        ("of the faults are found", total.recall),
        ("of these are named to rail and direction", total.localisation),
    )
    said = [f"{value:.1%} {words}" for words, value in rates if value is not None]
    if total.clean_blamed or not total.faults:
        said.append(f"{total.clean_blamed} of {total.campaigns} campaigns blamed somebody wrongly")
    return "; ".join([*said, f"{total.most_rounds} rounds at most"])
