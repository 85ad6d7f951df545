"""Read ``ibnetdiscover``, ``saquery -s`` and ``sminfo``: whole lines, none unknown.  Pure.

Grammar from rdma-core, infiniband-diags/ibnetdiscover.c: ``dump_topology``, ``out_ids``,
``out_switch``, ``out_ca``, ``out_switch_port``, ``out_ca_port``, ``dump_linkwidth_compat``,
``dump_linkspeedext_compat``; saquery.c: ``print_issm_records``, ``dump_one_portinfo_record``;
sminfo.c.  Recorded from version 44.0 over opensm 3.3.23 and ibsim 0.10.

With ``-g`` ibnetdiscover names chassis besides, with ``-f`` (full) a port line ends with the raw
fields: both are read.  Every cable is printed at both its ends, so that a text that was cut, at
whatever line, shows: one end of a cable is missing.

A port on which a subnet manager runs says so (IsSM of its CapabilityMask: IBA specification vol.
1, 14.2.5.6); SMInfoRecords (``saquery SMIR``) are not asked, because opensm's master leaves out
managers that came after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fabricproof.core.errors import ParseError
from fabricproof.subnet.model import End, Manager, Network, Node, NodeKind, Port


@dataclass(frozen=True, kw_only=True)
class Output:
    """What one tool printed.

    Attributes:
        text: as it was printed; it must end with a newline, or its end is lost.
        source: file or command it comes from.
        tool: the tool's name, for messages.
    """

    text: str
    source: str
    tool: str

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and content of each line.

        Raises:
            ParseError: nothing was printed, or the last line is cut.
        """
        if not self.text.strip():
            raise self.error(1, "empty", expected=f"what {self.tool} prints", got="nothing")
        lines = self.text.split("\n")
        if lines.pop():
            raise self.error(
                len(lines) + 1, "the output is cut", expected="a newline at its end", line=None
            )
        yield from enumerate(lines, start=1)

    def error(
        self,
        number: int,
        problem: str,
        *,
        expected: str,
        line: str | None = None,
        got: str | None = None,
        next_step: str | None = None,
    ) -> ParseError:
        """Return the error for line ``number``; ``line`` is quoted where ``got`` is not given."""
        return ParseError(
            problem,
            source=self.source,
            line=number,
            expected=expected,
            got=got if got is not None or line is None else repr(line[:100]),
            next_step=next_step,
        )

    def unknown(self, number: int, line: str, expected: str) -> ParseError:
        """Return the error for a line that this reader does not know."""
        return self.error(number, f"not a line of {self.tool}", expected=expected, line=line)


TOOL = "ibnetdiscover"

