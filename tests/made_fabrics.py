"""Fabrics made by hand, and what infiniband-diags would print of them.

The renderer follows the tools' source (rdma-core, infiniband-diags/ibnetdiscover.c and
iblinkinfo.c), not this project's readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from fabricproof.subnet import End, Network, Node, NodeKind, Port, SubnetLook

GBPS = {
    "SDR": "2.5 Gbps",
    "DDR": "5.0 Gbps",
    "QDR": "10.0 Gbps",
    "FDR10": "10.0 Gbps (FDR10)",
    "FDR": "14.0625 Gbps",
    "EDR": "25.78125 Gbps",
    "HDR": "53.125 Gbps",
    "NDR": "106.25 Gbps",
    "XDR": "212.5 Gbps",
}


def guid(number: int) -> str:
    """Return a node's GUID; its ports have those that follow."""
    return f"{0x1000 + 16 * number:016x}"


def make(
    switches: Iterable[tuple[str, int]],
    hosts: Iterable[tuple[str, int]],
    cables: Iterable[tuple[str, int, str, int]],
    *,
    lanes: int = 4,
    speed: str = "EDR",
) -> Network:
    """Return a fabric.

    Args:
        switches: name and number of ports.
        hosts: description and number of ports.
        cables: name, port, name, port.
        lanes: of every link.
        speed: of every link.
    """
    nodes: dict[str, Node] = {}
    names: dict[str, str] = {}
    lids = iter(range(1, 10_000))
    for kind, given in ((NodeKind.SWITCH, switches), (NodeKind.HOST, hosts)):
        for name, num_ports in given:
            own = guid(len(nodes))
            names[name] = own
            nodes[own] = Node(
                guid=own,
                kind=kind,
                num_ports=num_ports,
                description=name,
                lid=next(lids) if kind is NodeKind.SWITCH else None,
                port_guids=frozenset({own}),
            )
    ports: dict[End, Port] = {}
    for one, one_port, other, other_port in cables:
        ends = (End(guid=names[one], port=one_port), End(guid=names[other], port=other_port))
        for mine, far in (ends, ends[::-1]):
            node = nodes[mine.guid]
            assert mine not in ports, f"{mine} has two cables"
            ports[mine] = Port(
                end=mine,
                lid=node.lid or next(lids),
                lanes=lanes,
                speed=speed,
                peer=far,
                state="Active",
                physical="LinkUp",
            )
            if node.kind is NodeKind.HOST:
                nodes[mine.guid] = replace(node, port_guids=node.port_guids | {port_guid(mine)})
    for own, node in nodes.items():
        if node.kind is NodeKind.SWITCH:
            for number in range(1, node.num_ports + 1):
                end = End(guid=own, port=number)
                down = Port(end=end, lid=node.lid, state="Down", physical="Polling")
                ports.setdefault(end, down)
    return Network(nodes=nodes, ports=ports, from_guid=min(nodes))


def tree(leaves: int = 2, spines: int = 2, hosts: int = 4, per_pair: int = 1) -> Network:
    """Return a two-level tree with ``hosts`` hosts on each leaf."""
    num_ports = hosts + spines * per_pair
    cables = [
        (
            f"leaf{leaf}",
            hosts + spine * per_pair + number,
            f"spine{spine}",
            leaf * per_pair + number,
        )
        for leaf, spine, number in product(range(leaves), range(spines), range(1, per_pair + 1))
    ]
    cables += [
        (f"n{leaf * hosts + host} mlx5_0", 1, f"leaf{leaf}", host + 1)
        for leaf, host in product(range(leaves), range(hosts))
    ]
    return make(
        [(f"leaf{leaf}", num_ports) for leaf in range(leaves)]
        + [(f"spine{spine}", leaves * per_pair) for spine in range(spines)],
        [(f"n{number} mlx5_0", 1) for number in range(leaves * hosts)],
        cables,
    )


def looked(network: Network, **facts: object) -> SubnetLook:
    """Return a look that showed ``network``."""
    return replace(SubnetLook(network=network), **facts)  # type: ignore[arg-type]


def without(network: Network, one: str, port: int) -> Network:
    """Return ``network`` with the cable at that port taken out."""
    end = next(each for each in network.ports if str(network.where(each)) == f"{one} port {port}")
    peer = network.ports[end].peer
    assert peer is not None
    ports = dict(network.ports)
    for each in (end, peer):
        down = replace(ports[each], peer=None, lanes=None, speed=None)
        ports[each] = replace(down, state="Down", physical="Polling")
        if network.nodes[each.guid].kind is NodeKind.HOST:
            del ports[each]
    return replace(network, ports=ports)


def changed(network: Network, one: str, port: int, **facts: object) -> Network:
    """Return ``network`` with both ends of the cable at that port changed."""
    end = next(each for each in network.ports if str(network.where(each)) == f"{one} port {port}")
    peer = network.ports[end].peer
    assert peer is not None
    ports = dict(network.ports)
    for each in (end, peer):
        ports[each] = replace(ports[each], **facts)  # type: ignore[arg-type]
    return replace(network, ports=ports)


