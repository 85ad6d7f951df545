"""Parts of the kernel, run without an MPI."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import fabricproof.pairs.campaign

KERNELS = Path(fabricproof.pairs.campaign.__file__).parent
HAS_COMPILER = shutil.which("cc") is not None

#: as much of MPI as the compiler asks for
_MPI = """\
typedef int MPI_Request;
enum { MPI_CHAR, MPI_INT, MPI_BYTE };
static double MPI_Wtime(void) { return 0; }
#define MPI_COMM_WORLD 0
#define MPI_STATUS_IGNORE 0
#define MPI_STATUSES_IGNORE 0
#define MPI_MAX_LIBRARY_VERSION_STRING 64
"""
_CALLS = (
    *("Abort", "Bcast", "Comm_rank", "Comm_size", "Finalize", "Gather", "Gatherv", "Ibarrier"),
    *("Get_library_version", "Init", "Irecv", "Isend", "Recv", "Scatter", "Send", "Test"),
    *("Testall", "Waitall"),
)


def said_by_c(folder: Path, body: str, sys_root: Path = Path("/sys")) -> str:
    """Return what ``body`` prints as the main function of kernel.c."""
    calls = "".join(f"#define MPI_{name}(...) (void)0\n" for name in _CALLS)
    (folder / "mpi.h").write_text(_MPI + calls)
    (folder / "said.c").write_text(
        f'#define main kernel_main\n#include "kernel.c"\n#undef main\n'
        f"int main(void) {{ {body} return 0; }}\n"
    )
    made = folder / "said"
    subprocess.run(
        ["cc", "-w", f'-DSYS="{sys_root}"', "-I", folder, "-I", KERNELS, "-o", made,
         folder / "said.c"],
        check=True,
    )  # fmt: skip
    return subprocess.run([made], check=True, capture_output=True, text=True).stdout
