"""``fabricproof pairs``: every node with every node, and whose fault a slow pair is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.judge.judge import fraction, given_references
from fabricproof.cli.measure.pairs_display import PICTURE, drain_line, draw, said_lines
from fabricproof.cli.measure.pairs_run import run
from fabricproof.cli.output import STATUSES, fabric_option
from fabricproof.core.errors import ConfigError, InputMissingError
from fabricproof.core.findings import texts_of
from fabricproof.nodes.topology import parse_topology
from fabricproof.pairs import (
    Judged,
    Said,
    healthy_words,
    joined,
    judge_matrix,
    leaves_by_name,
    limits_of,
    picture_of,
    population_lines,
    populations_of,
    read_matrices,
    say,
    verdict_of_all,
)
from fabricproof.physics import Fabric

_JUDGE_EPILOG = """\b
Examples:
  fabricproof pairs judge matrix.csv                        # whose fault is what is slow
  fabricproof pairs judge matrix.csv --unit us              # values are latencies
  fabricproof pairs judge matrix.csv --link 'HDR 4x'        # and is the level good enough
  fabricproof pairs judge matrix.csv --reference '24 GB/s' --tolerance 5%
  fabricproof pairs judge matrix.csv --leaves topo -o matrix.svg

\b
FILE is a CSV with a header; columns in any order, others are ignored:
  a,b       two nodes; the row is what a sends to b
  value     a number; empty where the pair was not measured
  rail, round, size, unit, direction    where there; direction is ab, ba or both
Without direction a row is one way, from a to b.  A file that names more than half of all pairs
means to be whole, and what it lacks is MISSING.
FILE may also be the output of LinkTest 1.2 or mpiGraph with one task on each node, or mapping.dat
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
@PICTURE
@options.of_group("as_json")
def judge(
    file: str,
    references: tuple[str, ...],
    tolerance: float | None,
    unit: str,
    leaves: str | None,
    files: Mapping[str, Path],
    as_json: bool,
    fabric: Fabric | None,
) -> None:
    """Give a verdict on a matrix of pairs, and say whose fault low ones are.

    FILE is a CSV of a,b,value that anybody's program wrote, or what LinkTest or mpiGraph printed
    ('-' for standard input).
    """
    given = given_references(references, tolerance)
    matrices = read_matrices(file, unit=unit)
    limits = limits_of(matrices, fabric=fabric, references=given, tolerance=tolerance)
    places = leaves_by_name(matrices[0].nodes, _read_leaves(leaves)) if leaves else None
    parts = [
        judge_matrix(matrix, leaves=places, limits=each, num_kinds=len(matrices))
        for matrix, each in zip(matrices, limits, strict=True)
    ]
    told = [say(each) for each in parts]
    verdict, reason = verdict_of_all(parts)
    if as_json:
        record = {"verdict": verdict.value, "reason": reason, **_record(parts, joined(told))}
        click.echo(json.dumps(record, indent=2))
    else:
        click.echo("\n".join([f"{verdict.value}: {reason}", *_lines(parts, joined(told))]))
    pictures = [
        picture_of(each, said, f"{file}: {each.matrix.kind.words}")
        for each, said in zip(parts, told, strict=True)
    ]
    draw(files, sorted(pictures, key=lambda each: (not each.blame, not each.undecided)))
    sys.exit(int(STATUSES[verdict.as_verdict]))


def _record(parts: Sequence[Judged], said: Said) -> dict[str, Any]:
    matrices = [each.matrix for each in parts]
    quantities = dict.fromkeys(each.kind.quantity for each in matrices)
    return {
        "quantity": " and ".join(quantities),
        "nodes": len(matrices[0].nodes),
        "rails": [rail for rail in matrices[0].rails if rail],
        "measured": sum(map(len, matrices)),
        "missing": list(dict.fromkeys(one for each in matrices for one in each.missing)),
        "contention": any(each.is_contention for each in parts),
        "healthy": [
            {
                "quantity": each.matrix.kind.quantity,
                "size": each.matrix.kind.size or None,
                "rail": each.matrix.rails[rail] or None,
                "value": value,
                "unit": each.matrix.kind.unit or None,
            }
            for each in parts
            for rail, value in sorted(each.yardsticks.items())
        ],
        "population": [one.record() for each in parts for one in populations_of(each)],
        "blame": [{**each.record(), "drain": drain_line(each) or None} for each in said.blame],
        "undecided": [each.record() for each in said.undecided],
        "notes": [each.record() for each in said.notes],
    }


def _lines(parts: Sequence[Judged], said: Said) -> list[str]:
    lines = [line for each in parts for line in healthy_words(each)]
    lines += said_lines(said)
    table = population_lines([one for each in parts for one in populations_of(each)])
    lines += ["", *table] if table else []
    if said.notes:
        lines += ["", *texts_of(said.notes)]
    return lines
