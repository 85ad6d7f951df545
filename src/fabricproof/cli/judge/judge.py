"""``fabricproof judge``: a verdict on an output that somebody already has."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.parsers import read_tables
from fabricproof.cli import options
from fabricproof.cli.output import (
    STATUSES,
    Only,
    emit,
    fabric_option,
    fitting,
    one_fitting,
    only_option,
    read_output,
)
from fabricproof.core.errors import (
    ConfigError,
    ExitStatus,
    ParseError,
    UnitError,
    without_control_characters,
)
from fabricproof.core.findings import Finding
from fabricproof.core.measure import Table, worst
from fabricproof.core.plain import plain
from fabricproof.physics import Fabric, bound
from fabricproof.verdict.busbw import QUANTITY
from fabricproof.verdict.limits import loaded_fabric
from fabricproof.verdict.references import from_texts
from fabricproof.verdict.table import judge_table, unanswered
from fabricproof.verdict.value import (
    DEFAULT_TOLERANCE,
    Reference,
    Report,
    Rules,
    missing,
)

if TYPE_CHECKING:
    from fabricproof.site import Site

_EPILOG = """\b
Examples:
  fabricproof judge osu_bw.out --link 'FDR 4x,pcie=3.0x8'
  fabricproof judge pingpong.out --link 1GbE,mtu=1500 --reference 'latency=60 us'
  fabricproof judge osu_bw.out --site vcluster --only rail=rail0

The exit status is 0 only for PASS; 1 FAIL, 3 INVALID, 4 MISSING, 5 UNJUDGED; 65 where a table is
damaged, whatever the others came to (they are still judged, and the damaged one is MISSING);
66 no such file, 78 a wrong option or file.
"""


def fraction(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return a fraction as people write it, ``0.1`` or ``10%``; its range is checked later."""
    if value is None:
        return None
    text = value.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no fraction: write 10 % as 0.1 or 10%", ctx, param
        ) from None


@click.command(name="judge", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@fabric_option(required=False)
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="[QUANTITY=]VALUE",
    help="What it should be: '3.4 GB/s', 'latency=60 us', 'bandwidth_4MiB=116 MB/s'. Repeatable.",
)
@click.option(
    "--tolerance",
    callback=fraction,
    metavar="FRACTION",
    help="Allowed fraction off the reference, 0.1 or 10% "
    f"(default {DEFAULT_TOLERANCE:g} for bandwidth).",
)
@options.stated_site
@only_option("partition", "fabric", "rail", "stack")
@options.as_json
def command(
    files: tuple[str, ...],
    fabric: Fabric | None,
    references: tuple[str, ...],
    tolerance: float | None,
    site_name: str | None,
    only: Only,
    as_json: bool,
) -> None:
    """Give a verdict on benchmark outputs, without a cluster.

    FILE is the output of OSU, IMB, iperf3, iperf, perftest, hpcc or nccl-tests ('-' for
    standard input).  The program decides what is judged (osu_bibw adds both directions up); --link
    says what the path can carry, or --site, of which --only names partition, fabric, rails and
    stack (default: its first partition, fabric and rail).
    """
    given = given_references(references, tolerance)
    site = _site_of(site_name, only)
    outcomes: list[_Outcome] = []
    damages: list[ParseError] = []
    for name in files:
        reading = read_tables(read_output(name), name)
        damages += reading.damages
        for table in reading.tables:
            rules = Rules(fabric=fabric, references=given)
            notes: tuple[Finding, ...] = ()
            if site is not None:
                rules, notes = _under_site(site, only, table, rules)
            report = judge_table(table, _with_given(table, rules, fabric, tolerance))
            report = replace(report, findings=(*notes, *report.findings))
            outcomes.append(_Outcome.of(name, table, report))
    if not outcomes and len(damages) == 1:
        raise damages[0]
    outcomes += [_damaged(damage) for damage in damages]
    outcomes += _unanswered(given, outcomes)
    verdict = worst([each.report.verdict for each in outcomes])
    lines = (
        # A newline in a file's name would begin a line of its own, and that might say PASS.
        f"{without_control_characters(title)}: {each.report}"
        for title, each in zip(_titles(outcomes), outcomes, strict=True)
    )
    emit(_record(outcomes, verdict.value), lines, as_json=as_json)
    for damage in damages:
        click.echo(f"fabricproof: {damage}", err=True)
    sys.exit(int(ExitStatus.DATA if damages else STATUSES[verdict]))


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """The report on one table, and where it stands.

    Attributes:
        line: of its header, from 1; 0 where it is no table of a file, or nobody can say.
        settings: what the output says about the run.
    """

    source: str
    program: str
    report: Report
    line: int = 0
    settings: Mapping[str, str | int | float] = field(default_factory=dict)

    @classmethod
    def of(cls, source: str, table: Table, report: Report) -> _Outcome:
        settings = dict(table.attributes)
        return cls(
            source=source, program=table.program, report=report, line=table.line, settings=settings
        )


def _damaged(damage: ParseError) -> _Outcome:
    """Return a table that cannot be read as one more outcome: what it held is missing."""
    return _Outcome(
        source=damage.source or "-",
        program="damaged table",
        report=missing(["table"], str(damage)),
        line=damage.line or 0,
    )


