"""The benchmark programs, one row each; every room asks here what a program is.

A bandwidth of 7500 MB/s is a fine number from ``osu_bibw`` and an impossible one from ``osu_bw``
over the same QDR link.  A new program is one row here, one recorded output, one check.

Sources.  OSU: titles, times and loops of c/mpi/pt2pt, c/mpi/one-sided and c/mpi/collective of
releases 5.7 to 7.5 (the directories are those of 7.2; up to 6.x the same files stand at the top).
mpi4py: demo/osu_*.py of 4.1.2.  IMB: src_c and src_cpp of 2021.11, ``IMB-* -list``.  perftest:
src/perftest_parameters.c and perftest_resources.c of v4.5-0.20.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def _osu(name: str, title: str, meaning: Meaning, messages: Messages | None) -> Program:
    return Program(name=name, titles=(title,), meaning=meaning, messages=messages)


def _ported(
    program: Program, meaning: Meaning | None = None, *, titles: tuple[str, ...] = ()
) -> Program:
    return replace(program, has_port=True, port_meaning=meaning, port_titles=titles)


#: osu_multi_lat of mpi4py and up to 5.7 prints the mean of both ends' times (MPI_Reduce of the
#: latencies, over pairs x 2), that of 5.8 and later the first sender's.
_MULTI_LAT = replace(_LATENCY, pairs_share_rails=True)
_MULTI_LAT_OF_BOTH_ENDS = replace(_MULTI_LAT, last_send_uncounted=True)

#: mpi4py's osu_bibw moves both directions and counts one (demo/osu_bibw.py: size x loop x window,
#: without the C program's factor of 2).
_OSU_PAIRS = (
    # c/mpi/pt2pt/standard
    _ported(_osu("osu_latency", "mpi latency test", _LATENCY, _PING_PONG)),
    _ported(_osu("osu_bw", "mpi bandwidth test", _BANDWIDTH, _ANSWERED_WINDOW)),
    _ported(
        _osu("osu_bibw", "mpi bi-directional bandwidth test", _BOTH_WAYS, _WINDOW_BOTH), _BANDWIDTH
    ),
    _osu("osu_mbw_mr", "mpi multiple bandwidth / message rate test", _PAIRS, _ANSWERED_WINDOW),
    replace(
        _ported(
            _osu("osu_multi_lat", "mpi multi latency test", _MULTI_LAT, _PING_PONG),
            _MULTI_LAT_OF_BOTH_ENDS,
        ),
        earlier=((5, 8), _MULTI_LAT_OF_BOTH_ENDS),
    ),
    _osu("osu_latency_mt", "mpi multi-threaded latency test", _LATENCY, None),
    _osu("osu_latency_mp", "mpi multi-process latency test", _LATENCY, None),
    # c/mpi/pt2pt/persistent, since 7.1; partitioned, 7.4
    _osu("osu_latency_persistent", "mpi latency persistent test", _LATENCY, _PING_PONG),
    _osu("osu_bw_persistent", "mpi bandwidth persistent test", _BANDWIDTH, _ANSWERED_WINDOW),
    _osu(
        "osu_bibw_persistent",
        "mpi bi-directional bandwidth persistent test",
        _BOTH_WAYS,
        _WINDOW_BOTH,
    ),
    Program(name="osu_partitioned_latency", titles=("mpi partitioned latency test",)),
    # c/mpi/one-sided
    _osu("osu_put_latency", "mpi_put latency test", _LATENCY, _FORTH),
    _osu("osu_get_latency", "mpi_get latency test", _LATENCY, _BACK),
    _osu("osu_put_bw", "mpi_put bandwidth test", _BANDWIDTH, _WINDOW),
    _osu("osu_get_bw", "mpi_get bandwidth test", _BANDWIDTH, _WINDOW_BACK),
    _osu("osu_put_bibw", "mpi_put bi-directional bandwidth test", _BOTH_WAYS, _WINDOW_BOTH),
    _osu("osu_acc_latency", "mpi_accumulate latency test", _OPERATION, _FORTH),
    _osu("osu_get_acc_latency", "mpi_get_accumulate latency test", _OPERATION, None),
    _osu("osu_fop_latency", "mpi_fetch_and_op latency test", _OPERATION, None),
    _osu("osu_cas_latency", "mpi_compare_and_swap latency test", _OPERATION, None),
)


def _timed(name: str, what: str) -> Program:
    return Program(name=name, titles=(f"mpi {what} latency test",))


def _collective(name: str, what: str, operation: Operation) -> Program:
    non_blocking = name.startswith("osu_i")
    timed = Collective(
        operation=operation, statistic=Statistic.MEAN_OF_RANKS, non_blocking=non_blocking
    )
    return replace(_timed(name, what), collective=timed)


#: c/mpi/collective/blocking; reduce_scatter_block in 7.4 and 7.5
_OSU_BLOCKING = (
    _ported(_collective("osu_allgather", "allgather", Operation.ALLGATHER)),
    _collective("osu_allgatherv", "allgatherv", Operation.ALLGATHER),
    _collective("osu_allreduce", "allreduce", Operation.ALLREDUCE),
    _ported(
        _collective("osu_alltoall", "all-to-all personalized exchange", Operation.ALLTOALL),
        titles=("mpi all-to-all latency test",),
    ),
    _ported(
        _collective("osu_alltoallv", "all-to-allv personalized exchange", Operation.ALLTOALL),
        titles=("mpi alltoallv latency test",),
    ),
    _collective("osu_alltoallw", "all-to-allw personalized exchange", Operation.ALLTOALL),
    _ported(_collective("osu_barrier", "barrier", Operation.BARRIER)),
    _ported(_collective("osu_bcast", "broadcast", Operation.BCAST)),
    _ported(_collective("osu_gather", "gather", Operation.GATHER)),
    _collective("osu_gatherv", "gatherv", Operation.GATHER),
    _collective("osu_reduce", "reduce", Operation.REDUCE),
    _collective("osu_reduce_scatter", "reduce_scatter", Operation.REDUCE_SCATTER),
    _collective("osu_reduce_scatter_block", "reduce_scatter_block", Operation.REDUCE_SCATTER),
    _ported(_collective("osu_scatter", "scatter", Operation.SCATTER)),
    _collective("osu_scatterv", "scatterv", Operation.SCATTER),
)


def _persistent(program: Program) -> Program:
    """Return a collective whose request was made before: its start and its end are timed."""
    return replace(
        program,
        name=f"{program.name}_persistent",
        titles=(program.titles[0].replace("latency test", "persistent latency test"),),
        port_titles=(),
        has_port=False,
    )


#: OSU's collectives and start-up programs: times only.  ``osu_neighbor_alltoallw`` 7.2 prints the
#: title of ``osu_alltoallw`` and can't be told from it.
_OSU_TIMES = (
    *_OSU_BLOCKING,
    # c/mpi/collective/persistent, in 7.4 and 7.5
    *map(_persistent, _OSU_BLOCKING),
    # c/mpi/collective/non_blocking
    _collective("osu_iallgather", "non-blocking allgather", Operation.ALLGATHER),
    _collective("osu_iallgatherv", "non-blocking allgatherv", Operation.ALLGATHER),
    _collective("osu_iallreduce", "non-blocking allreduce", Operation.ALLREDUCE),
    _collective("osu_ialltoall", "non-blocking all-to-all", Operation.ALLTOALL),
    _collective(
        "osu_ialltoallv", "non-blocking all-to-allv personalized exchange", Operation.ALLTOALL
    ),
    _collective(
        "osu_ialltoallw", "non-blocking all-to-allw personalized exchange", Operation.ALLTOALL
    ),
    _collective("osu_ibarrier", "non-blocking barrier", Operation.BARRIER),
    _collective("osu_ibcast", "non-blocking broadcast", Operation.BCAST),
    _collective("osu_igather", "non-blocking gather", Operation.GATHER),
    _collective("osu_igatherv", "non-blocking gatherv", Operation.GATHER),
    _collective("osu_ireduce", "non-blocking reduce", Operation.REDUCE),
    _collective("osu_ireduce_scatter", "non-blocking reduce_scatter", Operation.REDUCE_SCATTER),
    _collective(
        "osu_ireduce_scatter_block",
        "non-blocking reduce_scatter_block",
        Operation.REDUCE_SCATTER,
    ),
    _collective("osu_iscatter", "non-blocking scatter", Operation.SCATTER),
    _collective("osu_iscatterv", "non-blocking scatterv", Operation.SCATTER),
    # c/mpi/collective/neighborhood, since 7.1
    _timed("osu_neighbor_allgather", "neighborhood allgather"),
    _timed("osu_neighbor_allgatherv", "neighborhood allgatherv"),
    _timed("osu_neighbor_alltoall", "neighborhood alltoall"),
    _timed("osu_neighbor_alltoallv", "neighborhood all-to-allv"),
    _timed("osu_ineighbor_allgather", "non-blocking neighborhood allgather"),
    _timed("osu_ineighbor_allgatherv", "non-blocking neighborhood allgatherv"),
    _timed("osu_ineighbor_alltoall", "non-blocking neighborhood alltoall"),
    _timed("osu_ineighbor_alltoallv", "non-blocking neighborhood alltoallv"),
    _timed("osu_ineighbor_alltoallw", "non-blocking neighborhood alltoallw"),
    # c/mpi/startup
    Program(name="osu_init", titles=("mpi init test",)),
    Program(name="osu_hello", titles=("mpi hello world test",)),
)

OSU: tuple[Program, ...] = (*_OSU_PAIRS, *_OSU_TIMES)


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
_IMB_COLLECTIVES: Mapping[str, Operation] = {
    "Bcast": Operation.BCAST,
    "Reduce": Operation.REDUCE,
    "Allreduce": Operation.ALLREDUCE,
    "Reduce_scatter": Operation.REDUCE_SCATTER,
    "Allgather": Operation.ALLGATHER,
    "Allgatherv": Operation.ALLGATHER,
    "Alltoall": Operation.ALLTOALL,
    "Alltoallv": Operation.ALLTOALL,
    "Gather": Operation.GATHER,
    "Gatherv": Operation.GATHER,
    "Scatter": Operation.SCATTER,
    "Scatterv": Operation.SCATTER,
    "Barrier": Operation.BARRIER,
}


def _imb_collective(name: str, operation: Operation) -> tuple[Program, ...]:
    """Return a collective, as IMB-NBC overlaps it, and as that times it alone.

    The barrier times the whole stream (IMB_barrier.c).
    """
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
    *(row for each in _IMB_COLLECTIVES.items() for row in _imb_collective(*each)),
    # one number for the shares of all ranks (IMB_reduce_scatter_block.c); IMB-NBC has none
    _imb_collective("Reduce_scatter_block", Operation.REDUCE_SCATTER)[0],
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
    """Return the row of a program as it is called; None where there is none.

    ``suite`` is ``osu``, ``osu-mpi4py``, ``imb``, ``perftest``, ``iperf``, ``iperf3``,
    ``nccl-tests`` or ``rccl-tests``.
    """
    return _BY_NAME.get(suite, {}).get(name)


def collective_of(suite: str, program: str) -> Collective | None:
    """Return what ``program`` of ``suite`` measures; None where it is no collective, or no port.

    Suites are those of :func:`program_of`; IMB's names are taken in any case.
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
    find = _row_of_p2p if table.suite == "imb" and _is_p2p(table) else _row_of_printed
    row = find(table.suite, table.program)
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


def _row_of_p2p(suite: str, printed: str) -> Program | None:
    """Return the row of what IMB-P2P prints: its ``P2P/PingPong`` calls itself PingPong."""
    rows = (_row_of_printed(suite, f"P2P/{printed}"), _row_of_printed(suite, printed))
    return next((row for row in rows if row is not None and row.binary == "IMB-P2P"), None)


def _is_p2p(table: Table) -> bool:
    """Tell IMB-P2P from the other parts; a pasted table without header shows it by its columns.

    ``t[usec]`` and ``Msg/sec`` stand together in IMB-P2P alone (src_c/P2P/imb_p2p_*.c); Uniband
    and Biband of IMB-MPI1 print rates without times.
    """
    binary = table.attributes.get("binary")
    if binary is not None:
        return binary == "IMB-P2P"
    return {"latency_us", "message_rate_per_s"} <= set(table.columns)
