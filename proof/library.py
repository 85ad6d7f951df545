"""The fault library: ``faults.toml``, read and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from fabricproof.core.measure import Verdict
from fabricproof.history.stats.shifts import Change
from proof.histories import HistoryEffect
from proof.machine import effects
from proof.machine.model import SOCKETS, VERBS, ModelFabric

#: how a fault is not simulated or not made live, before the reason
NOT = "no:"

#: the effect that stands for a campaign of pairs
PAIRS = "pairs"

#: how the effects begin whose right words are those of a change
COMPARED = ("sides_", "trend_")

FABRICS: dict[str, ModelFabric] = {"verbs": VERBS, "sockets": SOCKETS}


class BlameDue(StrEnum):
    """Whom it is right to blame."""

    NODE = "node"
    PAIR = "pair"
    ALL = "all"
    PLACE = "place"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class FaultEntry:
    """A fault of the library; the fields are those of ``faults.toml``."""

    name: str
    real: str
    live: str
    effect: str
    blame: BlameDue
    variant: str = ""
    unit: str = ""
    strengths: tuple[float, ...] = ()
    must: float | None = None
    fabrics: tuple[str, ...] = ("verbs", "sockets")
    verdicts: frozenset[Verdict | Change] = frozenset()
    words: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    beside: str = ""
    beside_strength: float | None = None
    suspect: str = ""
    wrong_at_most: float = 0.0

    @property
    def title(self) -> str:
        """Its name with its variant."""
        return f"{self.name}, {self.variant}" if self.variant else self.name

    @property
    def is_simulated(self) -> bool:
        """Whether there is a figure of it."""
        return not self.effect.startswith(NOT)

    @property
    def is_history(self) -> bool:
        """Whether nights are judged together: compared, over time, or by a baseline."""
        return self.effect in {*HistoryEffect}

    @property
    def is_steady(self) -> bool:
        """Whether nights are judged together and nothing is to be told of them."""
        return self.is_history and bool(self.verdicts & {Change.SAME, Verdict.PASS})

    @property
    def is_live(self) -> bool:
        """Whether the virtual cluster, or a guest, can make it."""
        return not self.live.startswith(NOT)


@cache
def read_library() -> tuple[FaultEntry, ...]:
    """Return all faults, in their order.

    Raises:
        ValueError: an entry is wrong; a test reads them all.
    """
    text = (files("proof") / "faults.toml").read_text(encoding="utf-8")
    return tuple(map(_entry, tomllib.loads(text)["fault"]))


def _entry(record: dict[str, Any]) -> FaultEntry:
    fields = record | {name: tuple(each) for name, each in record.items() if isinstance(each, list)}
    fields["blame"] = BlameDue(fields["blame"])
    words = Change if fields["effect"].startswith(COMPARED) else Verdict
    fields["verdicts"] = frozenset(map(words, fields.get("verdicts", ())))
    entry = FaultEntry(**fields)
    known = {*effects.SCENES, *effects.FILES, *effects.DECLARED, *HistoryEffect, PAIRS}
    if entry.is_simulated and entry.effect not in known:
        raise ValueError(f"{entry.title}: no effect {entry.effect!r}")
    return entry
