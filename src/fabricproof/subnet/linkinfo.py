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

from fabricproof.core.errors import ParseError
from fabricproof.subnet.model import End, Network, NodeKind, Port
from fabricproof.subnet.output import Output

TOOL = "iblinkinfo"

_HEADER = re.compile(r"(?:Switch|CA|Router): (?:0x(?P<guid>[0-9a-f]{16}) )?.*:")
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
    rf'".*" \({_HINTS}\)'
)
_NOTHING = r' {11}\[  \] "" \( \)| {4}"Port not available"'
_BODY = (
    rf" *(?P<lid>\d{{1,5}}) +(?P<port>\d{{1,3}})\[[ \d]{{2,3}}\] ==\((?:{_UP}|{_DOWN})\)"
    rf"(?: \(HOQ:\d+ VL_Stall:\d+\))?==>  (?:{_REMOTE}|{_NOTHING})"
)
_LINE = re.compile(rf'0x(?P<guid>[0-9a-f]{{16}}) ".*" {_BODY}')
_IN_BLOCK = re.compile(rf" {{6}}(?:0x(?P<guid>[0-9a-f]{{16}}) )?{_BODY}")

#: what the tool prints in Gb/s per lane -> the speed's name (libibmad/dump.c; line rates: IBA
#: specification vol. 2 and IBTA's roadmap, as in physics/data/links.json)
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
        far_guid: likewise of the other end, None without ``-l`` or if nothing is linked.
        far: LID and port of the other end, None if nothing is linked.
    """

    port: Port
    far_guid: str | None
    far: tuple[int, int] | None
    line: int
    text: str


def read_iblinkinfo(text: str, source: str = TOOL) -> tuple[PortLine, ...]:
    """Read what ``iblinkinfo`` or ``iblinkinfo -l`` printed.

    Raises:
        ParseError: an unknown line, a cut text, or both forms in one.
    """
    output = Output(text=text, source=source, tool=TOOL)
    ports: list[PortLine] = []
    header: re.Match[str] | None = None
    bare = 0  # line of the last header, until a port follows it
    for number, line in output.lines():
        found = _HEADER.fullmatch(line)
        if found is not None and not bare and (header is not None or not ports):
            header, bare = found, number
            continue
        match = (_LINE if header is None else _IN_BLOCK).fullmatch(line)
        guids = [each["guid"] for each in (match, header) if each is not None and each["guid"]]
        if match is None or len(guids) != 1:
            known = "'Switch: 0x... name:' or a port with '==(...)==>' and one GUID; one form alone"
            raise output.unknown(number, line, known)
        ports.append(_port_line(output, number, match, guids[0]))
        bare = 0
    if bare:
        raise output.cut(bare, "ports below the last node")
    return tuple(ports)


def _port_line(output: Output, number: int, match: re.Match[str], guid: str) -> PortLine:
    lanes, could_lanes = (
        int(text[:-1]) if text is not None and text.endswith("X") else None
        for text in (match["lanes"], match["could_lanes"])
    )
    speed, could_speed = (_speed(output, number, match[key]) for key in ("speed", "could_speed"))
    hints = (match["could_lanes"], could_lanes), (match["could_speed"], could_speed)
    port = Port(
        end=End(guid=guid, port=int(match["port"])),
        lid=int(match["lid"]),
        lanes=lanes,
        speed=speed,
        state=match["state"] or match["down"],
        physical=match["physical"] or match["down_physical"],
        could_lanes=could_lanes,
        could_speed=could_speed,
        could_unnamed=any(text is not None and name is None for text, name in hints),
    )
    far = (int(match["far_lid"]), int(match["far"])) if match["far"] else None
    return PortLine(port=port, far_guid=match["far_guid"], far=far, line=number, text=match[0])


def _speed(output: Output, number: int, text: str | None) -> str | None:
    if text is None or text.startswith(("undefined", "Extended", "No Extended")):
        return None
    name = "FDR10" if text.startswith("FDR10") else _SPEED_NAMES.get(text)
    if name is None:
        raise output.error(number, "a speed that is not known", expected="SDR to XDR", got=text)
    return name


def with_states(network: Network, lines: Iterable[PortLine], source: str = TOOL) -> Network:
    """Return ``network`` with the states, and the ports that are down, that ``lines`` show.

    Raises:
        ParseError: a port of a switch or an end of a cable has no line (the text is cut), or the
            two outputs show other cables, LIDs, widths or speeds (a link went, came or trained
            anew between them).
    """
    output = Output(text="", source=source, tool=TOOL)
    ports = dict(network.ports)
    seen: dict[End, int] = {}
    last = 0
    for line in lines:
        last, guid = line.line, network.owners.get(line.port.end.guid)
        if guid is None:
            # An adapter's port without cable; one that is up, with a silent other end, is red.
            if line.far is None and line.port.state == "Down":
                continue
            raise _disagreement(output, line, "cables", "a node that ibnetdiscover did not show")
        end = replace(line.port.end, guid=guid)
        if end in seen:
            raise output.error(
                last, "a port twice", expected=f"each once, first in line {seen[end]}"
            )
        seen[end] = last
        ports[end] = _joined(output, network, end, line)
    switches = (node for node in network.nodes.values() if node.kind is NodeKind.SWITCH)
    of_switches = (
        End(guid=node.guid, port=port) for node in switches for port in range(1, node.num_ports + 1)
    )
    for end in (*network.ports, *of_switches):
        if end not in seen:
            raise output.error(
                last + 1,
                "the output is cut, or is of another look than ibnetdiscover's",
                expected=f"a line for {network.where(end)} (0x{end.guid})",
                got="none",
            )
    return replace(network, ports=ports)


def _joined(output: Output, network: Network, end: End, line: PortLine) -> Port:
    """Return a port as the line shows it, on the cable that ``ibnetdiscover`` showed."""
    known, now = network.ports.get(end), line.port
    peer = known.peer if known is not None else None
    if peer is None or known is None:
        if line.far is not None:
            raise _disagreement(output, line, "cables", "no link here")
        return replace(now, end=end)
    lid, number = line.far or (None, None)
    same_node = (
        lid == network.ports[peer].lid
        if line.far_guid is None
        else line.far_guid in network.nodes[peer.guid].port_guids
    )
    if number != peer.port or not same_node:
        raise _disagreement(output, line, "cables", str(network.where(peer)))
    # What one of the two does not know is no disagreement.
    facts = {
        f"LID {known.lid}": (known.lid, now.lid),
        f"{known.lanes}x": (known.lanes, now.lanes),
        f"{known.speed}": (known.speed, now.speed),
    }
    other = [words for words, pair in facts.items() if None not in pair and pair[0] != pair[1]]
    if other:
        raise _disagreement(output, line, "LIDs, widths or speeds", ", ".join(other))
    return replace(now, end=end, peer=peer)


def _disagreement(output: Output, line: PortLine, what: str, expected: str) -> ParseError:
    return output.error(
        line.line,
        f"ibnetdiscover and iblinkinfo show other {what}",
        expected=expected,
        line=line.text.strip(),
        next_step="look again; if it stays so, a link goes up and down: see dmesg and LinkDowned",
    )
