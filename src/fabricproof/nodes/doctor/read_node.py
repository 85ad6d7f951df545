"""Read what a node says of itself: sysfs, limits, libraries, environment."""

from __future__ import annotations

from collections.abc import Mapping

from fabricproof.nodes.doctor.facts import Answer, HcaPort, Interface, NodeFacts


def _positive(text: str) -> int | None:
    """Return a number from sysfs; -1, or nothing, is what an interface without a link says."""
    return int(text) if text.isdigit() and int(text) > 0 else None


def read_interfaces(answer: Answer | None) -> tuple[Interface, ...] | None:
    """Return the interfaces of lines ``name state speed mtu``; None where not answered."""
    if answer is None or answer.status:
        return None
    rows = [line.split() for line in answer.output.splitlines()]
    return tuple(
        Interface(
            name=row[0], state=row[1].lower(), speed_mbit_s=_positive(row[2]), mtu=_positive(row[3])
        )
        for row in rows
        if len(row) == 4
    )


def read_hcas(answer: Answer | None) -> tuple[HcaPort, ...] | None:
    """Return the ports of lines ``device|port|state|rate|link layer|netdevs|over parent``.

    State and rate are as in sysfs: ``4: ACTIVE``, ``200 Gb/sec (4X HDR)``; the last is empty for
    an adapter.
    """
    if answer is None or answer.status:
        return None
    ports = []
    for line in answer.output.splitlines():
        row = line.split("|")
        if len(row) not in {6, 7} or not row[1].isdigit():
            continue
        soft = row[6].split() if len(row) == 7 else []
        ports.append(
            HcaPort(
                device=row[0],
                port=int(row[1]),
                state=row[2].rpartition(":")[2].strip(),
                rate=row[3].strip(),
                link_layer=row[4].strip(),
                netdevs=tuple(row[5].split()),
                parent=" ".join(soft[1:]) if soft else None,
            )
        )
    return tuple(ports)


def _memlock(answer: Answer | None) -> int | None:
    if answer is None or answer.status:
        return None
    text = answer.output.strip()
    return -1 if text == "unlimited" else int(text) if text.isdigit() else None


def _lines(answer: Answer | None) -> tuple[str, ...] | None:
    if answer is None or answer.status == 124:
        return None
    found = (line.strip() for line in answer.output.splitlines())
    return tuple(dict.fromkeys(line for line in found if line.startswith("/")))


def _environment(answer: Answer | None) -> dict[str, str]:
    if answer is None:
        return {}
    split = (line.partition("=") for line in answer.output.splitlines())
    return {name: value for name, sign, value in split if sign and name.isidentifier()}


def read_node(answers: Mapping[str, Answer], *, is_node: bool) -> NodeFacts:
    """Return what the probes ``host``, ``uid``, ``memlock``, ``interfaces`` ... answered."""
    host, uid = answers.get("host"), answers.get("uid")
    return NodeFacts(
        host=host.output.strip() if host and host.status == 0 else "?",
        is_node=is_node,
        uid=int(uid.output) if uid and uid.output.strip().isdigit() else None,
        memlock_kib=_memlock(answers.get("memlock")),
        interfaces=read_interfaces(answers.get("interfaces")),
        hcas=read_hcas(answers.get("hcas")),
        pmi_libraries=_lines(answers.get("pmi")),
        environment=_environment(answers.get("environment")),
    )
