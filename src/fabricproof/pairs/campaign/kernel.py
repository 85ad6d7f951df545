"""The kernel in Python, for a stack whose compiler does not work: kernel.c says what it does.

    python kernel.py SCHEDULE RECORD

It runs in the stack's own interpreter, which has mpi4py and nothing of this project.  A message of
one byte takes some microseconds longer than in C: the record says which of the two wrote it.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from mpi4py import MPI  # type: ignore[import-not-found]

TAG_SYNC, TAG_DATA, TAG_ANSWER, TAG_COUNT = 1, 2, 3, 4
FEWEST, LISTED = 3, 64

NET = ["tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "tx_errors", "rx_errors", "tx_dropped",
       "rx_dropped", "rx_crc_errors", "rx_missed_errors"]  # fmt: skip
PORT = ["port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets", "symbol_error",
        "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
        "local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped",
        "port_xmit_wait"]  # fmt: skip
PORT_HW = ["np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets", "out_of_sequence",
           "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "roce_adp_retrans",
           "rx_icrc_encapsulated", "rx_drops", "retrans_pkts", "to_retransmits",
           "seq_err_naks_rcvd", "rnr_naks_rcvd", "RetransSegs", "tcpRetransSegs", "cnpSent",
           "cnpHandled", "RxECNMrkd"]  # fmt: skip
EFA = ["tx_bytes", "rx_bytes", "tx_pkts", "rx_pkts", "send_bytes", "recv_bytes", "rdma_read_bytes",
       "rdma_read_resp_bytes", "rdma_write_bytes", "rdma_write_recv_bytes", "ip4InOctets",
       "ip4OutOctets", "ip6InOctets", "ip6OutOctets", "ip4InPkts", "ip4OutPkts", "ip6InPkts",
       "ip6OutPkts"]  # fmt: skip
SOFT_BYTES = ["sent_bytes", "rcvd_bytes", "sent_pkts", "rcvd_pkts"]
SOFT_HW = ["link_downed", "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err",
           "completer_retry_err", "duplicate_request", "out_of_seq_request", "rcvd_seq_err",
           "rcvd_rnr_err", "send_rnr_err"]  # fmt: skip
CXI = ["hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets",
       "hni_pkts_sent_by_tc_0", "hni_pkts_sent_by_tc_1", "hni_pkts_sent_by_tc_2",
       "hni_pkts_sent_by_tc_3", "hni_pkts_sent_by_tc_4", "hni_pkts_sent_by_tc_5",
       "hni_pkts_sent_by_tc_6", "hni_pkts_sent_by_tc_7", "hni_pkts_recv_by_tc_0",
       "hni_pkts_recv_by_tc_1", "hni_pkts_recv_by_tc_2", "hni_pkts_recv_by_tc_3",
       "hni_pkts_recv_by_tc_4", "hni_pkts_recv_by_tc_5", "hni_pkts_recv_by_tc_6",
       "hni_pkts_recv_by_tc_7", "pct_spt_timeouts"]  # fmt: skip
TCP = ["OutSegs", "RetransSegs", "TCPTimeouts", "ListenDrops", "TCPSynRetrans", "TCPDSACKRecv",
       "TCPDSACKOfoRecv", "TCPDSACKRecvSegs", "TCPOFOQueue"]  # fmt: skip

SLOT = ("current_link_width", "current_link_speed")
SENSOR = ("input", "max", "crit", "label")

SYS = Path("/sys")  # tests have another

Counters = dict[str, dict[str, int]]


def die(words: str) -> NoReturn:
    """End all ranks, and say why."""
    sys.stderr.write(f"fabricproof kernel on {NODE}: {words}\n")
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(74)
    sys.exit(74)


def first_word(path: Path) -> str:
    """Return the first word of a file; nothing of one that cannot be read."""
    try:
        return (path.read_text(encoding="ascii", errors="replace").split() or [""])[0]
    except OSError:
        return ""


def numbers(folder: Path, names: list[str]) -> dict[str, int]:
    """Return the counters of a folder that are there."""
    # Slingshot's telemetry has VALUE@TIME.
    words = {name: first_word(folder / name).partition("@")[0] for name in names}
    return {name: int(word) for name, word in words.items() if word.isdecimal()}


def folders(pattern: str) -> list[Path]:
    """Return the folders of /sys/class that fit."""
    return [path for path in sorted((SYS / "class").glob(pattern)) if path.is_dir()]


def port_name(port: Path) -> str:
    """``mlx5_0:1``."""
    return f"{port.parent.parent.name}:{port.name}"


def port_counters(port: Path) -> dict[str, int]:
    """Return what a port of a device counts."""
    is_soft = (port / "../../parent").exists()
    counts = (port / "counters" / "port_xmit_data").exists()
    found = numbers(port / "counters", PORT[:4] if is_soft else PORT)
    if not counts:
        found |= numbers(port / "hw_counters", SOFT_BYTES if is_soft else EFA)
    return found | numbers(port / "hw_counters", SOFT_HW if is_soft else PORT_HW)


def tcp_counters() -> dict[str, int]:
    """Return what the TCP of this node counts."""
    found: dict[str, int] = {}
    for path, protocol in (("/proc/net/snmp", "Tcp:"), ("/proc/net/netstat", "TcpExt:")):
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for names, values in itertools.pairwise(lines):
            if names.startswith(protocol) and not names.split()[1].lstrip("-").isdecimal():
                table = dict(zip(names.split(), values.split(), strict=False))
                found |= {name: int(table[name]) for name in TCP if name in table}
    return found


def core_counters() -> dict[str, int]:
    """Return what the CPUs that this rank may run on did, in ticks, and what it took of them."""
    mine = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    busy = idle = stolen = 0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name in mine:
            # Interrupts are nobody's: the network's own work is there.
            user, nice, system, rest, _, _, _, steal = map(int, fields[:8])
            busy, idle, stolen = busy + user + nice + system, idle + rest, stolen + steal
    own = os.times()
    found = {"busy_ticks": busy, "idle_ticks": idle, "steal_ticks": stolen}
    found |= {"own_ticks": int(100 * (own.user + own.system)), "clock_us": time.time_ns() // 1000}
    try:
        pressure = Path("/proc/pressure/cpu").read_text(encoding="ascii").split()
        found["waited_us"] = int(pressure[4].partition("=")[2])
    except (OSError, ValueError, IndexError):
        pass
    return found


def read_counters() -> Counters:
    """Return the counters of all interfaces and ports, of TCP, and of this rank's CPUs."""
    found = {"node/cores": core_counters()}
    for folder in folders("net/*"):
        if (folder / "statistics").is_dir():
            found[folder.name] = numbers(folder / "statistics", NET)
            found[folder.name] |= numbers(folder, ["carrier_changes"])
    for port in folders("infiniband/*/ports/*"):
        found[port_name(port)] = port_counters(port)
    for folder in folders("cxi/cxi*"):
        found[folder.name] = numbers(folder / "device" / "telemetry", CXI)
    tcp = tcp_counters()
    return found | ({"node/tcp": tcp} if tcp else {})


