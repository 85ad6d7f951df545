"""What each node of a job is made of: read on the node, kept once per change, compared."""

from __future__ import annotations

from fabricproof.nodes.inventory.differences import Difference, compare
from fabricproof.nodes.inventory.facts import IDENTITIES, Machine, ReadTrouble, Value
from fabricproof.nodes.inventory.read import read_machine
from fabricproof.nodes.inventory.remarks import distances, notes, read_sminfo
from fabricproof.nodes.inventory.store import (
    FOLDER,
    INDEX_FILE,
    InventoryChoice,
    StateSeen,
    choose,
    inventory_of_job,
    is_run,
    is_when,
    read_index,
    read_kept,
)
from fabricproof.nodes.inventory.words import meaning_of, name_of, shown

__all__ = [
    "FOLDER",
    "IDENTITIES",
    "INDEX_FILE",
    "Difference",
    "InventoryChoice",
    "Machine",
    "ReadTrouble",
    "StateSeen",
    "Value",
    "choose",
    "compare",
    "distances",
    "inventory_of_job",
    "is_run",
    "is_when",
    "meaning_of",
    "name_of",
    "notes",
    "read_index",
    "read_kept",
    "read_machine",
    "read_sminfo",
    "shown",
]
