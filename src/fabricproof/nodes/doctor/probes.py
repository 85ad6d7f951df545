"""What a node and Slurm are asked: probes, one script of many, and its answers read back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.nodes.doctor.facts import Answer
from fabricproof.nodes.inventory.read import LOOK
from fabricproof.stacks.container import INSIDE, in_folder
from fabricproof.stacks.environment import defines_module, shell_line, shell_values, shell_word
from fabricproof.stacks.launch import OWN_LAUNCHER, PMI2_LIBRARIES
from fabricproof.stacks.stack import ResolvedStack

_MARK = "@@fabricproof"
_BEGIN = re.compile(rf"^{_MARK} begin (\S+)$")
_END = re.compile(rf"^{_MARK} end (\d+)$")

#: the name of the answer to ``module load``.
MODULE = "module"

#: the name of the answer from inside a container.
CONTAINER = "container"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question."""

    name: str
    command: str
    shown: str = ""


def render_script(
    probes: Sequence[Probe],
    subject: ResolvedStack | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    probe_seconds: int = 20,
) -> str:
    """Return a bash script that asks every probe in a stack's environment; in none without one.

    Variables are set after the modules, as in a job; ``settings`` are those beside the stack's.
    """
    lines = [f"mark() {{ printf '\\n{_MARK} %s %s\\n' \"$@\"; }}"]
    if subject is not None:
        if subject.modules:
            lines += _module_lines(subject.modules, subject.module_paths, subject.modules_init)
        values = shell_values({**subject.settings, **(settings or {})}, subject.prepend)
        lines += [f"export {name}={value}" for name, value in values.items()]
    for probe in probes:
        command = shell_word(probe.command)
        lines.append(f"mark begin {probe.name}")
        lines.append(f"timeout -k 2 {probe_seconds} bash -c {command} </dev/null 2>&1")
        lines.append('mark end "$?"')
    return "\n".join(lines) + "\n"


def _module_lines(modules: Sequence[str], paths: Sequence[str], init: str | None) -> list[str]:
    load = [f"module use {shell_word(path)} &&" for path in paths]
    load.append(f"module load {shell_line(modules)}")
    return [
        defines_module(init),
        f"mark begin {MODULE}",
        f"{{ {' '.join(load)}; }} </dev/null 2>&1",
        'mark end "$?"',
    ]


def read_answers(text: str, shown: Mapping[str, str]) -> dict[str, Answer]:
    """Return the answers in ``text`` by probe; one that was cut off has status 124."""
    answers: dict[str, Answer] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        begin, end = _BEGIN.match(line), _END.match(line)
        if begin:
            name, lines = begin[1], []
            answers[name] = Answer(command=shown.get(name, name), output="", status=124)
        elif end and name:
            command = shown.get(name, name)
            output = "\n".join(lines).strip("\n")
            answers[name] = Answer(command=command, output=output, status=int(end[1]))
            name = ""
        elif name:
            lines.append(line)
    return answers


#: the asker runs on the node, where the project lies at the same path.
ASKER = Path(__file__).parent / "asker.py"

#: variables by which MPIs and transports are steered.
_STEERING = "FI|UCX|OMPI|OPAL|PMIX|PRTE|I_MPI|MPIR|MPICH|MV2|MVP|PSP|PSM2|HFI|SLURM_MPI"

#: the MPI library of the first program, else beside the MPI's launcher.
_FIND_LIBRARY = """library=$(ldd {program} 2>/dev/null |
    awk '$1 ~ /^libmpi(ch|_ilp64|_mt|_abi)?[.]so/ && $3 ~ /^[/]/ {{print $3; exit}}')
if [ -z "$library" ]; then
    folder=$(dirname "$(readlink -f "$(command -v {launcher})")")
    library=$(for each in "$folder"/../lib*/libmpi.so*
        do [ -r "$each" ] && echo "$each" && break; done)
fi
"""


