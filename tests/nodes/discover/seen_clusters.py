"""The recorded machines of tests/data/discover."""

from __future__ import annotations

from pathlib import Path

from fabricproof.nodes.discover.cluster import Cluster, load, read_cluster

DATA = Path(__file__).resolve().parents[2] / "data" / "discover"
NAMES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


def cluster(name: str) -> Cluster:
    return read_cluster(load(DATA / name), name)
