"""Read counters of ports: ``perfquery`` (plain, ``-x``, ``-a``, ``-l``), ``ibqueryerrors``.  Pure.

Grammar from rdma-core, infiniband-diags/perfquery.c (``dump_perfcounters``, ``portid2str`` of
libibmad/portid.c) and ibqueryerrors.c (``print_results``, ``print_summary``); names of fields from
libibmad/fields.c.  Recorded from version 44.0 over ibsim 0.10.

Data counters are in words of four bytes (IBA specification vol. 1, 16.1.3.5: PortXmitData) and
become ``tx_bytes`` and ``rx_bytes`` here; errors get the kernel's names, so that ``counters.py``
judges them as it judges those that jobs read from sysfs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabricproof.subnet.model import End, Network, PortCounters
from fabricproof.subnet.read import Output
from fabricproof.traffic import ENDS

#: field -> the kernel's name (Linux drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR) and a factor
_NAMES: dict[str, tuple[str, int]] = {
    "SymbolErrorCounter": ("symbol_error", 1),
    "LinkErrorRecoveryCounter": ("link_error_recovery", 1),
    "LinkDownedCounter": ("link_downed", 1),
    "PortRcvErrors": ("port_rcv_errors", 1),
    "PortRcvRemotePhysicalErrors": ("port_rcv_remote_physical_errors", 1),
    "PortRcvSwitchRelayErrors": ("port_rcv_switch_relay_errors", 1),
    "PortXmitDiscards": ("port_xmit_discards", 1),
    "PortXmitConstraintErrors": ("port_xmit_constraint_errors", 1),
    "PortRcvConstraintErrors": ("port_rcv_constraint_errors", 1),
    "LocalLinkIntegrityErrors": ("local_link_integrity_errors", 1),
    "ExcessiveBufferOverrunErrors": ("excessive_buffer_overrun_errors", 1),
    "QP1Dropped": ("qp1_dropped", 1),
    "VL15Dropped": ("VL15_dropped", 1),
    "PortXmitData": ("tx_bytes", 4),
    "PortRcvData": ("rx_bytes", 4),
    "PortXmitPkts": ("tx_packets", 1),
    "PortRcvPkts": ("rx_packets", 1),
    "PortUnicastXmitPkts": ("unicast_xmit_packets", 1),
    "PortUnicastRcvPkts": ("unicast_rcv_packets", 1),
    "PortMulticastXmitPkts": ("multicast_xmit_packets", 1),
    "PortMulticastRcvPkts": ("multicast_rcv_packets", 1),
    "PortXmitWait": ("port_xmit_wait", 1),
}
#: these say which counters are meant, and count nothing
_SELECTORS = frozenset({"PortSelect", "CounterSelect", "CounterSelect2"})
#: a port's errors were read where it has all of these
_ERROR_FIELDS = {name: field for field, (name, _) in _NAMES.items() if name in ENDS}

#: bit 9 of CapMask: kinds of packets are counted (IBA vol. 1, 16.1.3.1); bit 1 of CapMask2: the
#: errors are in the extended counters too (IB_PM_IS_ADDL_PORT_CTRS_EXT_SUP of infiniband-diags)
_KINDS_COUNTED = 0x0200
_ERRORS_COUNTED = 0x2

_ADDRESS = (
    r"(?:Lid (?P<lid>\d{1,5})|DR path slid \d+; dlid \d+; [\d,]+|DR path [\d,]+"
    r"|GUID 0x[0-9a-f]+)"
)
_HEAD = re.compile(
    rf"# Port (?P<kind>extended )?counters: {_ADDRESS} port (?P<port>\d{{1,3}}) "
    r"\(CapMask: 0x(?P<mask>[0-9A-F]+)(?: CapMask2: 0x(?P<mask2>[0-9A-F]+))?\)"
)
_FIELD = re.compile(r"(?P<name>[A-Z]\w+):\.+(?P<value>0x[0-9a-f]{2,8}|\d{1,20})")


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counters of one port as ``perfquery`` printed them.

    Attributes:
        lid: whom it asked, None where by a path or a GUID.
        port: which port, 255 (AllPortSelect) for all of the node together.
        values: by the kernel's names; data in bytes.
    """

    lid: int | None
    port: int
    values: PortCounters


