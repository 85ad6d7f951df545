"""``fabricproof subnet``: the fabric from its manager's side: switches, cables, LIDs, managers."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from fabricproof.cli.output import STATUSES, read_output
from fabricproof.core.errors import ConfigError, ExitStatus, InputMissingError, UnavailableError
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.job.run.watch import ends_as_interrupt
from fabricproof.nodes.topology import Topology
from fabricproof.nodes.topology_text import expand, parse_topology
from fabricproof.physics import Link, find_link
from fabricproof.site import load_site
from fabricproof.subnet import (
    Expected,
    Look,
    Network,
    Result,
    compare_looks,
    join,
    judge_look,
    read_folder,
    write_folder,
)
from fabricproof.subnet.live import SubnetAccess, ask

_Function = TypeVar("_Function", bound=Callable[..., Any])

_CHECK_EPILOG = """\b
Examples:
  fabricproof subnet check                            ask the fabric (root, as a rule)
  fabricproof subnet check --via 'ssh sm1'            ask it from another machine
  fabricproof subnet check --link 'EDR 4x'            every link at least that
  fabricproof subnet check --site mycluster           every link at least the site's
  fabricproof subnet check --hosts 'n[001-640]'       and these hosts must be there
  scontrol show topology > topo; fabricproof subnet check --slurm topo
  fabricproof subnet check --keep looks/monday        keep what the tools printed
  fabricproof subnet check --from looks/monday        judge that, ask nobody

\b
What a folder of --from has (--keep writes it; by hand):
  ibnetdiscover > ibnetdiscover.txt          needed
  iblinkinfo -l > iblinkinfo.txt             for PASS; plain iblinkinfo does too
  sminfo > sminfo.txt; saquery -s > issm.txt   and sminfo LID >> sminfo.txt of others there
  ibqueryerrors --threshold-file /dev/null > ibqueryerrors.txt
  perfquery LID PORT >> perfquery.txt        ports of your choice

The exit status is 0 only where links were judged and nothing is red: 1 FAIL, 4 MISSING (an
expected host), 5 UNJUDGED (a counter at its end or not read of all ports, a speed or hint that the
tool does not know, ends of a cable that disagree, a tool that complained); 65 an
output is damaged, cut, or of another look than its neighbours; 66 no such folder; 69 no tool, no
port, no manager, an empty fabric, or a tool that does not end; 74 cannot keep; 77 not permitted;
78 wrong site.
"""

_DIFF_EPILOG = """\b
Examples:
  fabricproof subnet diff looks/monday                what changed until now
  fabricproof subnet diff looks/monday looks/tuesday

Nodes are known by their GUIDs: new LIDs and new names are notes.  Red is: a cable that is gone,
moved or swapped, a link that is slower or no more Active, an adapter or switch that is gone,
errors that were counted between the looks; 4 MISSING where a host is gone; 5 UNJUDGED where a
counter went backwards or stands at its end, or the second look asked less.  0 only
where cables were compared and nothing is red.
"""


#: a day; what a selector can wait has an end too, and then fails
_LONGEST_SECONDS = 86_400.0


def _a_number(_context: click.Context, _option: click.Parameter, value: float) -> float:
    """Refuse ``nan``, which is within every range."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a number of seconds")
    return value