def read_facts() -> dict[str, dict[str, str]]:
    """Return what the interfaces and ports are."""
    found = {}
    for folder in folders("net/*"):
        words = {name: first_word(folder / name) for name in ("address", "mtu", "operstate")}
        found[folder.name] = {name: word for name, word in words.items() if word}
    for port in folders("infiniband/*/ports/*"):
        files = ("state", "rate", "link_layer", "../../device/uevent")
        words = {Path(name).name: first_word(port / name) for name in files}
        parent = port / "../../parent"
        over = {"parent": first_word(parent)} if parent.exists() else {}
        found[port_name(port)] = over | {name: word for name, word in words.items() if word}
    for folder in folders("cxi/cxi*"):
        names = sorted(each.name for each in (folder / "device" / "net").glob("*"))
        found[folder.name] = {"netdev": names[0]} if names else {}
    return found


def read_devices() -> dict[str, dict[str, str]]:
    """Return what PCIe links trained to and how warm devices are, in the words of sysfs."""
    found = {}
    for folder in folders("net/*"):
        if (folder / "device").exists():
            found[folder.name] = device_words(folder / "device")
    for port in folders("infiniband/*/ports/*"):
        if (port / "../../device").exists():
            found[port_name(port)] = device_words(port / "../../device")
    return found


