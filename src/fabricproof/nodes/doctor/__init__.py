"""Say before anything runs what a stack will use, and what would go wrong."""

from __future__ import annotations

from fabricproof.nodes.doctor.examination import (
    diagnose,
    examine,
    make_shell,
    node_launcher,
    start_world,
)
from fabricproof.nodes.doctor.facts import Facts
from fabricproof.nodes.doctor.findings import (
    exit_status,
    heading,
    plain_lines,
    record,
    summary,
)
from fabricproof.nodes.doctor.probes import render_script

__all__ = [
    "Facts",
    "diagnose",
    "examine",
    "exit_status",
    "heading",
    "make_shell",
    "node_launcher",
    "plain_lines",
    "record",
    "render_script",
    "start_world",
    "summary",
]
