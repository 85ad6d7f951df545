"""Why a number may be out of its bounds: a table of causes, one row each.

A cause is a suspicion, never a verdict.  ``docs/how-to-add-a-cause.md`` shows how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import ProgramKind
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import size_label
from fabricproof.physics import Fabric
from fabricproof.verdict.causes import evidence
from fabricproof.verdict.causes.evidence import DoubtfulNumber, Words, prints, through_host
from fabricproof.verdict.value import Judgement

#: so many causes of one number are named
MOST = 3

#: a message that takes less than this part of a shorter one's time goes another way
INVERTED = 0.5


class Cause(NamedTuple):
    """One row: its name, when it fits, what it says, and where that was seen or is documented.

    ``when`` returns what stands in the braces of the sentence; nothing if it does not fit.
    """

    name: str
    when: Callable[[DoubtfulNumber], Words | bool]
    sentence: str
    source: str


#: what the output says itself
PRINTED = (
    Cause("soft_device", evidence.soft_device,
          "{device} is a software device: a core moves the bytes over an interface, no HCA",
          "rdma-link(8), types rxe and siw; perftest over rxe0 beside 100GbE: 115.64 MB/s"),
    Cause("no_device", prints("no_device"),
          "it warned that an adapter cannot be used: another transport or device carried it",
          "help-mpi-btl-openib.txt of Open MPI; libibverbs/init.c of rdma-core"),
    Cause("locked_memory", prints("locked_memory"),
          "it warned that memory cannot be registered: raise the limit of locked memory, ulimit -l",
          "help-mpi-btl-openib.txt of Open MPI; libibverbs/init.c of rdma-core"),
    Cause("no_gpudirect", prints("no_gpudirect"),
          "NCCL says that channels run without GPUDirect (no GDRDMA behind NET/IB): is "
          "nvidia-peermem loaded, and are GPU and NIC near each other (nvidia-smi topo -m)?",
          "src/transport/net.cc and net_ib.cc of NVIDIA/nccl"),
    Cause("cpu_frequency", lambda number: number.is_latency and prints("cpu_frequency")(number),
          "it warned that the CPU is not at its highest frequency, which lengthens each message, "
          "and times come from its clock (cpupower frequency-set -g performance)",
          "src/get_clock.c of linux-rdma/perftest; openucx/ucx issue 6242"),
    Cause("fewer_devices", evidence.fewer_devices,
          "the library used {devices} alone, and {rails} rails are declared",
          "openucx/ucx issue 8851"),
)  # fmt: skip

#: what the other numbers of the table show
SHOWN = (
    Cause("stalls", evidence.stalls,
          "its peak is {ratio:.1f} times the average: it stood still in between; look at pause "
          "frames and drops of ports and switches, and at other traffic",
          "perftest by RoCE between pods: peak 47.22, average 18.58 Gb/s"),
    Cause("falls", evidence.falls,
          "{size} carried {best:.0f} MB/s ({share:.0%}), so link and slot carry that: longer "
          "messages lose it to rendezvous, registration of memory or copies",
          "IMB Sendrecv over HDR100: 17617 MB/s at 512 KiB, 2727 at 4 MiB"),
    Cause("sockets", evidence.sockets,
          "a small message takes {time:.3g} us, as by TCP and not by verbs: the library fell back "
          "to sockets, perhaps over another interface",
          "Intel MPI by TCP over 25GbE beside EDR: 13.55 us, and 2.56 us in a window"),
)  # fmt: skip

#: a known limit that the number is at
MATCHES = (
    Cause("through_host",
          lambda number: {"it": through_host(number.value, number.fabric)}
          if not number.is_latency and through_host(number.value, number.fabric) else {},
          "{it}", "H. Wang et al., MVAPICH2-GPU, ISC 2011"),
    Cause("one_rail", evidence.one_rail,
          "about what one rail carries ({limit:.0f}): did the others take part?",
          "document 002: one of the two ports of a ConnectX-3"),
    Cause("one_direction", evidence.one_direction,
          "{share:.0%} of one direction's {limit:.0f} MB/s: the two seem to take turns; measure "
          "one alone, and without the container",
          "osu_bibw in Apptainer over EDR: 11212 MB/s both ways"),
    Cause("one_connection", evidence.one_connection,
          "one TCP connection: its window, one core or a per-flow limit of the provider is likely; "
          "measure with several",
          "document 001: 9.46 Gb/s of 100GbE by one, 25.4 by four; 7.24 Gb/s of 10GbE by one"),
    Cause("one_core",
          lambda number: number.is_plateau and number.is_tcp and number.has_several_flows,
          "several connections: if one process drives them all, one core is the likely bound "
          "(iperf3 before 3.16), or their window",
          "document 001: 36 connections, 2811 MB/s; esnet/iperf issue 286 and notes of 3.16"),
    Cause("other_link", evidence.other_link,
          "{link} to {share:.1%}: trained down, or another port or interface",
          "ib_write_bw on a virtual function of 100GbE: 2892 MB/s; over rxe0: 115.64 MB/s"),
    Cause("smaller_port", evidence.smaller_port,
          "a port or adapter of {rate:g} Gb/s could carry it: compare the speed at both ends",
          "iperf3 on Windows, two connections over 10GbE: 3.34 Gb/s"),
)  # fmt: skip

#: usual for this kind of program and fabric, named beside nothing surer; a slot's range is wide
USUAL = (
    Cause("slower_slot", evidence.slower_slot,
          "what a PCIe {slot} slot carries ({low:.0f} to {high:.0f} MB/s): compare the slot's "
          "negotiated generation and width (LnkSta of lspci -vv)",
          "document 002: QDR in a slot 2.0 x8, 3376 MB/s"),
    Cause("gpu_path",
          lambda number: not number.is_latency and number.has_gpus,
          "PCIe ACS or an IOMMU may send what goes from GPU to NIC through the CPU (lspci -vvv, "
          "ACSCtl), or GPUDirect is off (NCCL_DEBUG=INFO prints GDRDMA if it is on)",
          "NVIDIA NCCL user guide, PCI Access Control Services; NVIDIA/nccl issue 2409"),
    Cause("lossy_ethernet",
          lambda number: number.is_bandwidth and number.is_verbs
          and number.fabric.link.technology == "ethernet",
          "RoCE sends again what Ethernet drops: compare the adapter's out_of_sequence and pause "
          "counters before and after (rdma statistic show, ethtool -S)",
          "rdma-statistic(8)"),
    Cause("software", lambda number: number.is_bandwidth and number.fabric.link.is_soft,
          "a Soft-RoCE device is a core's work: one that shares its core, or that is emulated on a "
          "busy machine, carries less",
          "rdma-link(8), type rxe"),
    # One process sends and receives, memory moves twice the bytes, and PCIe carries the requests
    # of one way beside the data of the other.
    Cause("both_ways",
          lambda number: number.fabric.bidirectional and evidence.far_socket(number),
          "measure one direction alone: if that reaches its ceiling, link and slot are whole, and "
          "what is short is the core or the memory that serve both ways at once",
          "osu_bibw over EDR: 20.8 of 24.3 GB/s"),
    Cause("far_socket", evidence.far_socket,
          "the rank may sit on the wrong socket: bind it to the one that the HCA's slot belongs to "
          "(numa_node of the device in sysfs)",
          "document 002: two ports of a ConnectX-3, 5.8 GB/s"),
)  # fmt: skip

#: no cause, but the measurement that would tell
NEXT = (
    Cause("ask_third_node", lambda number: number.table.suite == "perftest",
          "measure each of the two nodes with a third: the one that stays slow has the fault",
          "docs/pairs.md"),
    Cause("ask_sockets", lambda number: number.table.suite in evidence.IPERF,
          "measure with four processes: more of it points to window or core, the same to link, "
          "port or drops (ethtool -S)",
          "fasterdata.es.net on iperf3 at 100 Gb/s"),
    Cause("ask_verbs",
          lambda number: number.is_bandwidth
          or reading_of(number.table).kind is ProgramKind.LATENCY,
          "perftest's program (by TCP iperf3 or sockperf) on the same cores tells: as good as it "
          "should be, then MPI or its binding is short, else link, slot, frequency or C-states",
          "README of linux-rdma/perftest"),
    Cause("ask_pairs", lambda number: bool(number.table.rows),
          "measure the pairs of its nodes: if one is slow it is the cause; if none, the algorithm "
          "or the placement",
          "docs/pairs.md"),
)  # fmt: skip

#: of what is above its ceiling, or below its floor
BEYOND = (
    Cause("verbs_instead", evidence.verbs_instead,
          "so long take verbs: the library may have used RDMA of the same port",
          "open-mpi/ompi issue 12785, openucx/ucx issue 10049: 1.33 us where TCP was asked for"),
    Cause("more_rails", evidence.more_rails,
          "it is {factor:.2f} times what is declared: {count} interfaces? then rails={rails}",
          "a bond of two ports of 1GbE: 1.995 times"),
    Cause("faster_link", lambda number: evidence.other_link(number, is_faster=True),
          "it is {link} to {share:.1%}: is that the link?",
          "ib_write_bw on a virtual function, the same law"),
    Cause("bare_link", evidence.bare_link,
          "it is {share:.0%} of the bare link's {high:.0f} MB/s", "docs/physics.md"),
)  # fmt: skip


def causes_of(judgement: Judgement, table: Table, fabric: Fabric) -> list[tuple[str, str]]:
    """Return name and sentence of each cause of what is out of its bounds, surest first.

    Args:
        judgement: of a bandwidth in MB/s or a time in us.
        table: where it stands.
        fabric: as the program loads it.
    """
    value, unit, number = judgement.value, judgement.unit, DoubtfulNumber(judgement, table, fabric)
    if value is None:
        return []
    if judgement.verdict is Verdict.INVALID:
        limit = judgement.ceiling or value
        is_beyond = value > limit if unit == "MB/s" else unit == "us" and value < limit
        return _fitting(BEYOND, number) if is_beyond else []
    is_low = unit == "MB/s" and judgement.lower is not None and value < judgement.lower
    is_long = unit == "us" and judgement.upper is not None and value > judgement.upper
    if judgement.verdict is not Verdict.FAIL or not (is_low or is_long):
        return []
    found = _fitting((*PRINTED, *SHOWN, *MATCHES), number)
    return found or _fitting(USUAL, number) or _fitting(NEXT, number)[:1]


def _fitting(rows: Sequence[Cause], number: DoubtfulNumber) -> list[tuple[str, str]]:
    found = [(row, fits) for row in rows if (fits := row.when(number))][:MOST]
    return [
        (row.name, row.sentence.format(**(fits if isinstance(fits, Mapping) else {})))
        for row, fits in found
    ]


def explained(
    judgements: Sequence[Judgement], table: Table, fabric: Fabric | None
) -> list[Judgement]:
    """Return the judgements of a table, with the causes in the reasons of those that are named.

    Where nothing that is named is red, in that of the last that is.  A table that holds something
    impossible says nothing of what is low in it, and nothing is known without ``fabric``, as the
    program loads it.
    """
    if fabric is None:
        return list(judgements)
    verdict = Verdict.INVALID
    if not any(each.verdict is verdict for each in judgements):
        verdict = Verdict.FAIL
    found = [
        causes_of(each, table, fabric) if each.verdict is verdict else [] for each in judgements
    ]
    told = [at for at, each in enumerate(judgements) if found[at] and each.named]
    told = told or [at for at, each in enumerate(found) if each][-1:]
    return [
        replace(each, reason="; ".join([each.reason, *(text for _, text in found[at])]))
        if at in told
        else each
        for at, each in enumerate(judgements)
    ]


def inverted_latencies(table: Table) -> list[str]:
    """Return the messages that take far less time than shorter ones, in words."""
    name = table.first_of(("latency_us", "latency_avg_us"))
    is_latency = reading_of(table).kind is ProgramKind.LATENCY
    if name is None or not is_latency or "message_size" not in table.columns:
        return []
    rows = [*zip(map(int, table.column("message_size")), table.column(name), strict=True)]
    return [
        f"{size_label(size)} takes {time:g} us, {size_label(shorter)} {longer:g} us: short "
        "messages go another way, and a slower one"
        for (shorter, longer), (size, time) in pairwise(rows)
        if time < INVERTED * longer
    ]


def unended(*, ranks_ended: bool) -> str:
    """Return what keeps a program from ending that printed everything: never the fabric.

    Measured: ``srun --mpi=pmix`` with Open MPI's pml/ucx hung at the end in 5 to 15 % of starts,
    its own mpirun in none of 10.  ``ranks_ended``: only what started them did not end.
    """
    who = "every rank ended, the launcher did not"
    return (
        "it had printed everything and had not ended: "
        f"{who if ranks_ended else 'MPI_Finalize had not returned'}, which says nothing of the "
        "fabric; where srun starts this stack, let its own launcher do it "
        '(launcher = "mpirun" in its [[stacks]])'
    )
