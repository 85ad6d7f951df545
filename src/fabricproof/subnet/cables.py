"""Read ``ibnetdiscover``: whole lines, none unknown.  Pure.

Grammar from rdma-core, infiniband-diags/ibnetdiscover.c: ``dump_topology``, ``out_ids``,
``out_switch``, ``out_ca``, ``out_switch_port``, ``out_ca_port``, ``dump_linkwidth_compat``,
``dump_linkspeedext_compat``.  Recorded from version 44.0 over opensm 3.3.23 and ibsim 0.10.

With ``-g`` it names chassis besides, with ``-f`` (full) a port line ends with the raw fields: both
are read.  Every cable is printed at both its ends, so that a text that was cut, at whatever line,
shows: one end of a cable is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fabricproof.subnet.model import End, Network, Node, NodeKind, Port
from fabricproof.subnet.output import Output

TOOL = "ibnetdiscover"

#: the names of ``dump_linkspeedext_compat``
SPEEDS = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")

_HEAD = re.compile(r"# Topology file: generated on .+")
_FROM = re.compile(r"# Initiated from node (?P<guid>[0-9a-f]{16}) port [0-9a-f]{16}")
_ID = re.compile(r"(?:vendid|devid|sysimgguid)=0x[0-9a-f]+(?:\t\t# Chassis \d+.*)?")
_GUID = re.compile(
    r"(?P<kind>switch|ca|rt)guid=0x(?P<guid>[0-9a-f]{1,16})(?:\((?P<port>[0-9a-f]{1,16})\))?"
    r"(?:\t# .*)?"
)
_NODE = re.compile(
    r'(?P<kind>Switch|Ca|Rt)\t(?P<ports>\d{1,3}) "[SHR]-(?P<guid>[0-9a-f]{16})"\t\t# '
    r'"(?P<name>.*)"(?: (?:base|enhanced) port 0 lid (?P<lid>\d{1,5}) lmc \d+)?(?: \(scp\))?'
)
#: a port of a switch names its peer's LID; an adapter's its own before, and ``lmc``
_PORT = re.compile(
    r"\[(?P<port>\d{1,3})\](?:\[ext \d+\])?(?:\((?P<mine>[0-9a-f]{1,16})\) )?\t"
    r'"[SHR]-(?P<guid>[0-9a-f]{16})"\[(?P<far>\d{1,3})\](?:\[ext \d+\])?'
    r" ?(?:\([0-9a-f]{1,16}\) )?\t\t# (?:lid (?P<own>\d{1,5}) lmc \d+ )?"
    rf'".*" lid \d{{1,5}} (?P<lanes>\d{{1,2}}x|\?\?)(?P<speed>{"|".join(SPEEDS)}|\?\?\?)'
    r"(?: s=\d+ w=\d+ v=\d+)?(?: slot \d+| \(scp\))?"
)
_NOTHING_NEW = re.compile(
    r"#|# (?:Reported max hops discovered|Total MADs used): \d+|# (?:Spine|Line) Nodes"
    r"|# Chassis (?:Switches|CAs)|Chassis \d+(?: \(guid 0x[0-9a-f]+\))?|Hostname: .*"
    r"|Non-Chassis Nodes"
)
#: what looks alike, and what to do with it
_OTHERS = (
    (
        re.compile(r"(?:SW|CA|RT) +\d+ +\d+ 0x[0-9a-f]{16} .*"),
        "this is ibnetdiscover -p, which is not read: run ibnetdiscover without -p",
    ),
    (
        re.compile(r"# *(?:Topology file: generated (?!on )|Faked ).*"),
        "this was written for a simulator: load it into ibsim, and run ibnetdiscover there",
    ),
)


@dataclass(kw_only=True)
class _Reading:
    """What was read so far."""

    output: Output
    nodes: dict[str, Node] = field(default_factory=dict)
    ports: dict[End, Port] = field(default_factory=dict)
    lines: dict[End, int] = field(default_factory=dict)
    from_guid: str = ""
    is_headed: bool = False
    identified: int = 0
    """Last line of an identification that no node followed yet; 0 if there is none."""
    named: re.Match[str] | None = None
    node: Node | None = None

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        if not line:
            self.node = None
            return
        forms = ((pattern.fullmatch(line), read) for pattern, read in _FORMS)
        found, read = next((form for form in forms if form[0]), (None, None))
        is_early = not self.is_headed and line != "#" and read is not _Reading.take_head
        if found is None or read is None or is_early:
            expected = "'# Topology file: generated on ...' first" if is_early else _KNOWN
            then = next((what for other, what in _OTHERS if other.fullmatch(line)), None)
            raise self.output.unknown(number, line, expected, then)
        read(self, number, found)

    def take_head(self, number: int, found: re.Match[str]) -> None:
        """Read the first line, which is there once."""
        if self.is_headed:
            raise self.output.unknown(number, found[0], "one output, not two joined")
        self.is_headed = True

    def take_from(self, number: int, found: re.Match[str]) -> None:
        """Read which node looked."""
        if self.from_guid:
            raise self.output.unknown(number, found[0], "one node that looked")
        self.from_guid = found["guid"]

    def take_identification(self, number: int, found: re.Match[str]) -> None:
        """Read what stands before a node; its GUID alone is kept."""
        self.identified = number
        if found.re is _GUID:
            self.named = found

    def take_node(self, number: int, found: re.Match[str]) -> None:
        """Read a switch or an adapter."""
        named, guid, kind = self.named, found["guid"], NodeKind(found["kind"])
        if named is None or (named["guid"].zfill(16), named["kind"]) != (guid, kind.value.lower()):
            raise self.output.error(
                number, "a node without its GUID", expected="its 'switchguid=', 'caguid=' before it"
            )
        if guid in self.nodes:
            raise self.output.error(number, "a node twice", expected="each once", got=f"0x{guid}")
        if (kind is NodeKind.SWITCH) != (found["lid"] is not None):
            raise self.output.unknown(number, found[0], "'base port 0 lid N lmc N' of a switch")
        self.node = self.nodes[guid] = Node(
            guid=guid,
            kind=kind,
            num_ports=int(found["ports"]),
            description=found["name"].strip(),
            lid=None if found["lid"] is None else int(found["lid"]),
            port_guids=frozenset({guid, (named["port"] or guid).zfill(16)}),
        )
        self.named, self.identified = None, 0

    def take_port(self, number: int, found: re.Match[str]) -> None:
        """Read a port that is linked."""
        node, is_own = self.node, found["own"] is not None
        if node is None or self.identified or is_own is (node.kind is NodeKind.SWITCH):
            raise self.output.unknown(number, found[0], "the node that this port is of, before it")
        end = End(guid=node.guid, port=int(found["port"]))
        if end in self.ports or not 1 <= end.port <= node.num_ports:
            whole = f"1 to {node.num_ports}, each once"
            raise self.output.error(number, "a port that cannot be", expected=whole, line=found[0])
        self.lines[end] = number
        self.ports[end] = Port(
            end=end,
            lid=int(found["own"]) if is_own else node.lid,
            lanes=None if found["lanes"] == "??" else int(found["lanes"][:-1]),
            speed=None if found["speed"] == "???" else found["speed"],
            peer=End(guid=found["guid"], port=int(found["far"])),
        )
        if found["mine"]:
            own = node.port_guids | {found["mine"].zfill(16)}
            self.node = self.nodes[node.guid] = replace(node, port_guids=own)


_KNOWN = "a node ('Switch', 'Ca', 'Rt'), its '...guid=' or a port '[1] \"peer\"[1] # ... 4xEDR'"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[_Reading, int, re.Match[str]], Any]], ...] = (
    (_PORT, _Reading.take_port),
    (_NODE, _Reading.take_node),
    (_GUID, _Reading.take_identification),
    (_ID, _Reading.take_identification),
    (_HEAD, _Reading.take_head),
    (_FROM, _Reading.take_from),
    (_NOTHING_NEW, lambda *_: None),
)


def read_ibnetdiscover(text: str, source: str = TOOL) -> Network:
    """Read what ``ibnetdiscover`` printed.

    Raises:
        ParseError: not its output, an unknown line, a cut text, or a cable with one end.
    """
    output = Output(text=text, source=source, tool=TOOL)
    reading = _Reading(output=output)
    last = 1
    for last, line in output.lines():
        reading.take(last, line)
    if not reading.is_headed:
        raise output.error(1, "no output of ibnetdiscover", expected="'# Topology file: ...'")
    if reading.identified or not reading.nodes:
        raise output.cut(last, "a node, after its identification")
    if reading.from_guid not in reading.nodes:
        raise output.error(
            last,
            "the node that looked is not among those that were seen",
            expected="'# Initiated from node GUID ...', and that node",
            got=f"0x{reading.from_guid}" if reading.from_guid else "no such line",
        )
    for end, port in reading.ports.items():
        peer = port.peer
        assert peer is not None
        back = reading.ports.get(peer)
        if back is None or back.peer != end:
            raise output.error(
                reading.lines[end],
                "a cable with one end: the output is cut, or a link went or came during the look",
                expected=f"0x{peer.guid} port {peer.port} to name this port",
                got="no line" if back is None else "another end",
                next_step="look again; what was cut cannot be told from what is not there",
            )
    return Network(nodes=reading.nodes, ports=reading.ports, from_guid=reading.from_guid)
