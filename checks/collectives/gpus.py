"""Collectives of NCCL or RCCL on all GPUs of several nodes: nccl-tests, rccl-tests."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.gpus import BusBenchmark

nccl = family(rfm.simple_test, __name__, BusBenchmark, "collectives", "gpu", suite="nccl-tests")
nccl("NcclAllReduce", "all_reduce_perf", "full", "Bus bandwidth of a sum over all GPUs")
nccl("NcclSendRecv", "sendrecv_perf", "full", "Bus bandwidth of a ring of all GPUs")
