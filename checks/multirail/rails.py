"""Over one rail and over all of them, rail against rail, and from the near and the far socket."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.places import LocalityBenchmark
from fabricproof.rfm.families.rails import RailMatrix, RailsBenchmark

osu = family(rfm.simple_test, __name__, RailsBenchmark, "multirail", suite="osu")
osu("OsuMultiRailBandwidth", "osu_bw", "quick", "One way: gain, sharing and threshold")
osu("OsuMultiRailBothWays", "osu_bibw", "full", "Each rail and all together, both ways at once")
imb = family(rfm.simple_test, __name__, RailsBenchmark, "multirail", suite="imb")
imb("ImbMultiRailSendrecv", "Sendrecv", "full", "Each rail and all together, both ways at once")

matrix = family(rfm.simple_test, __name__, RailMatrix, "multirail", suite="osu")
matrix("RailMatrixBandwidth", "osu_bw", "full", "Every rail of one node to every rail of another")

near = family(rfm.simple_test, __name__, LocalityBenchmark, "multirail", "locality", suite="osu")
near("LocalityBandwidth", "osu_bw", "nightly", "From the socket beside the adapter and across")
