"""What one node shows of itself: printed as one JSON document, read by ``nodes.inventory.read``.

Run on the node as ``python3 -IS look.py [--seconds S] [--peers DIR] [--software] [--sys DIR]``.  It
needs Python 3.6 and nothing else, changes nothing and needs no rights.  A tool that hangs gets two
seconds; when all the time is over, what was seen is printed with the stage that was ``reached``.
What is easily lost (cables' memories) comes last.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import Any, Dict, List, Optional

#: what only these tools say; ``absent`` names those that are not there
TOOLS = ("ip", "tc", "ethtool", "lspci", "ibv_devinfo")

#: settings of the kernel that steer networks
SETTINGS = (
    *("kernel/numa_balancing", "net/core/rmem_max", "net/core/wmem_max", "net/core/busy_poll"),
    *("net/core/netdev_max_backlog", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"),
    *("net/ipv4/tcp_congestion_control", "net/ipv4/tcp_mtu_probing"),
)

#: options of the kernel's command line that change latency
OPTIONS = re.compile(
    r"(mitigations|isolcpus|nohz_full|rcu_nocbs|iommu|(intel|amd)_iommu|pci|pcie_aspm|nosmt|"
    r"default_hugepagesz|hugepages|transparent_hugepage|(processor|intel_idle)\.max_cstate|"
    r"numa_balancing|idle)(=|$)"
)

_FUNCTION = re.compile(r"[0-9a-f]+:[0-9a-f]+:[0-9a-f]+\.[0-7]")
_LMOD = ("/usr/share/lmod/lmod/libexec/lmod", "/opt/ohpc/admin/lmod/lmod/libexec/lmod")
_PMI2 = (
    *("/usr/lib/*/libpmi2.so.0", "/usr/lib64/libpmi2.so.0", "/usr/lib64/libpmi2.so"),
    "/opt/slurm/lib/libpmi2.so.0",
)

Row = Dict[str, str]


def content(path: str) -> str:
    """Return the first line of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def base(path: str) -> str:
    """Return the last part of what a link names; empty if there is none."""
    return os.path.basename(os.path.realpath(path)) if os.path.exists(path) else ""


def entries(pattern: str) -> List[str]:
    """Return the paths that match, sorted."""
    return sorted(glob.glob(pattern))


def known(**facts: Optional[str]) -> Row:
    """Return the facts that have a value."""
    return {name: value for name, value in facts.items() if value}


