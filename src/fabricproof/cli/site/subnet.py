"""``fabricproof subnet``: the fabric from its manager's side: switches, cables, LIDs, managers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import STATUSES, Only, emit, fitting, only_option
from fabricproof.cli.selection import nodes_named
from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.measure import BADNESS, Verdict
from fabricproof.job.run import ends_as_interrupt
from fabricproof.physics import Link, find_link
from fabricproof.site import FabricSpec, load_site
from fabricproof.subnet import (
    Expected,
    SubnetAccess,
    SubnetLook,
    SubnetResult,
    ask,
    join,
    judge_look,
    read_folder,
    write_folder,
)

_CHECK_EPILOG = """\b
Examples:
  fabricproof subnet check                            # ask the fabric (root, as a rule)
  fabricproof subnet check --via 'ssh sm1'            # ask it from another machine
  fabricproof subnet check --link 'EDR 4x'            # every link at least that
  fabricproof subnet check --site mycluster           # every link at least the site's
  fabricproof subnet check --hosts 'n[001-640]'       # and these hosts must be there
  fabricproof subnet check --keep looks/monday        # keep what the tools printed
  fabricproof subnet check --from looks/monday        # judge that, ask nobody

\b
What a folder of --from has (--keep writes it; by hand):
  ibnetdiscover > ibnetdiscover.txt          # needed
  iblinkinfo -l > iblinkinfo.txt             # for PASS; plain iblinkinfo does too
  sminfo > sminfo.txt; saquery -s > issm.txt   # and sminfo LID >> sminfo.txt of others there
  ibqueryerrors --threshold-file /dev/null > ibqueryerrors.txt

The exit status is 0 only where links were judged and nothing is red: 1 FAIL, 4 MISSING (an
expected host), 5 UNJUDGED (a counter at its end or not read of all ports, a speed or hint that the
tool does not know, ends of a cable that disagree, rails that few hosts show to be crossed, a rail
that one of --hosts lacks, a tool that complained); 65 an
output is damaged, cut, or of another look than its neighbours; 66 no such folder; 69 no tool, no
port, no manager, an empty fabric, or a tool that does not end; 74 cannot keep; 77 not permitted;
78 wrong site.
"""

#: a day; what a selector can wait has an end too, and then fails
_LONGEST_SECONDS = 86_400.0


@click.group(name="subnet", cls=options.HelpGroup)
@options.as_json
def subnet(**_: object) -> None:
    """Judge an InfiniBand fabric from its manager's side: cables, links, LIDs, managers.

    What hosts cannot know of themselves: switches, the links between them, which end of a cable is
    where.  The tools of infiniband-diags are asked (ibnetdiscover, iblinkinfo, sminfo, saquery,
    ibqueryerrors), nothing is changed and nothing is measured.
    """


def _port(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str | None, int | None]:
    """Return device and port of ``mlx5_0`` or ``mlx5_0:1``."""
    name, sign, number = (value or "").partition(":")
    if value is not None and (not name or bool(number) is not bool(sign)):
        raise click.BadParameter(f"{value!r} is not DEVICE[:PORT]", context, option)
    if number and not (number.isdecimal() and 1 <= int(number) <= 254):
        raise click.BadParameter(f"port {number!r} is not 1 to 254", context, option)
    return name or None, int(number) if number else None


@subnet.command(name="check", epilog=_CHECK_EPILOG)
@options.kept
@options.keep
@click.option(
    "--link", "link_name", metavar="NAME", help="Every link is at least this one: 'EDR 4x'."
)
@options.stated_site
@only_option("fabric")
@click.option("--hosts", metavar="HOSTLIST", help="Hosts that must be there: 'n[1-8],login1'.")
@click.option("--via", metavar="COMMAND", help="Put before each tool: 'ssh sm1', 'sudo -n'.")
@click.option(
    "--device",
    "place",
    callback=_port,
    metavar="DEVICE[:PORT]",
    help="Ask through this device, or this port of it: mlx5_0, mlx5_0:2.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=options.RealNumber(0.1, _LONGEST_SECONDS),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each tool may take.",
)
@options.of_group("as_json")
def check(
    folder: str | None,
    keep: str | None,
    link_name: str | None,
    site_name: str | None,
    only: Only,
    hosts: str | None,
    via: str | None,
    place: tuple[str | None, int | None],
    timeout_seconds: float,
    *,
    as_json: bool,
) -> int:
    """Judge the fabric as it is now, or as a folder of kept outputs shows it.

    Each link against what --link or --site declares, else against the best that both its ends
    support; ports with a link that are not Active; LIDs given twice; switches with fewer cables
    between them than their siblings; hosts whose rails hang where others have another rail; hosts
    that should be there; one master among the subnet managers; counters that stand at their end.
    Said besides: errors counted so far.
    """
    expected = _expected(link_name, site_name, only["fabric"], hosts)
    if folder is not None and (keep is not None or via is not None):
        raise click.UsageError("--from asks nobody: it goes with neither --keep nor --via")
    look = _look(folder, keep, _net_path(via, place, timeout_seconds))
    if not look.network.cables:
        raise UnavailableError(
            "the fabric is empty: no link is seen",
            expected="at least one cable",
            next_step="ibstat shows whether the port has a link; --device chooses another",
        )
    result, head = judge_look(look, expected), _head(look)
    record = {
        "fabric": head,
        "verdict": result.verdict.value,
        "findings": [each.record() for each in result.findings],
        "notes": [each.record() for each in result.notes],
    }
    emit(record, _lines(result, head), as_json=as_json)
    return STATUSES[result.verdict]


def _net_path(via: str | None, place: tuple[str | None, int | None], timeout_seconds: float) -> Any:
    try:
        words = tuple(shlex.split(via or ""))
    except ValueError as error:
        raise click.UsageError(f"--via is no command: {error}") from None
    return SubnetAccess(via=words, device=place[0], port=place[1], timeout_seconds=timeout_seconds)


def _look(folder: str | None, keep: str | None, net_path: Any) -> SubnetLook:
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
    fabrics: tuple[str, ...],
    hosts: str | None,
) -> Expected:
    if fabrics and site_name is None:
        raise click.UsageError("--only fabric goes with --site")
    spec = _fabric(site_name, fabrics) if site_name and link_name is None else None
    stated = link_name or (spec and spec.link)
    rails = spec.rails if spec else []
    links = _links_of_rails(spec) if spec else {}
    link = min(
        links.values(),
        key=attrgetter("data_rate_gbit_s"),
        default=find_link(stated) if stated else None,
    )
    if link is not None and link.technology != "infiniband":
        raise ConfigError("not a link of InfiniBand", expected="'EDR 4x' or its kin", got=link.name)
    return Expected(
        link=link,
        rail_links=links if len(set(links.values())) > 1 else {},
        switches={each.interface: tuple(each.switches) for each in rails if each.switches},
        hosts=_names(hosts) if hosts is not None else (),
    )


def _links_of_rails(spec: FabricSpec) -> dict[str, Link]:
    """Return port of a rail -> its link, its own before the fabric's; those of InfiniBand."""
    links = {each.interface: find_link(each.link or spec.link or "") for each in spec.rails}
    return {port: link for port, link in links.items() if link.technology == "infiniband"}