def read_perfquery(text: str, source: str = "perfquery") -> tuple[Counted, ...]:
    """Read one or several outputs of ``perfquery``, one after the other.

    Raises:
        ParseError: an unknown line or field, a field twice, or a cut text.
    """
    output = Output(text=text, source=source, tool="perfquery")
    found: list[Counted] = []
    head: re.Match[str] | None = None
    fields: dict[str, int] = {}
    last = 1
    for number, line in output.lines():
        if not line.strip():
            continue
        last = number
        if (next_head := _HEAD.fullmatch(line)) is not None:
            if head is not None:
                found.append(_counted(output, number - 1, head, fields))
            head, fields = next_head, {}
            continue
        match = _FIELD.fullmatch(line)
        if match is None or head is None:
            raise output.unknown(number, line, "'# Port counters: Lid N port N' or 'Name:....N'")
        name = match["name"]
        if name in fields or (name not in _NAMES and name not in _SELECTORS):
            raise output.unknown(number, line, "a counter that is known, once")
        fields[name] = int(match["value"], 0)
    if head is not None:
        found.append(_counted(output, last, head, fields))
    return tuple(found)


def _counted(output: Output, number: int, head: re.Match[str], fields: dict[str, int]) -> Counted:
    kind = head["kind"] or ""
    last = next(reversed(fields), "nothing")
    due = _last_field(kind, int(head["mask"], 16), int(head["mask2"] or "0", 16))
    if last != due or fields.get("PortSelect") != int(head["port"]):
        raise output.error(
            number,
            "the counters of a port are cut",
            expected=f"PortSelect {head['port']} first and {due} last",
            got=last,
        )
    # Plain ones have errors always, extended ones all or none of them.
    if not kind or not fields.keys().isdisjoint(_ERROR_FIELDS.values()):
        for name in _ERROR_FIELDS.values():
            if name not in fields:
                raise output.error(
                    number, "a counter of a port is missing", expected=name, got="no such line"
                )
    return Counted(
        lid=int(head["lid"]) if head["lid"] else None,
        port=int(head["port"]),
        values={
            _NAMES[name][0]: value * _NAMES[name][1]
            for name, value in fields.items()
            if name in _NAMES
        },
    )


def _last_field(kind: str, mask: int, mask2: int) -> str:
    """Return the field that is printed last (libibmad/fields.c, ``IB_PC_*_F``)."""
    if not kind:
        return "PortXmitWait"
    if mask2 & _ERRORS_COUNTED:
        return "QP1Dropped"
    return "PortMulticastRcvPkts" if mask & _KINDS_COUNTED else "PortRcvPkts"


_ERRORS_FOR = re.compile(r'Errors for (?:0x(?P<guid>[0-9a-f]{1,16}) )?"(?P<name>.*)"')
_ERRORS = re.compile(
    r"   GUID 0x(?P<guid>[0-9a-f]{1,16}) port (?P<port>ALL|\d{1,3}):(?P<pairs>(?: \[[^\]]+\])+)"
)
_PAIR = re.compile(r" \[(?P<name>\w+) == (?P<value>\d{1,20})(?: \([\d.]+[A-Za-z]*\))?\]")
_SUMMARY = re.compile(r"## Summary: (?P<nodes>\d+) nodes checked, (?P<bad>\d+) bad nodes found")
_CHECKED = re.compile(
    r"## {10}(?P<ports>\d+) ports checked, (?P<bad>\d+) ports have errors beyond threshold"
)
_FAILURES = re.compile(r"## {10}(?P<failed>\d+) PMA query failures")
#: the tool ends it with a blank, which mail and editors take away
_THRESHOLDS = re.compile(r"## Thresholds:(?P<set>.*)")
_SUPPRESSED = re.compile(r"## Suppressed:(?P<names>.*)")


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
    reading = _Errors(output=output, ports={}, nodes=0)
    facts: dict[str, str] = {}
    heads: list[str] = []
    for number, line in output.lines():
        if not line:
            continue
        if not line.startswith("##"):
            if facts:
                raise output.unknown(number, line, "nothing but the summary at the end")
            reading.take(number, line)
            continue
        told = _summary(output, number, line)
        heads.append(next(iter(told)))
        facts |= told
    if [head for head in heads if head != "failed"] != ["nodes", "ports", "set", "names"]:
        raise output.error(
            1,
            "the output is cut, or a line of its summary is there twice",
            expected="'## Summary:', 'ports checked', '## Thresholds:' and '## Suppressed:', each "
            "once, at its end",
        )
    if heads.count("failed") > 1:
        raise output.error(1, "a line is there twice", expected="'PMA query failures' once")
    if (len(reading.ports), reading.nodes) != (int(facts["bad_ports"]), int(facts["bad_nodes"])):
        raise output.error(
            1,
            "lines are missing",
            expected=f"{facts['bad_ports']} ports of {facts['bad_nodes']} nodes (the summary)",
            got=f"{len(reading.ports)} of {reading.nodes}",
        )
    return Errors(
        ports=reading.ports,
        nodes=int(facts["nodes"]),
        checked=int(facts["ports"]),
        failed=int(facts.get("failed", "0")),
    )


