"""What a faulty port of a switch loses and lets pass: whose packets, which share, which way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcluster.plan import Plan
from vcluster.rails import faults
from vcluster.rails.apply import Program, loss_commands, loss_program, rate_commands
from vcluster.rails.faults import Fault, Place, Sender


def _matches(program: Program, drawn: int, source: int = 0) -> bool:
    """Run the classic BPF program as the kernel would: its random number, its sender's address."""
    at, accumulator = 0, 0
    while True:
        code, jump_true, jump_false, constant = program[at]
        if code == 0x20:
            assert constant == 2**32 - 0x1000 + 56, "SKF_AD_OFF + SKF_AD_RANDOM"
            accumulator = drawn
        elif code == 0x30:
            assert constant == 29, "last byte of the source address"
            accumulator = source
        elif code == 0x15:
            at += jump_true if accumulator == constant else jump_false
        elif code == 0x25:
            at += jump_true if accumulator > constant else jump_false
        elif code == 0x06:
            return constant != 0
        at += 1


@given(st.floats(1e-6, 1.0), st.integers(0, 2**32 - 1))
def test_a_share_of_all_numbers_is_lost(share: float, drawn: int) -> None:
    assert _matches(loss_program(share), drawn) == (drawn < max(1, round(share * 2**32)))


@given(st.integers(0, 2**32 - 1), st.integers(11, 74), st.integers(11, 74))
def test_a_pair_loses_what_its_one_node_sent_and_nothing_else(
    drawn: int, sender: int, source: int
) -> None:
    lost = _matches(loss_program(0.01, sender), drawn, source)
    assert lost == (source == sender and _matches(loss_program(0.01), drawn))


@pytest.mark.parametrize(
    ("share_in", "share_out", "hooks"),
    [(0.003, 0.0, ["egress"]), (0.0, 0.003, ["ingress"]), (0.003, 0.003, ["egress", "ingress"])],
)
def test_what_goes_to_a_node_leaves_the_switch(
    share_in: float, share_out: float, hooks: list[str]
) -> None:
    first, *filters = loss_commands("vc2r0", share_in, share_out)
    assert first == "qdisc add dev vc2r0 clsact"
    assert [each.split()[4] for each in filters] == hooks
    assert all(each.endswith("redirect dev nowhere") for each in filters)


def test_a_port_that_loses_nothing_is_left_alone() -> None:
    assert loss_commands("vc2r0", 0.0, 0.0, (Sender(host=11, rate_bit_s=10**6, lost=0.0),)) == []


def test_a_slowed_sender_has_a_class_of_its_own_and_all_others_the_port(plan: Plan) -> None:
    there = {Place(host="vc1", peer="vc3", rail=0): Fault(rate_bit_s=10**7, direction="out")}
    wanted = faults.cable(plan, there, plan.node("vc3"), 0)
    lines = rate_commands("vc3r0", wanted, plan.mtu)
    assert "htb default 2" in lines[0]
    (slow,) = (line for line in lines if "classid 1:1b htb" in line)  # 0x10 and host 11
    assert "ceil 9950kbit" in slow
    (chosen,) = (line for line in lines if line.startswith("filter"))
    assert "21 1 0 11,6 0 0 0,6 0 0 65563" in chosen  # 1:1b
    healthy = faults.cable(plan, there, plan.node("vc1"), 0)
    assert "tbf" in rate_commands("vc1r0", healthy, plan.mtu)[0]
