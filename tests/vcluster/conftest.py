"""The plan that the pure tests speak of."""

from __future__ import annotations

import pytest

from vcluster.plan import Plan, Wishes, make_plan


@pytest.fixture
def plan() -> Plan:
    return make_plan("tiny", Wishes(nodes=3, rail_rates_bit_s={1: 200_000_000}), 6000)
