"""The switches and cables, as command lists for ``ip -batch``.

One namespace holds every switch: a management bridge, and per rail leaf bridges joined to a spine
bridge.  A cable is a veth pair with one end in a node.
"""

from __future__ import annotations

from vcluster.plan import HEAD_ADDRESS, Node, Plan
from vcluster.rails.shaping import uplink_commands

#: no spanning tree and no learning delay: ports forward at once; no multicast snooping: no
#: queries of the bridge's own in the counters.
_BRIDGE = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0"


def leaf_bridge(rail: int, leaf: int) -> str:
    """Return the name of a rail's leaf switch."""
    return f"rail{rail}leaf{leaf}"


def uplink_ports(rail: int, leaf: int) -> tuple[str, str]:
    """Return the ends of the link between a leaf and the spine: the leaf's, then the spine's.

    What a leaf sends to the spine leaves at the first, what comes down to it at the second.
    """
    return f"r{rail}l{leaf}", f"r{rail}s{leaf}"


def switch_commands(plan: Plan) -> list[str]:
    """Return the commands that make all switches and the cables between them."""
    commands = [f"link add mgmt {_BRIDGE}", "link set mgmt up"]
    for rail in plan.rails:
        spine = f"rail{rail}spine"
        commands += [f"link add {spine} mtu {plan.mtu} {_BRIDGE}", f"link set {spine} up"]
        for leaf in plan.leaves:
            commands += _leaf_commands(plan, rail, leaf, spine)
    return commands


def _leaf_commands(plan: Plan, rail: int, leaf: int, spine: str) -> list[str]:
    bridge, (up, down) = leaf_bridge(rail, leaf), uplink_ports(rail, leaf)
    return [
        f"link add {bridge} mtu {plan.mtu} {_BRIDGE}",
        f"link set {bridge} up",
        f"link add {up} mtu {plan.mtu} type veth peer name {down} mtu {plan.mtu}",
        f"link set {up} master {bridge} up",
        f"link set {down} master {spine} up",
    ]


def uplink_rate_commands(plan: Plan) -> list[str]:
    """Return the lines for ``tc -batch`` that give both ends of every uplink the planned rate."""
    if plan.uplink_bit_s is None:
        return []
    ports = [
        port for rail in plan.rails for leaf in plan.leaves for port in uplink_ports(rail, leaf)
    ]
    return [line for port in ports for line in uplink_commands(port, plan.uplink_bit_s, plan.mtu)]


def head_cable_commands(head_pid: int) -> list[str]:
    """Return the commands, in the switches' namespace, that connect the head."""
    return _cable("headm", "mgmt0", head_pid, "mgmt", "02:18:00:00:00:01", 1500)


def head_interface_commands() -> list[str]:
    """Return the commands, in the head, that bring its interface up."""
    return [f"addr add {HEAD_ADDRESS}/24 dev mgmt0", "link set mgmt0 up"]


def node_cable_commands(plan: Plan, node: Node, pid: int) -> list[str]:
    """Return the commands, in the switches' namespace, that connect a node.

    Args:
        plan: the cluster.
        node: the node.
        pid: a process in the node's network namespace.
    """
    mac = management_mac(node)
    commands = _cable(node.management_port(), "mgmt0", pid, "mgmt", mac, 1500)
    for rail in plan.rails:
        mac = rail_mac(node, rail)
        bridge = leaf_bridge(rail, node.leaf)
        commands += _cable(node.rail_port(rail), f"rail{rail}", pid, bridge, mac, plan.mtu)
    return commands


def management_mac(node: Node) -> str:
    """Return the MAC address of a node's ``mgmt0``."""
    return f"02:18:00:00:01:{node.index:02x}"


def rail_mac(node: Node, rail: int) -> str:
    """Return the MAC address of a node's ``rail<rail>``."""
    return f"02:18:{rail + 1:02x}:00:01:{node.index:02x}"


def tap_commands(plan: Plan, node: Node) -> list[str]:
    """Return the commands, in the switches' namespace, that make a guest's end of its cables."""
    commands = _tap(node.management_port(), "mgmt", 1500)
    for rail in plan.rails:
        commands += _tap(node.rail_port(rail), leaf_bridge(rail, node.leaf), plan.mtu)
    return commands


def _tap(port: str, bridge: str, mtu: int) -> list[str]:
    return [
        f"tuntap add dev {port} mode tap",
        f"link set {port} mtu {mtu}",
        f"link set {port} master {bridge} up",
    ]


def _cable(port: str, interface: str, pid: int, bridge: str, mac: str, mtu: int) -> list[str]:
    peer = f"peer name {interface} address {mac} mtu {mtu} netns {pid}"
    return [
        f"link add {port} mtu {mtu} type veth {peer}",
        f"link set {port} master {bridge} up",
    ]


def node_interface_commands(plan: Plan, node: Node) -> list[str]:
    """Return the commands, in the node, that bring its interfaces up."""
    commands = [f"addr add {node.management_address}/24 dev mgmt0", "link set mgmt0 up"]
    for rail in plan.rails:
        commands += [
            f"addr add {node.rail_address(rail)}/24 dev rail{rail}",
            f"link set rail{rail} up",
        ]
    return commands


def render_hosts(plan: Plan) -> str:
    """Return ``/etc/hosts`` of every node: each node, and each of its rails by name."""
    lines = ["127.0.0.1 localhost", f"{HEAD_ADDRESS} head"]
    for node in plan.nodes:
        lines.append(f"{node.management_address} {node.name}")
        lines += [f"{node.rail_address(rail)} {node.name}-rail{rail}" for rail in plan.rails]
    return "\n".join(lines) + "\n"
