"""What a cluster looks like right now, for people and machines."""

from __future__ import annotations

import json
from typing import Any

from vcluster import cluster
from vcluster.cluster import HEAD
from vcluster.command import service
from vcluster.errors import UnavailableError
from vcluster.node import Space
from vcluster.paths import Paths
from vcluster.plan import Plan
from vcluster.processes import run
from vcluster.rails.faults import in_words
from vcluster.rails.shaping import rate_label
from vcluster.state import State


def observe(name: str) -> dict[str, Any]:
    """Return the state of a cluster that is up, as plain data.

    ``healthy`` is true only if every daemon runs, every node is usable and accounting answers
    (``accounting`` is None where there is none); faults that were put in on purpose are listed
    beside it.

    Raises:
        UnavailableError: the cluster is down.
    """
    known, paths = service.running(name), Paths(name)
    lost = service.lost_daemons(known)
    states = _slurm_states(paths)
    nodes = [_node(known, compute.name, states, lost) for compute in known.plan.nodes]
    accounting = _accounting_answers(paths) if known.plan.accounting else None
    usable = all(entry["slurm"] in cluster.USABLE_STATES for entry in nodes)
    return {
        "name": name,
        "healthy": not lost and usable and accounting is not False,
        "accounting": accounting,
        "plan": known.plan.as_json(),
        "faults": in_words(known.faults),
        "acceleration": known.acceleration,
        "head": {
            daemon: daemon not in lost.get(HEAD, []) for daemon in service.head_daemons(known.plan)
        },
        "nodes": nodes,
        "paths": {
            "bin": str(paths.bin),
            "env": str(paths.run / "env.sh"),
            "slurm_conf": str(paths.slurm_conf),
            "log": str(paths.log),
        },
    }


def _slurm_states(paths: Paths) -> dict[str, str]:
    try:
        return cluster.node_states(paths)
    except UnavailableError:
        return {}


def _accounting_answers(paths: Paths) -> bool:
    command = [str(paths.bin / "sacctmgr"), "--noheader", "--parsable2", "list", "cluster"]
    try:
        done = run(command, environment=cluster.client_environment(paths), check=False)
    except UnavailableError:
        return False
    return done.returncode == 0 and done.stdout.startswith(f"{paths.name}|")


def _node(
    known: State, host: str, states: dict[str, str], lost: dict[str, list[str]]
) -> dict[str, Any]:
    space, gone = known.spaces[host], lost.get(host, [])
    alive = space.alive()
    return {
        "name": host,
        "leaf": known.plan.node(host).leaf,
        "alive": alive,
        "slurm": states.get(host, "unknown"),
        "daemons": {daemon: daemon not in gone for daemon in service.NODE_DAEMONS},
        "interfaces": _interfaces(known.plan, space) if alive else [],
    }


def _interfaces(plan: Plan, space: Space) -> list[dict[str, Any]]:
    """Return each interface's state, MTU, rate and counters, as the node's kernel tells them.

    None where a guest does not answer: its daemons are said to be dead then.
    """
    inside = space.enter(only_network=True)
    try:
        done = run([*inside, "ip", "-json", "-statistics", "-4", "address"])
    except UnavailableError:
        return []
    links = json.loads(done.stdout)
    rates = {f"rail{rail}": rate for rail, rate in enumerate(plan.rail_rates_bit_s)}
    return [
        {
            "name": link["ifname"],
            "address": next((entry["local"] for entry in link["addr_info"]), None),
            "state": link["operstate"],
            "mtu": link["mtu"],
            "planned_rate_bit_s": rates.get(link["ifname"]),
            "received": _counters(link["stats64"]["rx"]),
            "sent": _counters(link["stats64"]["tx"]),
        }
        for link in links
        if link["ifname"] != "lo"
    ]


def _counters(raw: dict[str, int]) -> dict[str, int]:
    return {key: raw[key] for key in ("bytes", "packets", "errors", "dropped")}


def text(seen: dict[str, Any]) -> str:
    """Return what :func:`observe` saw as lines for people."""
    marks = {True: "runs", False: "IS DEAD"}
    lines = [f"virtual cluster {seen['name']!r}: {'healthy' if seen['healthy'] else 'NOT HEALTHY'}"]
    lines += [f"guests run with {seen['acceleration']}"] if seen["acceleration"] else []
    head = [f"{daemon} {marks[runs]}" for daemon, runs in seen["head"].items()]
    answers = {True: "answers", False: "DOES NOT ANSWER", None: "is off"}[seen["accounting"]]
    lines.append(f"head: {', '.join(head)}; accounting {answers}")
    for node in seen["nodes"]:
        found = [f"{daemon} {marks[runs]}" for daemon, runs in node["daemons"].items()]
        lines.append(f"{node['name']} (leaf{node['leaf']}): {node['slurm']}; {', '.join(found)}")
        lines += [_interface_text(interface) for interface in node["interfaces"]]
    lines += [f"fault in place: {place}: {text}" for place, text in seen["faults"].items()]
    return "\n".join(lines)


def _interface_text(seen: dict[str, Any]) -> str:
    rate = seen["planned_rate_bit_s"]
    received, sent = seen["received"], seen["sent"]
    trouble = sum(way[kind] for way in (received, sent) for kind in ("errors", "dropped"))
    return (
        f"  {seen['name']:<6} {seen['address'] or '-':<14} {seen['state']:<5} MTU {seen['mtu']} "
        f"{rate_label(rate) if rate else 'unlimited':<9} in {received['bytes']} B "
        f"out {sent['bytes']} B errors and drops {trouble}"
    )
