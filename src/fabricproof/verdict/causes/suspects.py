"""Why a number may be out of its bounds: a table of causes, one row each.

A cause is a suspicion, never a verdict.  ``docs/how-to-add-a-cause.md`` shows how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fabricproof.benchmarks.catalogue import reading_of
from fabricproof.benchmarks.program import NCCL_SUITES, ProgramKind
from fabricproof.core.measure import Table, Verdict
from fabricproof.core.units import size_label
from fabricproof.physics import (
    Ceiling,
    Fabric,
    Link,
    bound,
    ceilings,
    ethernet_link,
    find_slot,
    known_links,
)
from fabricproof.verdict.causes.evidence import (
    AT_RATE,
    IPERF,
    DoubtfulNumber,
    Words,
    prints,
    through_host,
)
from fabricproof.verdict.value import Judgement

#: so many causes of one number are named
MOST = 3

#: As AT_RATE, of a slot, whose packets may have more overhead than is stated; and of one direction,
#: which has the acknowledgements of the other beside it.
AT_SLOT, AT_ONE_WAY = 0.95, 0.85

#: A row that carries less than this part of what a shorter message carried falls.
FALLS = 0.8

#: Sockets take longer for a small message than this, in us, and verbs less: 13.6 us by TCP over
#: 25GbE, 1 to 3 by verbs.  In a window of messages each costs 2.1 to 2.6 us, and 0.1 to 1 by verbs.
TCP_LATENCY_US, TCP_MESSAGE_US, SMALL_BYTES = 8.0, 2.0, 128

#: A wrong socket leaves more than this part (5.8 of 7.9 GB/s, two ports of a ConnectX-3; 5.6 of
#: 6.7 by FDR): what is slower has another cause.
FAR_SOCKET = 0.5

#: A peak of so many times the average: it stood still in between.  Undisturbed runs have 1.05.
STALLED = 1.5

#: ports of Ethernet that nodes have, in Gb/s; and those of cheap adapters
PORTS_GBIT_S = (1, 10, 25, 40, 50, 100, 200, 400)
CHEAP_PORTS_GBIT_S = (1, 2.5, 5)

#: Verbs take at least so long for a message, in us; what copies within a node takes less.
VERBS_LATENCY_US = 0.8

#: Up to here an MPI library changes its protocol, and its curve has no plateau that a slot could
#: hold down: our choice (ompi issue 1831: osu_bibw cut at 64 KiB, MXM at fault).
LEAST_PLATEAU_BYTES = 256 * 1024

#: slots that cards end up in, or train down to, from the slowest
SLOTS = ("1.0x8", "2.0x4", "2.0x8", "3.0x4", "3.0x8", "4.0x8", "3.0x16")
#: MaxPayload that many machines run at while the specification allows more
SMALL_MAX_PAYLOAD = 128


class Cause(NamedTuple):
    """One row: its name, when it fits, what it says, and where that was seen or is documented.

    ``when`` returns what stands in the braces of the sentence; nothing if it does not fit.
    """

    name: str
    when: Callable[[DoubtfulNumber], Words | bool]
    sentence: str
    source: str


def _soft_device(number: DoubtfulNumber) -> Words:
    said = number.table.attributes
    device = str(said.get("device", said.get("network_devices", "")))
    is_soft = device.startswith(("rxe", "siw")) and not number.fabric.link.is_soft
    return {"device": device} if is_soft else {}


def _fewer_devices(number: DoubtfulNumber) -> Words:
    said, rails = number.table.attributes, number.fabric.num_rails
    is_fewer = 0 < int(said.get("num_devices", 0)) < rails and number.table.suite not in NCCL_SUITES
    return {"devices": said["network_devices"], "rails": rails} if is_fewer else {}


def _stalls(number: DoubtfulNumber) -> Words:
    size = number.judgement.message_size
    for row in number.table.named_rows if number.is_bandwidth else ():
        peak = row.get("bandwidth_peak_mb_s", 0.0)
        if row.get("message_size") == size and peak >= STALLED * number.value > 0:
            return {"ratio": peak / number.value}
    return {}


def _falls(number: DoubtfulNumber) -> Words:
    size, wanted = number.judgement.message_size, number.judgement.reference
    is_low = number.value < FALLS * number.best_mb_s
    if not number.is_bandwidth or not is_low or size is None or wanted is None:
        return {}
    best_size, best = max(number.curve, key=lambda row: row[1])
    words = {"size": size_label(best_size), "best": best, "share": best / wanted}
    return words if best_size < size else {}


def _sockets(number: DoubtfulNumber) -> Words:
    first, time_us, least_us = number.table.named_rows[0], 0.0, TCP_MESSAGE_US
    size, rate = number.curve[0] if number.curve else (0, 0.0)
    if number.is_bandwidth and number.table.suite.startswith("osu"):  # a window of messages
        time_us = size / rate if 0 < size <= SMALL_BYTES and rate else 0.0
    is_latency = reading_of(number.table).kind is ProgramKind.LATENCY
    if is_latency and first.get("message_size", SMALL_BYTES) < SMALL_BYTES:
        time_us = first.get("latency_us", first.get("latency_avg_us", 0.0))
        least_us = TCP_LATENCY_US
    return {"time": time_us} if number.is_verbs and time_us >= least_us else {}


def _one_rail(number: DoubtfulNumber) -> Words:
    if not number.is_plateau or number.fabric.num_rails < 2:
        return {}
    return number.at(bound(replace(number.fabric, num_rails=1)), AT_SLOT)


def _one_direction(number: DoubtfulNumber) -> Words:
    one = bound(replace(number.fabric, bidirectional=False))
    is_both = number.is_plateau and number.fabric.bidirectional
    return number.at(one, AT_ONE_WAY) if is_both else {}


def _one_connection(number: DoubtfulNumber) -> bool:
    fabric = number.fabric
    is_one = not number.has_several_flows and fabric.flow_limit_gbit_s is None
    return number.is_plateau and number.is_tcp and is_one and fabric.link.data_rate_gbit_s >= 10


def _links(number: DoubtfulNumber) -> Iterator[tuple[Link, Ceiling]]:
    """Yield the links that the run may have had instead, with what each would carry.

    A port trains down in speed or in lanes; Ethernet has the rates of other ports.  Beside another
    fabric Ethernet counts only where the table shows sockets.
    """
    mine = number.fabric.link
    bare = replace(
        number.fabric, slot=None, max_payload_bytes=None, rails_share_slot=False, gpus=None,
        flow_limit_gbit_s=None, capability_mb_s=None, unlike_rails_high_mb_s=None, shaper=None,
    )  # fmt: skip
    for link in known_links().values() if mine.technology != "ethernet" else ():
        has_lanes = link.lanes in {mine.lanes, 4}
        fewer_lanes = link.line_rate_gbit_s == mine.line_rate_gbit_s and link.lanes < mine.lanes
        if link.technology == mine.technology and (has_lanes or fewer_lanes):
            yield link, bound(replace(bare, link=link))
    if mine.technology != "ethernet":
        if not _sockets(number) and "tcp" not in str(number.table.attributes.get("network", "")):
            return
        bare = replace(bare, link=ethernet_link(1), protocol="tcp", mtu=None, num_rails=1)
    for link in map(ethernet_link, PORTS_GBIT_S):
        yield link, bound(replace(bare, link=link))


def _other_link(number: DoubtfulNumber, *, is_faster: bool = False) -> Words:
    is_told = bool(_one_rail(number) or _one_direction(number))
    mine, links = number.fabric.link, _links(number) if number.is_plateau and not is_told else ()
    fits = [
        (abs(found["share"] - 1), link.name, found)
        for link, limit in links
        if link.data_rate_mb_s != mine.data_rate_mb_s
        and (link.data_rate_mb_s > mine.data_rate_mb_s) is is_faster
        and (link.technology == mine.technology or not is_faster)
        and (found := number.at(limit))
    ]
    if not fits:
        return {}
    _, name, found = min(fits, key=lambda fit: fit[0])
    return {"link": name, **found}


def _slower_slot(number: DoubtfulNumber) -> Words:
    fabric, size = number.fabric, number.judgement.message_size
    if number.table.suite != "perftest" and size is not None and size < LEAST_PLATEAU_BYTES:
        return {}
    for name in SLOTS if number.is_plateau and not fabric.link.is_soft else ():
        slot = find_slot(name)
        if fabric.slot is not None and slot.raw_mb_s >= fabric.slot.raw_mb_s:
            continue
        small = fabric.max_payload_bytes or SMALL_MAX_PAYLOAD
        low, high = (
            next(each for each in ceilings(in_slot) if each.name == "slot_packet")
            for in_slot in (
                replace(fabric, slot=slot, max_payload_bytes=small),
                replace(fabric, slot=slot),
            )
        )
        if found := number.at(replace(high, low_mb_s=low.low_mb_s), AT_SLOT):
            return {"slot": name, **found}
    return {}


def _smaller_port(number: DoubtfulNumber) -> Words:
    half_gbit_s = number.fabric.link.data_rate_gbit_s / 2
    fits = [rate for rate in CHEAP_PORTS_GBIT_S if number.value * 8 / 1000 <= rate <= half_gbit_s]
    is_sockets = number.is_plateau and number.table.suite in IPERF
    return {"rate": fits[0]} if is_sockets and fits else {}


def _far_socket(number: DoubtfulNumber) -> bool:
    fabric, wanted = number.fabric, number.judgement.reference or 0.0
    has_slot = number.is_verbs or fabric.slot is not None or fabric.link.technology != "ethernet"
    is_near = number.value >= FAR_SOCKET * wanted
    return number.is_plateau and has_slot and not fabric.link.is_soft and is_near


def _more_rails(number: DoubtfulNumber) -> Words:
    one = bound(number.fabric)
    for count in range(2, 9) if not number.is_latency else ():
        if AT_RATE * count * one.low_mb_s <= number.value <= count * one.high_mb_s:
            rails = count * number.fabric.num_rails
            return {"factor": number.value / one.low_mb_s, "count": count, "rails": rails}
    return {}


def _verbs_instead(number: DoubtfulNumber) -> bool:
    is_tcp = number.is_latency and number.fabric.framing.name.startswith("tcp")
    return is_tcp and number.value >= VERBS_LATENCY_US


def _bare_link(number: DoubtfulNumber) -> Words:
    high = ceilings(number.fabric)[0].high_mb_s
    is_above = not number.is_latency and number.value > high
    return {"share": number.value / high, "high": high} if is_above else {}


#: what the output says itself
PRINTED = (
    Cause("soft_device", _soft_device,
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
    Cause("fewer_devices", _fewer_devices,
          "the library used {devices} alone, and {rails} rails are declared",
          "openucx/ucx issue 8851"),
)  # fmt: skip

#: what the other numbers of the table show
SHOWN = (
    Cause("stalls", _stalls,
          "its peak is {ratio:.1f} times the average: it stood still in between; look at pause "
          "frames and drops of ports and switches, and at other traffic",
          "perftest by RoCE between pods: peak 47.22, average 18.58 Gb/s"),
    Cause("falls", _falls,
          "{size} carried {best:.0f} MB/s ({share:.0%}), so link and slot carry that: longer "
          "messages lose it to rendezvous, registration of memory or copies",
          "IMB Sendrecv over HDR100: 17617 MB/s at 512 KiB, 2727 at 4 MiB"),
    Cause("sockets", _sockets,
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
    Cause("one_rail", _one_rail,
          "about what one rail carries ({limit:.0f}): did the others take part?",
          "document 002: one of the two ports of a ConnectX-3"),
    Cause("one_direction", _one_direction,
          "{share:.0%} of one direction's {limit:.0f} MB/s: the two seem to take turns; measure "
          "one alone, and without the container",
          "osu_bibw in Apptainer over EDR: 11212 MB/s both ways"),
    Cause("one_connection", _one_connection,
          "one TCP connection: its window, one core or a per-flow limit of the provider is likely; "
          "measure with several",
          "document 001: 9.46 Gb/s of 100GbE by one, 25.4 by four; 7.24 Gb/s of 10GbE by one"),
    Cause("one_core",
          lambda number: number.is_plateau and number.is_tcp and number.has_several_flows,
          "several connections: if one process drives them all, one core is the likely bound "
          "(iperf3 before 3.16), or their window",
          "document 001: 36 connections, 2811 MB/s; esnet/iperf issue 286 and notes of 3.16"),
    Cause("other_link", _other_link,
          "{link} to {share:.1%}: trained down, or another port or interface",
          "ib_write_bw on a virtual function of 100GbE: 2892 MB/s; over rxe0: 115.64 MB/s"),
    Cause("smaller_port", _smaller_port,
          "a port or adapter of {rate:g} Gb/s could carry it: compare the speed at both ends",
          "iperf3 on Windows, two connections over 10GbE: 3.34 Gb/s"),
)  # fmt: skip

#: usual for this kind of program and fabric, named beside nothing surer; a slot's range is wide
USUAL = (
    Cause("slower_slot", _slower_slot,
          "what a PCIe {slot} slot carries ({low:.0f} to {high:.0f} MB/s): compare the slot's "
          "negotiated generation and width (LnkSta of lspci -vv)",
          "document 002: QDR in a slot 2.0 x8, 3376 MB/s"),
    Cause("gpu_path",
          lambda number: not number.is_latency
          and (number.table.suite in NCCL_SUITES or number.fabric.gpus is not None),
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
          lambda number: number.fabric.bidirectional and _far_socket(number),
          "measure one direction alone: if that reaches its ceiling, link and slot are whole, and "
          "what is short is the core or the memory that serve both ways at once",
          "osu_bibw over EDR: 20.8 of 24.3 GB/s"),
    Cause("far_socket", _far_socket,
          "the rank may sit on the wrong socket: bind it to the one that the HCA's slot belongs to "
          "(numa_node of the device in sysfs)",
          "document 002: two ports of a ConnectX-3, 5.8 GB/s"),
)  # fmt: skip

#: no cause, but the measurement that would tell
NEXT = (
    Cause("ask_third_node", lambda number: number.table.suite == "perftest",
          "measure each of the two nodes with a third: the one that stays slow has the fault",
          "docs/pairs.md"),
    Cause("ask_sockets", lambda number: number.table.suite in IPERF,
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
    Cause("verbs_instead", _verbs_instead,
          "so long take verbs: the library may have used RDMA of the same port",
          "open-mpi/ompi issue 12785, openucx/ucx issue 10049: 1.33 us where TCP was asked for"),
    Cause("more_rails", _more_rails,
          "it is {factor:.2f} times what is declared: {count} interfaces? then rails={rails}",
          "a bond of two ports of 1GbE: 1.995 times"),
    Cause("faster_link", lambda number: _other_link(number, is_faster=True),
          "it is {link} to {share:.1%}: is that the link?",
          "ib_write_bw on a virtual function, the same law"),
    Cause("bare_link", _bare_link,
          "it is {share:.0%} of the bare link's {high:.0f} MB/s", "docs/physics.md"),
)  # fmt: skip


def causes_of(judgement: Judgement, table: Table, fabric: Fabric) -> list[tuple[str, str]]:
    """Return name and sentence of each cause of what is out of its bounds, surest first.

    ``table`` is where the judgement stands, ``fabric`` as the program loads it.
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
    fitting = [(row, words) for row in rows if (words := row.when(number))][:MOST]
    return [
        (row.name, row.sentence.format(**(words if isinstance(words, Mapping) else {})))
        for row, words in fitting
    ]


def explained(
    judgements: Sequence[Judgement], table: Table, fabric: Fabric | None
) -> list[Judgement]:
    """Return the judgements of a table, with the causes in the reasons of those that are named.

    If nothing that is named is red, in that of the last that is.  A table that holds something
    impossible says nothing of what is low in it.
    """
    judged = list(judgements)
    if fabric is None:
        return judged
    is_invalid = any(each.verdict is Verdict.INVALID for each in judged)
    verdict = Verdict.INVALID if is_invalid else Verdict.FAIL
    red = [at for at, each in enumerate(judged) if each.verdict is verdict]
    found = {at: causes for at in red if (causes := causes_of(judged[at], table, fabric))}
    for at in [at for at in found if judged[at].named] or [*found][-1:]:
        sentences = [text for _, text in found[at]]
        judged[at] = replace(judged[at], reason="; ".join([judged[at].reason, *sentences]))
    return judged


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
