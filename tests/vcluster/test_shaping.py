from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricproof.vcluster import shaping

_RATES = st.integers(min_value=10**6, max_value=40 * 10**9)
_MTUS = st.integers(min_value=576, max_value=9000)


def test_the_default_rail() -> None:
    (node,) = shaping.node_commands("rail0", 400_000_000, 1500, None)
    (switch,) = shaping.switch_commands("vc1r0", 400_000_000, 1500)
    assert node == (
        "qdisc replace dev rail0 root handle 1: tbf rate 398800kbit burst 50000 limit 4194304 "
        "overhead 24 peakrate 440mbit mtu 3000"
    )
    assert switch == (
        "qdisc replace dev vc1r0 root handle 1: tbf rate 398800kbit burst 100000 limit 4194304 "
        "overhead 24"
    )


@given(rate=_RATES, mtu=_MTUS)
def test_a_third_of_a_second_never_carries_more_than_the_wire(rate: int, mtu: int) -> None:
    """What the buckets let through, every byte of it counted, against a wire of the line rate."""
    seconds = 1 / 3
    bucket = shaping.bucket_bytes(rate, mtu, 0.001)
    carried = bucket + shaping.mean_rate(rate, mtu) / 8 * seconds
    slack = 4 * shaping.frame_bytes(mtu)  # a bucket is at least four frames, however slow the rail
    assert carried <= rate / 8 * seconds + slack


@given(rate=_RATES, mtu=_MTUS)
def test_the_trim_stays_well_within_three_percent(rate: int, mtu: int) -> None:
    worst = 0.003 + 24 / shaping.frame_bytes(mtu)
    assert rate * (1 - worst) - 1 <= shaping.mean_rate(rate, mtu) <= rate * 0.997 + 1


@given(mtu=_MTUS)
def test_a_packet_of_two_frames_is_split_on_a_rail_of_the_default_rate(mtu: int) -> None:
    assert shaping.peak_bucket_bytes(400_000_000, mtu) < max(2 * (mtu + 14), 2751)


def test_faster_rails_pay_for_the_frames_they_cannot_count() -> None:
    assert shaping.mean_rate(10**9, 1500) == pytest.approx(0.9853e9, rel=1e-3)
    assert shaping.mean_rate(400_000_000, 1500) == 398_800_000


def test_a_flow_limit_below_the_rate_needs_classes_and_single_frames() -> None:
    commands = shaping.node_commands("rail0", 10**9, 1500, 250_000_000)
    assert sum(command.startswith("class add") for command in commands) == 2 + 64
    assert all("ceil 249250kbit" in command for command in commands[3:-1])
    assert shaping.must_split(10**9, 250_000_000)


@pytest.mark.parametrize("limit", [None, 10**9, 2 * 10**9])
def test_a_flow_limit_not_below_the_rate_changes_nothing(limit: int | None) -> None:
    assert not shaping.must_split(10**9, limit)
    assert len(shaping.node_commands("rail0", 10**9, 1500, limit)) == 1


def _classid(frame: bytes) -> int:  # noqa: C901 - one case per instruction
    """Run the classic BPF program by hand: the oracle for its jumps."""
    a = x = at = 0
    program = shaping.flow_program()
    while True:
        code, true, false, k = program[at]
        at += 1
        match code:
            case 0x30:
                a = frame[k]
            case 0x28:
                a = struct.unpack_from("!H", frame, k)[0]
            case 0x15:
                at += true if a == k else false
            case 0x07:
                x = a
            case 0xAC:
                a ^= x
            case 0x54:
                a &= k
            case 0x04:
                a += k
            case 0x16:
                return a
            case 0x06:
                return k
            case _:
                raise AssertionError(hex(code))


def _frame(protocol: int, source: int, destination: int) -> bytes:
    return bytes(23) + bytes([protocol]) + bytes(10) + struct.pack("!HH", source, destination)


@given(st.sampled_from([6, 17]), st.integers(0, 65535), st.integers(0, 65535))
def test_a_flow_and_its_answer_have_the_same_class(protocol: int, one: int, other: int) -> None:
    there = _classid(_frame(protocol, one, other))
    assert there == _classid(_frame(protocol, other, one))
    assert 0x10010 <= there < 0x10010 + 64


@pytest.mark.parametrize("protocol", [1, 2, 5, 7, 16, 18, 47])
def test_other_protocols_have_no_class(protocol: int) -> None:
    assert _classid(_frame(protocol, 5, 6)) == 0


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [(1, "1"), (2, "3"), (32, "ffffffff"), (34, "3,ffffffff"), (64, "ffffffff,ffffffff")],
)
def test_steering_names_every_cpu(cpus: int, mask: str) -> None:
    assert f"echo {mask} >" in shaping.steering_script(cpus)
