"""Which questions are asked of a stack, its node and its scheduler."""

from __future__ import annotations

import sys
from pathlib import Path

from fabricproof.nodes.doctor.script import Probe
from fabricproof.nodes.doctor.subject import Subject
from fabricproof.stacks.environment import shell_word
from fabricproof.stacks.launch import OWN_LAUNCHER, PMI2_LIBRARIES

#: the asker runs on the node, where the project lies at the same path.
ASKER = Path(__file__).parent / "asker.py"

#: variables by which MPIs and transports are steered.
_STEERING = "FI|UCX|OMPI|OPAL|PMIX|PRTE|I_MPI|MPIR|MV2|MVP|PSM3|SLURM_MPI"

_INTERFACES = """cd /sys/class/net && for each in *; do
    printf '%s %s %s %s\\n' "$each" "$(cat "$each/operstate")" \
        "$(cat "$each/speed" 2>/dev/null || echo -1)" "$(cat "$each/mtu")"
done"""

_HCAS = """for port in /sys/class/infiniband/*/ports/*; do
    [ -r "$port/state" ] || continue
    device=${port%/ports/*}
    soft=
    [ ! -e "$device/parent" ] || soft="over $(cat "$device/parent" 2>/dev/null)"
    printf '%s|%s|%s|%s|%s|%s|%s\\n' "${device##*/}" "${port##*/}" "$(cat "$port/state")" \
        "$(cat "$port/rate")" "$(cat "$port/link_layer")" \
        "$(ls "$device/device/net" 2>/dev/null | tr '\\n' ' ')" "$soft"
done"""

_WRAPPER = """first=$(command -v mpicc) || exit 127
printf '%s\\n' "$first"
at=$first
while [ -L "$at" ]; do
    next=$(readlink "$at")
    case $next in /*) at=$next ;; *) at=$(dirname "$at")/$next ;; esac
    printf '%s\\n' "$at"
done
"$first" --showme:version 2>/dev/null || "$first" -v 2>&1 | head -n 1"""

#: the MPI library of the first program, else beside the MPI's launcher.
_FIND_LIBRARY = """library=$(ldd {program} 2>/dev/null |
    awk '$1 ~ /^libmpi(ch|_ilp64|_mt|_abi)?[.]so/ && $3 ~ /^[/]/ {{print $3; exit}}')
if [ -z "$library" ]; then
    folder=$(dirname "$(readlink -f "$(command -v {launcher})")")
    library=$(for each in "$folder"/../lib*/libmpi.so*
        do [ -r "$each" ] && echo "$each" && break; done)
fi
"""


def node_probes(subject: Subject) -> list[Probe]:
    """Return what is asked on the node, in the stack's environment."""
    return [
        Probe(name="host", command="hostname"),
        Probe(name="uid", command="id -u"),
        Probe(name="memlock", command="ulimit -l"),
        Probe(name="interfaces", command=_INTERFACES, shown="/sys/class/net/*"),
        Probe(name="hcas", command=_HCAS, shown="/sys/class/infiniband/*/ports/*"),
        _pmi_probe(),
        Probe(
            name="environment",
            command=f"env | grep -E '^({_STEERING})_' | sort",
            shown="env",
        ),
        Probe(name="wrapper", command=_WRAPPER, shown="readlink $(command -v mpicc); mpicc -v"),
        *_launcher_probe(subject),
        *_tool_probes(subject),
        *(
            Probe(name=f"ldd:{path}", command=f"ldd {shell_word(path)}", shown=f"ldd {path}")
            for path in subject.programs
        ),
        _asker_probe(subject),
    ]


def _launcher_probe(subject: Subject) -> list[Probe]:
    if subject.launcher == "srun":
        return []
    return [Probe(name="launcher", command=f"{OWN_LAUNCHER[subject.family]} --version")]


def _pmi_probe() -> Probe:
    known = " ".join(PMI2_LIBRARIES)
    return Probe(
        name="pmi",
        command=f"ls -1 {known} 2>/dev/null; "
        "{ ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | sed -n 's/.*libpmi.* => //p'",
        shown="ls libpmi2.so.0 in the usual places; ldconfig -p",
    )


def _tool_probes(subject: Subject) -> list[Probe]:
    if subject.family == "openmpi":
        return [
            Probe(name="ompi_info", command="ompi_info --parsable"),
            Probe(name="pmix_info", command="pmix_info --parsable"),
        ]
    if subject.family == "mvapich":
        return [Probe(name="mpichversion", command="mpichversion || mpiname -a")]
    return [Probe(name="mpichversion", command="mpichversion")] * (subject.family == "mpich")


def _asker_probe(subject: Subject) -> Probe:
    ask = f"{shell_word(sys.executable)} -EsP {shell_word(str(ASKER))}"
    shown = "MPI_Get_library_version, fi_getinfo, uct_query_components"
    if subject.library:
        return Probe(
            name="asker",
            command=f"{ask} {shell_word(subject.library)} {subject.family}",
            shown=f"{shown} of {Path(subject.library).name}",
        )
    program = shell_word(subject.programs[0]) if subject.programs else "/nonexistent"
    find = _FIND_LIBRARY.format(program=program, launcher=OWN_LAUNCHER[subject.family])
    return Probe(
        name="asker",
        command=f'{find}[ -n "$library" ] || {{ echo "fault: no libmpi to be found"; exit 1; }}\n'
        f'{ask} "$library" {subject.family}',
        shown=f"{shown} of libmpi",
    )


def fallback_probes() -> list[Probe]:
    """Return what is asked of the transport libraries' own tools where the library is silent."""
    return [
        Probe(name="ucx_info", command="ucx_info -d"),
        Probe(name="ucx_version", command="ucx_info -v"),
        Probe(name="fi_info", command="fi_info"),
        Probe(name="fi_list", command="fi_info -l"),
    ]


def slurm_probes() -> list[Probe]:
    """Return what is asked of Slurm, where jobs are submitted."""
    return [
        Probe(name="mpi_list", command="srun --mpi=list"),
        Probe(name="config", command="scontrol show config"),
        Probe(name="partitions", command="scontrol -o show partition"),
    ]
