"""The scripts themselves, run by sh over a sysfs of our own and with tools of our own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricproof.nodes.discover.facts import HostSeen
from fabricproof.nodes.discover.probe import LOOK, SLURM
from fabricproof.nodes.discover.read import read_host

Look = Callable[[], HostSeen]


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def tool(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Return a sysfs with one ConnectX card of two functions, a NIC, a veth and two NUMA nodes."""
    root = tmp_path / "sys"
    bus = root / "devices" / "pci0000:80"
    for function, device in (("0", "mlx5_0"), ("1", "mlx5_1")):
        card = bus / "0000:80:02.0" / f"0000:81:00.{function}"
        put(card / "current_link_speed", "16.0 GT/s PCIe")
        put(card / "current_link_width", "8")
        put(card / "max_link_speed", "16.0 GT/s PCIe")
        put(card / "max_link_width", "16")
        put(card / "numa_node", "1")
        (root / "bus" / "pci" / "drivers" / "mlx5_core").mkdir(parents=True, exist_ok=True)
        (card / "driver").symlink_to(root / "bus" / "pci" / "drivers" / "mlx5_core")
        hca = root / "class" / "infiniband" / device
        put(hca / "fw_ver", "22.41.1000")
        put(hca / "board_id", "MT_0000000359")
        put(hca / "ports" / "1" / "state", "4: ACTIVE" if function == "0" else "1: DOWN")
        put(hca / "ports" / "1" / "rate", "100 Gb/sec (2X HDR)")
        put(hca / "ports" / "1" / "link_layer", "InfiniBand")
        (hca / "device").symlink_to(card)
    nic = bus / "0000:80:03.0" / "0000:82:00.0"
    put(nic / "current_link_speed", "Unknown")
    (root / "class" / "net" / "eno1").mkdir(parents=True)
    (root / "class" / "net" / "eno1" / "device").symlink_to(nic)
    for key, value in (("operstate", "up"), ("speed", "25000"), ("mtu", "9000"), ("type", "1")):
        put(root / "class" / "net" / "eno1" / key, value)
        put(root / "class" / "net" / "veth0" / key, value)
    put(root / "devices" / "system" / "node" / "node0" / "cpulist", "0-31")
    put(root / "devices" / "system" / "node" / "node1" / "cpulist", "32-63")
    return root