def _asking(function: _Function) -> _Function:
    """Give a command the options that say how the tools are asked, and --json."""
    options = (
        click.option(
            "--via", metavar="COMMAND", help="Put before each tool: 'ssh sm1', 'sudo -n'."
        ),
        click.option("--ca", "device", metavar="NAME", help="Ask through this device (mlx5_0)."),
        click.option("--port", type=click.IntRange(1, 254), help="Ask through this port of it."),
        click.option(
            "--timeout",
            "timeout_seconds",
            type=click.FloatRange(0.1, _LONGEST_SECONDS),
            callback=_a_number,
            default=120.0,
            show_default=True,
            help="Seconds that each tool has.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group(name="subnet")
def subnet() -> None:
    """Judge an InfiniBand fabric from its manager's side: cables, links, LIDs, managers.

    What hosts cannot know of themselves: switches, the links between them, which end of a cable is
    where.  The tools of infiniband-diags are asked (ibnetdiscover, iblinkinfo, sminfo, saquery,
    ibqueryerrors), nothing is changed and nothing is measured.
    """


@subnet.command(name="check", epilog=_CHECK_EPILOG)
@click.option("--from", "folder", metavar="FOLDER", help="Judge outputs that are kept there.")
@click.option("--keep", metavar="FOLDER", help="Keep what the tools print there; a new folder.")
@click.option("--link", "link_name", metavar="NAME", help="Every link is at least: 'EDR 4x'.")
@click.option("--site", "site_name", metavar="S", help="Take the link of this site's fabric.")
@click.option("--fabric", "fabric_name", metavar="F", help="With --site: which of its fabrics.")
@click.option("--hosts", metavar="HOSTLIST", help="Hosts that must be there: 'n[1-8],login1'.")
@click.option(
    "--slurm",
    "slurm_file",
    metavar="FILE",
    help="What 'scontrol show topology' printed, or topology.conf: must agree with the cables.",
)
@click.option(
    "--shape",
    type=click.Choice(["tree", "torus", "mesh", "ring"]),
    help="The cables must make this.",
)
@_asking
def check(
    folder: str | None,
    keep: str | None,
    link_name: str | None,
    site_name: str | None,
    fabric_name: str | None,
    hosts: str | None,
    slurm_file: str | None,
    shape: str | None,
    via: str | None,
    device: str | None,
    port: int | None,
    timeout_seconds: float,
    *,
    as_json: bool,
) -> int:
    """Judge the fabric as it is now, or as a folder of kept outputs shows it.

    Each link against what --link or --site declares, else against the best that both its ends
    support; ports with a link that are not Active; LIDs given twice; switches with fewer cables
    between them than their siblings; hosts that should be there; one master among the subnet
    managers; counters that stand at their end; Slurm's topology against the cables.  Said besides:
    the kind of network (fat tree with its oversubscription, torus, mesh), errors counted so far.
    """
    expected = _expected(link_name, site_name, fabric_name, hosts, slurm_file, shape)
    if folder is not None and (keep is not None or via is not None):
        raise click.UsageError("--from asks nobody: it goes with neither --keep nor --via")
    look = _look(folder, keep, _net_path(via, device, port, timeout_seconds))
    if not look.network.cables:
        raise UnavailableError(
            "the fabric is empty: no link is seen",
            expected="at least one cable",
            next_step="ibstat shows whether the port has a link; --ca and --port choose another",
        )
    return _tell(judge_look(look, expected), _head(look), as_json=as_json)


@subnet.command(name="diff", epilog=_DIFF_EPILOG)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@click.option("--keep", metavar="FOLDER", help="Without NEW: keep what the tools print there.")
@_asking
def diff(
    old: str,
    new: str | None,
    keep: str | None,
    via: str | None,
    device: str | None,
    port: int | None,
    timeout_seconds: float,
    *,
    as_json: bool,
) -> int:
    """Say what changed since a look that was kept: cables, links, hosts, managers, errors."""
    if new is not None and (keep is not None or via is not None):
        raise click.UsageError("with NEW nobody is asked: neither --keep nor --via")
    before = _look(old, None, None)
    after = _look(new, keep, _net_path(via, device, port, timeout_seconds))
    return _tell(compare_looks(before, after), _head(after), as_json=as_json)


def _net_path(via: str | None, device: str | None, port: int | None, timeout_seconds: float) -> Any:

    try:
        words = tuple(shlex.split(via or ""))
    except ValueError as error:
        raise click.UsageError(f"--via is no command: {error}") from None
    return SubnetAccess(via=words, device=device, port=port, timeout_seconds=timeout_seconds)


def _look(folder: str | None, keep: str | None, net_path: Any) -> Look:
    """Return the look that ``folder`` keeps, else a new one, kept before it is judged."""
    if folder is not None:
        return join(read_folder(Path(folder)), folder)
    with ends_as_interrupt():
        texts = ask(net_path)
    if keep is not None:
        write_folder(Path(keep), texts)
    return join(texts, keep or "")


def _expected(
    link_name: str | None,
    site_name: str | None,
    fabric_name: str | None,
    hosts: str | None,
    slurm_file: str | None,
    shape: str | None,
) -> Expected:

    return Expected(
        link=_link(link_name, site_name, fabric_name),
        hosts=_names(hosts) if hosts is not None else (),
        shape=shape,
        topology=_topology(slurm_file) if slurm_file is not None else None,
    )


def _names(hosts: str) -> tuple[str, ...]:
    """Return the hosts of ``--hosts``, at least one: an empty variable is no "nothing expected"."""
    found = expand(hosts.strip())
    if not found:
        raise click.UsageError(f"--hosts {hosts!r} names no host; without it none is expected")
    return found


def _link(link_name: str | None, site_name: str | None, fabric_name: str | None) -> Link | None:
    """Return what every link is to be at least, None where nobody declares it."""
    if link_name is not None:
        return _infiniband(find_link(link_name))
    if site_name is None:
        if fabric_name is not None:
            raise click.UsageError("--fabric goes with --site")
        return None
    site = load_site(site_name)
    specs = [site.fabric_spec(fabric_name)] if fabric_name else list(site.fabrics)
    links = [find_link(spec.link) for spec in specs if spec.link is not None]
    mine = [link for link in links if link.technology == "infiniband"]
    if len(mine) != 1:
        raise ConfigError(
            "the site does not say which link this fabric has",
            source=str(site.folder / "fabric.toml"),
            expected="one fabric with an InfiniBand link",
            got=", ".join(link.name for link in links) or "none",
            next_step="--fabric NAME, or --link NAME in place of --site",
        )
    return mine[0]


def _infiniband(link: Link) -> Link:
    if link.technology != "infiniband":
        raise ConfigError("not a link of InfiniBand", expected="'EDR 4x' or its kin", got=link.name)
    return link


def _topology(name: str) -> Topology:

    if not name.strip():
        raise click.UsageError("--slurm names no file; without it Slurm's topology is not judged")
    lines = [line.partition("#")[0].strip() for line in read_output(name).splitlines()]
    text = "".join(f"{line}\n" for line in lines)
    found = parse_topology(text, name)
    if not found.nodes:
        raise InputMissingError(
            "no topology in it",
            source=name,
            expected="lines of SwitchName=... (scontrol show topology, or topology.conf)",
        )
    return found


def _head(look: Look) -> dict[str, Any]:
    network = look.network
    seen_from = network.name(network.from_guid) if network.from_guid in network.nodes else ""
    return {
        "switches": len(network.switches),
        "hosts": list(network.hosts),
        "cables": len(network.cables),
        "trunks": len(network.trunks),
        "seen_from": seen_from,
        "links": _widths(network),
    }


def _widths(network: Network) -> dict[str, int]:
    """Return how many cables run at each width and speed."""
    found: dict[str, int] = {}
    for cable in network.cables:
        words = " / ".join(dict.fromkeys((cable.one.words, cable.other.words)))
        found[words] = found.get(words, 0) + 1
    return dict(sorted(found.items()))


def _tell(result: Result, head: dict[str, Any], *, as_json: bool) -> ExitStatus:

    if as_json:
        click.echo(json.dumps(_record(result, head), indent=2))
    else:
        for line in _lines(result, head):
            click.echo(line)
    return STATUSES[result.verdict]


def _record(result: Result, head: dict[str, Any]) -> dict[str, Any]:
    return {
        "verdict": result.verdict.value,
        "fabric": head,
        "findings": [
            {
                "verdict": each.verdict.value,
                "quantity": each.quantity,
                "where": each.where,
                "number": each.number,
                "sentence": each.sentence,
            }
            for each in result.findings
        ],
        "notes": list(result.notes),
    }


def _lines(result: Result, head: dict[str, Any]) -> Iterator[str]:

    links = ", ".join(f"{number} x {words}" for words, number in head["links"].items())
    seen = f", seen from {head['seen_from']}" if head["seen_from"] else ""
    yield f"{head['switches']} switches, {len(head['hosts'])} hosts, {links}{seen}"
    for each in sorted(result.findings, key=lambda one: BADNESS.index(one.verdict)):
        yield f"  {each.verdict.value:<8} {each.sentence}"
    for note in result.notes:
        yield f"  note     {note}"
    red = sum(each.verdict is not Verdict.PASS for each in result.findings)
    good = sum(each.number for each in result.findings if each.verdict is Verdict.PASS)
    yield f"{result.verdict.value}: {red} findings, {good} things as they should be"
