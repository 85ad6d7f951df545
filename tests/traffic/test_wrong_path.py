"""TCP over IPoIB is no verbs: the port's counters hold its bytes, and say so in no other way."""

from __future__ import annotations

import pytest

from fabricproof.traffic import Evidence, Expectation, PathState, Rank, prove_path
from fabricproof.traffic.counters import CounterSample

DUE = 500_000_000
PORT = Expectation(rails=("mlx5_0:1",), sent_bytes=(DUE, DUE), num_ranks=2, spread=False)
IPOIB_ADDRESS = ":".join(["80", "00", "0a", "49", "fe", "80", *["00"] * 6, *["0c"] * 8])


def _sample(node: str, interface: str, moved: int, address: str | None = None) -> CounterSample:
    names = ("tx_bytes", "rx_bytes")
    return CounterSample(
        node=node,
        interface=interface,
        before=dict.fromkeys(names, 5),
        after=dict.fromkeys(names, 5 + moved),
        address=address,
    )


PROVEN, WRONG, UNKNOWN, _ = PathState
TCP = "traffic went over TCP on ib0 (IPoIB): UCX or libfabric fell back"
BOTH = "traffic went over TCP on ib0+ib1 (IPoIB)"
ETHERNET = "02:00:00:00:00:01"
#: what a rail that moved just enough shows beside other traffic
ENOUGH = 0.9801


@pytest.mark.parametrize(
    ("port", "other_port", "ib0", "ib1", "address", "states", "words"),
    [
        (1.03, 0, 1.01, 0, IPOIB_ADDRESS, {WRONG}, TCP),
        (1.01, 0, 0.002, 0, IPOIB_ADDRESS, {PROVEN}, ""),  # a quiet IPoIB
        # a file system over IPoIB: the port holds both, what is left over is the benchmark's
        *((n + 1.02, 0, n, 0, IPOIB_ADDRESS, {PROVEN, UNKNOWN}, "") for n in (2, 20)),
        # mlx4's statistics hold RoCE; six octets are no IPoIB
        (1, 0, 1, 0, ETHERNET, {PROVEN}, ""),
        *(
            (1.02, 0, part, 0, IPOIB_ADDRESS, {WRONG}, "of which ib0")
            for part in (0.05, 0.5, 0.6, 0.9, 0.97, 0.99)
        ),
        (1.02, 0, 0.03, 0.03, IPOIB_ADDRESS, {WRONG}, BOTH),
        # 98 % of what is due: a frame under way, as for every path
        (1.02, 0, 0.03, 0, IPOIB_ADDRESS, {PROVEN}, ""),
        (1.52, 0, 0.5, 0, IPOIB_ADDRESS, {PROVEN}, ""),
        # a second adapter with storage behind it; which port ib1 is of, nobody reads
        (ENOUGH, 0.02, 0, 0.002, IPOIB_ADDRESS, {PROVEN}, ""),
        (ENOUGH, 0.12, 0, 0.1, IPOIB_ADDRESS, {UNKNOWN}, ""),
        (ENOUGH, 1, 0, 1, IPOIB_ADDRESS, {WRONG}, ""),
        # without a port that could have carried it, it is the rail's
        *((ENOUGH, 0, 0, part, IPOIB_ADDRESS, {WRONG}, "") for part in (0.002, 0.1, 1)),
    ],
)
def test_what_went_over_ipoib_is_no_verbs(
    port: float,
    other_port: float,
    ib0: float,
    ib1: float,
    address: str,
    states: set[PathState],
    words: str,
) -> None:
    nodes = ("n1", "n2")
    shares = {"mlx5_0:1": (port, None), "mlx5_1:1": (other_port, None)}
    shares |= {"ib0": (ib0, address), "ib1": (ib1, address)}
    samples = tuple(
        _sample(node, name, int(share * DUE), said)
        for node in nodes
        for name, (share, said) in shares.items()
    )
    ranks = tuple(Rank(rank=rank, node=node) for rank, node in enumerate(nodes))
    found = prove_path(Evidence(ranks=ranks, samples=samples), PORT)
    assert found.state in states, found.reason
    assert words in found.reason