def run(script: Path, *arguments: str, path: str, **more: str) -> str:
    done = subprocess.run(
        ["sh", str(script), *arguments], env={"PATH": path, **more}, capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return tmp_path / "bin"


@pytest.fixture
def look(sysfs: Path, tools: Path) -> Look:
    tools.mkdir()

    def go() -> HostSeen:
        path = f"{tools}:{os.environ['PATH']}"
        return read_host(run(LOOK, str(sysfs), path=path, LMOD_CMD=str(tools / "lmod")), "look.sh")

    return go


def test_a_tree_of_sysfs_is_seen_whole(look: Look) -> None:
    host = look()
    assert dict(host.numa_cpus) == {"node0": "0-31", "node1": "32-63"}
    first, second = host.ports
    assert (first.name, first.is_active, first.driver) == ("mlx5_0:1", True, "mlx5_core")
    assert (second.is_active, second.board) == (False, "MT_0000000359")
    assert first.slot is not None
    assert second.slot is not None
    assert (first.slot.name, first.slot.best) == ("4.0x8", "4.0x16")
    assert first.slot.card == second.slot.card == "0000:81:00"
    eno1, veth0 = host.interfaces
    assert (eno1.is_virtual, veth0.is_virtual) == (False, True)
    assert eno1.slot is not None
    assert (eno1.slot.address, eno1.slot.name) == ("0000:82:00.0", None)


def test_a_slingshot_device_is_known_by_libfabrics_name(look: Look, sysfs: Path) -> None:
    (sysfs / "class" / "net" / "eno1" / "device" / "cxi" / "cxi3").mkdir(parents=True)
    assert [each.cxi for each in look().interfaces] == ["cxi3", None]


def test_tools_that_are_there_are_asked(look: Look, tools: Path) -> None:
    other = "qdisc htb 1: dev eno1 root refcnt 2 r2q 10 default 0x2"
    tbf = "qdisc tbf 1: dev veth0 root refcnt 2 rate 1Gbit burst 256Kb lat 5ms"
    tool(tools, "tc", f"echo '{other}'; echo '{tbf}'; echo 'qdisc tbf 1: dev eno1 root rate fast'")
    tool(tools, "ip", "echo '2: eno1    inet 192.0.2.7/24 brd 192.0.2.255 scope global eno1'")
    tool(
        tools,
        "lspci",
        "printf '81:00.0 Infiniband controller: x\\n\\tDevCtl: a\\n\\tMaxPayload 512 bytes,\\n'",
    )
    tool(tools, "lmod", "echo 'openmpi/5.0.3' >&2; echo 'export X=1;'")
    tool(tools, "osu_bw", "exit 0")
    modes = "Supported link modes:   10000baseT/Full\\n 100000baseCR4/Full\\n 25000baseCR/Full\\n"
    tool(
        tools,
        "ethtool",
        f"[ \"$1\" = -i ] && echo 'firmware-version: 20.1' && exit; printf '{modes}'",
    )
    host = look()
    eno1, veth0 = host.interfaces
    assert eno1.addresses == ("192.0.2.7/24",)
    assert (eno1.firmware, eno1.best_mbit_s, eno1.speed_mbit_s) == ("20.1", 100_000, 25_000)
    assert eno1.shaper is None
    assert veth0.shaper is not None
    assert (veth0.shaper.rate_bit_s, veth0.shaper.burst_bytes) == (1e9, 256 * 1024)
    assert host.ports[0].slot is not None
    assert host.ports[0].slot.max_payload_bytes == 512
    assert (host.modules_system, host.modules) == ("lmod", ("openmpi/5.0.3",))
    assert host.programs["osu_bw"].path == str(tools / "osu_bw")


def test_an_empty_machine_without_tools_is_seen_too(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("sh", "uname", "id", "head", "cat", "sort", "grep", "sed", "readlink"):
        (bare / name).symlink_to(f"/usr/bin/{name}")
    text = LOOK.read_text(encoding="utf-8").replace(
        "PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin", ""
    )
    script = tmp_path / "look.sh"
    script.write_text(text, encoding="utf-8")
    host = read_host(run(script, str(tmp_path / "nothing"), path=str(bare)), "bare")
    assert (host.interfaces, host.ports) == ((), ())
    assert {"ip", "tc", "ethtool", "lspci", "ibv_devinfo"} <= set(host.missing)


def test_without_slurm_the_script_says_so_and_ends(tmp_path: Path) -> None:
    for name in ("printf", "timeout", "sed", "grep", "head", "sort"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    text = SLURM.read_text(encoding="utf-8").replace("PATH=$PATH:/usr/sbin:/sbin", "")
    script = tmp_path / "slurm.sh"
    script.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["/bin/sh", str(script)], env={"PATH": str(tmp_path)}, capture_output=True, text=True,
        timeout=30, check=True,
    )  # fmt: skip
    assert "sinfo=\n" in done.stdout
    assert "#== end" not in done.stdout


def test_a_slurm_command_that_does_not_even_end_when_asked_to_is_ended(tmp_path: Path) -> None:
    tool(tmp_path, "sinfo", "trap '' TERM; sleep 60 & wait; sleep 60")
    text = SLURM.read_text(encoding="utf-8").replace("limited 10", "limited 0.2")
    script = tmp_path / "slurm.sh"
    script.write_text(text.replace("timeout -k 2", "timeout -k 0.2"), encoding="utf-8")
    done = subprocess.run(
        ["sh", str(script)], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert "#== partitions\nstatus=" in done.stdout
    assert "timeout -k 2" in text