def _unanswered(given: dict[str, Reference], outcomes: list[_Outcome]) -> list[_Outcome]:
    """Return what a reference asks for and no file holds, as one more outcome."""
    judged = [judgement for each in outcomes for judgement in each.report.quantities]
    absent = unanswered(given, judged)
    if not absent:
        return []
    reason = "--reference asks for it, and nothing that was read holds it"
    report = missing(absent, reason)
    return [_Outcome(source="--reference", program="not measured", report=report)]


def given_references(texts: tuple[str, ...], tolerance: float | None) -> dict[str, Reference]:
    """Return the references that ``--reference`` gives, by quantity.

    Raises:
        ConfigError: one is no quantity, or stands twice.
    """
    try:
        return from_texts(texts, tolerance=tolerance, origin="--reference")
    except (UnitError, ConfigError) as error:
        raise ConfigError(
            f"--reference: {error.problem}", expected=error.expected, got=error.got
        ) from None


def _with_given(
    table: Table, rules: Rules, fabric: Fabric | None, tolerance: float | None
) -> Rules:
    """Return ``rules`` with the tolerance that was given.

    Raises:
        ConfigError: ``fabric`` counts both directions and the program one, or physics forbids a
            reference: nothing could ever pass it.
    """
    if fabric is not None and fabric.bidirectional and not reading_of(table).bidirectional:
        raise ConfigError(
            f"{table.program} counts one direction",
            source=table.source,
            expected="no bidirectional in --link: the program decides",
        )
    if tolerance is not None:
        rules = replace(rules, tolerance=tolerance, tolerance_asked=True)
    if rules.fabric is None:
        return rules
    limit = bound(loaded_fabric(table, rules.fabric)).high_mb_s
    for name, reference in rules.references.items():
        # What a bus bandwidth cannot be depends on the operation: the judge knows.
        of_links = not name.startswith(QUANTITY)
        if of_links and reference.lower is not None and reference.lower > limit:
            raise ConfigError(
                f"the reference of {name} is above the ceiling",
                expected=f"at most {limit:.0f} MB/s",
                got=f"{reference.value:g} MB/s ({reference.origin})",
                next_step="check --link, or the reference",
            )
    return rules


def _site_of(name: str | None, only: Only) -> Site | None:
    stray = [key for key, values in only.items() if values]
    if name is None and stray:
        problem = f"--only {stray[0]} says nothing without the site"
        raise ConfigError(problem, expected="--site NAME")
    if name is None:
        return None
    from fabricproof.site import load_site  # noqa: PLC0415 - slow, and seldom needed

    return load_site(name)


def _under_site(
    site: Site, only: Only, table: Table, rules: Rules
) -> tuple[Rules, tuple[Finding, ...]]:
    """Return ``rules`` with the site's fabric and references under what was given, and notes.

    Of the site's first partition, its first fabric and the rail of the table's device, unless
    ``only`` names others; GPUs are those of a node that sent at once.
    """
    from fabricproof.site import gpus_of  # noqa: PLC0415 - slow, and seldom needed

    partition = site.partitions[0]
    if name := one_fitting("partition", only, [each.name for each in site.partitions]):
        partition = site.partition(name)
    names = [each.name for each in site.fabrics]
    fabric = one_fitting("fabric", only, names) or partition.fabrics[0]
    rails = [each.interface for each in site.fabric_spec(fabric).rails]
    device = table.attributes.get("device")
    first = next((rail for rail in rails if rail.partition(":")[0] == device), rails[0])
    used = tuple(fitting(only["rail"], rails)) or (first,)
    ranks = int(table.attributes.get("ranks_per_node") or 1)
    gpus = gpus_of(partition.gpus, ranks) if partition.gpus else None
    asked: dict[str, Any] = {
        "fabric": fabric,
        "suite": table.suite,
        "program": table.program,
        "stack": one_fitting("stack", only, [each.name for each in site.stacks]) or "",
        "num_rails": len(used),
    }
    rules = replace(
        rules,
        devices=frozenset(rail.partition(":")[0] for rail in used if ":" in rail),
        fabric=rules.fabric or replace(site.fabric(fabric, used), gpus=gpus),
        references={**site.references_for(**asked), **rules.references},
        tolerance=site.spec.tolerance,
    )
    return rules, site.references_of_other_builds(**asked, stack_digest="")


def _record(outcomes: Sequence[_Outcome], verdict: str) -> dict[str, Any]:
    quantities = [
        plain(each, program=outcome.program, source=outcome.source, line=outcome.line or None)
        for outcome in outcomes
        for each in outcome.report.quantities
    ]
    findings = [each.record() for outcome in outcomes for each in outcome.report.findings]
    tables = [
        plain(
            each,
            without={"report", "settings"},
            line=each.line or None,
            attributes=each.settings,
            verdict=each.report.verdict,
            findings=[one.record() for one in each.report.findings],
        )
        for each in outcomes
    ]
    return {"verdict": verdict, "quantities": quantities, "findings": findings, "tables": tables}


def _titles(outcomes: Sequence[_Outcome]) -> Iterator[str]:
    """Yield file and program; of one of several the line too."""
    places = [(each.source, each.program) for each in outcomes]
    for each, place in zip(outcomes, places, strict=True):
        line = f":{each.line}" if places.count(place) > 1 else ""
        yield f"{each.source}{line}: {each.program}"
