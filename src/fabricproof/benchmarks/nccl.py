"""The rows of nccl-tests and rccl-tests in the catalogue; from src/*.cu of nccl-tests 2.19.6."""

from __future__ import annotations

from fabricproof.benchmarks.program import Bus, BusFactor, Program
from fabricproof.physics.collective import Operation


def _nccl(name: str, operation: Operation | None, factor: BusFactor) -> Program:
    return Program(name=f"{name}_perf", bus=Bus(operation=operation, factor=factor))


#: nccl-tests and rccl-tests: the buffers of GPUs.  ``sendrecv_perf`` is a ring: each rank sends to
#: the next and receives from the one before.  ``hypercube_perf`` and ``alltoallv_perf`` have no
#: rows: what they send depends on more than the size.
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
