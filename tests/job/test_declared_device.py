"""Ports of other vendors: their link layer, and what their drivers count under which names."""

from __future__ import annotations

from pathlib import Path

import pytest
from soft_roce import add, read_rank

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import gather, parse_rank
from fabricproof.job.outcome import judge_leg, needs_second_look
from fabricproof.physics import Fabric, find_link
from fabricproof.traffic import Evidence, Expectation, PathProof, PathState, prove_path
from fabricproof.traffic.error_rates import ErrorKind, error_rates
from leg_folders import PUT_BW, PUT_BW_SENT, leave, make_leg

MLX5 = "uevent=DRIVER=mlx5_core"
HFI1 = "link_layer=InfiniBand uevent=DRIVER=hfi1"


def text(
    number: int, sent: int, received: int, said: str, *, port: str = "mlx5_0:1", word: int = 4
) -> str:
    """Return what ``rank.sh`` writes of a port that moved so many bytes, in words of ``word``."""
    tx, rx = (int(1.01 * each / word) for each in (sent, received))
    return (
        f"rank {number}\nnode n{number}\ncpus 0\nfact {port} state=4:_ACTIVE {said}\n"
        f"before {port} port_xmit_data=0 port_rcv_data=0 port_xmit_packets=0 port_rcv_packets=0"
        " packet_seq_err=0 symbol_error=0\n"
        f"after {port} port_xmit_data={tx} port_rcv_data={rx} port_xmit_packets={tx // 500 + 9} "
        f"port_rcv_packets={rx // 500 + 9} packet_seq_err=0 symbol_error=0\nstatus 0\n"
    )


def verdict(folder: Path, link: str, said: str) -> tuple[Verdict, str, bool]:
    leg = make_leg(rails=("mlx5_0:1",), fabric=Fabric(link=find_link(link), mtu=4096))
    ends = ((PUT_BW_SENT, 1000), (1000, PUT_BW_SENT))
    leave(folder, leg, PUT_BW, ranks=tuple(text(n, *end, said) for n, end in enumerate(ends)))
    outcome = judge_leg(folder, leg)
    report = outcome.report
    why = next(each.reason for each in report.quantities if each.verdict is report.verdict)
    return report.verdict, why, needs_second_look(outcome)


@pytest.mark.parametrize(
    ("link", "said", "layer"),
    [
        ("HDR 4x", f"link_layer=Ethernet {MLX5}", "Ethernet"),
        ("HDR 4x", "link_layer=Ethernet", "Ethernet"),
        ("HDR 4x", HFI1, "Omni-Path"),
        ("1GbE", f"link_layer=InfiniBand {MLX5}", "InfiniBand"),
        ("1GbE", "link_layer=InfiniBand", "InfiniBand or Omni-Path"),
        ("Omni-Path 100", f"link_layer=InfiniBand {MLX5}", "InfiniBand"),
        ("Omni-Path 100", f"link_layer=Ethernet {MLX5}", "Ethernet"),
    ],
)
def test_a_port_of_another_layer_is_invalid(
    tmp_path: Path, link: str, said: str, layer: str
) -> None:
    found, why, again = verdict(tmp_path, link, said)
    assert (found, again) == (Verdict.INVALID, False)
    assert why.startswith(
        f"measured over {layer}, judged as {link}: mlx5_0:1 on n0 is a port of {layer} by its "
        f"sysfs, and the site declares {link}"
    )


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("1GbE", f"link_layer=Ethernet {MLX5}"),
        ("1GbE", "link_layer=Unknown"),  # what sysfs calls a layer that it does not know
        ("1GbE", "rate=1_Gb/sec"),
    ],
)
def test_a_port_of_the_declared_layer_or_of_none_passes(
    tmp_path: Path, link: str, said: str
) -> None:
    found, why, _ = verdict(tmp_path, link, said)
    assert found is Verdict.PASS, why


@pytest.mark.parametrize("said", [HFI1, "link_layer=InfiniBand"])
@pytest.mark.parametrize("link", ["Omni-Path 100", "CN5000"])
def test_omni_path_is_no_other_layer(tmp_path: Path, link: str, said: str) -> None:
    """It says InfiniBand; its driver, or nobody, says that it is none."""
    assert "measured over" not in verdict(tmp_path, link, said)[1]


# --- Omni-Path's counters

DUE = 10**10


