from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcluster.plan import Wishes, make_plan
from vcluster.rails import shaping

_RATES = st.integers(min_value=10**6, max_value=40 * 10**9)
_MTUS = st.integers(min_value=576, max_value=9000)


def test_the_default_rail() -> None:
    (node,) = shaping.node_commands("rail0", 400_000_000, 1500)
    (switch,) = shaping.switch_commands("vc1r0", 400_000_000, 1500)
    assert node == (
        "qdisc replace dev rail0 root handle 1: tbf rate 398mbit burst 100000 limit 4194304 "
        "overhead 24 peakrate 400mbit mtu 3000"
    )
    assert switch == (
        "qdisc replace dev vc1r0 root handle 1: tbf rate 398mbit burst 100000 limit 4194304 "
        "overhead 24"
    )


@given(rate=_RATES, mtu=_MTUS)
def test_frames_that_are_not_counted_whole_are_paid_for(rate: int, mtu: int) -> None:
    """The worst packet: as many frames as the peak's bucket lets pass unsplit."""
    frames = max(1, shaping.peak_bucket_bytes(rate, mtu) // (mtu + 14))
    counted = frames * (mtu + 14) + 24
    on_the_wire = frames * shaping.frame_bytes(mtu)
    assert shaping.peak_rate(rate, mtu) / counted * on_the_wire <= rate + on_the_wire


@given(rate=_RATES, mtu=_MTUS)
def test_what_is_given_away_stays_within_three_percent_at_ethernet_sizes(
    rate: int, mtu: int
) -> None:
    given_away = 1 - shaping.peak_rate(rate, mtu) * 0.995 / rate
    assert given_away <= 0.005 + 24 / shaping.frame_bytes(mtu) + 1e-6
    if mtu >= 1500:
        assert given_away < 0.021


@given(mtu=_MTUS)
def test_a_packet_of_two_frames_is_split_on_a_rail_of_the_default_rate(mtu: int) -> None:
    assert shaping.peak_bucket_bytes(400_000_000, mtu) < max(2 * (mtu + 14), 2751)


def test_faster_rails_pay_for_the_frames_they_cannot_count() -> None:
    assert shaping.peak_rate(10**9, 1500) == pytest.approx(0.988e9, rel=1e-3)
    assert shaping.peak_rate(400_000_000, 1500) == 400_000_000


_Program = list[tuple[int, int, int, int]]


def _classid(frame: bytes, program: _Program) -> int:
    """Run a classic BPF program without jumps by hand."""
    a = 0
    for code, _, _, k in program:
        match code:
            case 0x30:
                a = frame[k]
            case 0x54:
                a &= k
            case 0x04:
                a += k
            case 0x16:
                return a
            case _:
                raise AssertionError(hex(code))
    raise AssertionError("it does not return")


def _from_host(host: int) -> bytes:
    return bytes(26) + bytes([198, 19, 0, host]) + bytes(8)


def test_every_node_has_a_class_of_its_own_on_an_uplink() -> None:
    plan = make_plan("x", Wishes(nodes=64), 8000)
    hosts = [int(node.rail_address(0).rpartition(".")[2]) for node in plan.nodes]
    chosen = [_classid(_from_host(host), shaping.source_program()) for host in hosts]
    made = shaping.uplink_commands("r0l1", 25_000_000, 1500)
    assert len(set(chosen)) == 64
    assert all(
        any(f" classid 1:{number & 0xFFFF:x} htb" in line for line in made) for number in chosen
    )


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [(1, "1"), (2, "3"), (32, "ffffffff"), (34, "3,ffffffff"), (64, "ffffffff,ffffffff")],
)
def test_steering_names_every_cpu(cpus: int, mask: str) -> None:
    assert f"echo {mask} >" in shaping.steering_script(cpus)
