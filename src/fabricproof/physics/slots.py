"""PCIe slots: what the host bus can carry before packets (``data/pcie.json``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from fabricproof.core.errors import UnknownLinkError
from fabricproof.physics._data import load_data


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A PCIe slot (or riser, or on-board connection) of a generation and width.

    Attributes:
        generation: 1 to 6.
        lanes: 1, 2, 4, 8, 12, 16 or 32.
        gt_per_s_per_lane: signalled transfers per lane in GT/s.
        encoding: name of the line code.
        encoding_share: data bits per line bit, 0 to 1.
        framing: which packet framing it uses: ``symbols``, ``tokens`` or ``flits``.
        raw_mb_s: one direction after coding and before packets, in MB/s.
        source: the clause of the specification.
    """

    generation: int
    lanes: int
    gt_per_s_per_lane: float
    encoding: str
    encoding_share: float
    framing: str
    raw_mb_s: float
    source: str

    @property
    def name(self) -> str:
        """Return the project's spelling: ``PCIe 3.0 x8``."""
        return f"PCIe {self.generation}.0 x{self.lanes}"

    @property
    def formula(self) -> str:
        """Return how ``raw_mb_s`` comes about, in numbers."""
        row = _generations()[self.generation]
        share = f"{row['data']}/{row['line']}"
        return f"{self.lanes} lanes x {self.gt_per_s_per_lane:g} GT/s x {share} / 8"


#: '3.0x8', 'PCIe 3.0 x8', 'PCI Express Gen3 x8', '4x16'
_BY_GENERATION = re.compile(
    r"(?:pci ?-?(?:e|express)?)?[ -]*(?:gen(?:eration)?)?[ -]*(?P<generation>\d+)(?:\.\d)?"
    r"[ -]*x ?(?P<lanes>\d+)"
)
#: '8 GT/s x8', '8.0 GT/s PCIe x8', '8GT/s, width x8'
_BY_RATE = re.compile(r"(?P<rate>\d+(?:\.\d+)?) ?gt/s(?: pcie)?,? ?(?:width)? ?x ?(?P<lanes>\d+)")


@cache
def _generations() -> Mapping[int, Mapping[str, Any]]:
    return {row["generation"]: row for row in load_data("pcie")["generations"]}


def make_slot(generation: int, lanes: int) -> Slot:
    """Return the slot of that generation and width; both must be known to the data."""
    row = _generations()[generation]
    share = row["data"] / row["line"]
    return Slot(
        generation=generation,
        lanes=lanes,
        gt_per_s_per_lane=row["gt_per_s_per_lane"],
        encoding=row["encoding"],
        encoding_share=share,
        framing=row["framing"],
        raw_mb_s=lanes * row["gt_per_s_per_lane"] * share * 1000 / 8,
        source=row["source"],
    )


def _refuse(text: str) -> NoReturn:
    lanes = ", ".join(f"x{lanes}" for lanes in load_data("pcie")["lanes"])
    raise UnknownLinkError(
        f"unknown PCIe slot {text!r}",
        expected=f"a generation of {min(_generations())}.0 to {max(_generations())}.0 and {lanes}",
        got=repr(text),
        next_step="write it as '3.0x8'; lspci -vv shows it as LnkSta of the adapter",
    )


def _generation_of(match: re.Match[str]) -> int:
    fields = match.groupdict()
    if "generation" in fields:
        return int(fields["generation"])
    rate = float(fields["rate"])
    return next((g for g, row in _generations().items() if row["gt_per_s_per_lane"] == rate), 0)


def find_slot(text: str) -> Slot:
    """Return the slot that ``text`` names: ``3.0x8``, ``PCIe 3.0 x8``, ``Gen3 x8``, ``4x16``.

    ``8 GT/s x8`` and ``8.0 GT/s PCIe x8``, as lspci and the kernel print it, are read too.

    Raises:
        UnknownLinkError: no such generation or width; the message says what there is.
    """
    plain = re.sub(r"\s+", " ", text.strip().lower().replace("\u00d7", "x"))
    match = _BY_GENERATION.fullmatch(plain) or _BY_RATE.fullmatch(plain)
    if match is None:
        _refuse(text)
    generation, lanes = _generation_of(match), int(match["lanes"])
    if generation not in _generations() or lanes not in load_data("pcie")["lanes"]:
        _refuse(text)
    return make_slot(generation, lanes)
