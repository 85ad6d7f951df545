"""Ask a live fabric: run the tools of infiniband-diags, each with an end to its patience."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import FabricproofError, NeedsPrivilegeError, UnavailableError
from fabricproof.core.group import run_group
from fabricproof.subnet.look import CABLES, COMPLAINTS, MANAGER, MANAGERS, STATES, TOOLS
from fabricproof.subnet.tables import read_issm, read_managers

#: seconds that a tool has; ibnetdiscover takes some for thousands of ports
TIMEOUT_SECONDS = 120.0

#: what libibumad and the tools say without InfiniBand (libibumad/umad.c get_abi_version,
#: libibmad/rpc.c mad_rpc_open_port; recorded from version 44.0 on a machine without)
_NO_PORT = ("can't open UMAD port", "is ib_umad module loaded", "Failed to open", "open MAD port")
#: and if nobody manages the subnet (infiniband-diags/ibdiag_sa.c, sminfo.c)
_NO_MANAGER = ("No SM/SA found", "sm lid 0", "bind to the SA", "SA failed", "failed: query")

#: ibqueryerrors leaves with 1 if it found errors (ibqueryerrors.8), which is an answer
_GOOD = {"ibqueryerrors": (0, 1)}

_UMAD = Path("/dev/infiniband")


@dataclass(frozen=True, kw_only=True)
class SubnetAccess:
    """How the fabric is reached.

    Attributes:
        via: words put before each command (``ssh sm1``, ``sudo -n``), none: here.
        device: local device to ask through (``mlx5_0``); None: the first with a link.
        port: port of it, likewise.
        timeout_seconds: for each tool.
    """

    via: tuple[str, ...] = ()
    device: str | None = None
    port: int | None = None
    timeout_seconds: float = TIMEOUT_SECONDS

    def line(self, command: Sequence[str]) -> list[str]:
        """Return the command line of one tool."""
        device = ["-C", self.device] if self.device else []
        port = ["-P", str(self.port)] if self.port is not None else []
        return [*self.via, command[0], *device, *port, *command[1:]]


def ask(access: SubnetAccess) -> dict[str, str]:
    """Return what each tool printed, by the name of its file, and what they complained of.

    Raises:
        UnavailableError: a tool is not there, hangs or fails; there is no port or no manager.
        NeedsPrivilegeError: the device files are there and not for this user.
    """
    texts: dict[str, str] = {}
    complaints: list[str] = []
    for name, command in TOOLS.items():
        try:
            texts[name], errors = _run(access, name, command)
        except UnavailableError as error:
            # sminfo answered, and so there is a manager: that it tells no more is a complaint.
            if name != MANAGERS:
                raise
            complaints.append(str(error))
        else:
            lines = (line for line in errors.splitlines() if line.strip())
            complaints += [f"{command[0]}: {line}" for line in lines]
    known = {each.lid for each in read_managers(texts[MANAGER])}
    for lid in read_issm(texts[MANAGERS]) if MANAGERS in texts else ():
        if lid in known:
            continue
        try:
            texts[MANAGER] += _run(access, MANAGER, ("sminfo", str(lid)))[0]
        except UnavailableError as error:
            complaints.append(str(error))
    if complaints:
        texts[COMPLAINTS] = "\n".join(complaints) + "\n"
    return texts


def _run(access: SubnetAccess, name: str, command: Sequence[str]) -> tuple[str, str]:
    line = access.line(command)
    environment = os.environ | {"LC_ALL": "C"}
    try:
        status, output, errors = run_group(
            line, access.timeout_seconds, environment=environment, apart=True
        )
    except PermissionError:
        raise NeedsPrivilegeError(f"{line[0]} may not be run by this user") from None
    except OSError as error:  # not there, no program (ENOEXEC), a path through a file (ENOTDIR)
        is_gone = isinstance(error, FileNotFoundError)
        why = "no {} on this machine" if is_gone else f"{{}} cannot be run: {error.strerror}"
        raise UnavailableError(
            why.format(line[0]),
            expected="the tools of infiniband-diags on PATH, and a command after --via",
            next_step="apt-get install infiniband-diags (dnf likewise), or --via 'ssh HOST' to "
            "a machine that has them, or --from FOLDER with outputs that you have",
        ) from None
    if status is None:
        raise UnavailableError(
            f"{shlex.join(line)} did not end in {access.timeout_seconds:g} s",
            next_step="the fabric or its manager does not answer; try sminfo by hand, or a "
            "longer --timeout",
        )
    if status not in _GOOD.get(command[0], (0,)):
        raise _why(line, name, status, f"{errors}\n{output}")
    return output, errors


def _why(line: Sequence[str], name: str, status: int, text: str) -> FabricproofError:
    """Return the one error that tells why a tool failed."""
    first = next((each.strip() for each in text.splitlines() if each.strip()), f"status {status}")
    got = repr(first[:160])
    has_no_port = any(words in text for words in _NO_PORT)
    devices = [*_UMAD.glob("umad*")] if has_no_port else []
    is_forbidden = devices and not any(os.access(path, os.R_OK | os.W_OK) for path in devices)
    if status == 127 or "command not found" in text:
        return UnavailableError(
            f"{shlex.join(line)}: the tool is not there",
            got=got,
            next_step="install infiniband-diags where --via leads",
        )
    if is_forbidden or "Permission denied" in text or "Operation not permitted" in text:
        return NeedsPrivilegeError(
            f"{line[0]} may not open the fabric's management device",
            expected=f"the right to read and write {_UMAD}/umad*",
            got=got,
            next_step="root, or --via 'sudo -n'",
        )
    if has_no_port:
        return UnavailableError(
            "this machine has no InfiniBand port that can be asked",
            got=got,
            next_step="modprobe ib_umad; ibstat shows the ports; or --via 'ssh HOST'; RoCE and "
            "other Ethernet have no subnet to look at",
        )
    if name not in {CABLES, STATES} and any(words in text for words in _NO_MANAGER):
        return UnavailableError(
            "no subnet manager answers on this fabric",
            got=got,
            next_step="start opensm on one node (systemctl start opensm), or the switch's own",
        )
    return UnavailableError(f"{shlex.join(line)} failed with status {status}", got=got)
