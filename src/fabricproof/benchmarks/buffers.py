"""Where the buffers of a measurement lay: in the memory of hosts, or in that of GPUs.

What crosses a GPU's slot is another quantity than what does not.  So the names of such figures
begin with one of :data:`fabricproof.core.units.BUFFERS`, and no reference of hosts speaks of them.
"""

from __future__ import annotations

from fabricproof.core.measure import Table


def buffers_of(table: Table) -> str:
    """Return how the names of the table's quantities begin; empty for buffers of hosts.

    OSU says of a pair where both buffers are (``Send Buffer on DEVICE (D) and Receive Buffer on
    HOST (H)``, util/osu_util.c; managed memory counts as the device's), of a collective on a GPU
    only the accelerator (``OSU MPI-CUDA Allreduce Latency Test``).  IMB-MPI1-GPU puts the buffers
    of both ranks where its command says (``-mem_alloc_type``), which the parser read.
    """
    said = table.attributes
    if "send_buffer" in said:
        sends, receives = (
            not str(said[name]).startswith("HOST") for name in ("send_buffer", "receive_buffer")
        )
        if not (sends or receives):
            return ""
        return "device_" if sends and receives else f"{_NAMES[sends]}_to_{_NAMES[receives]}_"
    return "device_" if "accelerator" in said else ""


_NAMES = {True: "device", False: "host"}


def ends_on_gpus(buffers: str) -> int:
    """Return how many of the two ends of a pair have their buffer on a GPU: 0, 1 or 2."""
    return 0 if not buffers else 1 if "host" in buffers else 2