def node_probes(subject: ResolvedStack) -> list[Probe]:
    """Return what is asked on the node, in the stack's environment."""
    return [
        Probe(name="host", command="hostname"),
        Probe(name="uid", command="id -u"),
        Probe(name="memlock", command="ulimit -l"),
        _look_probe(),
        _pmi_probe(),
        Probe(
            name="environment",
            command=f"env | grep -E '^({_STEERING})_' | sort",
            shown="env",
        ),
        *(
            [Probe(name="launcher", command=f"{OWN_LAUNCHER[subject.family]} --version")]
            if subject.launcher != "srun"
            else []
        ),
        *(_mpi_probes(subject) if subject.container is None else [_container_probe(subject)]),
    ]


def _mpi_probes(subject: ResolvedStack) -> list[Probe]:
    return [
        *_tool_probes(subject),
        *(
            Probe(name=f"ldd:{path}", command=f"ldd {shell_word(path)}", shown=f"ldd {path}")
            for path in subject.programs
        ),
        _asker_probe(subject),
    ]


#: inside.sh in the image, as below rank.sh: what it leaves, after the root of the node.  A job's
#: folder lies below the project as a rule, and there may be no /tmp in the image to show another.
_ENTER = """folder=$(mktemp -d -p "$PWD" 2>/dev/null || mktemp -d) && cp {script} "$folder" || exit
trap 'rm -rf "$folder"' EXIT
echo "root $(stat -c %d:%i /)"
{runtime} sh "$folder/{name}" "$folder/seen" '' {rails} -- -- true
status=$?
cat "$folder/seen" 2>/dev/null
exit $status"""

#: Pyxis is a part of srun, which is not started here for a node of its own.
_PYXIS = "srun --help | grep -e --container-image"


def _container_probe(subject: ResolvedStack) -> Probe:
    """Return what asks whether the runtime starts the image, and what is seen there."""
    container = subject.container
    assert container is not None
    if container.outer:
        return Probe(name=CONTAINER, command=_PYXIS)
    rails = dict.fromkeys(rail for each in subject.net_paths for rail in each.rails)
    words = (in_folder(word, "$folder") for word in container.inner)
    command = _ENTER.format(
        script=shell_word(str(INSIDE)),
        runtime=" ".join(words),
        name=INSIDE.name,
        rails=shell_line(rails),
    )
    return Probe(name=CONTAINER, command=command, shown=shell_line([*container.inner, "true"]))


def _look_probe() -> Probe:
    """Return what asks for the rails, as every job does for its inventory."""
    command = f"{shell_word(sys.executable)} -IS {shell_word(str(LOOK))} --seconds 15 2>/dev/null"
    shown = "/sys/class/net/*; /sys/class/infiniband/*/ports/*; ip, tc, ethtool, lspci"
    return Probe(name="look", command=command, shown=shown)


def _pmi_probe() -> Probe:
    known = " ".join(PMI2_LIBRARIES)
    return Probe(
        name="pmi",
        command=f"ls -1 {known} 2>/dev/null; "
        "{ ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | sed -n 's/.*libpmi.* => //p'",
        shown="ls libpmi2.so.0 in the usual places; ldconfig -p",
    )


def _tool_probes(subject: ResolvedStack) -> list[Probe]:
    if subject.family == "openmpi":
        return [
            Probe(name="ompi_info", command="ompi_info --parsable"),
            Probe(name="pmix_info", command="pmix_info --parsable"),
        ]
    if subject.family in {"mvapich", "mvapich2"}:
        return [Probe(name="mpichversion", command="mpichversion || mpiname -a")]
    return [Probe(name="mpichversion", command="mpichversion")] * (
        subject.family in {"mpich", "parastation"}
    )


def _asker_probe(subject: ResolvedStack) -> Probe:
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


def slurm_probes() -> list[Probe]:
    """Return what is asked of Slurm, where jobs are submitted."""
    return [
        Probe(name="mpi_list", command="srun --mpi=list"),
        Probe(name="config", command="scontrol show config"),
        Probe(name="partitions", command="scontrol -o show partition"),
    ]
