"""The plan that the pure tests speak of."""

from __future__ import annotations

import pytest

from fabricproof.vcluster.plan import Plan, Wishes, make_plan


@pytest.fixture
def plan() -> Plan:
    return make_plan("tiny", Wishes(nodes=3, rail_rates_bit_s={1: 200_000_000}), 6000)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A cluster is brought up only for those who ask for it: pytest -m vcluster."""
    if "vcluster" in config.getoption("markexpr"):
        return
    opt_in = pytest.mark.skip(reason="opt in with: pytest -m vcluster (as root)")
    for item in items:
        if item.get_closest_marker("vcluster"):
            item.add_marker(opt_in)
