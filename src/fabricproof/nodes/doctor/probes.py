"""What a node and Slurm are asked: probes, one script of many, and its answers read back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.nodes.doctor.facts import Answer
from fabricproof.nodes.inventory.read import LOOK
from fabricproof.stacks.container import INSIDE, Container, in_folder
from fabricproof.stacks.environment import defines_module, shell_line, shell_values, shell_word
from fabricproof.stacks.launch import OWN_LAUNCHER, PMI2_LIBRARIES
from fabricproof.stacks.stack import ResolvedStack

_MARK = "@@fabricproof"
_MARKED = re.compile(rf"^{_MARK} (?:begin (\S+)|end (\d+))$")

#: names of the answers to ``module load``, and from inside a container
MODULE, CONTAINER = "module", "container"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question; ``shown`` is its command for people, if it is another."""

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
            load = [f"module use {shell_word(path)} &&" for path in subject.module_paths]
            load.append(f"module load {shell_line(subject.modules)}")
            lines += [
                defines_module(subject.modules_init),
                f"mark begin {MODULE}",
                f"{{ {' '.join(load)}; }} </dev/null 2>&1",
                'mark end "$?"',
            ]
        values = shell_values({**subject.settings, **(settings or {})}, subject.prepend)
        lines += [f"export {name}={value}" for name, value in values.items()]
    for probe in probes:
        command = shell_word(probe.command)
        lines.append(f"mark begin {probe.name}")
        lines.append(f"timeout -k 2 {probe_seconds} bash -c {command} </dev/null 2>&1")
        lines.append('mark end "$?"')
    return "\n".join(lines) + "\n"


def read_answers(text: str, shown: Mapping[str, str]) -> dict[str, Answer]:
    """Return the answers in ``text`` by probe; one that was cut off has status 124."""
    answers: dict[str, Answer] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        mark = _MARKED.match(line)
        if mark and mark[1]:
            name, lines = mark[1], []
            answers[name] = Answer(command=shown.get(name, name), output="", status=124)
        elif mark and name:
            output = "\n".join(lines).strip("\n")
            answers[name] = Answer(
                command=shown.get(name, name), output=output, status=int(mark[2])
            )
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
[ -n "$library" ] || {{ echo "fault: no libmpi to be found"; exit 1; }}
"""

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

_TOOLS = {
    "openmpi": {"ompi_info": "ompi_info --parsable", "pmix_info": "pmix_info --parsable"},
    **{key: {"mpichversion": "mpichversion || mpiname -a"} for key in ("mvapich", "mvapich2")},
    **{key: {"mpichversion": "mpichversion"} for key in ("mpich", "parastation")},
}


def node_probes(subject: ResolvedStack) -> list[Probe]:
    """Return what is asked on the node, in the stack's environment."""
    look = f"{shell_word(sys.executable)} -IS {shell_word(str(LOOK))} --seconds 15 2>/dev/null"
    files = "/sys/class/net/*; /sys/class/infiniband/*/ports/*; ip, tc, ethtool, lspci"
    known = f"ls -1 {' '.join(PMI2_LIBRARIES)} 2>/dev/null"
    loaded = "{ ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | sed -n 's/.*libpmi.* => //p'"
    probes = [
        Probe(name="host", command="hostname"),
        Probe(name="uid", command="id -u"),
        Probe(name="memlock", command="ulimit -l"),
        Probe(name="look", command=look, shown=files),
        Probe(name="pmi", command=f"{known}; {loaded}", shown="ls libpmi2.so.0; ldconfig -p"),
        Probe(name="environment", command=f"env | grep -E '^({_STEERING})_' | sort", shown="env"),
    ]
    if subject.launcher != "srun":
        launcher = OWN_LAUNCHER[subject.family]
        probes.append(Probe(name="launcher", command=f"{launcher} --version"))
    if subject.container is not None:
        return [*probes, _container_probe(subject, subject.container)]
    tools = _TOOLS.get(subject.family, {})
    probes += [Probe(name=name, command=command) for name, command in tools.items()]
    probes += [
        Probe(name=f"ldd:{path}", command=f"ldd {shell_word(path)}", shown=f"ldd {path}")
        for path in subject.programs
    ]
    find, library = "", shell_word(subject.library)
    if not subject.library:
        program = shell_word(subject.programs[0]) if subject.programs else "/nonexistent"
        find = _FIND_LIBRARY.format(program=program, launcher=OWN_LAUNCHER[subject.family])
        library = '"$library"'
    ask = f"{shell_word(sys.executable)} -EsP {shell_word(str(ASKER))}"
    name = Path(subject.library or "libmpi").name
    shown = f"MPI_Get_library_version, fi_getinfo, uct_query_components of {name}"
    command = f"{find}{ask} {library} {subject.family}"
    return [*probes, Probe(name="asker", command=command, shown=shown)]


def _container_probe(subject: ResolvedStack, container: Container) -> Probe:
    """Return what asks whether the runtime starts the image, and what is seen there."""
    if container.outer:
        return Probe(name=CONTAINER, command=_PYXIS)
    rails = dict.fromkeys(rail for each in subject.net_paths for rail in each.rails)
    command = _ENTER.format(
        script=shell_word(str(INSIDE)),
        runtime=" ".join(in_folder(word, "$folder") for word in container.inner),
        name=INSIDE.name,
        rails=shell_line(rails),
    )
    return Probe(name=CONTAINER, command=command, shown=shell_line([*container.inner, "true"]))


def slurm_probes() -> list[Probe]:
    """Return what is asked of Slurm, where jobs are submitted."""
    return [
        Probe(name="mpi_list", command="srun --mpi=list"),
        Probe(name="config", command="scontrol show config"),
        Probe(name="partitions", command="scontrol -o show partition"),
    ]