def of_hfi1(
    port: str = "hfi1_0:1", said: str = HFI1, counters: tuple[str, str] = ("", "")
) -> Evidence:
    """Return what two nodes counted in flits while one sent the other :data:`DUE` bytes."""
    ends = ((DUE, DUE // 50), (DUE // 50, DUE))
    records = []
    for number, (sent, received) in enumerate(ends):
        told = text(number, sent, received, said, port=port, word=8)
        for when, more in zip(("before", "after"), counters, strict=True):
            told = told.replace(f"\n{when} {port}", f"\n{when} {port}{more}")
        records.append(parse_rank(told, "x"))
    return gather(records)


def proven(evidence: Evidence, port: str = "hfi1_0:1") -> PathProof:
    due = Expectation(rails=(port,), sent_bytes=(DUE, 0), num_ranks=2, spread=False)
    return prove_path(evidence, due)


@pytest.mark.parametrize(
    ("port", "said"),
    [
        ("hfi1_0:1", HFI1),
        ("hfi1_0:1", "link_layer=InfiniBand"),  # evidence of before the driver was read
        ("opap24s0:1", HFI1),  # as rdma-core may call it
    ],
)
def test_omni_path_counts_flits_of_eight_octets(port: str, said: str) -> None:
    seen = proven(of_hfi1(port, said), port)
    assert seen.state is PathState.PROVEN, seen.reason
    assert seen.moved_bytes is not None
    assert seen.moved_bytes[f"n0:{port}"] == pytest.approx(1.01 * DUE, abs=8)


def test_infiniband_under_that_name_does_not() -> None:
    """A name says nothing where the driver is known."""
    evidence = of_hfi1(said=f"link_layer=InfiniBand {MLX5}")
    assert proven(evidence).state is PathState.WRONG


@pytest.mark.parametrize(("before", "after"), [(2, 9), (15, 15)])
def test_replays_of_the_link_are_no_errors(before: int, after: int) -> None:
    """hfi1 shows them as local_link_integrity_errors, of 4 bits."""
    name = "local_link_integrity_errors"
    seen = proven(of_hfi1(counters=(f" {name}={before}", f" {name}={after}")))
    assert seen.state is PathState.PROVEN, seen.reason
    risen = "link_replays of hfi1_0:1 on n0 rose by 7"
    assert (risen in seen.findings) is (after > before)


def test_other_errors_of_omni_path_are() -> None:
    seen = proven(of_hfi1(counters=(" link_downed=0", " link_downed=1")))
    assert seen.state is PathState.DISTURBED


# --- RoCE of drivers that have no counters/, as rank.sh reads it

IRDMA = ("ip4OutOctets", "ip4InOctets", "ip6OutOctets", "ip6InOctets", "ip4OutPkts", "ip4InPkts",
         "RetransSegs", "cnpSent")  # fmt: skip
BNXT = ("tx_bytes", "rx_bytes", "tx_pkts", "rx_pkts", "seq_err_naks_rcvd", "to_retransmits")


def counted(folder: Path, driver: str, names: tuple[str, ...], moved: dict[str, int]) -> Evidence:
    """Return what rank.sh reads of a port that counts ``names``, on two nodes that moved it."""
    port = folder / "sys/class/infiniband/rocep1s0/ports/1"
    for name, value in {"state": "4: ACTIVE", "link_layer": "Ethernet"}.items():
        (port / "hw_counters").mkdir(parents=True, exist_ok=True)
        (port / name).write_text(f"{value}\n")
    (port / "../../device").mkdir()
    (port / "../../device/uevent").write_text(f"DRIVER={driver}\nPCI_CLASS=20000\n")
    for name in names:
        (port / "hw_counters" / name).write_text("0\n")
    run = "".join(add(port / "hw_counters" / name, amount) for name, amount in moved.items())
    texts = (read_rank(folder, rank, run, sys=folder / "sys") for rank in (0, 1))
    return gather(parse_rank(each, "x") for each in texts)


ROCE = Expectation(rails=("rocep1s0:1",), sent_bytes=(DUE, DUE), num_ranks=2, spread=False)
RAN = int(1.01 * DUE)


@pytest.mark.parametrize(
    ("driver", "names", "moved"),
    [
        ("irdma", IRDMA, {"ip4OutOctets": RAN, "ip4InOctets": RAN, "ip4OutPkts": 9}),
        ("irdma", IRDMA, {"ip6OutOctets": RAN, "ip6InOctets": RAN, "ip4OutOctets": 9}),
        ("bnxt_en", BNXT, {"tx_bytes": RAN, "rx_bytes": RAN}),
    ],
)
def test_their_bytes_prove_the_path_and_their_losses_are_counted(
    tmp_path: Path, driver: str, names: tuple[str, ...], moved: dict[str, int]
) -> None:
    evidence = counted(tmp_path, driver, names, moved)
    proof = prove_path(evidence, ROCE)
    assert proof.state is PathState.PROVEN, proof.reason
    (again, other) = error_rates(evidence, ROCE.rails)
    assert (again.kind, other.kind, again.events) == (*[ErrorKind.RETRANSMITTED] * 2, 0)


@pytest.mark.parametrize(
    ("driver", "names", "lost", "told"),
    [
        ("irdma", IRDMA, "RetransSegs", "retrans_pkts"),
        ("bnxt_en", BNXT, "seq_err_naks_rcvd", "packet_seq_err"),
        ("bnxt_en", BNXT, "to_retransmits", "local_ack_timeout_err"),
    ],
)
def test_what_they_send_again_is_lost(
    tmp_path: Path, driver: str, names: tuple[str, ...], lost: str, told: str
) -> None:
    evidence = counted(tmp_path, driver, names, {lost: 3})
    rates = error_rates(evidence, ROCE.rails)
    assert [each.counters for each in rates] == [{told: 3}] * 2


def test_bytes_of_irdma_that_are_not_there_took_another_path(tmp_path: Path) -> None:
    few = {"ip4OutOctets": 5000, "ip4InOctets": 5000}
    proof = prove_path(counted(tmp_path, "irdma", IRDMA, few), ROCE)
    assert proof.state is PathState.WRONG


def test_octets_of_irdma_that_never_moved_are_not_counted(tmp_path: Path) -> None:
    """A card of another generation may count elsewhere: nobody knows, and nothing is red."""
    proof = prove_path(counted(tmp_path, "irdma", IRDMA, {}), ROCE)
    assert proof.state is PathState.UNKNOWN
    assert "never moved (ip4OutOctets" in proof.reason


def test_notifications_of_congestion_have_one_name(tmp_path: Path) -> None:
    moved = {"ip4OutOctets": RAN, "ip4InOctets": RAN, "cnpSent": 5000, "ip4OutPkts": 9}
    proof = prove_path(counted(tmp_path, "irdma", IRDMA, moved), ROCE)
    assert any(each.startswith("np_cnp_sent of rocep1s0:1") for each in proof.findings)
