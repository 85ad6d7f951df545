"""``fabricproof preflight``: are the nodes what the site declares, as they were last seen?"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import STATUSES, Only, emit, only_option
from fabricproof.cli.site.inventory import looks_of, machine_of, place
from fabricproof.core.errors import InputMissingError
from fabricproof.core.findings import Finding
from fabricproof.core.hostlist import fold
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.records import read_records, record_files
from fabricproof.core.units import by_key
from fabricproof.nodes.inventory.store import StateSeen
from fabricproof.nodes.preflight import Preflight, fabrics_of, look_here, preflight
from fabricproof.site import FabricSpec, Site, site_of

_EPILOG = """\b
Examples:
  fabricproof preflight                       # all nodes, as last seen
  fabricproof preflight n17 n18               # these two, also against each other
  fabricproof preflight latest                # as the newest run saw them
  fabricproof preflight n17@RUN               # one node, as that run saw it
  fabricproof run -n LinkPreflight            # look anew, in seconds, and judge that
  fabricproof preflight --here                # this node, now: for a prolog or a health check

The exit status is 0 only where everything was seen and is as declared; 1 FAIL, 4 MISSING (a node
that nobody saw), 5 UNJUDGED (something stated could not be read), 66 nobody looked yet.
"""


@click.command(name="preflight", epilog=_EPILOG)
@click.argument("words", nargs=-1, metavar="[NODE|RUN|NODE@RUN...]")
@options.site
@only_option("fabric")
@click.option("--here", is_flag=True, help="Look at this node now, without a job; print one line.")
@options.as_json
def command(
    words: tuple[str, ...],
    site_name: str | None,
    only: Only,
    *,
    here: bool,
    as_json: bool,
) -> int:
    """Judge each node's links and cards by the site file, as they were last seen.

    Every job looks at its nodes before it measures; this judges what it kept: rails that are
    missing or down, links at less than their rate or width, wrong MTU, a PCIe slot or MaxPayload
    that is less than declared, cards that are not what the fabric's ``expect`` table in fabric.toml
    states, and nodes that are unlike each other.  Nothing is measured and no job is started: the
    output says how old the look is.
    """
    if here and words:
        raise click.UsageError("--here looks at this node: leave out " + ", ".join(words))
    site = site_of(site_name)
    if here:
        return _here(site, only["fabric"], as_json=as_json)
    name, folder = place(site_name)
    seen, run_id = looks_of(words, site_name)
    results = list(_results(site, folder, run_id, seen, only["fabric"]))
    verdict = worst([each.verdict for each in results])
    record = _record(name, verdict, results, seen)
    emit(record, _told(name, results, seen, verdict), as_json=as_json)
    return STATUSES[verdict]


def _here(site: Site, fabrics: Sequence[str], *, as_json: bool) -> int:
    """Judge this node by the fabrics of which it has a rail, in one line."""
    asked = _asked(site, fabrics)
    machine = look_here(asked)
    mine = fabrics_of(machine, asked)
    results = [preflight(spec, {machine.node: machine}) for spec in mine]
    if not results:
        raise InputMissingError(
            f"no fabric of site {site.name} with a link to judge {machine.node} by",
            expected="fabrics with link = ... in fabric.toml",
        )
    verdict = worst([each.verdict for each in results])
    findings = [each for result in results for each in result.findings]
    red = [each for each in findings if each.verdict is not Verdict.PASS]
    more = f" (and {len(red) - 1} more: --json)" if len(red) > 1 else ""
    fine = f"{', '.join(spec.name for spec in mine)}: {len(findings)} facts as declared"
    said = next((each.reason for each in red if each.verdict is verdict), fine)
    line = f"{verdict.value} {machine.node}: {said}{more}"
    emit(_record(site.name, verdict, results, {}), [line], as_json=as_json)
    return STATUSES[verdict]


def _results(
    site: Site, folder: Path, run_id: str, seen: Mapping[str, StateSeen], fabrics: Sequence[str]
) -> Iterator[Preflight]:
    """Yield the judgement of each fabric that has a link."""
    machines = {node: machine_of(folder, each) for node, each in seen.items()}
    reasons = {node: each.reason for node, each in seen.items() if each.reason}
    members = _members(site, folder, run_id) if len(site.fabrics) > 1 else {}
    for spec in _asked(site, fabrics):
        # If no record says which fabric a node is of, it is judged by all.
        mine = {n: m for n, m in machines.items() if spec.name in members.get(n, {spec.name})}
        if spec.link is not None and mine:
            yield preflight(spec, mine, reasons=reasons)


def _asked(site: Site, patterns: Sequence[str]) -> list[FabricSpec]:
    """Return the fabrics that ``--only fabric`` names, all by default.

    Raises:
        ConfigError: it names none.
    """
    if not patterns:
        return list(site.fabrics)
    found = [e for e in site.fabrics if any(fnmatchcase(e.name, each) for each in patterns)]
    return found or [site.fabric_spec(patterns[0])]


def _members(site: Site, folder: Path, run_id: str) -> dict[str, set[str]]:
    """Return node -> the fabrics with a link that its partition has, as records of runs say.

    No other can be judged: a node that is of such a one alone would be left out.  A fabric of its
    partition counts though none of its legs began there.
    """
    linked = {each.name for each in site.fabrics if each.link is not None}
    of_partition = {each.name: each.fabrics for each in site.partitions}
    found: dict[str, set[str]] = {}
    for path in record_files(folder.parent):
        for record in read_records(path, on_torn=lambda _: None):
            if record.get("kind") != "leg" or run_id not in {"", record.get("run_id")}:
                continue
            beside = of_partition.get(str(record.get("partition")), ())
            fabrics = linked & {str(record.get("fabric")), *beside}
            for node in record.get("inventory") or {} if fabrics else ():
                found.setdefault(node, set()).update(fabrics)
    return found


def _alike(findings: Iterable[Finding]) -> Iterator[tuple[str, Verdict]]:
    """Yield sentence and verdict of each finding; what is said of many nodes alike once."""
    several: dict[tuple[str, str, Verdict, str], list[str]] = {}
    for each in findings:
        hosts = each.where.hosts
        node = hosts[0] if len(hosts) == 1 else ""
        name = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w-])")
        # NUL stands for the node: no sentence has one.
        sentence = name.sub("\0", each.reason) if node else each.reason
        key = (each.where.rail, each.fact, each.verdict or Verdict.UNJUDGED, sentence)
        several.setdefault(key, []).append(node)
    for (_, _, verdict, sentence), nodes in several.items():
        yield sentence.replace("\0", fold(nodes)), verdict


def _told(
    site: str, results: Iterable[Preflight], seen: Mapping[str, StateSeen], verdict: Verdict
) -> Iterator[str]:
    for result in results:
        soft = f"{result.device}: " if result.device else ""
        fabric = " ".join(filter(None, (result.fabric, result.device)))
        yield f"fabric {fabric} on {len(result.nodes)} nodes: {result.verdict.value}"
        for reason, found in _alike(
            each for each in result.findings if each.verdict is not Verdict.PASS
        ):
            yield f"  {found.value:<8} {soft}{reason}"
        for rail in dict.fromkeys(each.where.rail for each in result.findings):
            good = [each for each in result.of_rail(rail) if each.verdict is Verdict.PASS]
            what = ", ".join(dict.fromkeys(each.fact for each in good))
            if good:
                net_path = " ".join(filter(None, (rail, result.device)))
                yield f"  PASS     {net_path}: {len(good)} of {len(result.of_rail(rail))} ({what})"
        for note in dict.fromkeys(each.text for each in result.notes):
            yield f"  note     {note}"
    if not results:
        yield "no fabric of this site has a link: there is nothing to look at"
    ages = by_key((f"{each.time}, {_ago(each.time)} ago", node) for node, each in seen.items())
    for when, nodes in ages.items():
        yield f"seen {when}: {', '.join(nodes)}"
    again = " ".join(("fabricproof run -n LinkPreflight", site_option(site)))
    yield f"{verdict.value}: look anew with  {again}"


def _ago(time: str) -> str:
    try:
        then = datetime.datetime.fromisoformat(time)
    except ValueError:
        return "an unknown time"
    minutes = int((datetime.datetime.now(tz=datetime.UTC) - then).total_seconds() // 60)
    if minutes < 120:
        return f"{max(0, minutes)} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"


def _record(
    site: str, verdict: Verdict, results: Iterable[Preflight], seen: Mapping[str, StateSeen]
) -> dict[str, Any]:
    return {
        "site": site,
        "verdict": verdict.value,
        "seen": {node: {"time": each.time, "run_id": each.run_id} for node, each in seen.items()},
        "fabrics": [
            plain(
                result,
                "verdict",
                findings=[each.record() for each in result.findings],
                notes=[each.record() for each in dict.fromkeys(result.notes)],
            )
            for result in results
        ],
    }
