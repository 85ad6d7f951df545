"""Plans of the kind rdma: defaults, refusals, and what a running cluster does not meet."""

from __future__ import annotations

from typing import Any

import pytest

from vcluster.errors import ConfigError
from vcluster.plan import NAMESPACES, RDMA, Plan, Wishes, inherit, make_plan, unmet


def _guests(**wishes: Any) -> Plan:
    return make_plan("soft", Wishes(kind=RDMA, **wishes), 24_000)


def test_guests_are_few_small_and_slow_unless_asked_otherwise() -> None:
    plan = _guests()
    assert (plan.node_count, plan.memory_mb, plan.mtu) == (2, 1280, 4200)
    assert plan.rail_rates_bit_s == (80_000_000, 80_000_000)
    assert plan.acceleration is None


def test_nodes_are_namespaces_unless_asked_otherwise() -> None:
    plan = make_plan("plain", Wishes(), 24_000)
    assert (plan.kind, plan.node_count, plan.memory_mb) == (NAMESPACES, 4, 6000)


def test_a_guests_memory_is_its_own_and_no_share_of_the_machines() -> None:
    assert _guests(nodes=3, memory_mb=768).memory_mb == 768
    assert make_plan("soft", Wishes(kind=RDMA), 1000).memory_mb == 1280


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"memory_mb": 100}, r"memory of a guest.*512 to"),
        ({"memory_mb": 2**21}, r"memory of a guest.*512 to"),
        ({"shares": ("/data/my project",)}, r"without spaces.*my project"),
        ({"shares": ("/data/a,readonly=off",)}, r"QEMU's options"),
        ({"shares": ("/data/it's",)}, r"QEMU's options"),
        ({"shares": ("/usr",)}, r"does not have itself.*'/usr'"),
        ({"shares": ("/etc",)}, r"does not have itself"),
        ({"shares": ("/",)}, r"cannot share"),
        ({"rails": 9}, r"number of rails"),
    ],
)
def test_what_guests_cannot_be_is_refused(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _guests(**wishes)


def test_a_folder_with_spaces_is_fine_for_namespaces() -> None:
    wishes = Wishes(shares=("/data/my project",))
    assert make_plan("plain", wishes, 24_000).shares == ("/data/my project",)


@pytest.mark.parametrize("wishes", [{"memory_mb": 2048}, {"acceleration": "tcg"}])
def test_what_only_guests_have_is_refused_for_namespaces(wishes: dict[str, Any]) -> None:
    # Taken in silence, the same command would be refused when the cluster is up.
    with pytest.raises(ConfigError, match=r"--kind rdma only"):
        make_plan("plain", Wishes(**wishes), 24_000)


def test_another_kind_is_the_first_difference_that_is_told() -> None:
    asked = Wishes(kind=RDMA, nodes=7, rate_bit_s=10**9, mtu=9000)
    assert unmet(make_plan("plain", Wishes(), 24_000), asked) == "kind rdma"
    assert unmet(_guests(), Wishes(kind=NAMESPACES, nodes=7)) == "kind namespaces"


@pytest.mark.parametrize(
    ("wishes", "difference"),
    [
        ({}, None),
        ({"memory_mb": 1280}, None),
        ({"memory_mb": 2048}, "memory of a guest in MB 2048"),
        ({"acceleration": "kvm"}, "acceleration kvm"),
        ({"nodes": 4}, "nodes 4"),
    ],
)
def test_only_what_was_asked_of_guests_can_be_unmet(
    wishes: dict[str, Any], difference: str | None
) -> None:
    assert unmet(_guests(), Wishes(**wishes)) == difference


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"nodes": 3, "memory_mb": 900, "acceleration": "tcg", "rail_rates_bit_s": {1: 10**7}},
        {"shares": ("/data/a", "/data/b"), "mtu": 9000, "rails": 1},
    ],
)
def test_a_broken_cluster_of_guests_comes_back_as_it_was(wishes: dict[str, Any]) -> None:
    plan = _guests(**wishes)
    assert make_plan("soft", inherit(Wishes(), plan), 24_000) == plan


def test_a_plan_of_namespaces_hands_no_guests_memory_down() -> None:
    plain = make_plan("plain", Wishes(), 24_000)
    assert inherit(Wishes(), plain).memory_mb is None
    assert make_plan("plain", inherit(Wishes(), plain), 24_000) == plain
    # its memory was a share of the machine's; a guest has its own
    assert make_plan("plain", inherit(Wishes(kind=RDMA), plain), 24_000).memory_mb == 1280


def test_a_plan_of_guests_survives_its_state_file() -> None:
    plan = _guests(acceleration="tcg", shares=("/data",))
    assert Plan.from_json(plan.as_json()) == plan


def test_a_state_file_of_before_the_kinds_is_one_of_namespaces() -> None:
    told = make_plan("plain", Wishes(), 24_000).as_json()
    del told["kind"], told["acceleration"]
    assert Plan.from_json(told).kind == NAMESPACES
