"""The collectives of OSU, its mpi4py ports and IMB, each on every layout of the partition."""

import reframe as rfm

from fabricproof.rfm.checks.family import family
from fabricproof.rfm.families.collectives import CollectiveBenchmark
from fabricproof.rfm.families.sweep import AlgorithmSweepBenchmark

osu = family(rfm.simple_test, __name__, CollectiveBenchmark, "collectives", suite="osu")
osu("OsuAllgather", "osu_allgather", "quick", "Every rank's block to all")
osu("OsuAllreduce", "osu_allreduce", "quick", "A sum over all ranks that all get")
osu("OsuAlltoall", "osu_alltoall", "nightly", "A block from every rank to every other")
osu("OsuAlltoallRails", "osu_alltoall", "full", "Alltoall over all rails together", net_paths="all")
osu("OsuAlltoallv", "osu_alltoallv", "full", "As alltoall, with a count for each pair")
osu("OsuBarrier", "osu_barrier", "quick", "Nobody goes on before everybody came")
osu("OsuBcast", "osu_bcast", "nightly", "From one rank to all")
osu("OsuGather", "osu_gather", "full", "Every rank's block to one")
osu("OsuIallreduce", "osu_iallreduce", "full", "A sum over all in the background, and its overlap")
osu("OsuIalltoall", "osu_ialltoall", "full", "All to all in the background, and its overlap")
osu("OsuIbcast", "osu_ibcast", "full", "A broadcast in the background, and its overlap")
osu("OsuReduce", "osu_reduce", "full", "A sum over all ranks that one gets")
osu("OsuReduceScatter", "osu_reduce_scatter", "full", "A sum over all ranks, a share to each")
osu("OsuScatter", "osu_scatter", "full", "A block from one rank to every other")

imb = family(rfm.simple_test, __name__, CollectiveBenchmark, "collectives", suite="imb")
imb("ImbAllgather", "Allgather", "full", "Every rank's block to all")
imb("ImbAllreduce", "Allreduce", "nightly", "A sum over all ranks that all get")
imb("ImbAlltoall", "Alltoall", "full", "A block from every rank to every other")
imb("ImbBarrier", "Barrier", "full", "Nobody goes on before everybody came")
imb("ImbBcast", "Bcast", "full", "From one rank to all")
imb("ImbGather", "Gather", "full", "Every rank's block to one")
imb("ImbIallreduce", "Iallreduce", "full", "A sum over all in the background, and its overlap")
imb("ImbIalltoall", "Ialltoall", "full", "All to all in the background, and its overlap")
imb("ImbIbcast", "Ibcast", "full", "A broadcast in the background, and its overlap")
imb("ImbReduce", "Reduce", "full", "A sum over all ranks that one gets")
imb("ImbReduceScatter", "Reduce_scatter", "full", "A sum over all ranks, a share to each")
imb("ImbScatter", "Scatter", "full", "A block from one rank to every other")


@rfm.simple_test
class AlgorithmSweep(AlgorithmSweepBenchmark):
    """The stack's own choice of an algorithm is as good as any."""

    family_tags = ["collectives", "full"]
