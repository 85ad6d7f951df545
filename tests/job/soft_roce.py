"""A pretended guest with Soft-RoCE devices: its sysfs, and what rank.sh reads there.

Names and values are those of a guest of the kind ``rdma`` with Linux 7.3: interfaces mgmt0, rail0
and rail1 (virtio), devices rxe0 and rxe1 over the rails.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import fabricproof.job

RANK_SH = Path(fabricproof.job.__file__).parent / "rank.sh"

PORT = "class/infiniband/{device}/ports/1"
#: files of hw_counters; lifespan is no counter
HARDWARE = (
    *("ack_deferred", "completer_retry_err", "duplicate_request", "lifespan", "link_downed"),
    *("out_of_seq_request", "rcvd_bytes", "rcvd_pkts", "rcvd_rnr_err", "rcvd_seq_err"),
    *("rdma_recvs", "rdma_sends", "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err"),
    *("send_rnr_err", "sent_bytes", "sent_pkts"),
)
#: files of counters; errors among them never move
COUNTERS = (
    *("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"),
    *("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"),
)

#: bytes that a program sent and received, by interface or device, and the packets they took
Moved = Mapping[str, tuple[int, int, int]]


def make_sys(folder: Path, kernel: str = "7.3") -> Path:
    """Write the sysfs of a guest below ``folder``; kernel 6.1 counts packets only."""
    sys = folder / "sys"
    for number, name in enumerate(("mgmt0", "rail0", "rail1")):
        _make_interface(sys / "class" / "net" / name, f"52:54:00:00:00:0{number}")
    for number in (0, 1):
        _write(sys / "class" / "infiniband" / f"rxe{number}" / "parent", f"rail{number}")
        _make_port(sys / PORT.format(device=f"rxe{number}"), kernel)
    return sys


def _make_interface(path: Path, address: str) -> None:
    facts = {"mtu": "4200", "speed": "-1", "operstate": "up", "carrier_changes": "2"}
    for key, value in (facts | {"address": address}).items():
        _write(path / key, value)
    _write(path / "device" / "uevent", "DRIVER=virtio_net")
    for way in ("tx", "rx"):
        for key in ("bytes", "packets", "errors", "dropped"):
            _write(path / "statistics" / f"{way}_{key}", 0 if key == "errors" else 1000)


def _make_port(path: Path, kernel: str) -> None:
    _write(path / "state", "4: ACTIVE")
    _write(path / "rate", "2.5 Gb/sec (1X SDR)")
    _write(path / "link_layer", "Ethernet")
    for key in HARDWARE:
        if kernel != "6.1" or not key.endswith("_bytes"):
            _write(path / "hw_counters" / key, 10 if key == "lifespan" else 0)
    for key in COUNTERS if kernel == "7.3" else ():
        _write(path / "counters" / key, 0)


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def add(path: Path, amount: int) -> str:
    """Return the line of shell that adds to a counter; it does nothing where there is none."""
    return f'if [ -e {path} ]; then now=$(<{path}); echo "$((now + {amount}))" >{path}; fi\n'


def program(sys: Path, moved: Moved, extra: Mapping[str, int] | None = None) -> str:
    """Return the shell program that moves bytes on the guest.

    Args:
        sys: of the guest.
        moved: by device (``rxe0``: the interface below counts it too, with 14 bytes for each
            packet) or interface (``rail0``: by sockets).
        extra: how far other counters rise, by their path below ``sys``.
    """
    lines = []
    for device, (sent, received, packets) in moved.items():
        headers, name = 0, device
        if device.startswith("rxe"):
            headers, name = 14 * packets, f"rail{device[-1]}"
            port = sys / PORT.format(device=device)
            for way, key, amount in (("xmit", "sent", sent), ("rcv", "rcvd", received)):
                lines += [
                    add(port / "counters" / f"port_{way}_data", amount // 4),
                    add(port / "counters" / f"port_{way}_packets", packets),
                    add(port / "hw_counters" / f"{key}_bytes", amount),
                    add(port / "hw_counters" / f"{key}_pkts", packets),
                ]
        statistics = sys / "class" / "net" / name / "statistics"
        for way, amount in (("tx", sent), ("rx", received)):
            lines += [
                add(statistics / f"{way}_bytes", amount + headers),
                add(statistics / f"{way}_packets", packets),
            ]
    lines += [add(sys / path, amount) for path, amount in (extra or {}).items()]
    return "".join(lines)


def read_rank(folder: Path, rank: int, text: str, *, sys: Path, local_rank: int = 0) -> str:
    """Return what rank.sh writes around a shell program on the guest whose sysfs is ``sys``."""
    leg = folder / f"leg{rank}"
    leg.mkdir(exist_ok=True)
    ended = subprocess.run(
        ["bash", str(RANK_SH), "bash", "-c", text],
        env={
            "PATH": os.environ["PATH"],
            "FABRICPROOF_LEG": str(leg),
            "FABRICPROOF_SYS": str(sys),
            "PMIX_RANK": str(rank),
            "SLURM_LOCALID": str(local_rank),
            "SLURMD_NODENAME": f"vc{rank + 1}",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return (leg / f"rank.{rank}.0").read_text()
