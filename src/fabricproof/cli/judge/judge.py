"""``fabricproof judge``: a verdict on an output that somebody already has."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict

import click

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.parsers import read_tables
from fabricproof.cli import options
from fabricproof.cli.output import (
    STATUSES,
    Only,
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
from fabricproof.core.units import by_key
from fabricproof.physics import Fabric, Gpus, bound
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
    from fabricproof.site import PartitionSpec, Site

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
    site = _site_choice(site_name, only)
    outcomes: list[_Outcome] = []
    damages: list[ParseError] = []
    for name in files:
        reading = read_tables(read_output(name), name)
        damages += reading.damages
        for table in reading.tables:
            rules = _rules(table, fabric, given, tolerance, site)
            notes = site.declined(table) if site is not None else ()
            report = judge_table(table, rules)
            report = replace(report, findings=(*notes, *report.findings))
            outcomes.append(_Outcome.of(name, table, report))
    if not outcomes and len(damages) == 1:
        raise damages[0]
    outcomes += [_damaged(damage) for damage in damages]
    outcomes += _unanswered(given, outcomes)
    verdict = worst([each.report.verdict for each in outcomes])
    if as_json:
        click.echo(json.dumps(_record(outcomes, verdict.value), indent=2))
    else:
        for title, each in zip(_titles(outcomes), outcomes, strict=True):
            # A newline in a file's name would begin a line of its own, and that might say PASS.
            click.echo(f"{without_control_characters(title)}: {each.report}")
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


def _rules(
    table: Table,
    fabric: Fabric | None,
    given: dict[str, Reference],
    tolerance: float | None,
    site: _SiteChoice | None,
) -> Rules:
    if fabric is not None and fabric.bidirectional and not reading_of(table).bidirectional:
        raise ConfigError(
            f"{table.program} counts one direction",
            source=table.source,
            expected="no bidirectional in --link: the program decides",
        )
    rules = Rules(fabric=fabric, references=given)
    if site is not None:
        rules = site.rules(table, rules)
    if tolerance is not None:
        rules = replace(rules, tolerance=tolerance, tolerance_asked=True)
    _check_against_ceiling(table, rules)
    return rules


def _check_against_ceiling(table: Table, rules: Rules) -> None:
    """Refuse a reference that physics forbids: nothing could ever pass it."""
    if rules.fabric is None:
        return
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


class _Asked(TypedDict):
    """What picks the references of a site."""

    fabric: str
    suite: str
    program: str
    stack: str
    num_rails: int


@dataclass(frozen=True, kw_only=True)
class _SiteChoice:
    """Which site, and where in it, the output was measured."""

    name: str
    only: Only

    def rules(self, table: Table, rules: Rules) -> Rules:
        """Return ``rules`` with the site's fabric and references under what was given."""
        site, fabric, rails = self._place(table)
        references = site.references_for(**self._asked(table, fabric, rails))
        return replace(
            rules,
            devices=frozenset(rail.partition(":")[0] for rail in rails if ":" in rail),
            fabric=rules.fabric or replace(site.fabric(fabric, rails), gpus=self._gpus(table)),
            references={**references, **rules.references},
            tolerance=site.spec.tolerance,
        )

    def _gpus(self, table: Table) -> Gpus | None:
        """Return the GPUs of the partition; those of a node that the table says sent at once."""
        from fabricproof.site import gpus_of  # noqa: PLC0415 - slow, and seldom needed

        spec = self._partition.gpus
        return gpus_of(spec, int(table.attributes.get("ranks_per_node") or 1)) if spec else None

    def declined(self, table: Table) -> tuple[Finding, ...]:
        """Return what is said of references that one build was measured with: a file names none."""
        site, fabric, rails = self._place(table)
        asked = self._asked(table, fabric, rails)
        return site.references_of_other_builds(**asked, stack_digest="")

    @cached_property
    def _partition(self) -> PartitionSpec:
        site = self._site
        name = one_fitting("partition", self.only, [each.name for each in site.partitions])
        return site.partition(name) if name else site.partitions[0]

    @cached_property
    def _site(self) -> Site:
        from fabricproof.site import load_site  # noqa: PLC0415 - slow, and seldom needed

        return load_site(self.name)

    def _place(self, table: Table) -> tuple[Site, str, tuple[str, ...]]:
        """Return site, fabric and rails: those asked for, else that of the table's device."""
        site = self._site
        names = [each.name for each in site.fabrics]
        fabric = one_fitting("fabric", self.only, names) or self._partition.fabrics[0]
        rails = [each.interface for each in site.fabric_spec(fabric).rails]
        said = table.attributes.get("device")
        first = next((rail for rail in rails if rail.partition(":")[0] == said), rails[0])
        return site, fabric, tuple(fitting(self.only["rail"], rails)) or (first,)

    @cached_property
    def _stack(self) -> str:
        names = [each.name for each in self._site.stacks]
        return one_fitting("stack", self.only, names) or ""

    def _asked(self, table: Table, fabric: str, rails: tuple[str, ...]) -> _Asked:
        return {
            "fabric": fabric,
            "suite": table.suite,
            "program": table.program,
            "stack": self._stack,
            "num_rails": len(rails),
        }


def _site_choice(name: str | None, only: Only) -> _SiteChoice | None:
    stray = [key for key, values in only.items() if values]
    if name is None and stray:
        raise ConfigError(
            f"--only {stray[0]} says nothing without the site", expected="--site NAME"
        )
    return None if name is None else _SiteChoice(name=name, only=only)


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


def _titles(outcomes: Sequence[_Outcome]) -> list[str]:
    """Return file and program; of one of several the line too, and what it says unlike others."""
    alike = by_key(((each.source, each.program), each.settings) for each in outcomes)
    unlike = {
        place: [
            name
            for name in dict.fromkeys(chain(*settings))
            if len({said.get(name) for said in settings}) > 1
        ]
        for place, settings in alike.items()
    }
    titles = []
    for each in outcomes:
        place = (each.source, each.program)
        if len(alike[place]) == 1:
            titles.append(f"{each.source}: {each.program}")
            continue
        own = (f", {name} {each.settings[name]}" for name in unlike[place] if name in each.settings)
        titles.append(f"{each.source}:{each.line}: {each.program}{''.join(own)}")
    return titles
