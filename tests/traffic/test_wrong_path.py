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


def _state(
    port: int, ib0: int, address: str = IPOIB_ADDRESS, *, other_port: int = 0, ib1: int = 0
) -> tuple[PathState, str]:
    nodes = ("n1", "n2")
    samples = [
        each
        for node in nodes
        for each in (
            _sample(node, "mlx5_0:1", port),
            _sample(node, "mlx5_1:1", other_port),
            _sample(node, "ib0", ib0, address),
            _sample(node, "ib1", ib1, address),
        )
    ]
    ranks = tuple(Rank(rank=rank, node=node) for rank, node in enumerate(nodes))
    found = prove_path(Evidence(ranks=ranks, samples=tuple(samples)), PORT)
    return found.state, found.reason


def test_tcp_over_ipoib_is_no_verbs_and_is_named() -> None:
    state, reason = _state(port=int(1.03 * DUE), ib0=int(1.01 * DUE))
    assert state is PathState.WRONG
    assert reason.startswith("traffic went over TCP on ib0 (IPoIB): UCX or libfabric fell back")


def test_verbs_beside_a_quiet_ipoib_are_the_path() -> None:
    assert _state(port=int(1.01 * DUE), ib0=1_000_000)[0] is PathState.PROVEN


@pytest.mark.parametrize("foreign", [2, 20])
def test_verbs_under_a_strangers_ipoib_are_not_called_tcp(foreign: int) -> None:
    """A file system over IPoIB: the port holds both, and what is left over is the benchmark's."""
    state, _ = _state(port=int((foreign + 1.02) * DUE), ib0=foreign * DUE)
    assert state in {PathState.PROVEN, PathState.UNKNOWN}


def test_an_ethernet_driver_may_count_its_adapters_verbs_as_its_own() -> None:
    """mlx4's statistics hold RoCE; six octets are no IPoIB."""
    assert _state(DUE, DUE, "02:00:00:00:00:01")[0] is PathState.PROVEN


@pytest.mark.parametrize("share", [0.05, 0.5, 0.6, 0.9, 0.97, 0.99])
def test_a_part_over_ipoib_is_no_number_of_verbs(share: float) -> None:
    state, reason = _state(port=int(1.02 * DUE), ib0=int(share * DUE))
    assert state is PathState.WRONG
    assert "of which ib0" in reason


def test_two_ipoib_interfaces_are_taken_together() -> None:
    state, reason = _state(port=int(1.02 * DUE), ib0=int(0.03 * DUE), ib1=int(0.03 * DUE))
    assert state is PathState.WRONG
    assert reason.startswith("traffic went over TCP on ib0+ib1 (IPoIB)")


def test_what_the_ports_carried_beside_ipoib_may_be_enough() -> None:
    """98 % of what is due: a frame under way, as for every path."""
    assert _state(port=int(1.02 * DUE), ib0=int(0.03 * DUE))[0] is PathState.PROVEN
    assert _state(port=int(1.52 * DUE), ib0=int(0.5 * DUE))[0] is PathState.PROVEN


@pytest.mark.parametrize(
    ("small", "large", "state"),
    [
        (1_000_000, 10_000_000, PathState.PROVEN),
        (50_000_000, 60_000_000, PathState.UNKNOWN),
        (DUE, DUE, PathState.WRONG),
    ],
)
def test_ipoib_that_may_be_another_ports_is_no_tcp_for_sure(
    small: int, large: int, state: PathState
) -> None:
    """A second adapter with storage behind it; which port ib1 is of, nobody reads."""
    due = int(0.9801 * DUE)
    assert _state(port=due, ib0=0, other_port=large, ib1=small)[0] is state
    # without a port that could have carried it, it is the rail's
    assert _state(port=due, ib0=0, ib1=small)[0] is PathState.WRONG
