"""Flows, frames, MPI over TCP and the interfaces that it takes: what only sockets have."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.sockets import (
    FlowsBenchmark,
    FramesBenchmark,
    FreePathBenchmark,
    LinksBenchmark,
    MpiOverTcp,
    PairsBenchmark,
    PeerBenchmark,
)

one = family(rfm.simple_test, __name__, PeerBenchmark, "ethernet", suite="iperf3")
one("TcpSingleFlow", "iperf3", "quick", "One TCP connection over each rail: what MPI stands on")

many = family(rfm.simple_test, __name__, FlowsBenchmark, "ethernet", suite="iperf3")
many("TcpManyFlows", "iperf3", "nightly", "One TCP connection beside eight of one process")
threads = family(rfm.simple_test, __name__, FlowsBenchmark, "ethernet", suite="iperf")
threads("TcpManyThreads", "iperf", "full", "One beside eight, each with a thread of its own")

mpi = family(rfm.simple_test, __name__, MpiOverTcp, "ethernet", suite="osu")
mpi("MpiOverTcpBandwidth", "osu_bw", "nightly", "The share that MPI has of what TCP carries")
links = family(rfm.simple_test, __name__, LinksBenchmark, "ethernet", suite="osu")
links("TcpLinks", "osu_bw", "full", "Open MPI with 1, 2 and 4 connections: is the best in force")
free = family(rfm.simple_test, __name__, FreePathBenchmark, "ethernet", suite="osu")
free("DefaultInterfaces", "osu_bw", "full", "What an MPI takes when nobody tells it its path")

osu = family(rfm.simple_test, __name__, PairsBenchmark, "ethernet", suite="osu")
osu("OsuManyPairs", "osu_mbw_mr", "nightly", "Several pairs between two nodes, against the rail")
imb = family(rfm.simple_test, __name__, PairsBenchmark, "ethernet", suite="imb")
imb("ImbManyPairs", "Uniband", "nightly", "Several pairs between two nodes, against the rail")

frames = family(rfm.simple_test, __name__, FramesBenchmark, "ethernet", suite="iperf3")
frames("MtuPath", "iperf3", "nightly", "Whether each rail carries frames of the declared MTU")
