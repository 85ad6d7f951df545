"""A pair of nodes whose buffers lie on GPUs: on both (D D), or on one (H D, D H)."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.gpus import GpuBenchmark

osu = family(rfm.simple_test, __name__, GpuBenchmark, "pt2pt", "gpu", suite="osu")
osu("GpuBandwidth", "osu_bw", "full", "Bandwidth one way between GPUs, and GPU and host")
osu("GpuBothWays", "osu_bibw", "full", "Likewise both ways at once, added up")
osu("GpuLatency", "osu_latency", "full", "Latency between GPUs, and GPU and host")

imb = family(rfm.simple_test, __name__, GpuBenchmark, "pt2pt", "gpu", suite="imb")
imb("ImbGpuPingPong", "GPU/PingPong", "full", "One message bounced between two GPUs")
