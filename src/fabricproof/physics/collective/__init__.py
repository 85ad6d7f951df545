"""Collective operations: what any algorithm must move, how fast it may be, what a good one costs.

Pure arithmetic over numbers; no files, no tables, no fabric.
"""

from __future__ import annotations

from fabricproof.physics.collective.bounds import NodeBytes, least_bytes
from fabricproof.physics.collective.floor import LEAST_REPETITIONS, Statistic, Wire, least_mean_us
from fabricproof.physics.collective.models import Channel, best_model, models
from fabricproof.physics.collective.operation import Operation, RankLayout, everyone_waits

__all__ = [
    "LEAST_REPETITIONS",
    "Channel",
    "NodeBytes",
    "Operation",
    "RankLayout",
    "Statistic",
    "Wire",
    "best_model",
    "everyone_waits",
    "least_bytes",
    "least_mean_us",
    "models",
]
