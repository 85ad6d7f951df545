"""From ports and interfaces to fabrics: nothing invented, nothing lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_clusters import cluster

from fabricproof.nodes.discover.cluster import Facts, Host
from fabricproof.nodes.discover.fabrics import FabricDraft, find_fabrics, name_fabrics
from fabricproof.nodes.inventory.facts import Value
from fabricproof.nodes.rates import shaped_link, verbs_link
from fabricproof.physics import find_link

Part = tuple[str, Facts]


def fabrics(host: Host) -> dict[str, FabricDraft]:
    return name_fabrics(find_fabrics(host)[0])


def host(*parts: Part) -> Host:
    return Host(name="n1", facts=dict(parts))


def part(name: str, base: dict[str, Value], changes: dict[str, Value | None]) -> Part:
    whole = base | changes
    return name, {key: value for key, value in whole.items() if value is not None}


def nic(name: str = "eno1", **changes: Value | None) -> Part:
    base: dict[str, Value] = {
        "state": "up", "kind": "ethernet", "speed_mbit_s": 25000, "mtu": 1500,
        "addresses": "192.0.2.1/24",
    }  # fmt: skip
    return part(f"interface {name}", base, changes)


def hca(name: str = "mlx5_0", **changes: Value | None) -> Part:
    base: dict[str, Value] = {
        "state": "ACTIVE", "rate_gbit_s": 200, "link": "HDR 4x", "driver": "mlx5_core",
        "layer": "InfiniBand",
    }  # fmt: skip
    return part(f"port {name}:1", base, changes)


def test_a_shaped_virtual_rail_is_the_wire_it_stands_for() -> None:
    (draft,) = fabrics(cluster("virtual-cluster").nodes["compute"]).values()
    assert (draft.link, draft.mtu, draft.protocol) == ("200MbE", 1500, "tcp")
    assert [rail.interface for rail in draft.rails] == ["rail0", "rail1"]
    assert dict(draft.shaper) == {"burst_bytes": 3300, "instant_bytes": 3300}
    assert "guess: " in draft.link_note


def test_a_virtual_interface_without_a_shaper_is_left_out_and_said() -> None:
    _, left_out = find_fabrics(cluster("virtual-cluster").nodes["compute"])
    assert left_out == ["mgmt0: virtual and not shaped: 10000 Mb/s is what its kind says"]


def test_two_rails_in_unlike_slots_each_keep_their_own() -> None:
    draft = fabrics(cluster("infiniband-two-rails").nodes["cpu"])["ib0"]
    assert (draft.link, draft.mtu, draft.transport) == ("HDR 4x", 4096, "ucx")
    assert [rail.pcie for rail in draft.rails] == ["4.0x16", "4.0x8"]
    assert "its card could do 4.0x16" in draft.rails[1].note
    assert not draft.shares_slot


def test_a_port_that_is_down_is_no_rail() -> None:
    drafts, left_out = find_fabrics(cluster("infiniband-two-rails").nodes["gpu"])
    assert [rail.interface for rail in drafts[0].rails] == ["mlx5_0:1", "mlx5_1:1"]
    assert "mlx5_2:1: DOWN, not ACTIVE" in left_out


def test_two_ports_of_one_card_share_its_slot() -> None:
    draft = fabrics(cluster("two-ports-one-card").nodes["compute"])["ib0"]
    assert draft.shares_slot
    assert (draft.link, draft.rails[0].max_payload_bytes) == ("FDR 4x", 256)


def test_two_functions_of_one_card_share_its_slot_too() -> None:
    pair = host(
        hca("mlx5_0", pci="0000:81:00.0", pcie="3.0x8"),
        hca("mlx5_1", pci="0000:81:00.1", pcie="3.0x8"),
    )
    assert fabrics(pair)["ib0"].shares_slot


def test_unknown_slots_are_never_called_shared() -> None:
    pair = host(
        hca("mlx5_0", pci="0000:81:00.0"),
        hca("mlx5_1", pci="0000:81:00.1"),
    )
    assert not fabrics(pair)["ib0"].shares_slot


def test_three_rails_of_which_two_share_a_card_are_not_called_shared() -> None:
    three = host(
        hca("mlx5_0", pci="0000:81:00.0", pcie="3.0x8"),
        hca("mlx5_1", pci="0000:81:00.1", pcie="3.0x8"),
        hca("mlx5_2", pci="0000:c1:00.0", pcie="3.0x8"),
    )
    draft = fabrics(three)["ib0"]
    assert (draft.shares_slot, draft.shares_some_slot) == (False, True)


def test_efa_is_no_infiniband_and_ena_has_no_rate() -> None:
    named = fabrics(cluster("cloud-efa").nodes["compute"])
    assert (named["efa0"].link, named["efa0"].transport) == ("EFA 100", "libfabric")
    assert named["eth0"].link is None
    assert "nothing is judged by this fabric" in named["eth0"].link_note


def test_a_roce_port_is_a_fabric_beside_its_interface() -> None:
    port = hca("mlx5_0", layer="Ethernet", link="100GbE", mtu=1024, netdev="eno1")
    named = fabrics(host(port, nic(speed_mbit_s=100_000)))
    assert (named["roce0"].link, named["roce0"].protocol, named["roce0"].mtu) == (
        "100GbE",
        "rocev2",
        1024,
    )
    assert named["eth0"].link == "100GbE"


def rxe(name: str = "rxe0", parent: str = "rail0", **changes: Value | None) -> Part:
    base: dict[str, Value] = {
        "kind": "soft-roce", "state": "ACTIVE", "rate_in_sysfs": "2.5 Gb/sec (1X SDR)",
        "layer": "Ethernet", "driver": "rdma_rxe", "netdev": parent, "parent": parent, "mtu": 4096,
    }  # fmt: skip
    return part(f"port {name}:1", base, changes)


SHAPED: dict[str, Value | None] = {"shaped_to_mbit_s": 100, "shaper_burst_bytes": 9216}


def test_software_devices_are_a_fabric_of_what_their_interface_is_shaped_to() -> None:
    rails = [nic(f"rail{n}", speed_mbit_s=None, mtu=4200, **SHAPED) for n in (0, 1)]
    named = fabrics(host(rxe("rxe0", "rail0"), rxe("rxe1", "rail1"), *rails))
    draft = named["softroce0"]
    assert (draft.link, draft.protocol, draft.mtu, draft.transport) == (
        "Soft-RoCE 100 Mb/s",
        "rocev2",
        4096,
        "ucx",
    )
    assert find_link(draft.link or "").is_soft
    assert [rail.interface for rail in draft.rails] == ["rxe0:1", "rxe1:1"]
    assert draft.rails[0].pcie is None
    assert dict(draft.shaper) == {"burst_bytes": 10138, "instant_bytes": 10138}
    assert "guess: " in draft.link_note
    # TCP goes over the same interfaces, as beside any RoCE
    assert (named["eth0"].link, len(named)) == ("100MbE", 2)


@pytest.mark.parametrize("rate", ["2.5 Gb/sec (1X SDR)", "100 Gb/sec (4X EDR)", ""])
def test_a_software_device_without_a_shaper_has_no_link_whatever_sysfs_says(rate: str) -> None:
    draft = fabrics(host(rxe(rate_in_sysfs=rate or None), nic("rail0", speed_mbit_s=100_000)))[
        "softroce0"
    ]
    assert draft.link is None
    assert "Soft-RoCE, which has no rate of its own" in draft.link_note
    assert draft.shaper == ()


def test_the_mtu_of_a_software_device_follows_from_its_interface() -> None:
    below = nic("rail0", mtu=4200, **SHAPED)
    assert fabrics(host(rxe(mtu=None), below))["softroce0"].mtu == 4096
    assert fabrics(host(rxe(mtu=None)))["softroce0"].mtu is None


def test_unlike_shaped_software_devices_are_two_fabrics() -> None:
    slow = {**SHAPED, "shaped_to_mbit_s": 80}
    named = fabrics(
        host(
            rxe("rxe0", "rail0"),
            rxe("rxe1", "rail1"),
            nic("rail0", **SHAPED),
            nic("rail1", **slow),
        )
    )
    assert {named["softroce0"].link, named["softroce1"].link} == {
        "Soft-RoCE 100 Mb/s",
        "Soft-RoCE 80 Mb/s",
    }


def test_a_software_device_that_is_down_is_left_out_and_said() -> None:
    drafts, left_out = find_fabrics(host(rxe(state="DOWN")))
    assert (drafts, left_out) == ([], ["rxe0:1: DOWN, not ACTIVE"])


def test_omni_path_and_slingshot_are_known_by_their_drivers() -> None:
    opa = hca("hfi1_0", driver="hfi1", link="Omni-Path 100")
    hsn = nic("hsn0", driver="cxi_ss1", cxi="cxi1", speed_mbit_s=200_000, mtu=9000)
    again = nic("cxi1", driver="cxi_ss1", speed_mbit_s=200_000)
    named = fabrics(host(opa, hsn, again))
    assert (named["opa0"].link, named["hsn0"].link) == ("Omni-Path 100", "Slingshot 200")
    assert named["hsn0"].mtu is None
    (rail,) = named["hsn0"].rails  # as libfabric calls it
    assert rail.interface == "cxi1"
    assert "under hsn0" in rail.note


def test_omni_path_that_was_renamed_is_left_out_and_said() -> None:
    renamed = hca("opap24s0", driver="hfi1", link="Omni-Path 100")
    drafts, left_out = find_fabrics(host(renamed))
    assert drafts == []
    assert left_out[0].startswith("opap24s0:1: Omni-Path, renamed")


def test_slingshot_that_sysfs_does_not_name_is_left_out_and_said() -> None:
    drafts, left_out = find_fabrics(host(nic("hsn0", driver="cxi_ss1", speed_mbit_s=200_000)))
    assert drafts == []
    assert left_out[0].startswith("hsn0: Slingshot, and sysfs does not say which device")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "down"}, "no link"),
        ({"addresses": None}, "has no IPv4 address"),
        ({"kind": "ipoib"}, "IP over InfiniBand"),
        ({"kind": "other"}, "no Ethernet"),
        ({"master": "bond0"}, "part of bond0"),
        ({"virtual": "yes"}, "virtual and not shaped: 25000 Mb/s"),
    ],
)
def test_what_is_no_rail_is_said(changes: dict[str, Value | None], reason: str) -> None:
    drafts, left_out = find_fabrics(host(nic(**changes), nic("other", kind="loopback")))
    assert drafts == []
    assert reason in left_out[0]


@pytest.mark.parametrize("name", ["docker0", "virbr0", "cni0", "ifb0", "lo"])
def test_housekeeping_is_not_worth_a_word(name: str) -> None:
    kind = "loopback" if name == "lo" else "ethernet"
    assert find_fabrics(host(nic(name, kind=kind))) == ([], [])


def test_where_addresses_are_unknown_their_absence_means_nothing() -> None:
    assert len(fabrics(host(nic(addresses=None)))) == 1


def test_a_port_that_runs_below_its_best_is_a_guess() -> None:
    (draft,) = fabrics(host(nic(speed_best_mbit_s=100_000))).values()
    assert draft.link == "25GbE"
    assert "guess: n1 says 25000 Mb/s, the port could do 100000: which?" in draft.link_note
    (draft,) = fabrics(host(nic(speed_best_mbit_s=25_000))).values()
    assert "guess" not in draft.link_note


def test_a_bond_is_a_rail_and_its_rate_a_guess() -> None:
    bond = nic("bond0", virtual="bond", speed_mbit_s=50_000)
    (draft,) = fabrics(host(bond)).values()
    assert draft.link == "50GbE"
    assert "one flow takes one of them" in draft.link_note


def test_unlike_rates_or_mtus_are_fabrics_of_their_own() -> None:
    named = fabrics(host(nic("a"), nic("b", speed_mbit_s=1000), nic("c", mtu=9000), nic("d")))
    assert {name: len(draft.rails) for name, draft in named.items()} == {
        "eth0": 2,
        "eth1": 1,
        "eth2": 1,
    }


def test_equal_fabrics_of_two_nodes_are_one() -> None:
    first, second = host(nic()), replace(host(nic()), name="n2")
    drafts = [*find_fabrics(first)[0], *find_fabrics(second)[0]]
    assert list(name_fabrics(drafts)) == ["eth0"]


@pytest.mark.parametrize(
    ("kind", "rate", "link"),
    [
        ("ib", "40 Gb/sec (4X QDR)", "QDR 4x"),
        ("ib", "40 Gb/sec (4X FDR10)", "FDR10 4x"),
        ("ib", "56 Gb/sec (4X FDR)", "FDR 4x"),
        ("ib", "100 Gb/sec (2X HDR)", "HDR 2x"),
        ("ib", "400 Gb/sec (4X NDR)", "NDR 4x"),
        # a kernel that does not know NDR yet
        ("ib", "400 Gb/sec (4X HDR)", "NDR 4x"),
        ("ib", "2.5 Gb/sec (1X SDR)", "SDR 1x"),
        ("ib", "7 Gb/sec (4X HDR)", None),
        ("ib", "", None),
        ("ib", "10 Gb/sec (4X WARP)", None),
        ("ib", "0 Gb/sec (4X HDR)", None),
        ("efa", "200 Gb/sec (4X HDR)", "EFA 200"),
        ("efa", "3 Gb/sec", None),
        ("opa", "25 Gb/sec (1X EDR)", None),
        ("roce", "25 Gb/sec (1X EDR)", "25GbE"),
    ],
)
def test_a_rate_in_sysfs_names_its_link_or_none(kind: str, rate: str, link: str | None) -> None:
    assert verbs_link(kind, rate) == link
    assert link is None or find_link(link).name == link


@given(st.integers(1, 10**6), st.integers(1500, 10**6))
def test_a_shaped_link_is_never_below_its_shaper(rate: int, burst: int) -> None:
    name, keys = shaped_link({"shaped_to_mbit_s": rate, "shaper_burst_bytes": burst})
    assert find_link(name).data_rate_gbit_s * 1e3 >= rate * 0.999999
    assert find_link(name).data_rate_gbit_s * 1e3 <= rate * 1.025
    assert dict(keys)["burst_bytes"] >= burst


def test_a_gigabit_shaper_of_the_virtual_cluster_stands_for_a_gigabit() -> None:
    shaper: dict[str, Value] = {
        "shaped_to_mbit_s": 983, "shaper_burst_bytes": 250000, "shaper_peak_mbit_s": 988,
        "shaper_peak_bytes": 6250,
    }  # fmt: skip
    name, keys = shaped_link(shaper)
    assert (name, dict(keys)["instant_bytes"]) == ("1GbE", 6875)