def device_words(device: Path) -> dict[str, str]:
    """Return what stands of one device; virtio and the like hang on a PCI function."""
    if not (device / "config").exists() and (device / "../config").exists():
        device = device / ".."
    words = {name: first_word(device / name) for name in SLOT}
    for first in sorted(device.glob("hwmon/*/temp*_input")):
        for name in SENSOR:
            file = first.with_name(first.name.replace("input", name))
            words[f"{first.parent.name}/{file.name}"] = first_word(file)
    return {name: word for name, word in words.items() if word}


def wait_for_all() -> None:
    """Wait for all ranks without taking a core from those that still measure."""
    request, pause = MPI.COMM_WORLD.Ibarrier(), 50e-6
    while not request.Test():
        time.sleep(pause)
        pause = min(1.5 * pause, 1e-3)


class Kernel:
    """The rank of this node."""

    def __init__(self, shared: dict[str, Any]) -> None:
        self.comm = MPI.COMM_WORLD
        self.steps = shared["steps"]
        self.nap = shared["nap_us"] / 1e6
        largest = max([step["size"] for step in self.steps] or [1])
        self.out, self.into = bytearray(b"a" * largest), bytearray(b"b" * largest)
        self.said: list[dict[str, Any]] = []

    def wait(self, requests: list[Any]) -> None:
        """Wait for messages; where nodes share cores, asleep."""
        if not self.nap:
            MPI.Request.Waitall(requests)
            return
        while not MPI.Request.Testall(requests):
            time.sleep(self.nap)

    def meet(self, peer: int) -> None:
        """Wait for the partner."""
        mine, yours = bytearray(1), bytearray(1)
        self.wait([
            self.comm.Irecv(yours, peer, TAG_SYNC), self.comm.Isend(mine, peer, TAG_SYNC),
        ])  # fmt: skip

    def repeat(self, step: dict[str, Any], peer: int, leads: bool) -> None:
        """Do one repetition; ``leads`` is who sends first, and whose time counts."""
        comm, size, both = self.comm, step["size"], step["mode"] == "bi"
        out, into = memoryview(self.out)[:size], memoryview(self.into)[:size]
        if step["mode"] == "pingpong":
            if leads:
                comm.Send(out, peer, TAG_DATA)
            comm.Recv(into, peer, TAG_DATA)
            if not leads:
                comm.Send(out, peer, TAG_DATA)
            return
        window = range(step["window"])
        requests = [comm.Irecv(into, peer, TAG_DATA) for _ in window if not leads or both]
        requests += [comm.Isend(out, peer, TAG_DATA) for _ in window if leads or both]
        self.wait(requests)
        answer = bytearray(4)
        send = comm.Irecv if leads else comm.Isend
        self.wait([send(answer, peer, TAG_ANSWER)])

    def agree(self, step: dict[str, Any], peer: int, leads: bool, warm: float) -> int:
        """Return as many repetitions as fit the time, by the last ones of the warm-up."""
        count = bytearray(4)
        if leads:
            fitting = step["seconds"] / warm if warm > 0 else step["most"]
            count[:] = int(max(FEWEST, min(step["most"], fitting))).to_bytes(4, "little")
            self.wait([self.comm.Isend(count, peer, TAG_COUNT)])
        else:
            self.wait([self.comm.Irecv(count, peer, TAG_COUNT)])
        return int.from_bytes(count, "little")

    def measure(self, number: int, step: dict[str, Any], partner: Any, leads: bool) -> None:
        """Measure one way with the partner."""
        peer, name, _ = partner
        self.meet(peer)
        begin, half = MPI.Wtime(), step["warmups"] // 2
        for at in range(step["warmups"]):
            if at == half:
                begin = MPI.Wtime()
            self.repeat(step, peer, leads)
        warm = (MPI.Wtime() - begin) / max(step["warmups"] - half, 1)
        count = self.agree(step, peer, leads, warm)
        self.meet(peer)
        times, last = [], MPI.Wtime()
        for _ in range(count):
            self.repeat(step, peer, leads)
            now = MPI.Wtime()
            times.append(1e6 * (now - last))
            last = now
        if leads:
            self.summarize(number, step, name, times)

    def summarize(self, number: int, step: dict[str, Any], name: str, times: list[float]) -> None:
        """Say what a measurement came to."""
        order = sorted(times)
        facts = {key: step[key] for key in ("mode", "size", "window", "warmups")}
        few = {"times_us": times} if len(times) <= LISTED else {}
        where = {"record": "value", "round": number, "from": NODE, "to": name}
        tails = {f"p{part}_us": order[-(-part * len(order) // 100) - 1] for part in (95, 99)}
        times_of = {"least_us": order[0], "median_us": order[len(order) // 2], "most_us": order[-1]}
        total = {"repetitions": len(times), "total_us": sum(times)}
        self.said.append({**where, **facts, **few, **total, **times_of, **tails})

    def run_round(self, number: int, partner: Any) -> None:
        """Do all steps of a round, counters read around them."""
        if partner is not None:
            self.say_devices(number)
        before = read_counters()
        wait_for_all()
        for step in self.steps:
            # What goes one way is measured each way, all pairs the same way round at a time.
            for turn in range(2 if step["mode"] == "uni" else 1):
                if partner is not None:
                    doing[:] = [f"with {partner[1]} in round {number}, {step['mode']}"]
                    self.measure(number, step, partner, bool(partner[2]) != bool(turn))
                doing[:] = [f"after round {number}"]
                wait_for_all()
        if partner is not None:
            self.say_counters(number, before, read_counters())
            self.say_devices(number)

    def say_devices(self, number: int) -> None:
        """Say what the devices of this node show."""
        where = {"record": "devices", "round": number, "node": NODE, "at": int(time.time())}
        self.said.append({**where, "devices": read_devices()})

    def say_counters(self, number: int, before: Counters, after: Counters) -> None:
        """Say what was read before, and what moved."""
        moved = {
            interface: {name: value for name, value in counts.items()
                        if before.get(interface, {}).get(name) != value}
            for interface, counts in after.items()
        }  # fmt: skip
        gone = [
            [interface, name]
            for interface, counts in before.items()
            for name in counts
            if name not in after.get(interface, {})
        ]
        where = {"record": "counters", "round": number, "node": NODE}
        self.said.append({**where, "before": before, "after": moved, "gone": gone})

    def gather(self, record: Any, last: dict[str, Any] | None) -> None:
        """Bring what every rank said to rank 0, and to the disk."""
        said = self.comm.gather("".join(json.dumps(each) + "\n" for each in self.said), 0)
        self.said = []
        if record is None or said is None:
            return
        try:
            record.write("".join(said) + (json.dumps(last) + "\n" if last else ""))
            record.flush()
            os.fsync(record.fileno())
        except OSError as error:
            die(f"cannot write the record: {error.strerror}")


def read_schedule(path: str) -> tuple[dict[str, Any], list[str], list[list[int]]]:
    """Return what all ranks need, the nodes, and the rounds: number, then pairs."""
    lines = Path(path).read_text(encoding="ascii").splitlines()
    if lines[:1] != ["fabricproof-pairs 1"] or lines[-1:] != ["end"]:
        die(f"{path} is no whole schedule of version 1")
    shared: dict[str, Any] = {"steps": []}
    nodes, rounds = [], []
    for line in lines[1:-1]:
        word, *rest = line.split()
        if word == "node":
            nodes.append(rest[0])
        elif word == "step":
            keys = ("size", "window", "most", "warmups")
            step = dict(zip(keys, map(int, rest[1:5]), strict=True))
            shared["steps"].append({"mode": rest[0], **step, "seconds": float(rest[5])})
        elif word == "round":
            rounds.append([int(each) for each in rest])
        elif word != "rounds":
            shared[word] = int(rest[0])
    return shared, nodes, rounds


def partners(
    nodes: list[str], rank_of: dict[str, int], size: int, pairs: list[int]
) -> list[tuple[int, str, int] | None]:
    """Return of each rank its partner's rank and name, and whether it is first; None: a bye."""
    found: list[tuple[int, str, int] | None] = [None] * size
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        first, second = rank_of[nodes[one]], rank_of[nodes[other]]
        found[first], found[second] = (second, nodes[other], 1), (first, nodes[one], 0)
    return found


def too_long() -> NoReturn:
    """End a round that hangs, and say who hung."""
    os.write(2, f"fabricproof kernel: stuck {NODE} {doing[0]}\n".encode())
    os._exit(75)


def cpus() -> str:
    """Return the CPUs that this rank may run on, as the kernel lists them."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    return "unknown"


def loaded_mpi() -> str:
    """Return the path of the MPI library that was loaded; of several all of them."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if "/libmpi" in line)
    return " and ".join(path for path in paths if ".so" in path)


def main() -> None:
    """Run the schedule."""
    comm = MPI.COMM_WORLD
    time.sleep(1)  # as in kernel.c
    told = read_schedule(sys.argv[1]) if comm.rank == 0 else None
    shared = comm.bcast(told[0] if told else None, 0)
    names = comm.gather(NODE, 0)
    record: Any = None
    rank_of: dict[str, int] = {}
    if told is not None:
        told = (told[0], told[1] or names, told[2])
        rank_of = {name: rank for rank, name in enumerate(names)}
        if len(rank_of) != comm.size or set(told[1]) - set(rank_of):
            die("one rank on each node of the schedule is wanted")
        record = Path(sys.argv[2]).open("w", encoding="ascii")  # noqa: SIM115 - open to the end
    kernel = Kernel(shared)
    if told is not None:
        lines = MPI.Get_library_version().replace("\0", "").splitlines()
        version = ";".join(" ".join(each.split()) for each in lines)
        head = {"record": "campaign", "format": 1, "kernel": "mpi4py", "ranks": comm.size}
        kernel.said.append({**head, "mpi": version})
    machine = first_word(Path("/proc/sys/kernel/random/boot_id"))
    me = {"record": "rank", "rank": comm.rank, "node": NODE, "cpus": cpus(), "machine": machine}
    kernel.said.append({**me, "library": loaded_mpi(), "facts": read_facts()})
    kernel.gather(record, None)
    rounds = told[2] if told else []
    for at in itertools.count():
        number = comm.bcast(rounds[at][0] if at < len(rounds) else -1, 0)
        if number < 0:
            break
        all_of_them = partners(told[1], rank_of, comm.size, rounds[at][1:]) if told else None
        partner, begin = comm.scatter(all_of_them, 0), int(time.time())
        # A thread: a signal would wait for the call that hangs, which lets other threads run.
        watch = threading.Timer(shared["round_seconds"], too_long)
        watch.daemon = True
        watch.start()
        kernel.run_round(number, partner)
        end = {"record": "end", "round": number, "begin": begin, "end": int(time.time())}
        kernel.gather(record, end)
        watch.cancel()
    kernel.gather(record, {"record": "done"})


NODE = os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]
#: what this rank is at, for whoever ends it
doing = ["starting"]

if __name__ == "__main__":
    main()
