"""The scripts themselves: look.sh for a node, and inventory.sh that a job starts on each."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.nodes.discover.probe import LOOK
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import read_machine

INVENTORY = Path(fabricproof.job.__file__).parent / "inventory.sh"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def tool(folder: Path, name: str, body: str) -> None:
    put(folder / name, f"#!/bin/bash\n{body}")
    (folder / name).chmod(0o755)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with sys, proc and bin: one mlx5 card below a slot of half its lanes."""
    card = tmp_path / "sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0"
    for name, text in (
        ("current_link_speed", "16.0 GT/s PCIe"),
        ("current_link_width", "8"),
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "16"),
        ("../max_link_speed", "16.0 GT/s PCIe"),
        ("../max_link_width", "8"),
        ("numa_node", "1"),
        ("vendor", "0x15b3"),
        ("device", "0x101b"),
        ("msi_irqs/40", "msix"),
        ("msi_irqs/41", "msix"),
    ):
        put(card / name, text)
    hca = tmp_path / "sys/class/infiniband/mlx5_0"
    for name, text in (
        ("fw_ver", "20.41.1000"),
        ("board_id", "MT_0000000222"),
        ("node_guid", "b859:9f03:00a1:b2c4"),
        ("ports/1/state", "4: ACTIVE"),
        ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/rate", "200 Gb/sec (4X HDR)"),
        ("ports/1/link_layer", "InfiniBand"),
        ("ports/1/lid", "0x3"),
        ("ports/1/sm_lid", "0x1"),
        ("ports/1/gids/0", "fe80:0000:0000:0000:b859:9f03:00a1:b2c4"),
    ):
        put(hca / name, text)
    (hca / "device").symlink_to(card)
    (tmp_path / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    (card / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers/mlx5_core")
    net = tmp_path / "sys/class/net/ib0"
    for name, text in (("operstate", "up"), ("mtu", "2044"), ("type", "32"), ("address", "00:01")):
        put(net / name, text)
    (net / "device").symlink_to(card)
    for number, governor in enumerate(("performance", "performance", "powersave")):
        put(tmp_path / f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor", governor)
    put(tmp_path / "sys/devices/system/node/node0/cpulist", "0-1")
    put(tmp_path / "sys/devices/system/node/node0/distance", "10 21")
    put(tmp_path / "proc/irq/40/smp_affinity_list", "0")
    put(tmp_path / "proc/irq/41/smp_affinity_list", "1")
    put(tmp_path / "proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 quiet iommu=pt isolcpus=2-3")
    put(tmp_path / "proc/cpuinfo", "processor\t: 0\nmodel name\t: A processor\nmicrocode\t: 0x1")
    put(tmp_path / "proc/7/comm", "irqbalance-ui")
    (tmp_path / "bin").mkdir()
    return tmp_path


def look(root: Path) -> Machine:
    done = subprocess.run(
        ["sh", str(LOOK), str(root / "sys"), "node", str(root / "proc")],
        env={"PATH": f"{root / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return read_machine(done.stdout, "n1")


def test_a_tree_of_sysfs_and_proc_is_read_whole(root: Path) -> None:
    facts = look(root).facts
    port = facts["port mlx5_0:1"]
    assert (port["pcie"], port["pcie_best"], port["pcie_best_of_slot"]) == (
        "4.0x8",
        "4.0x16",
        "4.0x8",
    )
    assert (port["ids"], port["irq_cpus"], port["irqs"]) == ("15b3:101b", "0 1", 2)
    assert (port["phys_state"], port["psid"], port["guid"]) == (
        "LinkUp",
        "MT_0000000222",
        "b859:9f03:00a1:b2c4",
    )
    assert (port["lid"], port["sm_lid"], port["gid_prefix"]) == (
        "0x3",
        "0x1",
        "fe80:0000:0000:0000",
    )
    assert facts["interface ib0"]["mac"] == "00:01"
    tuning = facts["tuning"]
    assert tuning["governor"] == "performance x 2 powersave x 1"
    assert tuning["options"] == "iommu=pt isolcpus=2-3"
    assert tuning["irqbalance"] == "does not run"
    assert (facts["node"]["cpu"], facts["numa node0"]["distance"]) == ("A processor", "10 21")


def test_a_slingshot_device_is_a_rail_of_its_own_name(root: Path) -> None:
    (root / "sys/class/net/ib0/device/cxi/cxi0").mkdir(parents=True)
    facts = look(root).facts
    device = facts["interface cxi0"]
    assert (device["pcie"], device["state"]) == ("4.0x8", facts["interface ib0"]["state"])
    assert not {"mac", "addresses", "mtu"} & set(device)


def test_irqbalance_is_found_by_its_name(root: Path) -> None:
    put(root / "proc/8/comm", "irqbalance")
    facts = look(root).facts
    assert facts["tuning"]["irqbalance"] == "runs"
    assert facts["port mlx5_0:1"]["irq_cpus"] == "left to irqbalance"


def test_ethtool_is_asked_with_each_option(root: Path) -> None:
    tool(
        root / "bin",
        "ethtool",
        """case "$1" in
        -g) printf '%s\\n' 'Most:' 'RX: 8192' 'TX:	8192' 'Current:' 'RX: 512' 'TX: 256' ;;
        -m) printf '\\t%s\\n' 'Vendor name : Mellanox' 'Vendor SN : X1' 'Temperature : 77.5' ;;
        -i) echo 'driver: mlx5_core' ;;
        esac""",
    )
    facts = look(root).facts["interface ib0"]
    assert facts["rings"] == "RX 512 of 8192, TX 256 of 8192"
    assert (facts["transceiver"], facts["cable_serial"]) == ("Mellanox", "X1")
    assert not any("77.5" in str(value) for value in facts.values())


def test_lldp_names_the_switch(root: Path) -> None:
    tool(
        root / "bin",
        "lldpctl",
        """[ "$*" = "-f keyvalue" ] && printf 'lldp.ib0.%s\\n' via=LLDP rid=1 chassis.mac=00:02 \\
            chassis.name=leaf1 chassis.descr=x chassis.rid=7 port.mac=00:03 port.descr=chassis""",
    )
    facts = look(root).facts["interface ib0"]
    assert (facts["switch"], facts["switch_id"]) == ("leaf1", "00:02")


def test_a_tool_that_hangs_is_named_and_the_others_are_read(root: Path) -> None:
    tool(root / "bin", "timeout", 'shift 3\n[ "$2" = -m ] && exit 124\nexec "$@"')
    tool(root / "bin", "ethtool", "[ \"$1\" = -l ] && echo 'Combined: 1'; echo 'RX: 3'")
    one = look(root)
    assert "no answer: ethtool -m ib0" in one.unknown
    assert one.facts["port mlx5_0:1"]["state"] == "ACTIVE"


# inventory.sh


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    folder = tmp_path / "a stage"
    (folder / "out").mkdir(parents=True)
    shutil.copy(INVENTORY, folder / "inventory.sh")
    put(folder / "look.sh", "echo '#== host'; echo \"name=$1 $2\"; echo '#== end'")
    return folder


def start(stage: Path, node: str = "n1", **more: str) -> float:
    """Run the script as one rank of ``node``; return the seconds it took."""
    begin = time.monotonic()
    done = subprocess.run(
        [str(stage / "inventory.sh"), str(stage / "out")],
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": node, **more},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return time.monotonic() - begin


def test_each_node_leaves_one_file(stage: Path) -> None:
    start(stage, "n1")
    start(stage, "n2")
    assert sorted(path.name for path in (stage / "out").glob("*.txt")) == ["n1.txt", "n2.txt"]
    assert (stage / "out/n1.txt").read_text() == "#== host\nname=/sys node\n#== end\n"


def test_only_one_rank_of_a_node_looks(stage: Path) -> None:
    start(stage)
    put(stage / "look.sh", "echo again")
    start(stage)
    assert "again" not in (stage / "out/n1.txt").read_text()


def test_without_slurm_the_host_name_counts(stage: Path) -> None:
    start(stage, "", HOSTNAME="n7.example")
    assert (stage / "out/n7.txt").exists()


@pytest.mark.parametrize("broken", ["exit 3", "kill -9 $$", "syntax ( error"])
def test_a_look_that_fails_fails_nothing(broken: str, stage: Path) -> None:
    put(stage / "look.sh", f"echo '#== host'\necho name=n1\n{broken}")
    start(stage)
    one = read_machine((stage / "out/n1.txt").read_text(), "n1")
    assert one.unknown


def test_a_look_that_hangs_is_ended_and_what_it_saw_counts(stage: Path, tmp_path: Path) -> None:
    real = shutil.which("timeout")
    tool(tmp_path / "bin", "timeout", f'shift 3\nexec {real} -k 1 0.3 "$@"')
    put(stage / "look.sh", "echo '#== host'; echo kernel=6.1.0; echo '#== net'; sleep 30")
    took = start(stage, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert took < 10
    one = read_machine((stage / "out/n1.txt").read_text(), "n1")
    assert one.facts["node"]["kernel"] == "6.1.0"
    assert one.unknown == ("what comes after 'net': the look was cut off there",)


def test_a_folder_that_is_not_there_fails_nothing(stage: Path) -> None:
    shutil.rmtree(stage / "out")
    start(stage)
    assert not (stage / "out").exists()


@pytest.fixture
def soft(root: Path) -> Path:
    """Return the folder with a software device over rail0, as Linux 7.3 shows it: no ``device``."""
    hca = root / "sys/class/infiniband/rxe0"
    for name, text in (
        ("fw_ver", ""),
        ("node_desc", "rxe0"),
        ("node_guid", "5054:00ff:fe00:0101"),
        ("node_type", "1: CA"),
        ("parent", "rail0"),
        ("sys_image_guid", "5054:00ff:fe00:0101"),
        ("ports/1/state", "4: ACTIVE"),
        ("ports/1/phys_state", "5: LinkUp"),
        ("ports/1/rate", "2.5 Gb/sec (1X SDR)"),
        ("ports/1/link_layer", "Ethernet"),
        ("ports/1/lid", "0x0"),
        ("ports/1/sm_lid", "0x0"),
        ("ports/1/gids/0", "fe80:0000:0000:0000:5054:00ff:fe00:0101"),
        ("ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:c613:000b"),
        ("ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000"),
        ("ports/1/gid_attrs/types/0", "RoCE v2"),
        ("ports/1/gid_attrs/types/1", "RoCE v2"),
        ("ports/1/gid_attrs/ndevs/0", "rail0"),
    ):
        put(hca / name, text)
    net = root / "sys/class/net/rail0"
    for name, text in (("operstate", "up"), ("mtu", "4200"), ("type", "1")):
        put(net / name, text)
    tool(root / "bin", "ip", ":")
    tool(
        root / "bin",
        "tc",
        "echo 'qdisc tbf 1: dev rail0 root refcnt 2 rate 80Mbit burst 9Kb lat 300ms overhead 24 '",
    )
    return root


def test_a_software_device_is_known_by_its_parent(soft: Path) -> None:
    facts = look(soft).facts
    port = facts["port rxe0:1"]
    assert {name: port[name] for name in ("kind", "parent", "driver", "netdev", "state")} == {
        "kind": "soft-roce",
        "parent": "rail0",
        "driver": "rdma_rxe",
        "netdev": "rail0",
        "state": "ACTIVE",
    }
    assert (port["roce"], port["gids"]) == ("v2", "IPv4, link-local")
    # what sysfs makes up is no rate, and no link follows from it
    assert port["rate_in_sysfs"] == "2.5 Gb/sec (1X SDR)"
    assert not {"rate_gbit_s", "link", "width", "lid"} & set(port)
    # the interface below counts, though nobody gave it an address
    assert (facts["interface rail0"]["shaped_to_mbit_s"], facts["interface rail0"]["mtu"]) == (
        80,
        4200,
    )


def test_an_adapter_has_no_parent(soft: Path) -> None:
    port = look(soft).facts["port mlx5_0:1"]
    assert not {"kind", "parent", "rate_in_sysfs", "roce", "gids"} & set(port)
    assert port["link"] == "HDR 4x"


def test_a_software_device_whose_interface_went_away_is_still_none_of_the_others(
    soft: Path,
) -> None:
    (soft / "sys/class/infiniband/rxe0/parent").write_text("")
    (soft / "sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0").write_text("")
    port = look(soft).facts["port rxe0:1"]
    assert port["kind"] == "soft-roce"
    assert not {"parent", "netdev"} & set(port)


def test_a_node_without_tc_cannot_say_that_nothing_is_shaped(root: Path) -> None:
    (root / "bin/tc").unlink(missing_ok=True)
    done = subprocess.run(
        ["sh", str(LOOK), str(root / "sys"), "node", str(root / "proc")],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    text = done.stdout.replace("#== missing\n", "#== missing\ntc\n")
    assert "shapers of interfaces: no tc on the node" in read_machine(text, "n1").unknown
