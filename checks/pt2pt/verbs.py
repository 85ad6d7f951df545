"""Each port of a pair of nodes by itself, by verbs and without MPI: perftest."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.sockets import PeerBenchmark

verbs = family(rfm.simple_test, __name__, PeerBenchmark, "pt2pt", suite="perftest")
verbs("PerftestReadBandwidth", "ib_read_bw", "nightly", "Bandwidth of RDMA reads")
verbs("PerftestReadLatency", "ib_read_lat", "nightly", "Latency of RDMA reads")
verbs("PerftestSendBandwidth", "ib_send_bw", "full", "Bandwidth of sends")
verbs("PerftestSendLatency", "ib_send_lat", "full", "Latency of sends")
verbs("PerftestWriteBandwidth", "ib_write_bw", "quick", "Bandwidth of RDMA writes")
verbs("PerftestWriteLatency", "ib_write_lat", "quick", "Latency of RDMA writes")