class _Look:
    """One look: ``seen`` is what it prints."""

    def __init__(self, sys_folder: str, proc: str, tool_seconds: float) -> None:
        self.sys, self.proc, self.tool_seconds = sys_folder, proc, tool_seconds
        self.seen: Dict[str, Any] = {"reached": "host", "tools": {}, "silent": []}
        self.functions: List[str] = []

    def stage(self, name: str) -> None:
        """Note that this is where the look is."""
        self.seen["reached"] = name

    def ask(self, *command: str, seconds: float = 0, all_output: bool = False) -> str:
        """Keep what a tool prints; name it if it hangs."""
        if shutil.which(command[0]) is None:
            return ""
        error = subprocess.STDOUT if all_output else subprocess.DEVNULL
        environment = dict(os.environ, LC_ALL="C", LMOD_PAGER="none")
        words = " ".join(command)
        process = None
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=error,
                env=environment, start_new_session=True,
            )  # fmt: skip
            output, _ = process.communicate(timeout=seconds or self.tool_seconds)
        except subprocess.TimeoutExpired:
            self.seen["silent"].append(words)
            return ""
        except OSError:
            return ""
        finally:
            if process is not None and process.poll() is None:
                # It is not waited for: a tool in a stuck driver cannot even be killed.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except OSError:
                    pass
        text = output.decode("utf-8", "replace")
        if text.strip():
            self.seen["tools"][words] = text
        return text

    def host(self) -> None:
        """Who it is."""
        system = os.uname()
        release = "/etc/os-release"
        names = {}
        if os.path.exists(release):
            with open(release, encoding="utf-8", errors="replace") as file:
                names = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
        self.seen["host"] = known(
            name=system.nodename,
            boot=content("/proc/sys/kernel/random/boot_id"),
            cpus=str(os.cpu_count() or ""),
            arch=system.machine,
            kernel=system.release,
            os=names.get("PRETTY_NAME", "").strip('"'),
            user=str(os.getuid()),
        )

    def numa(self) -> None:
        """Which CPUs are near each other."""
        self.seen["numa"] = {
            os.path.basename(each): known(
                cpus=content(each + "/cpulist"), distance=content(each + "/distance")
            )
            for each in entries(self.sys + "/devices/system/node/node[0-9]*")
        }

    def slot(self, device: str) -> Row:
        """The PCI function behind a device: its link, the slot above, who takes its interrupts."""
        place = os.path.realpath(device)
        while len(place) > 1 and not os.path.exists(place + "/current_link_speed"):
            if _FUNCTION.fullmatch(os.path.basename(place)):
                break
            place = os.path.dirname(place)
        if len(place) <= 1:
            return {}
        above = os.path.dirname(place)
        address = os.path.basename(place)
        self.functions.append(address)
        links = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
        module = base(place + "/driver/module")
        interrupts = [os.path.basename(e) for e in entries(place + "/msi_irqs/[0-9]*")]
        cpus = {content("%s/irq/%s/smp_affinity_list" % (self.proc, irq)) for irq in interrupts}
        made = [
            ":".join(filter(None, (content(place + "/" + one), content(place + "/" + other))))
            for one, other in (("vendor", "device"), ("subsystem_vendor", "subsystem_device"))
        ]
        return known(
            pci=address,
            numa_node=content(place + "/numa_node"),
            ids=made[0].replace("0x", ""),
            subsystem=made[1].replace("0x", ""),
            above_speed=content(above + "/max_link_speed"),
            above_width=content(above + "/max_link_width"),
            driver_version=content("%s/module/%s/version" % (self.sys, module)) if module else "",
            irqs=str(len(interrupts) or ""),
            irq_cpus=" ".join(sorted(cpus - {""})),
            **{each: content(place + "/" + each) for each in links},
        )

    def net(self) -> None:
        """The network interfaces."""
        self.seen["net"] = {}
        for each in entries(self.sys + "/class/net/*"):
            if not os.path.exists(each + "/mtu"):
                continue
            device = each + "/device"
            is_device = os.path.exists(device)
            made = [e for e in ("bonding", "bridge") if os.path.exists(each + "/" + e)]
            row = known(
                virtual="" if is_device else ([*made, "yes"])[0].replace("bonding", "bond"),
                operstate=content(each + "/operstate"),
                speed=content(each + "/speed"),
                mtu=content(each + "/mtu"),
                type=content(each + "/type"),
                mac=content(each + "/address"),
                driver=base(device + "/driver"),
                master=base(each + "/master"),
                # Slingshot: what libfabric calls it
                cxi=next((os.path.basename(e) for e in entries(device + "/cxi/*")), ""),
            )
            row.update(self.slot(device) if is_device else {})
            self.seen["net"][os.path.basename(each)] = row

    def infiniband(self) -> None:
        """The ports of HCAs, and of the kernel's software for one (rdma_rxe names its parent)."""
        self.seen["infiniband"] = {}
        for each in entries(self.sys + "/class/infiniband/*/ports/[0-9]*"):
            hca, _, port = each.rpartition("/ports/")
            if not os.path.exists(each + "/state"):
                continue
            row = {name: content(each + "/" + name) for name in ("state", "rate", "link_layer")}
            row.update(
                known(
                    phys_state=content(each + "/phys_state"),
                    lid=content(each + "/lid"),
                    sm_lid=content(each + "/sm_lid"),
                    gid=content(each + "/gids/0"),
                    netdev=content(each + "/gid_attrs/ndevs/0"),
                    firmware=content(hca + "/fw_ver"),
                    type=content(hca + "/hca_type"),
                    board=content(hca + "/board_id"),
                    hardware=content(hca + "/hw_rev"),
                    guid=content(hca + "/node_guid"),
                    driver=base(hca + "/device/driver"),
                )
            )
            if os.path.exists(hca + "/parent"):
                kinds = {content(e) for e in entries(each + "/gid_attrs/types/[0-9]")}
                row["parent"] = content(hca + "/parent")
                row["gids"] = " ".join(content(e) for e in entries(each + "/gids/[0-9]"))
                row["gid_types"] = ",".join(sorted(kinds - {""}))
            if os.path.exists(hca + "/device"):
                row.update(self.slot(hca + "/device"))
            self.seen["infiniband"][os.path.basename(hca) + ":" + port] = row

    def tuning(self) -> None:
        """How processor and kernel are set."""
        cpu = self.sys + "/devices/system/cpu"
        lines: Dict[str, str] = {}
        try:
            with open(self.proc + "/cpuinfo", encoding="utf-8", errors="replace") as file:
                for line in file:
                    key, mark, value = line.partition(":")
                    if mark:
                        lines.setdefault(key.strip(), value.strip())
        except OSError:
            pass
        governors = [content(e) for e in entries(cpu + "/cpu[0-9]*/cpufreq/scaling_governor")]
        names = {content(each) for each in entries(self.proc + "/[0-9]*/comm")}
        options = content(self.proc + "/cmdline").split()
        self.seen["tuning"] = known(
            cpu=lines.get("model name"),
            microcode=lines.get("microcode"),
            smt=content(cpu + "/smt/control"),
            governor=" ".join("%s x %d" % (e, governors.count(e)) for e in sorted({*governors})),
            frequency_driver=content(cpu + "/cpu0/cpufreq/scaling_driver"),
            no_turbo=content(cpu + "/intel_pstate/no_turbo"),
            boost=content(cpu + "/cpufreq/boost"),
            huge_pages=content(self.sys + "/kernel/mm/transparent_hugepage/enabled"),
            locked_memory=_locked_memory(),
            irqbalance="runs" if "irqbalance" in names else "does not run",
            options=" ".join(sorted(each for each in options if OPTIONS.match(each))),
            **{
                os.path.basename(each): " ".join(content(self.proc + "/sys/" + each).split())
                for each in SETTINGS
            },
        )

    def free(self, folders: List[str]) -> None:
        """How much may still be written, in bytes, where programs write."""
        self.seen["free_bytes"] = {}
        for each in folders:
            try:
                room = os.statvfs(each)
            except OSError:
                continue
            self.seen["free_bytes"][each] = room.f_bavail * room.f_frsize

    def tools(self) -> None:
        """What the tools say, the surest first."""
        self.stage("addresses")
        self.seen["absent"] = [each for each in TOOLS if shutil.which(each) is None]
        addresses = self.ask("ip", "-o", "-4", "addr", "show")
        self.stage("qdisc")
        self.ask("tc", "qdisc", "show")
        self.stage("tools")
        self.ask("ip", "-4", "neigh", "show")
        for each in sorted(set(self.functions)):
            self.ask("lspci", "-vv", "-s", each)
        self.ask("ibv_devinfo", "-v")
        self.ask("lldpctl", "-f", "keyvalue")
        owned = set(re.findall(r"^\d+: *([^ @]+)", addresses, re.M))
        # Virtual interfaces without an address are those of containers and bridges.
        names = [
            name
            for name, row in self.seen["net"].items()
            if name != "lo" and (row.get("virtual", "bond") == "bond" or name in owned)
        ]
        for name in names:
            for option in ("", "-i", "-k", "-g", "-l", "-a", "-c", "--show-fec"):
                self.ask("ethtool", *filter(None, (option, name)))
        self.stage("cables")  # some cards take long to read a cable's memory
        for name in names:
            if "virtual" not in self.seen["net"][name]:
                self.ask("ethtool", "-m", name)

    def peers(self, folder: str) -> None:
        """Whether full-size packets pass to the next node of the job and back, without fragments.

        Each node leaves its addresses in ``folder``; they are awaited for a moment.
        """
        found = re.findall(
            r"^\d+: *([^ @]+)\S*\s+inet ([\d.]+)/",
            self.seen["tools"].get("ip -o -4 addr show", ""),
            re.M,
        )
        net = {name: row for name, row in self.seen["net"].items() if row.get("mtu", "").isdigit()}
        mine = {name: [at, int(net[name]["mtu"])] for name, at in found if name in net}
        node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename.split(".")[0]
        path = os.path.join(folder, node + ".addresses")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(mine, file)
        os.rename(path + ".part", path)
        due = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
        for _ in range(20):
            paths = entries(folder + "/*.addresses")
            if len(paths) >= due:
                break
            time.sleep(0.1)
        other = paths[(paths.index(path) + 1) % len(paths)]
        theirs = json.loads(content(other) or "{}") if other != path else {}
        peer = os.path.basename(other)[: -len(".addresses")]
        self.seen["pings"] = {}
        for name in sorted(set(mine) & set(theirs) - {"lo"}):
            size = min(mine[name][1], theirs[name][1])
            full = size - 28  # IPv4 and ICMP headers
            # One packet is quick if it comes through; two only if it does not.
            for word, payload, count in (("full", full, 1), ("full", full, 2), ("small", 56, 2)):
                options = ("-q", "-n", "-i", "0.2", "-W", "1", "-M", "do", "-I", name)
                sizes = ("-c", str(count), "-s", str(payload))
                said = self.ask("ping", *options, *sizes, theirs[name][0])
                if re.search(r"[1-9]\d* (packets )?received", said):
                    self.seen["pings"]["%s %s %d" % (name, peer, size)] = word
                    break
        self.ask("ip", "-4", "neigh", "show")

    def software(self) -> None:
        """What a site file needs beside the machine: modules, MPI on PATH, Slurm's PMI library."""
        self.stage("software")
        mine = os.environ.get("LMOD_CMD", "")
        lmod = next((each for each in (mine, *_LMOD) if each and os.access(each, os.X_OK)), "")
        other = os.environ.get("MODULES_CMD", "")
        modules = ""
        if lmod:
            modules = self.ask(lmod, "sh", "-t", "avail", seconds=30, all_output=True)
            modules += self.ask(lmod, "sh", "-t", "spider", seconds=60, all_output=True)
        elif other and os.path.exists(other):
            modules = self.ask(other, "sh", "avail", "-t", seconds=30, all_output=True)
        self.seen["software"] = {
            "modules_system": "lmod" if lmod else "tmod4" if modules else "nomod",
            "modules": modules,
            "pmi2": next((path for each in _PMI2 for path in entries(each)), ""),
        }
        for each in ("mpirun", "mpiexec", "osu_bw", "IMB-MPI1"):
            path = shutil.which(each)
            if path is not None:
                self.seen["software"][each] = path
                if each.startswith("mpi"):
                    self.ask(each, "--version")


def _locked_memory() -> str:
    import resource  # noqa: PLC0415 - absent from some builds of Python

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit // 1024)


class Over(Exception):  # noqa: N818 - the end of the time is no error
    """All the time is over; no OSError, which is caught where files are read."""


def _over(*_: object) -> None:
    raise Over


def main(words: List[str]) -> None:
    """Look, and print what was seen."""
    given = dict(zip(words, [*words[1:], ""]))
    seconds = float(given.get("--seconds", 0))
    has_software = "--software" in words
    os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
    look = _Look(
        given.get("--sys", "/sys"), given.get("--proc", "/proc"), 10 if has_software else 2
    )
    signal.signal(signal.SIGALRM, _over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        for each in (look.host, look.numa, look.net, look.infiniband, look.tuning):
            look.stage(each.__name__)
            each()
        look.free(["/tmp", "/dev/shm", *filter(None, [given.get("--work")])])  # noqa: S108
        look.tools()
        if has_software:
            look.software()
        if given.get("--peers"):
            look.stage("peers")
            look.peers(given["--peers"])
        look.stage("end")
    except Exception as error:  # whatever it is, what was seen must not be lost
        look.seen["ended"] = repr(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps(look.seen))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
