"""Ask a live fabric: run the tools of infiniband-diags, each with an end to its patience."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import NeedsPrivilegeError, UnavailableError
from fabricproof.core.group import run_group
from fabricproof.subnet.look import COMPLAINTS, NEEDED, TOOLS
from fabricproof.subnet.read import read_issm, read_managers

#: seconds that a tool has; ibnetdiscover takes some for thousands of ports
TIMEOUT_SECONDS = 120.0

#: what libibumad and the tools say where there is no InfiniBand (libibumad/umad.c get_abi_version,
#: libibmad/rpc.c mad_rpc_open_port; recorded from version 44.0 on a machine without)
_NO_PORT = ("can't open UMAD port", "is ib_umad module loaded", "Failed to open", "open MAD port")
#: and where nobody manages the subnet (infiniband-diags/ibdiag_sa.c, sminfo.c)
_NO_MANAGER = ("No SM/SA found", "sm lid 0", "bind to the SA", "SA failed", "failed: query")

#: ibqueryerrors leaves with 1 where it found errors (ibqueryerrors.8), which is an answer
_GOOD = {"ibqueryerrors": (0, 1)}

_UMAD = Path("/dev/infiniband")


@dataclass(frozen=True, kw_only=True)
class SubnetAccess:
    """How the fabric is reached.

    Attributes:
        via: words put before each command (``ssh sm1``, ``sudo -n``), none: here.
        device: local device to ask through (``mlx5_0``); the first with a link where None.
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


def ask(net_path: SubnetAccess) -> dict[str, str]:
    """Return what each tool printed, by the name of its file, and what they complained of.

    Raises:
        UnavailableError: a tool is not there, hangs or fails; there is no port or no manager.
        NeedsPrivilegeError: the device files are there and not for this user.
    """
    found: dict[str, str] = {}
    complaints: list[str] = []
    for name, command in TOOLS.items():
        try:
            text, said = _run(net_path, name, command)
        except UnavailableError as error:
            # sminfo answered, and so there is a manager: that it tells no more is to be said, and
            # is no reason to say nothing.
            if name != "issm.txt":
                raise
            complaints.append(str(error))
            continue
        found[name] = text
        complaints += [f"{command[0]}: {line}" for line in said.splitlines() if line.strip()]
    for lid in _others(found):
        try:
            found["sminfo.txt"] += _run(net_path, "sminfo.txt", ("sminfo", str(lid)))[0]
        except UnavailableError as error:
            complaints.append(str(error))
    if complaints:
        found[COMPLAINTS] = "\n".join(complaints) + "\n"
    return found


def _others(texts: dict[str, str]) -> list[int]:
    """Return the LIDs of managers that did not answer the first question, which the master did."""
    if "issm.txt" not in texts:
        return []
    known = {each.lid for each in read_managers(texts["sminfo.txt"])}
    return [lid for lid in read_issm(texts["issm.txt"]) if lid not in known]


def _run(net_path: SubnetAccess, name: str, command: Sequence[str]) -> tuple[str, str]:
    line = net_path.line(command)
    environment = os.environ | {"LC_ALL": "C"}
    try:
        status, output, errors = run_group(
            line, net_path.timeout_seconds, environment=environment, apart=True
        )
    except FileNotFoundError:
        raise UnavailableError(
            f"no {line[0]} on this machine",
            expected="the tools of infiniband-diags on PATH",
            next_step="apt-get install infiniband-diags (dnf likewise), or --via 'ssh HOST' to "
            "a machine that has them, or --from FOLDER with outputs that you have",
        ) from None
    except PermissionError:
        raise NeedsPrivilegeError(f"{line[0]} may not be run by this user") from None
    except OSError as error:  # no program (ENOEXEC), a path through a file (ENOTDIR) ...
        raise UnavailableError(
            f"{line[0]} cannot be run: {error.strerror}",
            expected="a program",
            next_step="--via takes a command, as 'ssh HOST'; a script begins with #!/bin/sh",
        ) from None
    if status is None:
        raise UnavailableError(
            f"{shlex.join(line)} did not end in {net_path.timeout_seconds:g} s",
            next_step="the fabric or its manager does not answer; try sminfo by hand, or a "
            "longer --timeout",
        )
    if status not in _GOOD.get(command[0], (0,)):
        _explain(line, name, status, f"{errors}\n{output}")
    return output, errors


def _explain(line: Sequence[str], name: str, status: int, said: str) -> None:
    """Raise the one error that tells why a tool failed."""
    first = next((each.strip() for each in said.splitlines() if each.strip()), f"status {status}")
    if status == 127 or "command not found" in said:
        raise UnavailableError(
            f"{shlex.join(line)}: the tool is not there",
            got=repr(first[:160]),
            next_step="install infiniband-diags where --via leads",
        )
    if "Permission denied" in said or "Operation not permitted" in said or _is_forbidden(said):
        raise NeedsPrivilegeError(
            f"{line[0]} may not open the fabric's management device",
            expected=f"the right to read and write {_UMAD}/umad*",
            got=repr(first[:160]),
            next_step="root, or --via 'sudo -n'",
        )
    if any(words in said for words in _NO_PORT):
        raise UnavailableError(
            "this machine has no InfiniBand port that can be asked",
            got=repr(first[:160]),
            next_step="modprobe ib_umad; ibstat shows the ports; or --via 'ssh HOST'; RoCE and "
            "other Ethernet have no subnet to look at",
        )
    if name not in NEEDED and any(words in said for words in _NO_MANAGER):
        raise UnavailableError(
            "no subnet manager answers on this fabric",
            got=repr(first[:160]),
            next_step="start opensm on one node (systemctl start opensm), or the switch's own",
        )
    raise UnavailableError(f"{shlex.join(line)} failed with status {status}", got=repr(first[:160]))


def _is_forbidden(said: str) -> bool:
    """Tell whether there are device files that this user may not open."""
    if not any(words in said for words in _NO_PORT):
        return False
    files = sorted(_UMAD.glob("umad*")) if _UMAD.is_dir() else []
    return bool(files) and not any(os.access(path, os.R_OK | os.W_OK) for path in files)
