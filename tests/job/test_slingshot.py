"""Slingshot: what the telemetry of a cxi device counts, and what its Ethernet interface moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from soft_roce import add, read_rank

from fabricproof.job.evidence.error_rates import limit_between
from fabricproof.job.evidence.leg_folder import gather, parse_rank
from fabricproof.traffic import Evidence, Expectation, PathProof, PathState, prove_path
from fabricproof.traffic.error_rates import ErrorKind, error_rates

DUE = 10**10
RAIL = Expectation(
    rails=("cxi0",), sent_bytes=(DUE, DUE), num_ranks=2, spread=False, sent_messages=(1000, 1000)
)
STAMP = "@1754000000.000000001"

TELEMETRY = "class/cxi/cxi0/device/telemetry"
TELLS = ("hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets", "pct_spt_timeouts")
CLASSES = tuple(f"hni_pkts_{way}_by_tc_{each}" for way in ("sent", "recv") for each in range(8))
ETHERNET = "class/net/hsn0/statistics"


def stamped(path: Path, amount: int) -> str:
    """Return the line of shell that adds to a value with a time behind it."""
    return f'now=$(<{path}); echo "$((${{now%%@*}} + {amount})){STAMP}" >{path}\n'


def make_sys(folder: Path, *, telemetry: bool = True) -> Path:
    """Write the sysfs of a node with one Cassini and its interface."""
    root = folder / "sys"
    for name in (*TELLS, *CLASSES) if telemetry else ():
        (root / TELEMETRY).mkdir(parents=True, exist_ok=True)
        (root / TELEMETRY / name).write_text(f"1000{STAMP}\n")
    (root / "class/cxi/cxi0/device/net/hsn0").mkdir(parents=True)
    (root / ETHERNET).mkdir(parents=True)
    (root / ETHERNET / "../address").write_text("02:00:00:00:00:0a\n")
    for way in ("tx", "rx"):
        for kind in ("bytes", "packets"):
            (root / ETHERNET / f"{way}_{kind}").write_text("0\n")
    return root


def seen(folder: Path, *, portals: int, sockets: int = 0, lost: int = 0, **made: bool) -> Evidence:
    """Return what two nodes counted that moved so many bytes each way by the two of them."""
    sys = make_sys(folder, **made)
    both, run = portals + sockets, ""
    for way, word in (("tx", "sent"), ("rx", "recv")):
        if (sys / TELEMETRY).is_dir():
            run += stamped(sys / TELEMETRY / f"hni_sts_{way}_ok_octets", int(1.02 * both))
            run += stamped(sys / TELEMETRY / f"hni_pkts_{word}_by_tc_3", both // 4000)
        run += add(sys / ETHERNET / f"{way}_bytes", int(1.01 * sockets))
        run += add(sys / ETHERNET / f"{way}_packets", sockets // 8000)
    if lost:
        run += stamped(sys / TELEMETRY / "pct_spt_timeouts", lost)
    return gather(parse_rank(read_rank(folder, rank, run, sys=sys), "x") for rank in (0, 1))


def proven(evidence: Evidence) -> PathProof:
    return prove_path(evidence, RAIL)


def test_the_octets_of_the_device_prove_the_path(tmp_path: Path) -> None:
    evidence = seen(tmp_path, portals=DUE)
    proof = proven(evidence)
    assert proof.state is PathState.PROVEN, proof.reason
    assert proof.moved_bytes is not None
    assert proof.moved_bytes["vc1:cxi0"] == int(1.02 * DUE)
    (sample, _) = [each for each in evidence.samples if each.interface == "cxi0"]
    assert (sample.netdev, sample.moved("tx_packets")) == ("hsn0", DUE // 4000)


@pytest.mark.parametrize(
    ("portals", "sockets", "telemetry", "state", "said"),
    [
        # the link counts the interface's bytes too: TCP over hsn0 looks like Portals
        (0, DUE, True, PathState.WRONG, "traffic went over TCP on hsn0 (the interface of cxi0)"),
        (DUE, 10**5, True, PathState.PROVEN, ""),  # a little over it is taken off
        (DUE // 2, 0, True, PathState.WRONG, ""),
        # the statistics of hsn0 have nothing of what the cxi provider moves
        (DUE, DUE, False, PathState.UNKNOWN, "/sys/class/cxi/cxi0/device/telemetry alone"),
    ],
)
def test_what_its_ethernet_moved_is_no_portals(
    tmp_path: Path, portals: int, sockets: int, telemetry: bool, state: PathState, said: str
) -> None:
    proof = proven(seen(tmp_path, portals=portals, sockets=sockets, telemetry=telemetry))
    assert proof.state is state, proof.reason
    assert said in proof.reason


def test_sockets_over_its_interface_are_a_path_of_their_own(tmp_path: Path) -> None:
    """The device counts them too, and is no second path."""
    over_tcp = Expectation(rails=("hsn0",), sent_bytes=(DUE, DUE), num_ranks=2, spread=False)
    for portals in (0, DUE):  # of another job, or none
        proof = prove_path(seen(tmp_path / str(portals), portals=portals, sockets=DUE), over_tcp)
        assert proof.state is PathState.PROVEN, proof.reason


def test_its_losses_are_its_own_and_not_those_of_tcp(tmp_path: Path) -> None:
    evidence = seen(tmp_path, portals=DUE, lost=2)
    rates = error_rates(evidence, RAIL.rails)
    assert [(each.kind, each.counters) for each in rates] == [
        (ErrorKind.RETRANSMITTED, {"pct_spt_timeouts": 2})
    ] * 2
    limit = limit_between(
        ErrorKind.RETRANSMITTED, RAIL.rails, technology="slingshot", num_nodes=2, stated={}, why=""
    )
    assert limit is not None
    assert limit.per_million_packets == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_every_rank_counts_bytes_and_the_first_of_a_node_losses(tmp_path: Path, rank: int) -> None:
    text = read_rank(tmp_path, 0, ":", sys=make_sys(tmp_path), local_rank=rank)
    counters = parse_rank(text, "x").after["cxi0"]
    assert (counters["tx_bytes"], counters["tx_packets"]) == (1000, 8000)
    assert ("pct_spt_timeouts" in counters) is (rank == 0)