def port_guid(end: End) -> str:
    """Return the GUID of an adapter's port."""
    return f"{int(end.guid, 16) + end.port:016x}"


def show_discover(network: Network) -> str:
    """Return what ``ibnetdiscover`` prints."""
    lines = ["#", "# Topology file: generated on Sun Nov 22 07:14:29 2026", "#"]
    start = network.from_guid
    lines.append(f"# Initiated from node {start} port {int(start, 16) + 1:016x}")
    for own, node in network.nodes.items():
        lines += ["", "vendid=0x2c9", "devid=0xd2f0", f"sysimgguid=0x{int(own, 16):x}"]
        short = f"{int(own, 16):x}"
        if node.kind is NodeKind.SWITCH:
            lines.append(f"switchguid=0x{short}({short})")
            lines.append(
                f'Switch\t{node.num_ports} "S-{own}"\t\t# "{node.description}" enhanced port 0 '
                f"lid {node.lid} lmc 0"
            )
        else:
            lines.append(f"caguid=0x{short}")
            lines.append(f'Ca\t{node.num_ports} "H-{own}"\t\t# "{node.description}"')
        ports = sorted((port for end, port in network.ports.items() if end.guid == own), key=_end)
        lines += [_discovered(network, port) for port in ports if port.peer is not None]
    return "\n".join(lines) + "\n"


def _end(port: Port) -> End:
    return port.end


def _discovered(network: Network, port: Port) -> str:
    assert port.peer is not None
    far, here = network.nodes[port.peer.guid], network.nodes[port.end.guid]
    letter = {NodeKind.SWITCH: "S", NodeKind.HOST: "H", NodeKind.ROUTER: "R"}[far.kind]
    trained = f"{f'{port.lanes}x' if port.lanes else '??'}{port.speed or '???'}"
    far_guid = "" if far.kind is NodeKind.SWITCH else f"({int(port_guid(port.peer), 16):x}) "
    far_lid = network.ports[port.peer].lid
    if here.kind is NodeKind.SWITCH:
        return (
            f'[{port.end.port}]\t"{letter}-{far.guid}"[{port.peer.port}]{far_guid}\t\t# '
            f'"{far.description}" lid {far_lid} {trained}'
        )
    between = f" {far_guid}" if far_guid else ""
    return (
        f'[{port.end.port}]({int(port_guid(port.end), 16):x}) \t"{letter}-{far.guid}"'
        f'[{port.peer.port}]{between}\t\t# lid {port.lid} lmc 0 "{far.description}" '
        f"lid {far_lid} {trained}"
    )


def show_linkinfo(network: Network, *, lines: bool = True) -> str:
    """Return what ``iblinkinfo -l`` prints, or without ``lines`` plain ``iblinkinfo``."""
    printed: list[str] = []
    for own, node in network.nodes.items():
        ports = sorted((port for end, port in network.ports.items() if end.guid == own), key=_end)
        is_switch = node.kind is NodeKind.SWITCH
        if ports and not lines:
            head = f"Switch: 0x{own} " if is_switch else "CA: "
            printed.append(f"{head}{node.description}:")
        for port in ports:
            name = own if is_switch else port_guid(port.end)
            start = f'0x{name} "{node.description:>30}" ' if lines else "      "
            if not lines and not is_switch:
                start += f"0x{name} "
            printed.append(f"{start}{_informed(network, port, lines=lines)}")
    return "\n".join(printed) + "\n"


def _informed(network: Network, port: Port, *, lines: bool) -> str:
    start = f"{port.lid:>6} {port.end.port:>4}[  ] "
    if port.state == "Down":
        return f'{start}==({"":14}{"Down":>6}/{port.physical:>8})==>  {"":11}[  ] "" ( )'
    width = f"{port.lanes}X" if port.lanes else "undefined (0)"
    speed = GBPS[port.speed] if port.speed else "undefined (16)"
    link = f"({width:>3} {speed:>18} {port.state:>6}/{port.physical:>8})"
    if port.peer is None:
        return f'{start}=={link}==>      "Port not available"'
    far = network.nodes[port.peer.guid]
    name = far.guid if far.kind is NodeKind.SWITCH else port_guid(port.peer)
    could = (
        f"Could be {port.could_lanes}X" if port.could_lanes else "",
        f"Could be {'FDR10' if port.could_speed == 'FDR10' else GBPS[port.could_speed]}"
        if port.could_speed
        else "",
    )
    return (
        f"{start}=={link}==>  {f'0x{name} ' if lines else ''}{network.ports[port.peer].lid:>6} "
        f'{port.peer.port:>4}[  ] "{far.description}" ({could[0]} {could[1]})'
    )
