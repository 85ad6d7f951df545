"""Join what the tools printed into one look; which tools, and which file keeps the output of each.

Pure but for :func:`read_folder` and :func:`write_folder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from fabricproof.core.errors import InputMissingError, OutputError, ParseError
from fabricproof.core.records import text_if_there
from fabricproof.subnet.cables import read_ibnetdiscover
from fabricproof.subnet.linkinfo import read_iblinkinfo, with_states
from fabricproof.subnet.model import End, Manager, Network, PortCounters, SubnetLook
from fabricproof.subnet.tables import read_ibqueryerrors, read_issm, read_managers

CABLES, STATES, MANAGER = "ibnetdiscover.txt", "iblinkinfo.txt", "sminfo.txt"
MANAGERS, ERRORS = "issm.txt", "ibqueryerrors.txt"

#: file that keeps an output -> the command that prints it
TOOLS: dict[str, tuple[str, ...]] = {
    CABLES: ("ibnetdiscover",),
    STATES: ("iblinkinfo", "-l"),
    MANAGER: ("sminfo",),
    MANAGERS: ("saquery", "-s"),
    # The thresholds of the machine (/etc/infiniband-diags/error_thresholds) would hide errors.
    ERRORS: ("ibqueryerrors", "--threshold-file", "/dev/null"),
}

#: kept beside: what the tools said on standard error
COMPLAINTS = "complaints.txt"

_MISSES = {
    STATES: "states of the links, and what their ends support (iblinkinfo)",
    MANAGER: "subnet manager (sminfo)",
    MANAGERS: "further subnet managers (saquery -s, sminfo LID)",
    ERRORS: "error counters (ibqueryerrors)",
}

_Read = TypeVar("_Read")


def join(texts: Mapping[str, str], source: str = "") -> SubnetLook:
    """Return the look that the outputs of the tools make.

    Raises:
        ParseError: one of them is damaged, or they do not belong together.
        InputMissingError: ``ibnetdiscover`` is not among them.
    """
    prefix = f"{source}/" if source else ""

    def read(reader: Callable[[str, str], _Read], name: str) -> _Read | None:
        return reader(texts[name], prefix + name) if name in texts else None

    network = read(read_ibnetdiscover, CABLES)
    if network is None:
        raise InputMissingError(
            "not in the look",
            source=f"{prefix}{CABLES}",
            expected="what ibnetdiscover printed",
            next_step=f"ibnetdiscover > {prefix}{CABLES}",
        )
    if (states := read(read_iblinkinfo, STATES)) is not None:
        network = with_states(network, states, prefix + STATES)
    errors, managers = read(read_ibqueryerrors, ERRORS), read(read_managers, MANAGER)
    counters = {
        End(guid=network.owners.get(guid, guid), port=port): values
        for (guid, port), values in (errors.ports.items() if errors else ())
    }
    complaints = [line for line in texts.get(COMPLAINTS, "").splitlines() if line.strip()]
    if not complaints:  # else part of the fabric may be unseen, which is red already
        _refuse_others(network, managers or (), counters, prefix)
    lids = read(read_issm, MANAGERS)
    if lids is not None and managers is not None:
        complaints += _silent(lids, managers)
    if errors is not None and errors.failed:
        complaints.append(f"{errors.failed} ports did not answer ibqueryerrors")
    return SubnetLook(
        network=network,
        managers=managers,
        counters=counters if errors else None,
        counted_ports=errors.checked if errors else 0,
        counted_nodes=errors.nodes if errors else 0,
        not_seen=tuple(words for name, words in _MISSES.items() if name not in texts),
        has_states=states is not None,
        complaints=tuple(complaints),
    )


def _silent(lids: tuple[int, ...], managers: tuple[Manager, ...]) -> list[str]:
    """Return what is to be said of ports that have a manager which nobody asked for its state."""
    asked = {each.lid for each in managers}
    return [
        f"a subnet manager at LID {lid} was not asked for its state (sminfo {lid})"
        for lid in lids
        if lid not in asked
    ] + [
        f"sminfo names a master at LID {each.lid}, and saquery -s no subnet manager there"
        for each in managers
        if each.is_master and each.lid not in lids
    ]


def _refuse_others(
    network: Network,
    managers: tuple[Manager, ...],
    counters: Mapping[End, PortCounters],
    prefix: str,
) -> None:
    """Refuse managers and counters of nodes that ``ibnetdiscover`` did not show."""
    lids = {(end.guid, port.lid) for end, port in network.ports.items()}
    lids |= {(guid, node.lid) for guid, node in network.nodes.items()}
    others = [
        (MANAGER, f"LID {each.lid}, GUID 0x{each.guid}")
        for each in managers
        if (network.owners.get(each.guid), each.lid) not in lids
    ] + [
        (ERRORS, f"GUID 0x{end.guid} port {end.port}")
        for end in counters
        if end.guid not in network.nodes or end.port > network.nodes[end.guid].num_ports
    ]
    for name, got in others:
        raise ParseError(
            "of another fabric or another moment than ibnetdiscover's output",
            source=f"{prefix}{name}",
            expected="a port that ibnetdiscover showed",
            got=got,
            next_step="look again, with all tools asked from the same port",
        )


def read_folder(folder: Path) -> dict[str, str]:
    """Return the outputs kept in ``folder``.

    Raises:
        InputMissingError: there is no such folder, or a file cannot be read.
    """
    new = "fabricproof subnet check --keep FOLDER   # keeps a new look"
    try:
        is_folder, why = folder.is_dir(), "no such folder"
    except OSError as error:  # a folder above it that may not be searched
        is_folder, why = False, f"cannot read: {error.strerror}"
    if not is_folder:
        raise InputMissingError(
            why,
            source=str(folder),
            expected=f"a folder with {', '.join(TOOLS)}",
            next_step=new,
        )
    texts = {
        name: text_if_there(folder / name, "what the tool printed, as text", new)
        for name in (*TOOLS, COMPLAINTS)
    }
    return {name: text for name, text in texts.items() if text is not None}


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Keep ``texts`` in ``folder``, which is made if it is not there and must be empty.

    Raises:
        OutputError: it cannot be written, or has files: two looks must not mix.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(each.name for each in folder.iterdir())
        if there:
            raise OutputError(
                "the folder is not empty: two looks would mix",
                source=str(folder),
                got=there[0],
                next_step="name a new folder",
            )
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise OutputError("not a folder", source=str(folder)) from None
