"""The judge: pure, no files, no clock; tables, curves, references, likely causes."""

from __future__ import annotations

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "busbw": "bus bandwidth of GPUs against the rails of a node",
    "collective": "what the rings of HPCC must cross",
    "limits": "the bounds of a table, and the fabric as its program loads it",
    "objections": "what speaks against a number, and what becomes of it",
    "partners": "who is common to what is red, and absent from what is good",
    "references": "references from texts; a baseline, and what follows for a leg",
    "causes.suspects": "likely causes",
    "table": "the verdict on a table",
    "value": "the verdict on one number, and what it is judged by",
}
