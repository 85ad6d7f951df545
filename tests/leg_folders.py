"""Build what a leg leaves behind, from recorded outputs."""

from __future__ import annotations

from pathlib import Path

from fabricproof.job.leg import Leg, Traffic, shell_name
from fabricproof.physics import Fabric, find_link
from fabricproof.verdict.value import Judgement, Report, is_of_errors

DATA = Path(__file__).parent / "data"

#: osu_put_bw over 1 GbE between two machines: every row is good
PUT_BW = (DATA / "osu" / "document-004-put-bw.txt").read_text()
PUT_BW_SIZES = tuple(2**power for power in range(23))
PUT_BW_SENT = 64 * 12 * sum(PUT_BW_SIZES)

#: PingPong of IMB-P2P over the same 1 GbE; it says itself how often each size ran
P2P = (DATA / "imb" / "document-004-p2p-1gbe.txt").read_text()
P2P_SIZES = (0, *PUT_BW_SIZES)

GIGABIT = Fabric(link=find_link("1GbE"), protocol="tcp", mtu=1500)


def make_leg(**changes: object) -> Leg:
    """Return the leg that :data:`PUT_BW` is the good output of."""
    facts: dict[str, object] = {
        "name": "rail0",
        "rails": ("rail0",),
        "suite": "osu",
        "program": "osu_put_bw",
        "environment": {"OMPI_MCA_btl_tcp_if_include": "rail0"},
        "commands": (("osu_put_bw", "-m", "1:4194304"),),
        "expected_sizes": PUT_BW_SIZES,
        "traffic": Traffic(exact=(PUT_BW_SENT, 0)),
        "spread": False,
        "required": ("bandwidth_4MiB",),
        "fabric": GIGABIT,
        "references": {},
        "tolerance": 0.10,
        "same_node": False,
    }
    return Leg(**{**facts, **changes})  # type: ignore[arg-type]


def speeds(report: Report) -> list[Judgement]:
    """Return what was judged beside errors."""
    return [each for each in report.quantities if not is_of_errors(each)]


def rank_text(
    rank: int,
    *,
    sent: int,
    received: int,
    interface: str = "rail0",
    status: int | None = 0,
    node: str | None = None,
    library: str | None = None,
) -> str:
    """Return what ``rank.sh`` writes when the rank's node sent and received so many bytes."""
    rails = {"rail0": (0, 0), "rail1": (0, 0), "mgmt0": (0, 0)}
    # Headers and acknowledgements: counters show a little more than the payload.
    rails[interface] = (int(sent * 1.05) + 10_000, int(received * 1.05) + 10_000)
    lines = [f"rank {rank}", f"node {node or f'n{rank + 1}'}", "cpus 0-3", "kernel 6.1.0"]
    lines += [f"library {library}"] if library is not None else []
    lines += [f"fact {name} mtu=1500 speed=1000 operstate=up" for name in rails]
    lines += [
        f"before {name} tx_bytes=1000 rx_bytes=1000 tx_packets=10 rx_packets=10 tx_errors=0"
        for name in rails
    ]
    if status is not None:
        lines += [
            f"after {name} tx_bytes={1000 + tx} rx_bytes={1000 + rx} tx_packets={10 + tx // 60} "
            f"rx_packets={10 + rx // 60} tx_errors=0"
            for name, (tx, rx) in rails.items()
        ]
        lines += ["before node/tcp OutSegs=9 RetransSegs=2 TCPDSACKRecvSegs=2"]
        lines += [f"after node/tcp OutSegs={9 + sent // 1448} RetransSegs=2 TCPDSACKRecvSegs=2"]
        lines.append(f"status {status}")
    return "\n".join(lines) + "\n"


def leave(
    folder: Path,
    leg: Leg,
    stdout: str = PUT_BW,
    *,
    attempt: int = 1,
    status: str | None = "0\n",
    stderr: str = "",
    ranks: tuple[str, ...] | None = None,
) -> Path:
    """Leave an attempt of ``leg`` below job folder ``folder`` and return the attempt's folder."""
    path = folder / "legs" / f"{shell_name(leg.name)}.{attempt}"
    path.mkdir(parents=True)
    (path / "stdout").write_text(stdout)
    (path / "stderr").write_text(stderr)
    if status is not None:
        (path / "status").write_text(status)
    forth, back = leg.traffic.exact or (0, 0)
    if ranks is None:
        ranks = (
            rank_text(0, sent=forth, received=back),
            rank_text(1, sent=back, received=forth),
        )
    for number, text in enumerate(ranks):
        (path / f"rank.{number}.0").write_text(text)
    return path


def slower(text: str, factor: float) -> str:
    """Return an OSU table with all bandwidths of 4 KiB and more divided by ``factor``."""
    lines = []
    for line in text.splitlines():
        head, *rest = line.split()
        if head.isdigit() and int(head) >= 4096:
            lines.append(f"{head:<10}{float(rest[0]) / factor:18.2f}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
