"""look.py itself, over a sysfs and tools of our own, and inventory.sh that a job starts it with."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fabricproof.job
from fabricproof.nodes.discover.cluster import Host, read_host
from fabricproof.nodes.inventory.facts import Machine
from fabricproof.nodes.inventory.read import LOOK, read_machine

INVENTORY = Path(fabricproof.job.__file__).parent / "inventory.sh"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def tool(folder: Path, name: str, body: str) -> None:
    put(folder / name, f"#!/bin/bash\n{body}")
    (folder / name).chmod(0o755)


FILES = {
    "devices/pci0000:16/0000:16:02.0/": {
        "max_link_speed": "16.0 GT/s PCIe",
        "max_link_width": "8",
        "0000:17:00.0/current_link_speed": "16.0 GT/s PCIe",
        "0000:17:00.0/current_link_width": "8",
        "0000:17:00.0/max_link_speed": "16.0 GT/s PCIe",
        "0000:17:00.0/max_link_width": "16",
        "0000:17:00.0/numa_node": "1",
        "0000:17:00.0/vendor": "0x15b3",
        "0000:17:00.0/device": "0x101b",
        "0000:17:00.0/msi_irqs/40": "msix",
        "0000:17:00.0/msi_irqs/41": "msix",
    },
    "class/infiniband/mlx5_0/": {
        "fw_ver": "20.41.1000",
        "board_id": "MT_0000000222",
        "node_guid": "b859:9f03:00a1:b2c4",
        "ports/1/state": "4: ACTIVE",
        "ports/1/phys_state": "5: LinkUp",
        "ports/1/rate": "200 Gb/sec (4X HDR)",
        "ports/1/link_layer": "InfiniBand",
        "ports/1/lid": "0x3",
        "ports/1/sm_lid": "0x1",
        "ports/1/gids/0": "fe80:0000:0000:0000:b859:9f03:00a1:b2c4",
    },
    # a software device as Linux 7.3 shows it: no ``device``
    "class/infiniband/rxe0/": {
        "parent": "rail0",
        "ports/1/state": "4: ACTIVE",
        "ports/1/rate": "2.5 Gb/sec (1X SDR)",
        "ports/1/link_layer": "Ethernet",
        "ports/1/lid": "0x0",
        "ports/1/gids/0": "fe80:0000:0000:0000:5054:00ff:fe00:0101",
        "ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:c613:000b",
        "ports/1/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000",
        "ports/1/gid_attrs/types/0": "RoCE v2",
        "ports/1/gid_attrs/ndevs/0": "rail0",
    },
    "class/net/ib0/": {"operstate": "up", "mtu": "2044", "type": "32", "address": "00:01"},
    "class/net/rail0/": {"operstate": "up", "mtu": "4200", "type": "1", "address": "00:02"},
    "devices/system/cpu/": {
        "cpu0/cpufreq/scaling_governor": "performance",
        "cpu1/cpufreq/scaling_governor": "powersave",
    },
    "devices/system/node/node0/": {"cpulist": "0-1", "distance": "10 21"},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with sys, proc and bin: one mlx5 card below a slot of half its lanes."""
    for folder, files in FILES.items():
        for name, text in files.items():
            put(tmp_path / "sys" / f"{folder}{name}", text)
    card = tmp_path / "sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0"
    (tmp_path / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    (card / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers/mlx5_core")
    for device in ("infiniband/mlx5_0", "net/ib0"):
        (tmp_path / "sys/class" / device / "device").symlink_to(card)
    for name, text in (
        ("irq/40/smp_affinity_list", "0"),
        ("irq/41/smp_affinity_list", "1"),
        ("cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 quiet iommu=pt isolcpus=2-3"),
        ("cpuinfo", "processor\t: 0\nmodel name\t: A processor\nmicrocode\t: 0x1"),
        ("7/comm", "irqbalance-ui"),
    ):
        put(tmp_path / "proc" / name, text)
    for name in ("ip", "tc", "ethtool", "lspci", "lldpctl", "ibstat", "ibv_devinfo"):
        tool(tmp_path / "bin", name, ":")
    return tmp_path


def run(root: Path, *options: str, path: str = "", **environment: str) -> str:
    where = ("--sys", str(root / "sys"), "--proc", str(root / "proc"))
    done = subprocess.run(
        [sys.executable, "-IS", str(LOOK), *where, *options],
        env={"PATH": path or f"{root / 'bin'}:{os.environ['PATH']}", **environment},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def look(root: Path, *options: str) -> Machine:
    return read_machine(run(root, *options), "n1")


def test_it_is_python_of_the_oldest_systems() -> None:
    ast.parse(LOOK.read_text(encoding="utf-8"), feature_version=(3, 6))


def test_a_tree_of_sysfs_and_proc_is_read_whole(root: Path) -> None:
    facts = look(root).facts
    wanted = {
        "port mlx5_0:1": {
            "pcie": "4.0x8", "pcie_best": "4.0x16", "pcie_best_of_slot": "4.0x8",
            "ids": "15b3:101b", "irq_cpus": "0 1", "irqs": 2, "numa_node": 1,
            "phys_state": "LinkUp", "psid": "MT_0000000222", "guid": "b859:9f03:00a1:b2c4",
            "lid": "0x3", "sm_lid": "0x1", "gid_prefix": "fe80:0000:0000:0000", "link": "HDR 4x",
        },
        "interface ib0": {"mac": "00:01", "kind": "ipoib"},
        "tuning": {
            "governor": "performance x 1 powersave x 1", "options": "iommu=pt isolcpus=2-3",
            "irqbalance": "does not run",
        },
        "node": {"cpu": "A processor", "microcode": "0x1"},
        "numa node0": {"cpus": "0-1", "distance": "10 21"},
    }  # fmt: skip
    for part, said in wanted.items():
        assert {name: facts[part].get(name) for name in said} == said
    assert not {"kind", "parent", "rate_in_sysfs", "roce", "gids"} & set(facts["port mlx5_0:1"])


def test_what_holds_now_is_no_part_of_what_it_is(root: Path) -> None:
    one = look(root, "--work", str(root))
    tool(root / "bin", "ip", "echo '198.19.0.12 dev rail0 lladdr 00:03 STALE'")
    put(root / "sys/class/net/rail0/address", "00:04")
    two = look(root)
    assert one.digest == two.digest
    assert set(one.now.free_bytes) == {"/tmp", "/dev/shm", str(root)}
    assert (one.now.macs["rail0"], two.now.macs["rail0"]) == ("00:02", "00:04")
    assert two.now.neighbours == {"rail0 198.19.0.12": "00:03"}


def test_a_slingshot_device_is_a_rail_of_its_own_name(root: Path) -> None:
    (root / "sys/class/net/ib0/device/cxi/cxi0").mkdir(parents=True)
    facts = look(root).facts
    assert (facts["interface cxi0"]["pcie"], facts["interface ib0"]["cxi"]) == ("4.0x8", "cxi0")
    assert not {"mac", "addresses", "mtu"} & set(facts["interface cxi0"])


def test_irqbalance_is_found_by_its_name(root: Path) -> None:
    put(root / "proc/8/comm", "irqbalance")
    assert look(root).facts["port mlx5_0:1"]["irq_cpus"] == "left to irqbalance"


def test_tools_are_asked(root: Path) -> None:
    tool(
        root / "bin",
        "ethtool",
        """case "$1" in
        -g) printf '%s\\n' 'Most:' 'RX: 8192' 'TX:	8192' 'Current:' 'RX: 512' 'TX: 256' ;;
        -m) printf '\\t%s\\n' 'Vendor name : Mellanox' 'Vendor SN : X1' 'Temperature : 77.5' ;;
        -i) echo 'driver: mlx5_core' ;;
        ib0) printf '%s\\n' 'Supported link modes: 10000baseT/Full' '  100000baseCR4/Full' \\
            'Supported pause frame use: No' 'Link partner modes: 400000baseCR4/Full' ;;
        esac""",
    )
    tool(
        root / "bin",
        "lldpctl",
        """[ "$*" = "-f keyvalue" ] && printf 'lldp.ib0.%s\\n' via=LLDP rid=1 chassis.mac=00:02 \\
            chassis.name=leaf1 chassis.descr=x chassis.rid=7 port.mac=00:03 port.descr=chassis""",
    )
    facts = look(root).facts["interface ib0"]
    assert facts["rings"] == "RX 512 of 8192, TX 256 of 8192"
    assert (facts["transceiver"], facts["cable_serial"]) == ("Mellanox", "X1")
    assert (facts["switch"], facts["switch_id"]) == ("leaf1", "00:02")
    assert facts["speed_best_mbit_s"] == 100000
    assert not any("77.5" in str(value) for value in facts.values())


def test_a_tool_that_hangs_is_named_and_the_others_are_read(root: Path) -> None:
    tool(root / "bin", "ethtool", '[ "$1" = -m ] && sleep 60\necho "RX: 3"')
    one = look(root)
    assert "no answer: ethtool -m ib0" in one.unknown
    assert one.facts["port mlx5_0:1"]["state"] == "ACTIVE"


def test_when_its_time_is_over_it_says_how_far_it_came(root: Path) -> None:
    tool(root / "bin", "ip", "sleep 60")
    one = look(root, "--seconds", "0.5")
    assert "what comes after 'addresses': the look was cut off there" in one.unknown
    assert one.facts["port mlx5_0:1"]["pcie"] == "4.0x8"


def test_a_software_device_has_a_parent_and_no_rate(root: Path) -> None:
    shaper = "qdisc tbf 1: dev rail0 root refcnt 2 rate 80Mbit burst 9Kb lat 300ms overhead 24 "
    tool(root / "bin", "tc", f"echo '{shaper}'")
    facts = look(root).facts
    wanted = {
        "kind": "soft-roce", "parent": "rail0", "driver": "rdma_rxe", "netdev": "rail0",
        "state": "ACTIVE", "roce": "v2", "gids": "IPv4, link-local",
        "rate_in_sysfs": "2.5 Gb/sec (1X SDR)",
    }  # fmt: skip
    assert {name: facts["port rxe0:1"][name] for name in wanted} == wanted
    assert not {"rate_gbit_s", "link", "width", "lid"} & set(facts["port rxe0:1"])
    # the interface below counts, though nobody gave it an address
    below = facts["interface rail0"]
    assert (below["shaped_to_mbit_s"], below["mtu"]) == (80, 4200)
    for name in ("parent", "ports/1/gid_attrs/ndevs/0"):
        (root / "sys/class/infiniband/rxe0" / name).write_text("")
    port = look(root).facts["port rxe0:1"]
    assert (port["kind"], port.get("parent")) == ("soft-roce", None)


# with the software, for a site file


def software(root: Path, **environment: str) -> Host:
    path = f"{root / 'bin'}:/usr/bin:/bin"
    return read_host(run(root, "--software", path=path, **environment), "here")


def test_modules_and_programs_are_asked_for_a_site_file(root: Path) -> None:
    tool(root / "bin", "lmod", "echo 'openmpi/5.0.3' >&2; echo 'export X=1;'")
    tool(root / "bin", "osu_bw", "exit 0")
    tool(root / "bin", "mpirun", "echo 'mpirun (Open MPI) 5.0.3'")
    host = software(root, LMOD_CMD=str(root / "bin/lmod"))
    assert (host.modules_system, host.modules) == ("lmod", ("openmpi/5.0.3",))
    assert host.programs["osu_bw"] == (str(root / "bin/osu_bw"), "")
    assert host.programs["mpirun"][1] == "mpirun (Open MPI) 5.0.3"


def test_an_empty_machine_without_tools_is_seen_too(tmp_path: Path) -> None:
    text = LOOK.read_text(encoding="utf-8").replace(":/usr/sbin:/sbin:/usr/local/sbin", "")
    (tmp_path / "look.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "look.py"), "--sys", str(tmp_path), "--software"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    host = read_host(done.stdout, "bare")
    assert (host.parts("interface"), host.parts("port")) == ({}, {})
    assert {"ip", "tc", "ethtool", "lspci", "ibv_devinfo"} <= set(host.absent)
    machine = read_machine(done.stdout, "bare")
    assert "shapers of interfaces: no tc on the node" in machine.unknown


# inventory.sh


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    folder = tmp_path / "a stage"
    (folder / "out").mkdir(parents=True)
    shutil.copy(INVENTORY, folder / "inventory.sh")
    put(folder / "look.py", 'print(\'{"reached": "end", "host": {"kernel": "6.1.0"}}\')')
    return folder


def start(stage: Path, node: str = "n1", **more: str) -> float:
    """Run the script as one rank of ``node``; return the seconds it took."""
    begin = time.monotonic()
    done = subprocess.run(
        [str(stage / "inventory.sh"), str(stage / "out"), "1"],
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": node, **more}, capture_output=True,
        text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return time.monotonic() - begin


def left(stage: Path, node: str = "n1") -> Machine:
    return read_machine((stage / f"out/{node}.txt").read_text(), node)


def test_each_node_leaves_one_file_by_one_rank(stage: Path) -> None:
    start(stage, "n1")
    put(stage / "look.py", "print('again')")
    start(stage, "n1")
    start(stage, "", HOSTNAME="n7.example")
    assert sorted(path.name for path in (stage / "out").glob("*.txt")) == ["n1.txt", "n7.txt"]
    assert left(stage).facts["node"]["kernel"] == "6.1.0"


def test_the_real_look_leaves_the_room_of_the_work_folder(stage: Path) -> None:
    shutil.copy(LOOK, stage)
    start(stage)
    assert str(stage / "out") in left(stage).now.free_bytes


@pytest.mark.parametrize("broken", ["raise SystemExit(3)", "import os; os.kill(0, 9)", "syntax ("])
def test_a_look_that_fails_fails_nothing(broken: str, stage: Path) -> None:
    put(stage / "look.py", broken)
    start(stage)
    assert left(stage).unknown


def test_a_look_that_hangs_is_ended(stage: Path) -> None:
    put(stage / "look.py", "import time; time.sleep(30)")
    assert start(stage) < 10
    assert left(stage).unknown == ("everything: the look left nothing",)


def test_a_folder_that_is_not_there_fails_nothing(stage: Path) -> None:
    shutil.rmtree(stage / "out")
    start(stage)
    assert not (stage / "out").exists()


@pytest.mark.parametrize(("passes", "said"), [("1472", "full"), ("56", "small"), ("-", None)])
def test_the_next_node_is_sent_full_size_packets(root: Path, passes: str, said: str | None) -> None:
    tool(root / "bin", "ip", "echo '2: rail0    inet 198.19.0.11/24 scope global rail0'")
    answer = "echo '2 packets transmitted, 2 received, 0% packet loss'"
    tool(root / "bin", "ping", f'case " $* " in *" -s {passes} 198.19.0.12 "*) {answer} ;; esac')
    (root / "n2.addresses").write_text('{"rail0": ["198.19.0.12", 1500], "ib0": ["x", 1]}')
    text = run(root, "--peers", str(root), SLURMD_NODENAME="n1", SLURM_JOB_NUM_NODES="2")
    assert read_machine(text, "n1").now.pings == ({"rail0 n2 1500": said} if said else {})
    assert json.loads((root / "n1.addresses").read_text()) == {"rail0": ["198.19.0.11", 4200]}


def test_a_folder_that_cannot_be_written_costs_the_pings_alone(root: Path) -> None:
    one = look(root, "--peers", str(root / "gone"))
    assert (one.now.pings, one.facts["port mlx5_0:1"]["pcie"]) == ({}, "4.0x8")
    assert not [each for each in one.troubles if each.is_of_all]


def test_it_prints_one_line(root: Path) -> None:
    text = run(root)
    assert text.count("\n") == 1
    assert json.loads(text)["reached"] == "end"
