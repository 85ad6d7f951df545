"""Read error counters of ports: ``ibqueryerrors``.  Pure.

Grammar from rdma-core, infiniband-diags/ibqueryerrors.c (``print_results``, ``print_summary``);
names of fields from libibmad/fields.c.  Recorded from version 44.0 over ibsim 0.10.

Errors get the kernel's names, so that ``traffic.counters`` names the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fabricproof.subnet.model import End, Network, PortCounters
from fabricproof.subnet.read import Output

#: field -> the kernel's name (Linux drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR)
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
_DATA = frozenset(
    f"Port{kind}{way}{unit}"
    for way in ("Xmit", "Rcv")
    for kind, unit in (("", "Data"), ("", "Pkts"), ("Unicast", "Pkts"), ("Multicast", "Pkts"))
)

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
            name = pair["name"]
            if name in _NAMES:
                counted[_NAMES[name]] = int(pair["value"])
            elif name not in _DATA:
                raise self.output.unknown(number, pair[0], "a counter that is known")
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
