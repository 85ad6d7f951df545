"""The node that we are on, judged at once: for a prolog, HealthCheckProgram or NHC; no job."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence

from fabricproof.core.group import run_group
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import LOOK, read_machine
from fabricproof.nodes.preflight.sight import look_up, wanted_rails
from fabricproof.site import FabricSpec

#: A health check may take so long; Slurm's default for a prolog is 5 minutes, NHC's 30 s.  What was
#: not seen by then is unknown, which is no PASS where the site states it.
SECONDS = 5.0


def look_here(fabrics: Sequence[FabricSpec], sysfs: str = "/sys") -> Machine:
    """Return what this node is made of; the rails of ``fabrics`` are kept whatever they are."""
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    rails = [rail.interface for each in fabrics for rail in each.rails]
    command = [sys.executable, "-IS", str(LOOK), "--seconds", f"{SECONDS:g}", "--sys", sysfs]
    _, text, _ = run_group(command, SECONDS + 1, apart=True)
    return read_machine(text, node, rails)


def fabrics_of(machine: Machine, fabrics: Sequence[FabricSpec]) -> list[FabricSpec]:
    """Return the fabrics of which the node has a rail; all of them if it has none of any.

    A node of a partition without this fabric lacks nothing; one that lost all its cards does.
    """
    linked = [each for each in fabrics if each.link is not None]
    found = [
        spec
        for spec in linked
        if any(look_up(wanted, machine).facts is not None for wanted in wanted_rails(spec))
    ]
    return found or linked
