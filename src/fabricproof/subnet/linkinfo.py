"""Read ``iblinkinfo``, in its blocks or in lines (``-l``), and join it with the cables.  Pure.

Grammar from rdma-core, infiniband-diags/iblinkinfo.c: ``print_port``, ``print_node_header``; the
words of width, speed and state from libibmad/dump.c (``mad_dump_linkwidth``,
``mad_dump_linkspeed``, ``mad_dump_portstate``, ``mad_dump_physportstate``) and
libibnetdisc/ibnetdisc.c (``ibnd_dump_agg_linkspeedext``: FDR to XDR); the hint ``Could be`` from
infiniband-diags/ibdiag_common.c, ``get_max_msg``: the best that both ends support, printed where
less is in use.  Recorded from version 44.0 over ibsim 0.10.

The text alone does not say where it should have ended.  :func:`with_states` asks for a line of
every port of every switch and of every end of every cable that ``ibnetdiscover`` showed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fabricproof.subnet.model import End, Network, NodeKind, Port
from fabricproof.subnet.read import Output

TOOL = "iblinkinfo"

_HEADER = re.compile(r"(?P<kind>Switch|CA|Router): (?:0x(?P<guid>[0-9a-f]{16}) )?(?P<name>.*):")
_WIDTH = r"\d{1,2}X|undefined \(\d+\)"
_SPEED = r"\d{1,3}\.\d{1,5} Gbps(?: \(FDR10\))?|Extended speed|No Extended Speed|undefined \(\d+\)"
_STATES = r"NoChange|Initialize|Armed|Active|\?\(\d+\)"
_UP = rf" *(?P<lanes>{_WIDTH}) +(?P<speed>{_SPEED}) +(?P<state>{_STATES})/ *(?P<physical>[\w?()]+)"
_DOWN = r" {14} *(?P<down>Down)/ *(?P<down_physical>[\w?()]+)"
_HINTS = (
    rf"(?:Could be (?P<could_lanes>{_WIDTH}))? "
    rf"(?:Could be (?P<could_speed>{_SPEED}|FDR10(?: \(Found link at QDR[^()]*\))?))?"
)
_REMOTE = (
    r"(?:0x(?P<far_guid>[0-9a-f]{16}) )? *(?P<far_lid>\d{1,5}) +(?P<far>\d{1,3})\[[ \d]{2,3}\] "
    rf'"(?P<far_name>.*)" \({_HINTS}\)'
)
_NOTHING = r' {11}\[  \] "" \( \)|(?P<unknown> {4}"Port not available")'
_BODY = (
    rf" *(?P<lid>\d{{1,5}}) +(?P<port>\d{{1,3}})\[[ \d]{{2,3}}\] ==\((?:{_UP}|{_DOWN})\)"
    rf"(?: \(HOQ:\d+ VL_Stall:\d+\))?==>  (?:{_REMOTE}|{_NOTHING})"
)
_LINE = re.compile(rf'0x(?P<guid>[0-9a-f]{{16}}) "(?P<name>.*)" {_BODY}')
_IN_BLOCK = re.compile(rf" {{6}}(?:0x(?P<guid>[0-9a-f]{{16}}) )?{_BODY}")

#: what the tool prints in Gb/s per lane -> the speed's name (libibmad/dump.c; line rates: IBA
#: specification vol. 2 and IBTA's roadmap, as in fabric/data/links.json)
_SPEED_NAMES = {
    "2.5 Gbps": "SDR",
    "5.0 Gbps": "DDR",
    "10.0 Gbps": "QDR",
    "10.0 Gbps (FDR10)": "FDR10",
    "14.0625 Gbps": "FDR",
    "25.78125 Gbps": "EDR",
    "53.125 Gbps": "HDR",
    "106.25 Gbps": "NDR",
    "212.5 Gbps": "XDR",
}


@dataclass(frozen=True, kw_only=True)
class PortLine:
    """One port as ``iblinkinfo`` prints it.

    Attributes:
        port: its end by the GUID of the switch, or of the adapter's port; who its peer is, the
            other fields say.
        far_guid: likewise of the other end, None without ``-l`` or where nothing is linked.
        far_lid: LID of the other end, None where nothing is linked.
        far_number: port of the other end, likewise.
    """

    port: Port
    far_guid: str | None
    far_lid: int | None
    far_number: int | None
    line: int
    text: str


def read_iblinkinfo(text: str, source: str = TOOL) -> tuple[PortLine, ...]:
    """Read what ``iblinkinfo`` or ``iblinkinfo -l`` printed.

    Raises:
        ParseError: an unknown line, a cut text, or both forms in one.
    """
    output = Output(text=text, source=source, tool=TOOL)
    found: list[PortLine] = []
    header: re.Match[str] | None = None
    header_line = 0
    in_lines = False
    for number, line in output.lines():
        if line.startswith("0x"):
            if header is not None:
                raise output.unknown(number, line, "blocks or lines, not both")
            in_lines = True
            match = _LINE.fullmatch(line)
        elif line.startswith("      "):
            match = _IN_BLOCK.fullmatch(line) if header is not None else None
        elif (next_header := _HEADER.fullmatch(line)) is not None and not in_lines:
            if header_line and (not found or found[-1].line < header_line):
                raise output.unknown(number, line, "the ports of the node before")
            header, header_line = next_header, number
            continue
        else:
            match = None
        if match is None:
            raise output.unknown(number, line, "'Switch: 0x... name:', or a port with '==(...)==>'")
        found.append(_port_line(output, number, match, header))
    if header_line and (not found or found[-1].line < header_line):
        raise output.error(header_line, "the output is cut", expected="ports below the last node")
    return tuple(found)


def _port_line(
    output: Output, number: int, match: re.Match[str], header: re.Match[str] | None
) -> PortLine:
    is_block = header is not None
    guid = match["guid"] or (header["guid"] if header is not None else None)
    if guid is None or (is_block and header is not None and header["guid"] and match["guid"]):
        raise output.unknown(number, match[0], "a GUID at each switch, and at each adapter's port")
    far_lid = match["far_lid"]
    could_lanes = _lanes(match["could_lanes"])
    could_speed = _speed(output, number, match["could_speed"])
    hinted = (match["could_lanes"], could_lanes), (match["could_speed"], could_speed)
    port = Port(
        end=End(guid=guid, port=int(match["port"])),
        lid=int(match["lid"]),
        lanes=_lanes(match["lanes"]),
        speed=_speed(output, number, match["speed"]),
        state=match["state"] or match["down"],
        physical=match["physical"] or match["down_physical"],
        could_lanes=could_lanes,
        could_speed=could_speed,
        could_unnamed=any(text is not None and name is None for text, name in hinted),
    )
    return PortLine(
        port=port,
        far_guid=match["far_guid"],
        far_lid=None if far_lid is None else int(far_lid),
        far_number=None if far_lid is None else int(match["far"]),
        line=number,
        text=match[0],
    )


def _lanes(text: str | None) -> int | None:
    return int(text[:-1]) if text is not None and text.endswith("X") else None


def _speed(output: Output, number: int, text: str | None) -> str | None:
    if text is None or text.startswith(("undefined", "Extended", "No Extended")):
        return None
    if text.startswith("FDR10"):
        return "FDR10"
    if text not in _SPEED_NAMES:
        raise output.error(number, "a speed that is not known", expected="SDR to XDR", got=text)
    return _SPEED_NAMES[text]


def with_states(network: Network, lines: Iterable[PortLine], source: str = TOOL) -> Network:
    """Return ``network`` with the states, and the ports that are down, that ``lines`` show.

    Raises:
        ParseError: a port of a switch or an end of a cable has no line (the text is cut), or the
            two outputs show other cables, LIDs, widths or speeds (a link went, came or trained
            anew between them).
    """
    output = Output(text="", source=source, tool=TOOL)
    owners = {own: guid for guid, node in network.nodes.items() for own in node.port_guids}
    ports = dict(network.ports)
    seen: dict[End, int] = {}
    last = 0
    for line in lines:
        last = line.line
        guid = owners.get(line.port.end.guid)
        if guid is None:
            # An adapter's port without cable; one that is up, with a silent other end, is red.
            if line.far_lid is None and line.far_guid is None and line.port.state == "Down":
                continue
            raise _disagreement(output, line, "a node that ibnetdiscover did not show")
        end = replace(line.port.end, guid=guid)
        if end in seen:
            raise output.error(
                line.line, "a port twice", expected=f"each once, first in line {seen[end]}"
            )
        seen[end] = line.line
        ports[end] = _joined(output, network, end, line)
    for end in _due(network):
        if end not in seen:
            raise output.error(
                last + 1,
                "the output is cut, or is of another look than ibnetdiscover's",
                expected=f"a line for {network.where(end)} (0x{end.guid})",
                got="none",
            )
    return replace(network, ports=ports)


def _due(network: Network) -> Iterable[End]:
    yield from network.ports
    for guid, node in network.nodes.items():
        if node.kind is NodeKind.SWITCH:
            yield from (End(guid=guid, port=port) for port in range(1, node.num_ports + 1))


def _joined(output: Output, network: Network, end: End, line: PortLine) -> Port:
    known = network.ports.get(end)
    peer = None if known is None else known.peer
    if (peer is None) != (line.far_lid is None):
        raise _disagreement(
            output, line, "no link here" if peer is None else str(network.where(peer))
        )
    if peer is not None and not _same_far(network, peer, line):
        raise _disagreement(output, line, str(network.where(peer)))
    if known is not None and (told := _other_facts(known, line.port)):
        raise _disagreement(output, line, told, "LIDs, widths or speeds")
    return replace(line.port, end=end, peer=peer)


def _other_facts(known: Port, now: Port) -> str:
    """Return what ``ibnetdiscover`` said otherwise, but not what one of the two does not know."""
    facts = {
        f"LID {known.lid}": (known.lid, now.lid),
        f"{known.lanes}x": (known.lanes, now.lanes),
        f"{known.speed}": (known.speed, now.speed),
    }
    return ", ".join(
        words for words, pair in facts.items() if None not in pair and pair[0] != pair[1]
    )


def _same_far(network: Network, peer: End, line: PortLine) -> bool:
    if line.far_number != peer.port:
        return False
    if line.far_guid is not None:
        return line.far_guid in network.nodes[peer.guid].port_guids
    return line.far_lid == network.ports[peer].lid


def _disagreement(output: Output, line: PortLine, expected: str, what: str = "cables") -> Exception:
    return output.error(
        line.line,
        f"ibnetdiscover and iblinkinfo show other {what}",
        expected=expected,
        line=line.text.strip(),
        next_step="look again; if it stays so, a link goes up and down: see dmesg and LinkDowned",
    )
