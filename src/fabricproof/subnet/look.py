"""Join what the tools printed into one look; which tools, and which file keeps the output of each.

Pure but for :func:`read_folder` and :func:`write_folder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabricproof.core.errors import InputMissingError, OutputError, ParseError
from fabricproof.core.records import text_if_there
from fabricproof.subnet.counters import by_end, read_ibqueryerrors
from fabricproof.subnet.linkinfo import read_iblinkinfo, with_states
from fabricproof.subnet.model import End, Manager, Network, PortCounters, SubnetLook
from fabricproof.subnet.read import read_ibnetdiscover, read_issm, read_managers

#: file that keeps an output -> the command that prints it
TOOLS: dict[str, tuple[str, ...]] = {
    "ibnetdiscover.txt": ("ibnetdiscover",),
    "iblinkinfo.txt": ("iblinkinfo", "-l"),
    "sminfo.txt": ("sminfo",),
    "issm.txt": ("saquery", "-s"),
    # The thresholds of the machine (/etc/infiniband-diags/error_thresholds) would hide errors.
    "ibqueryerrors.txt": ("ibqueryerrors", "--threshold-file", "/dev/null"),
}
#: without these a fabric that can be asked gives no look; a folder may lack the second
NEEDED = ("ibnetdiscover.txt", "iblinkinfo.txt")

#: kept beside: what the tools said on standard error
COMPLAINTS = "complaints.txt"

_MISSES = {
    "iblinkinfo.txt": "states of the links, and what their ends support (iblinkinfo)",
    "sminfo.txt": "subnet manager (sminfo)",
    "issm.txt": "further subnet managers (saquery -s, sminfo LID)",
    "ibqueryerrors.txt": "error counters (ibqueryerrors)",
}


def join(texts: Mapping[str, str], source: str = "") -> SubnetLook:
    """Return the look that the outputs of the tools make.

    Raises:
        ParseError: one of them is damaged, or they do not belong together.
        InputMissingError: ``ibnetdiscover`` is not among them.
    """
    prefix = f"{source}/" if source else ""
    cables_file, states_file = NEEDED
    if cables_file not in texts:
        raise InputMissingError(
            "not in the look",
            source=f"{prefix}{cables_file}",
            expected=f"what {' '.join(TOOLS[cables_file])} printed",
            next_step=f"{' '.join(TOOLS[cables_file])} > {prefix}{cables_file}",
        )
    network = read_ibnetdiscover(texts[cables_file], prefix + cables_file)
    if states_file in texts:
        lines = read_iblinkinfo(texts[states_file], prefix + states_file)
        network = with_states(network, lines, prefix + states_file)
    errors_file = "ibqueryerrors.txt"
    errors = (
        read_ibqueryerrors(texts[errors_file], prefix + errors_file)
        if errors_file in texts
        else None
    )
    counters = by_end(network, errors) if errors is not None else None
    said = [line for line in texts.get(COMPLAINTS, "").splitlines() if line.strip()]
    managers = None
    if "sminfo.txt" in texts:
        managers = read_managers(texts["sminfo.txt"], prefix + "sminfo.txt")
    complaints = _silent(texts, prefix, managers)
    if errors is not None and errors.failed:
        complaints.append(f"{errors.failed} ports did not answer ibqueryerrors")
    if not said:  # else part of the fabric may be unseen, which is red already
        _belong(network, managers or (), counters or {}, prefix)
    return SubnetLook(
        network=network,
        managers=managers,
        counters=counters,
        counted_ports=errors.checked if errors is not None else 0,
        counted_nodes=errors.nodes if errors is not None else 0,
        not_seen=tuple(words for name, words in _MISSES.items() if name not in texts),
        has_states=states_file in texts,
        complaints=(*said, *complaints),
    )


def _silent(texts: Mapping[str, str], prefix: str, known: tuple[Manager, ...] | None) -> list[str]:
    """Return what is to be said of ports that have a manager which nobody asked for its state."""
    if "issm.txt" not in texts or known is None:
        return []
    lids = read_issm(texts["issm.txt"], prefix + "issm.txt")
    asked = {each.lid for each in known}
    return [
        f"a subnet manager at LID {lid} was not asked for its state (sminfo {lid})"
        for lid in lids
        if lid not in asked
    ] + [
        f"sminfo names a master at LID {each.lid}, and saquery -s no subnet manager there"
        for each in known
        if each.is_master and each.lid not in lids
    ]


def _belong(
    network: Network,
    managers: tuple[Manager, ...],
    counters: Mapping[End, PortCounters],
    prefix: str,
) -> None:
    """Refuse managers and counters of nodes that ``ibnetdiscover`` did not show."""
    owners = {own: guid for guid, node in network.nodes.items() for own in node.port_guids}
    lids = {(end.guid, port.lid) for end, port in network.ports.items()}
    lids |= {(guid, node.lid) for guid, node in network.nodes.items()}
    for manager in managers:
        if (owners.get(manager.guid), manager.lid) not in lids:
            raise _stranger(f"{prefix}sminfo.txt", f"LID {manager.lid}, GUID 0x{manager.guid}")
    for end in counters:
        if end.guid not in network.nodes or end.port > network.nodes[end.guid].num_ports:
            raise _stranger(f"{prefix}ibqueryerrors.txt", f"GUID 0x{end.guid} port {end.port}")


def _stranger(source: str, got: str) -> ParseError:
    return ParseError(
        "of another fabric or another moment than ibnetdiscover's output",
        source=source,
        expected="a port that ibnetdiscover showed",
        got=got,
        next_step="look again, with all tools asked from the same port",
    )


def read_folder(folder: Path) -> dict[str, str]:
    """Return the outputs kept in ``folder``.

    Raises:
        InputMissingError: there is no such folder, or a file cannot be read.
    """
    try:
        is_folder = folder.is_dir()
    except OSError as error:  # a folder above it that may not be searched
        raise InputMissingError(f"cannot read: {error.strerror}", source=str(folder)) from None
    if not is_folder:
        raise InputMissingError(
            "no such folder",
            source=str(folder),
            expected=f"a folder with {', '.join(TOOLS)}",
            next_step="fabricproof subnet check --keep FOLDER   # makes one",
        )
    found: dict[str, str] = {}
    for name in (*TOOLS, COMPLAINTS):
        new = "fabricproof subnet check --keep FOLDER   # keeps a new look"
        text = text_if_there(folder / name, "what the tool printed, as text", new)
        if text is not None:
            found[name] = text
    return found


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Keep ``texts`` in ``folder``, which is made where it is not there and must be empty.

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
