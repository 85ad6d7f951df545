"""Made matrices: every pair with a value, faults put in by hand, noise by a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

#: sender, receiver, rail -> factor of the healthy value
Fault = Callable[[int, int, int], float]


def healthy(_a: int, _b: int, _rail: int) -> float:
    return 1.0


def made(
    num: int,
    fault: Fault = healthy,
    *,
    base: float = 24.0,
    rails: int = 0,
    triangle: bool = False,
    noise: float = 0.03,
    seed: int = 1,
    lower_is_better: bool = False,
) -> list[dict[str, object]]:
    """Return rows of a matrix; rails 0: no column rail."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for rail in range(max(rails, 1)):
        for a in range(num):
            for b in range(a + 1 if triangle else 0, num):
                if a == b:
                    continue
                factor = fault(a, b, rail)
                value = base * (1 + noise * float(np.clip(random.normal(), -3.3, 3.3)))
                value = value / factor if lower_is_better else value * factor
                row: dict[str, object] = {"a": f"n{a:04}", "b": f"n{b:04}", "value": f"{value:.6g}"}
                if rails:
                    row["rail"] = f"rail{rail}"
                rows.append(row)
    return rows


def written(path: Path, rows: list[dict[str, object]], **columns: str) -> Path:
    """Write rows as CSV; ``columns`` stand in every row."""
    rows = [{**row, **columns} for row in rows]
    names = list(rows[0])
    lines = [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of_node(node: int, factor: float, *, side: str = "both", rail: int | None = None) -> Fault:
    """Return the fault of a node, its transmit or receive side, or one rail of it."""

    def fault(a: int, b: int, on: int) -> float:
        hit = (a == node and side != "receive") or (b == node and side != "transmit")
        return factor if hit and rail in {None, on} else 1.0

    return fault


def of_pair(first: int, second: int, factor: float) -> Fault:
    return lambda a, b, _: factor if {a, b} == {first, second} else 1.0


def both(*faults: Fault) -> Fault:
    """Return faults at once: the worst counts."""
    return lambda a, b, rail: min(fault(a, b, rail) for fault in faults)


def hops(per_leaf: int, near: float) -> Fault:
    """Return a fabric whose pairs on one leaf are better by ``near``."""
    return lambda a, b, _: near if a // per_leaf == b // per_leaf else 1.0
