"""A port that is of another link layer than the declared link; what Omni-Path counts, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.measure import Verdict
from fabricproof.job.evidence.leg_folder import gather, parse_rank
from fabricproof.job.leg import FabricFacts
from fabricproof.job.outcome import judge_leg, needs_second_look
from fabricproof.traffic import Evidence, Expectation, PathProof, PathState, prove_path
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
    leg = make_leg(rails=("mlx5_0:1",), fabric=FabricFacts(link=link, mtu=4096))
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
