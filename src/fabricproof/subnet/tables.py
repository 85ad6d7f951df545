"""Read ``saquery -s``, ``sminfo`` and ``ibqueryerrors``: whole lines, none unknown.  Pure.

Grammar from rdma-core, infiniband-diags: saquery.c (``print_issm_records``,
``dump_one_portinfo_record``), sminfo.c, ibqueryerrors.c (``print_results``, ``print_summary``);
names of counters from libibmad/fields.c.  Recorded from version 44.0 over opensm 3.3.23 and ibsim
0.10.

A port on which a subnet manager runs says so (IsSM of its CapabilityMask: IBA specification vol.
1, 14.2.5.6); SMInfoRecords (``saquery SMIR``) are not asked, because opensm's master leaves out
managers that came after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabricproof.subnet.model import Manager, PortCounters
from fabricproof.subnet.output import Output

_FIELD = re.compile(r"\t\t(?P<name>\w+)\.+(?P<value>0x[0-9A-Fa-f]{1,8}|\d{1,10})")
_FIELDS = ["EndPortLid", "PortNum", "base_lid", "master_sm_base_lid", "capability_mask"]
_FIRST, _RECORD, _LAST = "IsSM ports", "PortInfoRecord dump:", "IsSMdisabled ports"

#: infiniband-diags/sminfo.c: the words of states 0 to 3
_STATES = ("SMINFO_NOTACT", "SMINFO_DISCOVER", "SMINFO_STANDBY", "SMINFO_MASTER")
#: "sminfo: sm lid %d sm guid 0x%x, activity count %u priority %d state %d %s" (the same file)
_SMINFO = re.compile(
    r"sminfo: sm lid (?P<lid>\d{1,5}) sm guid 0x(?P<guid>[0-9a-f]{1,16}), activity count \d+ "
    r"priority (?P<priority>\d{1,2}) state (?P<state>[0-3]) (?P<word>\w+)"
)


def read_issm(text: str, source: str = "saquery -s") -> tuple[int, ...]:
    """Return the LIDs on which subnet managers run.

    Raises:
        ParseError: an unknown line, a record without one of its fields, or a cut text.
    """
    output = Output(text=text, source=source, tool="saquery -s")
    records: list[tuple[int, list[tuple[str, int]]]] = []
    heads: list[str] = []
    active = 0
    for number, line in output.lines():
        match = _FIELD.fullmatch(line)
        if line in {_FIRST, _LAST}:
            heads.append(line)
            active = len(records)
        elif line == _RECORD and heads:
            records.append((number, []))
        elif match is not None and records:
            records[-1][1].append((match["name"], int(match["value"], 0)))
        elif line.strip():
            raise output.unknown(number, line, f"'{_FIRST}', then '{_RECORD}' and its fields")
    if heads != [_FIRST, _LAST]:
        raise output.cut(1, f"'{_FIRST}' and '{_LAST}'")
    for number, fields in records:
        if [name for name, _ in fields] != _FIELDS:
            raise output.cut(number, f"a record of {', '.join(_FIELDS)}")
    return tuple(sorted({dict(fields)["base_lid"] for _, fields in records[:active]}))


def read_managers(text: str, source: str = "sminfo") -> tuple[Manager, ...]:
    """Read ``sminfo``, once or once for each LID, as managers; the first is the ports' own.

    Raises:
        ParseError: nobody answered, a line is of another form, or the text is cut.
    """
    output = Output(text=text, source=source, tool="sminfo")
    managers: dict[str, Manager] = {}
    for number, line in output.lines():
        match = _SMINFO.fullmatch(line)
        if match is None or _STATES[int(match["state"])] != match["word"]:
            raise output.unknown(number, line, "'sminfo: sm lid ... state 3 SMINFO_MASTER'")
        guid, state = match["guid"].zfill(16), int(match["state"])
        now = Manager(
            lid=int(match["lid"]), guid=guid, priority=int(match["priority"]), state=state
        )
        first = managers.setdefault(guid, now)
        if (first.priority, first.state) != (now.priority, now.state):
            raise output.error(
                number,
                "one subnet manager answered twice, and not the same",
                expected=f"priority {first.priority} state {first.state} as before",
                line=line,
                next_step="look again: the managers change who is master",
            )
    return tuple(managers.values())


#: field -> the kernel's name (Linux drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR), which
#: ``traffic.counters`` uses too
_NAMES = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "QP1Dropped": "qp1_dropped",
    "VL15Dropped": "VL15_dropped",
    "PortXmitWait": "port_xmit_wait",
}
#: printed besides with ``--data``
_DATA = re.compile(r"Port(?:Unicast|Multicast)?(?:Xmit|Rcv)(?:Data|Pkts)")
_ERRORS_FOR = re.compile(r'Errors for (?:0x[0-9a-f]{1,16} )?".*"')
_ERRORS = re.compile(
    r"   GUID 0x(?P<guid>[0-9a-f]{1,16}) port (?P<port>ALL|\d{1,3}):(?P<pairs>(?: \[[^\]]+\])+)"
)
_PAIR = re.compile(r" \[(?P<name>\w+) == (?P<value>\d{1,20})(?: \([\d.]+[A-Za-z]*\))?\]")
#: the end, in this order; a blank at a line's end is lost in mail and editors
_SUMMARY = re.compile(
    r"## Summary: (?P<nodes>\d+) nodes checked, (?P<bad_nodes>\d+) bad nodes found\n"
    r"## {10}(?P<ports>\d+) ports checked, (?P<bad_ports>\d+) ports have errors beyond threshold\n"
    r"## Thresholds:(?P<set>.*)\n"
    r"(?:## {10}(?P<failed>\d+) PMA query failures\n)?"
    r"## Suppressed:(?P<names>.*)\n"
)


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The ports that ``ibqueryerrors`` found counters on.

    Attributes:
        ports: (GUID of switch or adapter's port, port) -> counters that are not zero.
        nodes: nodes that were asked: switches alone with ``--switch``.
        checked: ports that were asked, with those of switches that nothing is linked to.
        failed: ports that did not answer.
    """

    ports: Mapping[tuple[str, int], PortCounters]
    nodes: int
    checked: int
    failed: int


