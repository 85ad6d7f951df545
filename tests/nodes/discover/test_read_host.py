"""What look.sh printed, read: recorded machines, damage, and lines that mislead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen_clusters import DATA, NAMES, cluster

from fabricproof.core.errors import ParseError
from fabricproof.nodes.discover.facts import HostSeen, InterfaceSeen
from fabricproof.nodes.discover.read import read_host, read_payloads

WHOLE = (DATA / "two-ports-one-card" / "node-compute.txt").read_text(encoding="utf-8")


def interface(host: HostSeen, name: str) -> InterfaceSeen:
    (found,) = (each for each in host.interfaces if each.name == name)
    return found


def test_a_virtual_node_shows_its_shapers() -> None:
    rail = interface(cluster("virtual-cluster").nodes["compute"], "rail0")
    assert rail.shaper is not None
    assert (rail.shaper.rate_bit_s, rail.shaper.peak_bit_s) == (199e6, 200e6)
    assert (rail.shaper.burst_bytes, rail.shaper.peak_bytes) == (50023, 3000)
    assert (rail.speed_mbit_s, rail.is_virtual, rail.addresses) == (
        10000,
        True,
        ("198.19.0.11/24",),
    )


def test_an_unknown_speed_stays_unknown() -> None:
    eth0 = interface(cluster("one-machine").head, "eth0")
    assert (eth0.speed_mbit_s, eth0.driver, eth0.is_up) == (None, "virtio_net", True)
    assert eth0.slot is not None
    assert (eth0.slot.name, eth0.slot.numa_node) == (None, None)


def test_a_card_shows_what_its_slot_trained_to_and_what_it_could() -> None:
    second = cluster("infiniband-two-rails").nodes["cpu"].ports[1]
    assert second.slot is not None
    assert (second.slot.name, second.slot.best, second.slot.numa_node) == ("4.0x8", "4.0x16", 1)
    assert (second.name, second.mtu, second.firmware) == ("mlx5_1:1", 4096, "20.41.1000")


def test_maxpayload_is_what_is_in_force_not_what_the_card_can() -> None:
    port = cluster("two-ports-one-card").nodes["compute"].ports[0]
    assert port.slot is not None
    assert port.slot.max_payload_bytes == 256


def test_maxpayload_that_only_root_may_see_is_unknown() -> None:
    lines = ["17:00.0 Infiniband controller: ConnectX-6", "\tCapabilities: <access denied>"]
    assert read_payloads(lines) == {}


def test_maxpayload_of_a_capability_alone_is_not_taken() -> None:
    lines = ["0001:17:00.0 Ethernet", "\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0"]
    assert read_payloads(lines) == {}
    assert read_payloads([*lines, "DevCtl: x", "MaxPayload 128 bytes"]) == {"0001:17:00.0": 128}


def test_modules_are_names_without_folders_headings_and_marks() -> None:
    host = cluster("two-ports-one-card").head
    assert host.modules == ("mpi/openmpi-x86_64", "mpi/openmpi-3.1.0")
    assert host.modules_system == "tmod4"
    assert "gcc/12.3.0" in cluster("infiniband-two-rails").head.modules


def test_every_recording_is_whole() -> None:
    assert NAMES == [
        "cloud-efa",
        "infiniband-two-rails",
        "one-machine",
        "two-ports-one-card",
        "virtual-cluster",
    ]
    for name in NAMES:
        assert cluster(name).head.name


@pytest.mark.parametrize("text", ["", "hello", "#== host\nname=a\n", WHOLE.replace("name=", "n=")])
def test_what_is_no_recording_is_refused_with_its_source(text: str) -> None:
    with pytest.raises(ParseError, match=r"here: not a whole recording of a machine"):
        read_host(text, "here")


@given(st.integers(0, len(WHOLE.splitlines())))
def test_a_recording_cut_anywhere_is_whole_or_refused(lines: int) -> None:
    text = "\n".join(WHOLE.splitlines()[:lines])
    try:
        host = read_host(text, "cut")
    except ParseError:
        assert not text.endswith("#== end")
    else:
        assert host == read_host(WHOLE, "cut")


@given(st.integers(0, len(WHOLE) - 1), st.text(max_size=4))
def test_damage_never_ends_in_another_error(place: int, noise: str) -> None:
    try:
        host = read_host(WHOLE[:place] + noise + WHOLE[place + 1 :], "damaged")
    except ParseError:
        return
    assert host.name is not None
