"""Flows, frames, MPI over TCP and the interfaces that it takes: what only sockets have."""

import reframe as rfm

from fabricproof.rfm.checks.ethernet import (
    FlowsBenchmark,
    FramesBenchmark,
    FreePathBenchmark,
    LinksBenchmark,
    MpiOverTcp,
    PairsBenchmark,
    PeerBenchmark,
)


@rfm.simple_test
class TcpSingleFlow(PeerBenchmark):
    """One TCP connection over each rail, without MPI: the floor that MPI stands on (iperf3)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "quick", "nightly", "full"]


@rfm.simple_test
class TcpManyFlows(FlowsBenchmark):
    """One TCP connection beside eight of one process over each rail, without MPI (iperf3)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "nightly", "full"]


@rfm.simple_test
class TcpManyThreads(FlowsBenchmark):
    """One TCP connection beside eight, each with a thread of its own, without MPI (iperf)."""

    suite = "iperf"
    program = "iperf"
    family_tags = ["ethernet", "full"]


@rfm.simple_test
class MpiOverTcpBandwidth(MpiOverTcp):
    """MPI beside iperf3 over the same rails in one job: its share of what TCP carries (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "nightly", "full"]


@rfm.simple_test
class TcpLinks(LinksBenchmark):
    """Open MPI with 1, 2 and 4 TCP connections of a pair: whether the best is in force (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "full"]


@rfm.simple_test
class OsuManyPairs(PairsBenchmark):
    """Several pairs between two nodes over each rail, together against the rail (osu_mbw_mr)."""

    suite = "osu"
    program = "osu_mbw_mr"
    family_tags = ["ethernet", "nightly", "full"]


@rfm.simple_test
class ImbManyPairs(PairsBenchmark):
    """Several pairs between two nodes over each rail, together against the rail (Uniband)."""

    suite = "imb"
    program = "Uniband"
    family_tags = ["ethernet", "nightly", "full"]


@rfm.simple_test
class MtuPath(FramesBenchmark):
    """Whether each rail carries frames of the declared MTU from node to node (iperf3, ping)."""

    suite = "iperf3"
    program = "iperf3"
    family_tags = ["ethernet", "nightly", "full"]


@rfm.simple_test
class DefaultInterfaces(FreePathBenchmark):
    """The interfaces that an MPI takes when nobody tells it its path (osu_bw)."""

    suite = "osu"
    program = "osu_bw"
    family_tags = ["ethernet", "full"]