def read_ibqueryerrors(text: str, source: str = "ibqueryerrors") -> Errors:
    """Read what ``ibqueryerrors`` printed, which must not have left anything out.

    Raises:
        ParseError: an unknown line, counts that do not fit the summary, a cut text, or thresholds
            and suppressed counters, under which errors would be hidden.
    """
    output = Output(text=text, source=source, tool="ibqueryerrors")
    lines = [(number, line) for number, line in output.lines() if line]
    at = next((at for at, (_, line) in enumerate(lines) if line.startswith("##")), len(lines))
    summary = _SUMMARY.fullmatch("".join(f"{line}\n" for _, line in lines[at:]))
    ports: dict[tuple[str, int], PortCounters] = {}
    nodes = 0
    for number, line in lines[:at]:
        if _ERRORS_FOR.fullmatch(line):
            nodes += 1
        elif not nodes:
            raise output.unknown(number, line, "'Errors for ...'")
        else:
            _take_port(output, number, line, ports)
    if summary is None:
        raise output.error(
            lines[at][0] if at < len(lines) else 1,
            "the output is cut, or a line of its summary is there twice",
            expected="'## Summary:', 'ports checked', '## Thresholds:' and '## Suppressed:', each "
            "once, at its end",
        )
    hidden = f"{summary['set']}{summary['names']}".strip()
    if hidden:
        raise output.error(
            lines[at][0],
            "errors may have been hidden",
            expected="no thresholds and nothing suppressed",
            got=hidden,
            next_step="ibqueryerrors --threshold-file /dev/null",
        )
    if (len(ports), nodes) != (int(summary["bad_ports"]), int(summary["bad_nodes"])):
        raise output.error(
            1,
            "lines are missing",
            expected=f"{summary['bad_ports']} ports of {summary['bad_nodes']} nodes (the summary)",
            got=f"{len(ports)} of {nodes}",
        )
    return Errors(
        ports=ports,
        nodes=int(summary["nodes"]),
        checked=int(summary["ports"]),
        failed=int(summary["failed"] or 0),
    )


def _take_port(
    output: Output, number: int, line: str, ports: dict[tuple[str, int], PortCounters]
) -> None:
    match = _ERRORS.fullmatch(line)
    if match is None or _PAIR.sub("", match["pairs"]):
        raise output.unknown(number, line, "'Errors for ...' or 'GUID 0x... port N: [..]'")
    if match["port"] == "ALL":
        return
    counted = {pair["name"]: int(pair["value"]) for pair in _PAIR.finditer(match["pairs"])}
    for name in counted:
        if name not in _NAMES and not _DATA.fullmatch(name):
            raise output.unknown(number, name, "a counter that is known")
    key = (match["guid"].zfill(16), int(match["port"]))
    if key in ports:
        raise output.error(number, "a port twice", expected="each once", line=line)
    ports[key] = {_NAMES[name]: value for name, value in counted.items() if name in _NAMES}
