"""Call a collective so often that what it moves can be counted: ``COLLECTIVE SIZE TIMES``."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
name, size, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
mine, all_mine = bytearray(size), bytearray(size * world.size)
all_theirs = bytearray(size * world.size)
calls = {
    "bcast": lambda: world.Bcast([mine, size, MPI.BYTE], 0),
    "allgather": lambda: world.Allgather([mine, size, MPI.BYTE], [all_theirs, size, MPI.BYTE]),
    "alltoall": lambda: world.Alltoall([all_mine, size, MPI.BYTE], [all_theirs, size, MPI.BYTE]),
    "barrier": world.Barrier,
}
for _ in range(times):
    calls[name]()
