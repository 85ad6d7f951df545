"""A pair of nodes over each rail by itself: OSU, its mpi4py ports and IMB."""

import reframe as rfm

from fabricproof.rfm.checks.base import PairBenchmark
from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.rails import DuplexBenchmark

osu = family(rfm.simple_test, __name__, PairBenchmark, "pt2pt", suite="osu")
osu("OsuBandwidth", "osu_bw", "quick", "Bandwidth one way, a window in flight", one_way=True)
osu("OsuBidirectionalBandwidth", "osu_bibw", "nightly", "Both directions at once, added up")
osu("OsuLatency", "osu_latency", "quick", "Latency one way, every size")
osu("OsuMultiPairBandwidth", "osu_mbw_mr", "full", "Several pairs at once, and their message rate")
osu("OsuMultiPairLatency", "osu_multi_lat", "nightly", "Latency of several pairs at once")
osu("OsuPutBandwidth", "osu_put_bw", "full", "Bandwidth of one-sided puts")
osu("OsuPutLatency", "osu_put_latency", "full", "Time of a one-sided put until it is complete")
osu("OsuGetBandwidth", "osu_get_bw", "full", "Bandwidth of one-sided gets")
osu("OsuGetLatency", "osu_get_latency", "full", "Time of a one-sided get until it is complete")

imb = family(rfm.simple_test, __name__, PairBenchmark, "pt2pt", suite="imb")
imb("ImbPingPong", "PingPong", "quick", "One message bounced: its latency and bandwidth")
imb("ImbPingPing", "PingPing", "full", "Messages that meet each other on the wire")
imb("ImbSendrecv", "Sendrecv", "nightly", "A chain, sends and receives counted together")
imb("ImbExchange", "Exchange", "full", "Boundary exchange, four messages a repetition")
imb("ImbP2pPingPong", "P2P/PingPong", "full", "IMB-P2P's own PingPong, with its message rate")
imb("ImbRmaUnidirPut", "Unidir_put", "full", "One-sided puts in one direction")
imb("ImbRmaUnidirGet", "Unidir_get", "full", "One-sided gets in one direction")

duplex = family(rfm.simple_test, __name__, DuplexBenchmark, "pt2pt", suite="osu")
duplex("OsuDuplex", "osu_bw", "nightly", "Both directions at once beside one, over the first rail")