@dataclass(kw_only=True)
class _Errors:
    output: Output
    ports: dict[tuple[str, int], PortCounters]
    nodes: int

    def take(self, number: int, line: str) -> None:
        if _ERRORS_FOR.fullmatch(line):
            self.nodes += 1
            return
        match = _ERRORS.fullmatch(line)
        if match is None or not self.nodes or _PAIR.sub("", match["pairs"]):
            raise self.output.unknown(number, line, "'Errors for ...' or 'GUID 0x... port N: [..]'")
        if match["port"] == "ALL":
            return
        counted: dict[str, int] = {}
        for pair in _PAIR.finditer(match["pairs"]):
            if pair["name"] not in _NAMES:
                raise self.output.unknown(number, pair[0], "a counter that is known")
            name, factor = _NAMES[pair["name"]]
            counted[name] = int(pair["value"]) * factor
        key = (match["guid"].zfill(16), int(match["port"]))
        if key in self.ports:
            raise self.output.error(number, "a port twice", expected="each once", line=line)
        self.ports[key] = counted


def _summary(output: Output, number: int, line: str) -> dict[str, str]:
    if found := _SUMMARY.fullmatch(line):
        return {"nodes": found["nodes"], "bad_nodes": found["bad"]}
    if found := _CHECKED.fullmatch(line):
        return {"ports": found["ports"], "bad_ports": found["bad"]}
    if found := _FAILURES.fullmatch(line):
        return {"failed": found["failed"]}
    for pattern, group in ((_THRESHOLDS, "set"), (_SUPPRESSED, "names")):
        if found := pattern.fullmatch(line):
            if found[group].strip():
                raise output.error(
                    number,
                    "errors may have been hidden",
                    expected="no thresholds and nothing suppressed",
                    got=found[group].strip(),
                    next_step="ibqueryerrors --threshold-file /dev/null",
                )
            return {group: ""}
    raise output.unknown(number, line, "a line of the summary")


def by_end(network: Network, errors: Errors) -> dict[End, PortCounters]:
    """Return the counters of ``errors`` by the ends of ``network``; of other nodes by GUID."""
    owners = {own: guid for guid, node in network.nodes.items() for own in node.port_guids}
    return {
        End(guid=owners.get(guid, guid), port=port): values
        for (guid, port), values in errors.ports.items()
    }


def perf_by_end(network: Network, counted: tuple[Counted, ...]) -> dict[End, PortCounters]:
    """Return the counters of ``perfquery`` by end of ``network``; sums over ports are left out."""
    lids: dict[tuple[int, int], End] = {}
    for end, port in network.ports.items():
        if port.lid:
            lids[port.lid, end.port] = end
    found: dict[End, dict[str, int]] = {}
    for each in counted:
        owner = lids.get((each.lid or 0, each.port))
        if owner is not None:
            found.setdefault(owner, {}).update(each.values)
    return dict(found)
