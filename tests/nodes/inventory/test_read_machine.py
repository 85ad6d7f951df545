"""What a node is made of, out of recordings: several vendors, healthy, degraded, cut off."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_nodes import NAMES, fact, machine, text

from fabricproof.nodes.inventory.facts import IDENTITIES, ReadTroubleKind, Value, without_identities
from fabricproof.nodes.inventory.read import read_machine, read_neighbours

PORT = "port mlx5_0:1"
BNXT = "interface enp97s0f0np0"

SEEN: list[tuple[str, str, dict[str, Value]]] = [
    ("mlx5-healthy", PORT, {"model": "Mellanox Technologies MT28908 Family [ConnectX-6]",
     "type": "MT4123", "psid": "MT_0000000222", "firmware": "20.41.1000", "driver": "mlx5_core",
     "driver_version": "24.04-0.6.6", "state": "ACTIVE", "phys_state": "LinkUp",
     "rate_gbit_s": 200, "width": "4X", "link": "HDR 4x", "lane_speed": "50.0 Gbps", "mtu": 4096,
     "mtu_best": 4096, "queue_pairs_best": 131072, "pcie": "4.0x16", "pcie_best": "4.0x16",
     "pcie_best_of_slot": "4.0x16", "max_payload_bytes": 512, "max_payload_best_bytes": 512,
     "numa_node": 0, "irq_cpus": "0-31", "irqs": 64, "guid": "b859:9f03:00a1:b2c4"}),
    ("mlx5-healthy", "interface ib0", {"kind": "ipoib",
     "transceiver": "QSFP28 Mellanox MCP1650-H003E26 rev A4, 3m", "cable_serial": "MT2217VS05123",
     "rings": "RX 512 of 8192, TX 512 of 8192", "queues": "Combined 32 of 63",
     "pause": "RX on, TX on", "fec": "RS", "coalescing": "adaptive RX on, TX on"}),
    ("mlx5-healthy", "tuning", {"governor": "performance", "turbo": "on", "huge_pages": "always",
     "options": "intel_iommu=on iommu=pt", "locked_memory": "unlimited",
     "irqbalance": "does not run"}),
    ("mlx5-degraded", PORT, {"rate_gbit_s": 100, "width": "2X", "pcie": "4.0x8",
     "pcie_best_of_slot": "4.0x16", "mtu": 2048, "max_payload_bytes": 256,
     "max_payload_best_bytes": 512}),
    ("mlx5-degraded", "tuning", {"governor": "performance x 63 powersave x 1"}),
    ("bnxt-healthy", BNXT, {"speed_mbit_s": 25000, "speed_best_mbit_s": 25000,
     "firmware": "229.1.123.0/pkg 229.1.123.0",
     "transceiver": "SFP Amphenol CAB-S-S-25G-3M rev B, 3m", "connector": "Direct Attach Copper",
     "coalescing": "adaptive RX off, TX off, rx-usecs 8, tx-usecs 8", "irq_cpus": "0-15 16-31",
     "lanes": 1}),
    ("bnxt-irqbalance", BNXT, {"irq_cpus": "left to irqbalance"}),
    ("bnxt-irqbalance", "tuning", {"irqbalance": "runs", "turbo": "on"}),
    ("hfi1", "port hfi1_0:1",
     {"board": "Intel Omni-Path Host Fabric Interface Adapter 100 Series",
     "link": "Omni-Path 100", "firmware": "1.27.0", "mtu": 4096, "ids": "8086:24f0"}),
    ("hfi1", "numa node1", {"cpus": "18-35", "distance": "21 10"}),
    ("virtual-cluster", "interface rail0", {"driver": "veth", "shaped_to_mbit_s": 199}),
    ("one-machine", "interface eth0", {"driver": "virtio_net", "ids": "1af4:1041", "irqs": 3}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "part", "facts"), SEEN, ids=[f"{name}: {part}" for name, part, _ in SEEN]
)
def test_what_a_recording_shows(name: str, part: str, facts: dict[str, Value]) -> None:
    seen = machine(name).facts[part]
    assert {key: seen.get(key) for key in facts} == facts


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_says_what_its_node_is(name: str) -> None:
    one = machine(name)
    assert {"node", "tuning", "numa node0"} <= set(one.facts)
    assert fact(one, "node", "kernel")
    assert any(part.startswith("interface ") for part in one.facts)


def test_an_interface_whose_driver_does_not_say_is_not_called_down() -> None:
    said = text("mlx5-healthy").replace('"operstate": "up"', '"operstate": "unknown"')
    assert fact(read_machine(said, "cn001"), "interface ib0", "state") == "unknown"


def test_interfaces_of_containers_and_loopback_are_no_part_of_a_node() -> None:
    parts = [part for part in machine("bnxt-healthy").facts if part.startswith("interface")]
    assert parts == [BNXT]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mlx5-user", "MaxPayload: only root may read it"),
        ("mlx5-user", "transceivers: only root may read them"),
        ("hfi1", "names of cards and MaxPayload: no lspci on the node"),
        (
            "hfi1",
            "offloads, rings, queues, fastest rate and transceivers of interfaces: no ethtool",
        ),
        ("one-machine", "names of cards"),
    ],
)
def test_what_could_not_be_read_is_named(name: str, words: str) -> None:
    assert any(each.startswith(words) for each in machine(name).unknown)


@pytest.mark.parametrize("name", ["mlx5-healthy", "bnxt-healthy"])
def test_nothing_is_unknown_where_all_was_read(name: str) -> None:
    assert machine(name).unknown == ()


def test_a_tool_that_hung_is_named_and_the_rest_counts() -> None:
    said = text("mlx5-healthy").replace('"silent": []', '"silent": ["ethtool -m ib0"]')
    one = read_machine(said, "cn001")
    assert one.unknown == ("no answer: ethtool -m ib0",)
    assert one.facts == machine("mlx5-healthy").facts
    assert one.digest != machine("mlx5-healthy").digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"boot": "0a6d', '"boot": "ffff'),
        ("port_lid:\\t\\t35", "port_lid:\\t\\t36"),
        ("Base lid: 35", "Base lid: 36"),
        ("rx-usecs: 8", "rx-usecs: 64"),
        ("Link detected: yes", "Link detected: yes\\nTemperature: 51"),
        ("sm_lid:\\t\\t\\t1", "sm_lid:\\t\\t\\t2"),
    ],
)
def test_what_changes_by_itself_leaves_the_digest(old: str, new: str) -> None:
    said = text("mlx5-healthy")
    assert old in said
    assert read_machine(said.replace(old, new), "cn001").digest == machine("mlx5-healthy").digest


def test_moving_interrupts_are_no_change_where_irqbalance_moves_them() -> None:
    moved = ('"irq_cpus": "0-15 16-31"', '"irq_cpus": "3 7 9"')
    free, balanced = text("bnxt-healthy"), text("bnxt-irqbalance")
    assert read_machine(balanced.replace(*moved), "e") == read_machine(balanced, "e")
    assert read_machine(free.replace(*moved), "e") != read_machine(free, "e")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"kernel": "5.14.0-427', '"kernel": "5.14.0-503'),
        ('"firmware": "20.41.1000"', '"firmware": "20.43.1014"'),
        ("MaxPayload 512 bytes, MaxReadReq", "MaxPayload 128 bytes, MaxReadReq"),
        ("generic-receive-offload: on", "generic-receive-offload: off"),
        ("MT2217VS05123", "MT2217VS05124"),
    ],
)
def test_what_somebody_changed_is_another_digest(old: str, new: str) -> None:
    said = text("mlx5-healthy")
    assert old in said
    assert read_machine(said.replace(old, new), "cn001").digest != machine("mlx5-healthy").digest


def test_nodes_bought_and_set_up_alike_are_of_one_kind() -> None:
    one, cable, bad = (machine(f"mlx5-{each}") for each in ("healthy", "new-cable", "degraded"))
    assert one.kind == cable.kind != bad.kind
    assert one.digest != cable.digest
    left = without_identities(one.facts)
    assert not any(name in IDENTITIES for facts in left.values() for name in facts)


def test_a_look_that_left_nothing_is_unknown_as_a_whole() -> None:
    one = read_machine("", "n1")
    assert (one.facts, one.unknown) == ({}, ("everything: the look left nothing",))


def test_a_look_that_was_cut_off_says_where() -> None:
    cut = read_machine(text("mlx5-healthy").replace('"reached": "end"', '"reached": "cables"'), "n")
    assert cut.unknown == ("what comes after 'cables': the look was cut off there",)
    assert fact(cut, PORT, "pcie") == "4.0x16"


@given(name=st.sampled_from(NAMES), share=st.floats(0, 1))
def test_a_cut_look_never_says_what_the_whole_does_not(name: str, share: float) -> None:
    whole, raw = machine(name), json.loads(text(name))
    tools = list(raw["tools"].items())
    raw |= {"tools": dict(tools[: int(len(tools) * share)]), "reached": "tools"}
    cut = read_machine(json.dumps(raw), whole.node)
    for part, facts in cut.facts.items():
        assert {key: whole.facts[part].get(key) for key in facts} == facts


@given(name=st.sampled_from(NAMES), place=st.floats(0, 1), noise=st.text(max_size=4))
def test_damage_is_never_an_exception(name: str, place: float, noise: str) -> None:
    said = text(name).rstrip()
    at = int((len(said) - 1) * place)
    read_machine(said[:at] + noise + said[at + 1 :], "n1")
    assert read_machine(said[:at], "n1").facts == {}


def test_each_trouble_has_a_kind_and_what_was_hindered() -> None:
    said = text("hfi1").replace('"silent": []', '"silent": ["ip -o addr"]')
    found = read_machine(said.replace('"reached": "end"', '"reached": "cables"'), "n1").troubles
    assert {(each.kind, each.section, each.tool) for each in found} == {
        (ReadTroubleKind.CUT_OFF, "cables", ""),
        (ReadTroubleKind.NO_ANSWER, "", "ip"),
        (ReadTroubleKind.NO_TOOL, "", "lspci"),
        (ReadTroubleKind.NO_TOOL, "", "ethtool"),
    }


LSPCI = "0001:17:00.0 Ethernet controller: X\n\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0\n"


@pytest.mark.parametrize(
    ("more", "payload"),
    [("", None), ("DevCtl: x\nMaxPayload 128 bytes", 128), ("Capabilities: <access denied>", None)],
)
def test_maxpayload_of_a_capability_alone_is_not_taken(more: str, payload: int | None) -> None:
    net = {"eth0": {"pci": "0001:17:00.0"}}
    tools = {"lspci -vv -s 0001:17:00.0": LSPCI + more}
    one = read_machine(json.dumps({"reached": "end", "net": net, "tools": tools}), "n1")
    assert fact(one, "interface eth0", "max_payload_bytes") == payload
    assert fact(one, "interface eth0", "max_payload_best_bytes") == 512


#: after lldpd's tests (tests/integration/test_lldpcli.py: show neighbors), and public samples
LLDP = """\
lldp.eth0.via=LLDP
lldp.eth0.rid=1
lldp.eth0.age=17 days, 09:36:51
lldp.eth0.chassis.mac=00:00:00:00:00:02
lldp.eth0.chassis.name=leaf1.example.com
lldp.eth0.chassis.descr=Spectacular GNU/Linux 2016
lldp.eth0.chassis.mgmt-ip=fe80::200:ff:fe00:2
lldp.eth0.chassis.Bridge.enabled=on
lldp.eth0.port.ifname=swp1
lldp.eth0.port.descr=eth1
lldp.eth1.5.rid=2
lldp.eth1.5.chassis.local=spine=7
garbage
lldp.eth2.rid=1
lldp.eth2.chassis.name=leaf1
"""


def test_lldp_names_the_switch_of_an_interface_that_has_one() -> None:
    leaf = {"switch_id": "00:00:00:00:00:02", "switch": "leaf1.example.com"}
    other = {"eth1.5": {"switch_id": "spine=7"}}
    assert read_neighbours(LLDP.splitlines()) == {"eth0": leaf, **other}
    second = ["lldp.eth0.rid=3", "lldp.eth0.chassis.mac=00:00:00:00:00:03"]
    assert read_neighbours([*LLDP.splitlines(), *second]) == other