_HEAD = re.compile(r"# Topology file: generated on .+")
_FROM = re.compile(r"# Initiated from node (?P<guid>[0-9a-f]{16}) port [0-9a-f]{16}")
#: what else looks alike: ``ibnetdiscover -p``, and topologies that were written for a simulator
_PORTS_ONLY = re.compile(r"(?:SW|CA|RT) +\d+ +\d+ 0x[0-9a-f]{16} .*")
_MADE_UP = re.compile(r"# *(?:Topology file: generated (?!on )|Faked )")
_COMMENT = re.compile(
    r"#|# (?:Reported max hops discovered|Total MADs used): \d+"
    r"|# (?:Spine|Line) Nodes|# Chassis (?:Switches|CAs)"
)
_CHASSIS = re.compile(r"Chassis \d+(?: \(guid 0x[0-9a-f]+\))?|Hostname: .*|Non-Chassis Nodes")
_ID = re.compile(r"(?:vendid|devid|sysimgguid)=0x[0-9a-f]+(?:\t\t# Chassis \d+.*)?")
_GUID = re.compile(
    r"(?P<kind>switch|ca|rt)guid=0x(?P<guid>[0-9a-f]{1,16})(?:\((?P<port>[0-9a-f]{1,16})\))?"
    r"(?:\t# .*)?"
)
_NODE = re.compile(
    r'(?P<kind>Switch|Ca|Rt)\t(?P<ports>\d{1,3}) "[SHR]-(?P<guid>[0-9a-f]{16})"\t\t# '
    r'"(?P<name>.*)"(?: (?:base|enhanced) port 0 lid (?P<lid>\d{1,5}) lmc \d+)?(?: \(scp\))?'
)
_LINKED = (
    r"\[(?P<port>\d{1,3})\](?:\[ext \d+\])?(?:\((?P<mine>[0-9a-f]{1,16})\) )?\t"
    r'"[SHR]-(?P<guid>[0-9a-f]{16})"\[(?P<far>\d{1,3})\](?:\[ext \d+\])?'
    r" ?(?:\((?P<theirs>[0-9a-f]{1,16})\) )?\t\t# "
)
_TRAINED = (
    r"(?P<lanes>\d{1,2}x|\?\?)(?P<speed>[A-Z]{3}(?:10)?|\?\?\?)"
    r"(?: s=\d+ w=\d+ v=\d+)?(?: slot \d+| \(scp\))?"
)
#: a port of a switch names its peer's LID; an adapter's its own before, and ``lmc``
_SWITCH_PORT = re.compile(_LINKED + r'"(?P<name>.*)" lid (?P<lid>\d{1,5}) ' + _TRAINED)
_HOST_PORT = re.compile(
    _LINKED + r'lid (?P<own>\d{1,5}) lmc \d+ "(?P<name>.*)" lid (?P<lid>\d{1,5}) ' + _TRAINED
)

#: the names of ``dump_linkspeedext_compat``
SPEEDS = frozenset({"SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"})

_KINDS = {"switch": NodeKind.SWITCH, "ca": NodeKind.HOST, "rt": NodeKind.ROUTER}


@dataclass(kw_only=True)
class _Reading:
    """What was read so far."""

    output: Output
    nodes: dict[str, Node] = field(default_factory=dict)
    ports: dict[End, Port] = field(default_factory=dict)
    lines: dict[End, int] = field(default_factory=dict)
    from_guid: str = ""
    headed: bool = False
    ids: int = 0
    """Line of the last identification (``vendid=``) that no node followed yet, 0 where none is."""
    pending: re.Match[str] | None = None
    current: Node | None = None


def read_ibnetdiscover(text: str, source: str = TOOL) -> Network:
    """Read what ``ibnetdiscover`` printed.

    Raises:
        ParseError: not its output, an unknown line, a cut text, or a cable with one end.
    """
    output = Output(text=text, source=source, tool=TOOL)
    reading = _Reading(output=output)
    last = 1
    for number, line in output.lines():
        _take(reading, number, line)
        last = number
    if not reading.headed:
        raise output.error(1, "no output of ibnetdiscover", expected="'# Topology file: ...'")
    if reading.ids:
        raise output.error(last, "the output is cut", expected="a node after its identification")
    if not reading.nodes:
        raise output.error(last, "the output is cut", expected="at least one node")
    if reading.from_guid not in reading.nodes:
        raise output.error(
            last,
            "the node that looked is not among those that were seen",
            expected="'# Initiated from node GUID ...', and that node",
            got=f"0x{reading.from_guid}" if reading.from_guid else "no such line",
        )
    _check_both_ends(reading)
    return Network(nodes=reading.nodes, ports=reading.ports, from_guid=reading.from_guid)


def _take(reading: _Reading, number: int, line: str) -> None:
    if not reading.headed and line not in {"", "#"} and not _HEAD.fullmatch(line):
        raise reading.output.error(
            number,
            "not a line of ibnetdiscover",
            expected="'# Topology file: generated on ...' first",
            line=line,
            next_step=_otherwise(line),
        )
    if not line:
        reading.current = None
    elif line.startswith("#"):
        _comment(reading, number, line)
    elif line.startswith("["):
        _port(reading, number, line)
    elif (guid := _GUID.fullmatch(line)) is not None:
        reading.pending, reading.ids = guid, number
    elif (node := _NODE.fullmatch(line)) is not None:
        _node(reading, number, node)
    elif _ID.fullmatch(line):
        reading.ids = number
    elif not _CHASSIS.fullmatch(line):
        raise reading.output.unknown(
            number, line, "a node ('Switch', 'Ca', 'Rt'), its '...guid=' or a port '[1] ...'"
        )


