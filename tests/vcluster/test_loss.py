"""Packets lost at a switch's port: the filter's share, and which way it looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcluster.rails.faults import loss_commands, loss_program


def _matches(program: list[tuple[int, int, int, int]], drawn: int) -> bool:
    """Run the classic BPF program as the kernel would, with ``drawn`` as its random number."""
    at, accumulator = 0, 0
    while True:
        code, jump_true, jump_false, constant = program[at]
        if code == 0x20:
            assert constant == 2**32 - 0x1000 + 56, "SKF_AD_OFF + SKF_AD_RANDOM"
            accumulator = drawn
        elif code == 0x25:
            at += jump_true if accumulator > constant else jump_false
        elif code == 0x06:
            return constant != 0
        at += 1


@given(st.floats(1e-6, 1.0), st.integers(0, 2**32 - 1))
def test_a_share_of_all_numbers_is_lost(share: float, drawn: int) -> None:
    assert _matches(loss_program(share), drawn) == (drawn < max(1, round(share * 2**32)))


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
