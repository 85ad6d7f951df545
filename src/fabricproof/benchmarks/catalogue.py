"""The benchmark programs, one row each; every room asks here what a program is.

A bandwidth of 7500 MB/s is a fine number from ``osu_bibw`` and an impossible one from ``osu_bw``
over the same QDR link.  A new program is one row here, one recorded output, one check.

Sources.  OSU: titles, times and loops of c/mpi/pt2pt, c/mpi/one-sided and c/mpi/collective of
releases 5.7 to 7.5 (the directories are those of 7.2; up to 6.x the same files stand at the top).
mpi4py: demo/osu_*.py of 4.1.2.  IMB: src_c and src_cpp of 2021.11, ``IMB-* -list``.  perftest:
src/perftest_parameters.c and perftest_resources.c of v4.5-0.20.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fabricproof.benchmarks.program import (
    UNKNOWN,
    Bus,
    BusFactor,
    Collective,
    Consistency,
    Meaning,
    Messages,
    Program,
    ProgramKind,
)
from fabricproof.core.measure import Table
from fabricproof.physics.collective import Operation, Statistic

# How tables are read.

_LATENCY = Meaning(kind=ProgramKind.LATENCY)
_BANDWIDTH = Meaning(kind=ProgramKind.BANDWIDTH)
_BOTH_WAYS = Meaning(kind=ProgramKind.BANDWIDTH, bidirectional=True)
_OPERATION = Meaning(kind=ProgramKind.ROUND_TRIP_FREE)
_PAIRS = Meaning(
    kind=ProgramKind.BANDWIDTH, pairs_share_rails=True, consistency=Consistency.RATE_TIMES_SIZE
)
_STREAM = Meaning(kind=ProgramKind.BANDWIDTH, consistency=Consistency.RATE_TIMES_SIZE)
_PING = Meaning(kind=ProgramKind.BANDWIDTH, consistency=Consistency.SIZE_OVER_TIME)
_ONE_SIDED = replace(_PING, empty_crosses=False)

# What one iteration sends.

_PING_PONG = Messages(forth=1, back=1, in_turn=True)
_BOTH = Messages(forth=1, back=1)
_TWO_BOTH = Messages(forth=2, back=2)
_FORTH = Messages(forth=1)
_BACK = Messages(back=1)
_WINDOW = Messages(forth=1, windowed=True)
#: the receiver of a window answers with 4 bytes in the ports and 5.x, 1 byte in 7.4
_ANSWERED_WINDOW = replace(_WINDOW, answer_bytes=1)
_WINDOW_BACK = Messages(back=1, windowed=True)
_WINDOW_BOTH = Messages(forth=1, back=1, windowed=True)


def _osu(
    name: str, what: str, meaning: Meaning = UNKNOWN, messages: Messages | None = None
) -> Program:
    return Program(name=name, titles=(f"{what} test",), meaning=meaning, messages=messages)


def _ported(program: Program, meaning: Meaning | None = None) -> Program:
    return replace(program, has_port=True, port_meaning=meaning)


#: osu_multi_lat of mpi4py and up to 5.7 prints the mean of both ends' times (MPI_Reduce of the
#: latencies, over pairs x 2), that of 5.8 and later the first sender's.
_MULTI_LAT = replace(_LATENCY, pairs_share_rails=True)
_MULTI_LAT_OF_BOTH_ENDS = replace(_MULTI_LAT, last_send_uncounted=True)
_OSU_MULTI_LAT = _osu("osu_multi_lat", "mpi multi latency", _MULTI_LAT, _PING_PONG)

_BIBW = "mpi bi-directional bandwidth"
#: mpi4py's osu_bibw moves both directions and counts one (demo/osu_bibw.py: size x loop x window,
#: without the C program's factor of 2).
_OSU_PAIRS = (
    # c/mpi/pt2pt/standard
    _ported(_osu("osu_latency", "mpi latency", _LATENCY, _PING_PONG)),
    _ported(_osu("osu_bw", "mpi bandwidth", _BANDWIDTH, _ANSWERED_WINDOW)),
    _ported(_osu("osu_bibw", _BIBW, _BOTH_WAYS, _WINDOW_BOTH), _BANDWIDTH),
    _osu("osu_mbw_mr", "mpi multiple bandwidth / message rate", _PAIRS, _ANSWERED_WINDOW),
    _ported(
        replace(_OSU_MULTI_LAT, earlier=((5, 8), _MULTI_LAT_OF_BOTH_ENDS)), _MULTI_LAT_OF_BOTH_ENDS
    ),
    _osu("osu_latency_mt", "mpi multi-threaded latency", _LATENCY),
    _osu("osu_latency_mp", "mpi multi-process latency", _LATENCY),
    # c/mpi/pt2pt/persistent, since 7.1; partitioned, 7.4
    _osu("osu_latency_persistent", "mpi latency persistent", _LATENCY, _PING_PONG),
    _osu("osu_bw_persistent", "mpi bandwidth persistent", _BANDWIDTH, _ANSWERED_WINDOW),
    _osu("osu_bibw_persistent", f"{_BIBW} persistent", _BOTH_WAYS, _WINDOW_BOTH),
    _osu("osu_partitioned_latency", "mpi partitioned latency"),
    # c/mpi/one-sided
    _osu("osu_put_latency", "mpi_put latency", _LATENCY, _FORTH),
    _osu("osu_get_latency", "mpi_get latency", _LATENCY, _BACK),
    _osu("osu_put_bw", "mpi_put bandwidth", _BANDWIDTH, _WINDOW),
    _osu("osu_get_bw", "mpi_get bandwidth", _BANDWIDTH, _WINDOW_BACK),
    _osu("osu_put_bibw", "mpi_put bi-directional bandwidth", _BOTH_WAYS, _WINDOW_BOTH),
    _osu("osu_acc_latency", "mpi_accumulate latency", _OPERATION, _FORTH),
    _osu("osu_get_acc_latency", "mpi_get_accumulate latency", _OPERATION),
    _osu("osu_fop_latency", "mpi_fetch_and_op latency", _OPERATION),
    _osu("osu_cas_latency", "mpi_compare_and_swap latency", _OPERATION),
)

#: c/mpi/collective: name -> words of its title, operation; reduce_scatter_block since 7.4.
#: ``osu_neighbor_alltoallw`` 7.2 prints the title of ``osu_alltoallw`` and can't be told from it.
_OSU_COLLECTIVES: Mapping[str, tuple[str, Operation]] = {
    "allgather": ("allgather", Operation.ALLGATHER),
    "allgatherv": ("allgatherv", Operation.ALLGATHER),
    "allreduce": ("allreduce", Operation.ALLREDUCE),
    "alltoall": ("all-to-all personalized exchange", Operation.ALLTOALL),
    "alltoallv": ("all-to-allv personalized exchange", Operation.ALLTOALL),
    "alltoallw": ("all-to-allw personalized exchange", Operation.ALLTOALL),
    "barrier": ("barrier", Operation.BARRIER),
    "bcast": ("broadcast", Operation.BCAST),
    "gather": ("gather", Operation.GATHER),
    "gatherv": ("gatherv", Operation.GATHER),
    "reduce": ("reduce", Operation.REDUCE),
    "reduce_scatter": ("reduce_scatter", Operation.REDUCE_SCATTER),
    "reduce_scatter_block": ("reduce_scatter_block", Operation.REDUCE_SCATTER),
    "scatter": ("scatter", Operation.SCATTER),
    "scatterv": ("scatterv", Operation.SCATTER),
}
#: those that mpi4py ports -> the port's own title; the same as OSU's if empty
_PORTED_COLLECTIVES = {
    "alltoall": "all-to-all",
    "alltoallv": "alltoallv",
    **dict.fromkeys(("allgather", "barrier", "bcast", "gather", "scatter"), ""),
}


def _title(words: str) -> tuple[str]:
    return (f"mpi {words} latency test",)


def _osu_collectives() -> Iterator[Program]:
    """Yield each collective as OSU has it: blocking, persistent (since 7.4), non-blocking."""
    mean = {
        name: Collective(operation=operation, statistic=Statistic.MEAN_OF_RANKS)
        for name, (_, operation) in _OSU_COLLECTIVES.items()
    }
    for name, (words, _) in _OSU_COLLECTIVES.items():
        port = _PORTED_COLLECTIVES.get(name)
        yield Program(
            name=f"osu_{name}",
            titles=_title(words),
            port_titles=_title(port) if port else (),
            has_port=port is not None,
            collective=mean[name],
        )
    for name, (words, _) in _OSU_COLLECTIVES.items():
        titles = _title(f"{words} persistent")
        yield Program(name=f"osu_{name}_persistent", titles=titles, collective=mean[name])
    for name, (words, _) in _OSU_COLLECTIVES.items():
        title = _title(f"non-blocking {'all-to-all' if name == 'alltoall' else words}")
        both = replace(mean[name], non_blocking=True)
        yield Program(name=f"osu_i{name}", titles=title, collective=both)


OSU: tuple[Program, ...] = (
    *_OSU_PAIRS,
    *_osu_collectives(),
    # collectives between neighbours, since 7.1: no model judges them
    _osu("osu_neighbor_allgather", "mpi neighborhood allgather latency"),
    _osu("osu_neighbor_allgatherv", "mpi neighborhood allgatherv latency"),
    _osu("osu_neighbor_alltoall", "mpi neighborhood alltoall latency"),
    _osu("osu_neighbor_alltoallv", "mpi neighborhood all-to-allv latency"),
    _osu("osu_ineighbor_allgather", "mpi non-blocking neighborhood allgather latency"),
    _osu("osu_ineighbor_allgatherv", "mpi non-blocking neighborhood allgatherv latency"),
    _osu("osu_ineighbor_alltoall", "mpi non-blocking neighborhood alltoall latency"),
    _osu("osu_ineighbor_alltoallv", "mpi non-blocking neighborhood alltoallv latency"),
    _osu("osu_ineighbor_alltoallw", "mpi non-blocking neighborhood alltoallw latency"),
    # c/mpi/startup
    _osu("osu_init", "mpi init"),
    _osu("osu_hello", "mpi hello world"),
)


def _imb(binary: str, name: str, meaning: Meaning, messages: Messages | None) -> Program:
    return Program(name=name, binary=binary, meaning=meaning, messages=messages)


_SENDRECV = replace(_BOTH_WAYS, consistency=Consistency.TWICE_SIZE_OVER_TIME)
_EXCHANGE = replace(_BOTH_WAYS, consistency=Consistency.FOUR_TIMES_SIZE_OVER_TIME)

#: What each divides by what: src_c/IMB_output.c (throughput = scale_bw x size / t_max) and
#: IMB_parse_name_mpi1.c, _ext.c, _rma.c (scale_bw).  PingPong's t is half the round trip; PingPing
#: and the Bidir benchmarks load both directions and print one; Sendrecv counts 2 and Exchange 4
#: messages a repetition.
#:
#: IMB-P2P adds up all ranks' messages, so that its PingPing counts both directions (src_c/P2P/
#: imb_p2p_pingping.c: iterations x ranks x size / time) where that of IMB-MPI1 counts one.  Its
#: random and stencil benchmarks have no fixed pairs; they are left to the references.  Its PingPong
#: prints the mean of both ends' times (imb_p2p_pingpong.c: aggregate_time), IMB-MPI1 the sender's.
_IMB_PAIRS = (
    _imb("IMB-MPI1", "PingPong", _PING, _PING_PONG),
    _imb("IMB-MPI1", "PingPongSpecificSource", _PING, _PING_PONG),
    _imb("IMB-MPI1", "PingPongAnySource", _PING, _PING_PONG),
    _imb("IMB-MPI1", "PingPing", _PING, _BOTH),
    _imb("IMB-MPI1", "PingPingSpecificSource", _PING, _BOTH),
    _imb("IMB-MPI1", "PingPingAnySource", _PING, _BOTH),
    _imb("IMB-MPI1", "Sendrecv", _SENDRECV, _BOTH),
    _imb("IMB-MPI1", "Exchange", _EXCHANGE, _TWO_BOTH),
    _imb("IMB-MPI1", "Uniband", _PAIRS, _WINDOW),
    _imb("IMB-MPI1", "Biband", replace(_PAIRS, bidirectional=True), _WINDOW_BOTH),
    _imb("IMB-MPI1-GPU", "GPU/PingPong", _PING, _PING_PONG),
    _imb("IMB-P2P", "P2P/PingPong", replace(_STREAM, last_send_uncounted=True), _PING_PONG),
    _imb("IMB-P2P", "P2P/PingPing", replace(_STREAM, bidirectional=True), _BOTH),
    _imb("IMB-P2P", "SendRecv_Replace", replace(_STREAM, bidirectional=True), _BOTH),
    _imb("IMB-P2P", "Birandom", UNKNOWN, _TWO_BOTH),
    _imb("IMB-P2P", "Unirandom", UNKNOWN, None),
    _imb("IMB-P2P", "Corandom", UNKNOWN, None),
    _imb("IMB-RMA", "Unidir_put", _ONE_SIDED, _FORTH),
    _imb("IMB-RMA", "Unidir_get", _ONE_SIDED, _BACK),
    _imb("IMB-RMA", "Bidir_put", _ONE_SIDED, _BOTH),
    _imb("IMB-RMA", "Bidir_get", _ONE_SIDED, _BOTH),
    _imb("IMB-RMA", "Exchange_put", UNKNOWN, _TWO_BOTH),
    _imb("IMB-RMA", "Exchange_get", UNKNOWN, _TWO_BOTH),
    _imb("IMB-RMA", "Accumulate", _OPERATION, _FORTH),
)

#: IMB's collectives (``IMB-MPI1 -list``).  The vector of its Reduce_scatter was the printed size up
#: to 2018 and is the printed size for each rank since (IMB_reduce_scatter.c, ``IMB2018``).
_IMB_COLLECTIVES = (
    "Bcast Reduce Allreduce Reduce_scatter Allgather Allgatherv Alltoall Alltoallv "
    "Gather Gatherv Scatter Scatterv Barrier"
)


def _imb_collective(name: str) -> tuple[Program, ...]:
    """Return a collective, as IMB-NBC overlaps it, and as that times it alone."""
    _, operation = _OSU_COLLECTIVES[name.lower()]
    # the barrier times the whole stream (IMB_barrier.c)
    stream = operation is Operation.BARRIER
    plain = Collective(
        operation=operation,
        statistic=Statistic.RANK_ZERO_STREAM if stream else Statistic.MEAN_OF_RANKS,
        share_sized=operation is Operation.REDUCE_SCATTER,
    )
    overlapped = replace(plain, statistic=Statistic.ONE_RANK, non_blocking=True)
    return (
        Program(name=name, binary="IMB-MPI1", collective=plain),
        Program(name=f"I{name.lower()}", binary="IMB-NBC", collective=overlapped),
        Program(name=f"I{name.lower()}_pure", binary="IMB-NBC", collective=plain),
    )


IMB: tuple[Program, ...] = (
    *_IMB_PAIRS,
    *(row for each in _IMB_COLLECTIVES.split() for row in _imb_collective(each)),
    # one number for the shares of all ranks (IMB_reduce_scatter_block.c); IMB-NBC has none
    _imb_collective("Reduce_scatter_block")[0],
)

#: A bandwidth is the client's stream, a latency goes forth and back and is half the round trip, of
#: reads and atomics the whole (``rtt_factor`` in print_report_lat); what is read comes back; the
#: rate is that of all messages of the printed bandwidth (print_report_bw).  ``-b`` stands in the
#: title.  perftest moves what it is told, no more (run_iter_bw, run_iter_lat*).
PERFTEST: tuple[Program, ...] = (
    Program(name="ib_write_bw", meaning=_STREAM, messages=_FORTH),
    Program(name="ib_send_bw", meaning=_STREAM, messages=_FORTH),
    Program(name="ib_read_bw", meaning=_STREAM, messages=_BACK),
    Program(name="ib_write_lat", meaning=_LATENCY, messages=_PING_PONG),
    Program(name="ib_send_lat", meaning=_LATENCY, messages=_PING_PONG),
    Program(name="ib_read_lat", meaning=replace(_LATENCY, round_trip=True), messages=_BACK),
    Program(name="ib_atomic_bw", meaning=_OPERATION),
    Program(name="ib_atomic_lat", meaning=replace(_OPERATION, round_trip=True)),
)


def _nccl(name: str, operation: Operation | None, factor: BusFactor) -> Program:
    return Program(name=f"{name}_perf", bus=Bus(operation=operation, factor=factor))


#: nccl-tests and rccl-tests (src/*.cu of nccl-tests 2.19.6): the buffers of GPUs.
#: ``sendrecv_perf`` is a ring: each rank sends to the next and receives from the one before.
#: ``hypercube_perf`` and ``alltoallv_perf`` have no rows: what they send depends on more than the
#: size.
NCCL: tuple[Program, ...] = (
    _nccl("all_reduce", Operation.ALLREDUCE, BusFactor.TWICE_OTHERS),
    _nccl("reduce_scatter", Operation.REDUCE_SCATTER, BusFactor.OTHERS),
    _nccl("all_gather", Operation.ALLGATHER, BusFactor.OTHERS),
    _nccl("alltoall", Operation.ALLTOALL, BusFactor.OTHERS),
    _nccl("gather", Operation.GATHER, BusFactor.OTHERS),
    _nccl("scatter", Operation.SCATTER, BusFactor.OTHERS),
    _nccl("broadcast", Operation.BCAST, BusFactor.ONE),
    _nccl("reduce", Operation.REDUCE, BusFactor.ONE),
    _nccl("sendrecv", None, BusFactor.ONE),
)

#: the suites, in the names that records and sites use; mpi4py's ports are rows of OSU's
SUITES: Mapping[str, tuple[Program, ...]] = {
    "osu": OSU,
    "osu-mpi4py": OSU,
    "imb": IMB,
    "perftest": PERFTEST,
    "iperf": (Program(name="iperf", meaning=_BANDWIDTH),),
    "iperf3": (Program(name="iperf3", meaning=_BANDWIDTH),),
    "nccl-tests": NCCL,
    "rccl-tests": NCCL,
}

_BY_NAME = {
    suite: {program.name: program for program in programs} for suite, programs in SUITES.items()
}
#: IMB-EXT says ``Unidir_Put`` where IMB-RMA says ``Unidir_put``
_BY_LOWER = {name.lower(): program for name, program in _BY_NAME["imb"].items()}


def program_of(suite: str, name: str) -> Program | None:
    """Return the row of a program as it is called; None if there is none.

    ``suite`` is a key of :data:`SUITES`.
    """
    return _BY_NAME.get(suite, {}).get(name)


def collective_of(suite: str, program: str) -> Collective | None:
    """Return what ``program`` of ``suite`` measures; None if it is no collective, or no port.

    IMB's names are taken in any case.
    """
    row = _BY_LOWER.get(program.lower()) if suite == "imb" else program_of(suite, program)
    return None if row is None else row.collective_of(suite)


def meaning(suite: str, program: str) -> Meaning:
    """Return how the table of ``program`` of ``suite`` is to be read.

    A program without a row is read as a collective: times only, no ceiling and no floor.

    ``program`` may also be as its output calls it; OSU's over NCCL count as OSU's, and IMB's names
    are taken in any case.
    """
    row = _row_of_printed(suite, program)
    return UNKNOWN if row is None else row.meaning_of(suite)


def reading_of(table: Table) -> Meaning:
    """Return how ``table`` is to be read, with what its own words say of the run."""
    said = table.attributes
    # t[usec] and Msg/sec stand together in IMB-P2P alone (src_c/P2P/imb_p2p_*.c), which tells a
    # table without header; Uniband and Biband of IMB-MPI1 print rates without times.
    looks_p2p = {"latency_us", "message_rate_per_s"} <= set(table.columns)
    is_p2p = table.suite == "imb" and said.get("binary", "IMB-P2P" * looks_p2p) == "IMB-P2P"
    # its P2P/PingPong calls itself PingPong
    names = (f"P2P/{table.program}", table.program) if is_p2p else (table.program,)
    rows = filter(None, (_row_of_printed(table.suite, name) for name in names))
    row = next((row for row in rows if row.binary == "IMB-P2P" or not is_p2p), None)
    reading = UNKNOWN if row is None else row.meaning_of(table.suite, table.version)
    if said.get("both_ways"):
        return replace(reading, bidirectional=True)
    at_origin_only = "flush_local" in str(said.get("synchronization", ""))
    if at_origin_only or said.get("mode") == "AGGREGATE":
        return replace(reading, crosses=False)
    return reading


def _row_of_printed(suite: str, printed: str) -> Program | None:
    if suite == "imb":
        return _BY_LOWER.get(printed.lower())
    return program_of(suite, printed.replace("osu_xccl_", "osu_"))