def _otherwise(line: str) -> str | None:
    """Return what to do with a text that begins with ``line``, None where nothing is known."""
    if _PORTS_ONLY.fullmatch(line):
        return "this is ibnetdiscover -p, which is not read: run ibnetdiscover without -p"
    if _MADE_UP.match(line):
        return (
            "this was written for a simulator and shows no fabric: load it into ibsim, and run "
            "ibnetdiscover there"
        )
    return None


def _comment(reading: _Reading, number: int, line: str) -> None:
    if _HEAD.fullmatch(line):
        if reading.headed:
            raise reading.output.unknown(number, line, "one output, not two joined")
        reading.headed = True
    elif (found := _FROM.fullmatch(line)) is not None and not reading.from_guid:
        reading.from_guid = found["guid"]
    elif not _COMMENT.fullmatch(line):
        raise reading.output.unknown(number, line, "a comment that ibnetdiscover writes")


def _node(reading: _Reading, number: int, found: re.Match[str]) -> None:
    pending, guid = reading.pending, found["guid"]
    kind = NodeKind(found["kind"])
    if pending is None or pending["guid"].zfill(16) != guid or _KINDS[pending["kind"]] != kind:
        raise reading.output.error(
            number, "a node without its GUID", expected="'switchguid=' or 'caguid=' of it before"
        )
    if guid in reading.nodes:
        raise reading.output.error(number, "a node twice", expected="each once", got=f"0x{guid}")
    if (kind is NodeKind.SWITCH) != (found["lid"] is not None):
        raise reading.output.unknown(number, found[0], "'base port 0 lid N lmc N' of a switch")
    own = {guid, (pending["port"] or guid).zfill(16)}
    reading.current = Node(
        guid=guid,
        kind=kind,
        num_ports=int(found["ports"]),
        description=found["name"].strip(),
        lid=None if found["lid"] is None else int(found["lid"]),
        port_guids=frozenset(own),
    )
    reading.nodes[guid] = reading.current
    reading.pending, reading.ids = None, 0


def _port(reading: _Reading, number: int, line: str) -> None:
    node = reading.current
    if node is None or reading.ids:
        raise reading.output.unknown(number, line, "the node that this port is of, before it")
    is_switch = node.kind is NodeKind.SWITCH
    found = (_SWITCH_PORT if is_switch else _HOST_PORT).fullmatch(line)
    if found is None or (found["speed"] not in SPEEDS and found["speed"] != "???"):
        raise reading.output.unknown(
            number, line, '\'[port] "peer"[port] # "name" lid N 4xEDR\' of a ' + node.kind.value
        )
    end = End(guid=node.guid, port=int(found["port"]))
    if end in reading.ports or not 1 <= end.port <= node.num_ports:
        raise reading.output.error(
            number, "a port that cannot be", expected=f"1 to {node.num_ports}, each once", line=line
        )
    lid = node.lid if is_switch else int(found["own"])
    lanes, speed = found["lanes"], found["speed"]
    reading.lines[end] = number
    reading.ports[end] = Port(
        end=end,
        lid=lid,
        lanes=int(lanes[:-1]) if lanes != "??" else None,
        speed=speed if speed != "???" else None,
        peer=End(guid=found["guid"], port=int(found["far"])),
    )
    if found["mine"]:
        _add_guid(reading, found["mine"])


def _add_guid(reading: _Reading, guid: str) -> None:
    node = reading.current
    assert node is not None
    reading.current = replace(node, port_guids=node.port_guids | {guid.zfill(16)})
    reading.nodes[node.guid] = reading.current


