"""Sweeps made up for tests: records as a run leaves them, from times by series and size."""

from typing import Any


def sweep_record(
    series: dict[str, dict[int | None, list[float]]], **changes: Any
) -> dict[str, Any]:
    """Return one record of a sweep; ``series`` maps a name to times in us by message size."""
    record: dict[str, Any] = {
        "format": 1,
        "kind": "sweep",
        "leg": "rail0.4x1.algorithms",
        "run_id": "20261121T200000Z-aaaaaa",
        "site": "here",
        "partition": "compute",
        "fabric": "eth0",
        "stack": "openmpi5",
        "stack_version": "openmpi 5.0.11",
        "suite": "osu",
        "program": "osu_allgather",
        "family": "openmpi",
        "mpi_version": "5.0.11",
        "collective": "allgather",
        "num_nodes": 4,
        "ranks_per_node": 1,
        "nodes": ["n1", "n2", "n3", "n4"],
        "rails": ["rail0"],
        "own_environment": {},
        "tuning": {},
        "bar": {"sure_factor": 1.25, "loss_limit": 1.5, "false_alarms": 0.01},
        "left_out": [],
        "series": [
            {
                "algorithm": name,
                "label": name if name in {"own", "auto"} else f"{name} named",
                "environment": {},
                "times_us": [{"size": size, "us": times} for size, times in sizes.items()],
            }
            for name, sizes in series.items()
        ],
    }
    return {**record, **changes}


def alike(middle: float, count: int) -> list[float]:
    """Return ``count`` times about ``middle``, two percent apart."""
    return [middle * (1 + 0.01 * (index - 1)) for index in range(count)]


def planted(**changes: Any) -> dict[str, Any]:
    """Return a sweep whose own choice loses three times at 16KiB and 32KiB and not at 64KiB."""
    sizes = (16384, 32768, 65536)
    own = {16384: 9000.0, 32768: 18000.0, 65536: 12000.0}
    others = {"2": 1.5, "4": 1.0, "5": 1.2}
    base = {16384: 3000.0, 32768: 6000.0, 65536: 12000.0}
    return sweep_record(
        {
            "own": {size: alike(own[size], 3) for size in sizes},
            **{
                name: {size: alike(base[size] * factor, 2) for size in sizes}
                for name, factor in others.items()
            },
        },
        **changes,
    )
