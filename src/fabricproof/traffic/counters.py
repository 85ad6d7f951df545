"""What the counters of a run say beside its bytes: errors, losses, congestion, and doubts.

A counter that rises is one of three things: an **error**, over which no number is a PASS; a
**note**, worth reading and no verdict; or, where it went backwards or stands at its end, a
**doubt**: then nobody knows whether errors rose.  Names are the kernel's; what ``rank.sh`` adds has
a prefix (``aer_``, ``ethtool.``).  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: the TCP of a whole node stands in the evidence as an interface of this name
TCP = "node/tcp"

#: Counters whose rise during a run makes its number doubtful, whatever it is.
#: ``link_error_recovery``, ``symbol_error`` ...: IBA specification vol. 1, 16.1.3.5 PortCounters.
#: ``carrier_changes``: the link went down and came up again, as ``link_downed`` on InfiniBand.
#: ``aer_nonfatal``, ``aer_fatal``: uncorrectable errors of the PCIe link (PCI Express Base
#: Specification, Advanced Error Reporting).  ``rx_icrc_encapsulated``: RoCE packets whose
#: end-to-end checksum is wrong (NVIDIA, "Understanding mlx5 Linux Counters").
#: ``retry_exceeded_err``, ``retry_rnr_exceeded_err``: Soft-RoCE gave a connection up (RXE_CNT_
#: RETRY_EXCEEDED, RXE_CNT_RNR_RETRY_EXCEEDED: Linux drivers/infiniband/sw/rxe/rxe_hw_counters.h,
#: rxe_comp.c); its ``link_downed`` is of that header too.
ERROR_COUNTERS = frozenset(
    {
        "rx_errors",
        "tx_errors",
        "rx_crc_errors",
        "carrier_changes",
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "port_rcv_errors",
        "port_xmit_discards",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "rx_icrc_encapsulated",
        "retry_exceeded_err",
        "retry_rnr_exceeded_err",
        "aer_nonfatal",
        "aer_fatal",
    }
)

#: Counters whose rise is reported but is no fault by itself: packets thrown away for want of a
#: buffer, or of a subnet manager's attention (``VL15_dropped`` are management packets).
DROP_COUNTERS = frozenset(
    {"rx_dropped", "tx_dropped", "rx_missed_errors", "rx_drops", "VL15_dropped"}
)

#: Packets that a link of Omni-Path sent again by itself: it does so as a matter of course, none is
#: lost, and their rate is the bit error rate of its cable.  No name of the kernel's.
LINK_REPLAYS = "link_replays"

#: Congestion and slow receivers: RoCE's notification packets, receivers without a posted buffer
#: (Soft-RoCE: RXE_CNT_RCV_RNR, RXE_CNT_SND_RNR).
CONGESTION_COUNTERS = frozenset(
    {
        "np_cnp_sent",
        "rp_cnp_handled",
        "np_ecn_marked_roce_packets",
        "rnr_nak_retry_err",
        "rcvd_rnr_err",
        "send_rnr_err",
    }
)

#: Packets that RDMA had to send again, or waited for in vain.  ``pct_spt_timeouts``: what Slingshot
#: sent and nobody answered in time (HPE's shs-cxi-driver, telemetry; its retry handler sends it
#: again).  The five before it are Soft-RoCE's: tried again by the sender, seen twice by the
#: receiver, a gap that the receiver saw, its complaint that the sender got, and packets that the
#: interface below did not take (RXE_CNT_COMP_RETRY, _DUP_REQ, _OUT_OF_SEQ_REQ, _RCV_SEQ_ERR,
#: _SEND_ERR).
RDMA_LOSS_COUNTERS = frozenset(
    {
        "packet_seq_err",
        "out_of_sequence",
        "local_ack_timeout_err",
        "roce_adp_retrans",
        "retrans_pkts",
        "completer_retry_err",
        "duplicate_request",
        "out_of_seq_request",
        "rcvd_seq_err",
        "send_err",
        "pct_spt_timeouts",
    }
)

#: of ``ethtool -S``, whose names are each driver's own
_ETHTOOL_ERRORS = re.compile(r"crc.*err|symbol_err|link_down_events")

#: Share of TCP's segments sent again from which it is noted, and how many they must be: our choice.
#: What of it was lost is judged as a rate: :mod:`fabricproof.traffic.error_rates`.
TCP_NOTE_SHARE = 0.001
FEW = 100

#: Corrected errors of the PCIe link within one leg that its specification does not explain.  It
#: allows one wrong bit in 10^12 (PCI Express Base Specification, 8.3: BER 1e-12), a quarter of an
#: error each second on 16 lanes of 16 GT/s; a leg takes seconds.
PCIE_CORRECTED = 100

#: Share of packets that carry a mark of congestion from which it is noted: our choice.
CONGESTION_SHARE = 0.001

#: A port that waited for credits this many times as long as it took to send its data is noted.  The
#: tick of PortXmitWait is the port's own (IBA specification vol. 1, 16.1.3.5), about the time of
#: one word of four bytes: our choice.
WAIT_SHARE = 0.5

#: Where counters of InfiniBand's PortCounters stop (widths in bits: IBA specification vol. 1,
#: 16.1.3.5; Linux drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR): they do not wrap, so that one at
#: its end shows no rise.
ENDS = {
    "symbol_error": 2**16 - 1,
    "link_error_recovery": 2**8 - 1,
    "link_downed": 2**8 - 1,
    "port_rcv_errors": 2**16 - 1,
    "port_xmit_discards": 2**16 - 1,
    "local_link_integrity_errors": 2**4 - 1,
    "excessive_buffer_overrun_errors": 2**4 - 1,
}

#: an error counter that stood this high before a run is noted
HIGH = 1000


#: a device of libfabric's cxi provider (Slingshot), which has no ports (cxip_env.c: cxi0 to cxi99)
_CXI = re.compile(r"cxi[0-9]")


def is_device(rail: str) -> bool:
    """Tell whether a rail is a port of an RDMA device or a Slingshot device, and no interface.

    What goes over it is no TCP: the kernel's sockets neither carry nor count it.
    """
    return ":" in rail or _CXI.match(rail) is not None


@dataclass(frozen=True, kw_only=True)
class CounterSample:
    """One interface's counters on one node before and after a run, by counter name.

    ``tx_bytes`` and ``rx_bytes`` must be there; error and drop counters may be.  ``address`` is
    the interface's MAC address, None where it has none or nobody read it.  ``parent`` is the
    interface below the port of a Soft-RoCE device, empty where it does not say which; None for
    all that is no such port.  ``netdev`` is the interface of a Slingshot device, whose bytes its
    link counts too.  ``set_back`` are counters that a later start of the leg found lower
    than an earlier one had left them: what they moved is not known.
    """

    node: str
    interface: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    address: str | None = None
    parent: str | None = None
    netdev: str | None = None
    set_back: frozenset[str] = frozenset()

    def moved(self, counter: str) -> int:
        """Return how far ``counter`` advanced; 0 where it was not read both before and after."""
        if not self.has(counter):
            return 0
        return self.after[counter] - self.before[counter]

    def has(self, counter: str) -> bool:
        """Tell whether ``counter`` was read both before and after."""
        return counter in self.before and counter in self.after

    def ran_backwards(self, counter: str) -> bool:
        """Tell whether ``counter`` wrapped or was reset during the run, or between its starts."""
        return self.moved(counter) < 0 or counter in self.set_back


#: node, interface and name of a counter
Risen = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Rises:
    """What rose on the rails of a run, one sentence each.

    Attributes:
        errors: a fast number over them is no PASS.
        doubts: counters of errors of which nobody knows whether they rose.
        notes: drops, congestion, a few retransmissions.
        rose: node, interface and counter of each of ``errors``.
    """

    errors: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rose: tuple[Risen, ...] = ()


def read_rises(samples: Iterable[CounterSample], rails: Sequence[str]) -> Rises:
    """Return what the counters of the rails, and TCP of their nodes, say beside the bytes.

    What is below the port of a Soft-RoCE device counts with it: there its wire ends.
    """
    samples = tuple(samples)
    below = {(each.node, each.parent) for each in samples if each.interface in rails}
    errors: list[str] = []
    doubts: list[str] = []
    notes: list[str] = []
    rose: set[Risen] = set()
    over_tcp = any(not is_device(rail) for rail in rails)
    for sample in samples:
        if sample.interface == TCP and over_tcp:
            _tcp(sample, notes)
        if sample.interface not in rails and (sample.node, sample.interface) not in below:
            continue
        for counter, said in _errors(sample):
            errors.append(said)
            rose.add((sample.node, sample.interface, counter))
        doubts += _doubts(sample)
        notes += [*_notes(sample), *_high(sample)]
        _rdma(sample, notes)
    notes += _one_sided(samples, rails)
    return Rises(
        errors=tuple(errors), doubts=tuple(doubts), notes=tuple(notes), rose=tuple(sorted(rose))
    )


def _one_sided(samples: Sequence[CounterSample], rails: Sequence[str]) -> Iterator[str]:
    """Yield which ports count errors and losses on one node that they do not on another.

    What rises on neither may have risen where nobody counts.  Of interfaces nothing is said: their
    counters are the kernel's own and on every node the same.
    """
    for rail in rails:
        ports = [each for each in samples if each.interface == rail and is_device(rail)]
        told = {
            each.node: {
                name for name in _names(each) if name in ERROR_COUNTERS | RDMA_LOSS_COUNTERS
            }
            for each in ports
        }
        everywhere = set().union(*told.values())
        for node, names in told.items():
            absent = sorted(everywhere - names)
            if absent:
                yield (
                    f"{', '.join(absent)} of {rail} were read on another node and not on {node}: "
                    "had they risen there, nobody would know"
                )


def _rose(sample: CounterSample, counter: str) -> str:
    return f"{counter} of {sample.interface} on {sample.node} rose by {sample.moved(counter)}"


def _names(sample: CounterSample) -> list[str]:
    return sorted({*sample.before, *sample.after})


def _is_error(counter: str) -> bool:
    if counter.startswith("ethtool."):
        return bool(_ETHTOOL_ERRORS.search(counter))
    return counter in ERROR_COUNTERS


def _errors(sample: CounterSample) -> Iterator[tuple[str, str]]:
    for counter in _names(sample):
        if _is_error(counter) and sample.moved(counter) > 0:
            yield counter, _rose(sample, counter) + _MEANINGS.get(counter, "")
    if sample.moved("aer_correctable") >= PCIE_CORRECTED:
        counter = "aer_correctable"
        yield counter, _rose(sample, counter) + ": the PCIe link repeats packets"


_MEANINGS = {
    "carrier_changes": ": the link went down or came up during the run",
    "aer_nonfatal": ": the PCIe link lost packets",
    "aer_fatal": ": the PCIe link failed",
    "retry_exceeded_err": ": the device gave a connection up",
    "retry_rnr_exceeded_err": ": the device gave up on a receiver that had no buffer",
}


def reset_of(sample: CounterSample) -> str:
    """Return where and how the counters of an InfiniBand port are reset.

    Without device and port the command resets those of the first port of its node.
    """
    device, _, port = sample.interface.partition(":")
    return f"on {sample.node}: perfquery -R -C {device} -P {port}"


def _doubts(sample: CounterSample) -> Iterator[str]:
    """Yield the counters of errors that may have hidden a rise."""
    whose = f"of {sample.interface} on {sample.node}"
    is_port = ":" in sample.interface
    for counter in _names(sample):
        if not _is_error(counter):
            continue
        if sample.ran_backwards(counter):
            yield f"{counter} {whose} ran backwards (wrapped or reset during the run)"
        elif counter in sample.before and counter not in sample.after:
            yield f"{counter} {whose} was not read after the run"
        elif (
            is_port
            and sample.parent is None
            and sample.before.get(counter) == ENDS.get(counter, -1)
        ):
            end = f"{counter} {whose} stands at its end and shows no rise"
            yield f"{end} (reset it {reset_of(sample)})"


def _notes(sample: CounterSample) -> Iterator[str]:
    for counter in _names(sample):
        rise = sample.moved(counter)
        if rise > 0 and _is_note(sample, counter, rise):
            yield _rose(sample, counter)
    words = sample.moved("tx_bytes") / 4
    if sample.moved("port_xmit_wait") > WAIT_SHARE * words > 0:
        yield (
            f"{_rose(sample, 'port_xmit_wait')} ticks for {words:.0f} words sent: it waited for "
            "credits of its peer: congestion, or a slow receiver"
        )


def _is_note(sample: CounterSample, counter: str, rise: int) -> bool:
    if counter.startswith("ethtool."):
        return not _ETHTOOL_ERRORS.search(counter)
    if counter in CONGESTION_COUNTERS:
        packets = sample.moved("tx_packets") + sample.moved("rx_packets")
        return rise >= CONGESTION_SHARE * packets
    corrected = counter == "aer_correctable" and rise < PCIE_CORRECTED
    return counter in DROP_COUNTERS or counter == LINK_REPLAYS or corrected


def _high(sample: CounterSample) -> Iterator[str]:
    """Yield the counters of errors that stood high already: somebody should look at the link."""
    for counter in _names(sample):
        stood = sample.before.get(counter, 0)
        if _is_error(counter) and stood >= HIGH:
            yield (
                f"{counter} of {sample.interface} on {sample.node} stood at {stood} before the run"
            )


def _tcp(sample: CounterSample, notes: list[str]) -> None:
    sent, again = sample.moved("OutSegs"), sample.moved("RetransSegs")
    if sent > 0 and again > 0:
        share = again / (sent + again)
        said = f"TCP on {sample.node} sent {again} of {sent + again} segments again ({share:.2%})"
        if again >= FEW and share >= TCP_NOTE_SHARE:
            notes.append(said)
    if sample.moved("ListenDrops") > 0:
        notes.append(
            f"{_rose(sample, 'ListenDrops').replace(TCP, 'TCP')}: connections were refused at first"
        )


def _rdma(sample: CounterSample, notes: list[str]) -> None:
    lost = {
        counter: sample.moved(counter)
        for counter in sorted(RDMA_LOSS_COUNTERS)
        if sample.moved(counter) > 0
    }
    if not lost:
        return
    packets = max(sample.moved("tx_packets"), sample.moved("rx_packets"), 1)
    worst = max(lost, key=lost.__getitem__)
    share = lost[worst] / packets
    named = ", ".join(f"{counter} {rise}" for counter, rise in lost.items())
    notes.append(
        f"RDMA over {sample.interface} on {sample.node} lost packets or their order: {named} "
        f"({share:.2%} of {packets} packets)"
    )