def _check_both_ends(reading: _Reading) -> None:
    for end, port in reading.ports.items():
        assert port.peer is not None
        back = reading.ports.get(port.peer)
        if back is None or back.peer != end:
            whose = "no line" if back is None else "another end"
            raise reading.output.error(
                reading.lines[end],
                "a cable with one end: the output is cut, or a link went or came during the look",
                expected=f"0x{port.peer.guid} port {port.peer.port} to name this port",
                got=whose,
                next_step="look again; what was cut cannot be told from what is not there",
            )


_FIELD = re.compile(r"\t\t(?P<name>\w+)\.+(?P<value>0x[0-9A-Fa-f]{1,8}|\d{1,10})")
_FIELDS = ("EndPortLid", "PortNum", "base_lid", "master_sm_base_lid", "capability_mask")
_FIRST, _RECORD, _LAST = "IsSM ports", "PortInfoRecord dump:", "IsSMdisabled ports"

#: infiniband-diags/sminfo.c: the words of states 0 to 3
_STATES = {
    "SMINFO_NOTACT": 0,
    "SMINFO_DISCOVER": 1,
    "SMINFO_STANDBY": 2,
    "SMINFO_MASTER": 3,
}
#: "sminfo: sm lid %d sm guid 0x%x, activity count %u priority %d state %d %s" (the same file)
_SMINFO = re.compile(
    r"sminfo: sm lid (?P<lid>\d{1,5}) sm guid 0x(?P<guid>[0-9a-f]{1,16}), activity count \d+ "
    r"priority (?P<priority>\d{1,2}) state (?P<state>\d) (?P<word>\w+)"
)


def read_issm(text: str, source: str = "saquery -s") -> tuple[int, ...]:
    """Return the LIDs on which subnet managers run.

    Raises:
        ParseError: an unknown line, a record without one of its fields, or a cut text.
    """
    output = Output(text=text, source=source, tool="saquery -s")
    records: list[tuple[int, dict[str, int]]] = []
    heads: list[str] = []
    active = 0
    for number, line in output.lines():
        match = _FIELD.fullmatch(line)
        if line in {_FIRST, _LAST}:
            heads.append(line)
            active = len(records) if line == _LAST else 0
        elif line == _RECORD and heads:
            records.append((number, {}))
        elif match is not None and records and match["name"] in _FIELDS:
            if match["name"] in records[-1][1]:
                raise output.unknown(number, line, "each field of a record once")
            records[-1][1][match["name"]] = int(match["value"], 0)
        elif line.strip():
            raise output.unknown(number, line, f"'{_FIRST}', then '{_RECORD}' and its fields")
    if heads != [_FIRST, _LAST]:
        raise output.error(1, "the output is cut", expected=f"'{_FIRST}' and '{_LAST}'")
    for number, fields in records:
        if tuple(fields) != _FIELDS:
            raise output.error(
                number, "a record is cut", expected=", ".join(_FIELDS), got=", ".join(fields)
            )
    return tuple(sorted({fields["base_lid"] for _, fields in records[:active]}))


def read_managers(text: str, source: str = "sminfo") -> tuple[Manager, ...]:
    """Read ``sminfo``, once or once for each LID, as managers; the first is the ports' own.

    Raises:
        ParseError: nobody answered, a line is of another form, or the text is cut.
    """
    output = Output(text=text, source=source, tool="sminfo")
    found: dict[str, Manager] = {}
    for number, line in output.lines():
        said = _SMINFO.fullmatch(line)
        if said is None or _STATES.get(said["word"]) != int(said["state"]):
            raise output.unknown(number, line, "'sminfo: sm lid ... state 3 SMINFO_MASTER'")
        guid, state = said["guid"].zfill(16), int(said["state"])
        now = Manager(lid=int(said["lid"]), guid=guid, priority=int(said["priority"]), state=state)
        first = found.setdefault(guid, now)
        if (first.priority, first.state) != (now.priority, now.state):
            raise output.error(
                number,
                "one subnet manager answered twice, and not the same",
                expected=f"priority {first.priority} state {first.state} as before",
                line=line,
                next_step="look again: the managers change who is master",
            )
    return tuple(found.values())