def _names(hosts: str) -> tuple[str, ...]:
    """Return the hosts of ``--hosts``, at least one: an empty variable is no "nothing expected"."""
    found = nodes_named(hosts.strip())
    if not found:
        raise click.UsageError(f"--hosts {hosts!r} names no host; without it none is expected")
    return found


def _fabric(site_name: str, fabrics: tuple[str, ...]) -> FabricSpec:
    """Return the site's one fabric with an InfiniBand link."""
    site = load_site(site_name)
    names = fitting(fabrics, [each.name for each in site.fabrics])
    specs = [site.fabric_spec(each) for each in names] or list(site.fabrics)
    links = {spec.name: find_link(spec.link) for spec in specs if spec.link is not None}
    mine = [name for name, link in links.items() if link.technology == "infiniband"]
    if len(mine) != 1:
        raise ConfigError(
            "the site does not say which link this fabric has",
            source=str(site.folder / "fabric.toml"),
            expected="one fabric with an InfiniBand link",
            got=", ".join(link.name for link in links.values()) or "none",
            next_step="--only fabric=NAME, or --link NAME in place of --site",
        )
    return site.fabric_spec(mine[0])


def _head(look: SubnetLook) -> dict[str, Any]:
    """Return what of the fabric was seen, and how many cables run at each width and speed."""
    network = look.network
    links = (
        " / ".join(dict.fromkeys((cable.one.words, cable.other.words))) for cable in network.cables
    )
    return {
        "switches": len(network.switches),
        "hosts": list(network.hosts),
        "cables": len(network.cables),
        "trunks": len(network.trunks),
        "seen_from": network.name(network.from_guid) if network.from_guid in network.nodes else "",
        "links": dict(sorted(Counter(links).items())),
    }


def _lines(result: SubnetResult, head: dict[str, Any]) -> Iterator[str]:
    links = ", ".join(f"{number} x {words}" for words, number in head["links"].items())
    seen = f", seen from {head['seen_from']}" if head["seen_from"] else ""
    yield f"{head['switches']} switches, {len(head['hosts'])} hosts, {links}{seen}"
    for verdict in BADNESS:
        mine = (each for each in result.findings if each.verdict is verdict)
        yield from (f"  {verdict.value:<8} {each.text}" for each in mine)
    yield from (f"  note     {note}" for note in result.notes)
    red = sum(each.verdict is not Verdict.PASS for each in result.findings)
    good = sum(each.quantity.value or 0 for each in result.findings if each.quantity)
    yield f"{result.verdict.value}: {red} findings, {good:.0f} things as they should be"
