"""Many questions in one shell script, so that a node is asked once; and its answers, read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabricproof.nodes.doctor.facts import Answer
from fabricproof.stacks.environment import shell_line, shell_values, shell_word
from fabricproof.stacks.modules import defines_module

_MARK = "@@fabricproof"
_BEGIN = re.compile(rf"^{_MARK} begin (\S+)$")
_END = re.compile(rf"^{_MARK} end (\d+)$")

#: the name of the answer to ``module load``.
MODULE = "module"


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question.

    Attributes:
        name: of its answer.
        command: for the shell.
        shown: the same for people, where the command is long.
    """

    name: str
    command: str
    shown: str = ""


def render_script(
    probes: Sequence[Probe],
    *,
    settings: Mapping[str, str] | None = None,
    prepend: Mapping[str, str] | None = None,
    modules: Sequence[str] = (),
    module_paths: Sequence[str] = (),
    modules_init: str | None = None,
    probe_seconds: int = 20,
) -> str:
    """Return a bash script that asks every probe in the stack's environment.

    Args:
        probes: the questions; each runs in a shell of its own, under ``timeout``.
        settings: variables to set, after the modules as in a job.
        prepend: path variables and what goes in front.
        modules: to load first; how that went is the answer :data:`MODULE`.
        module_paths: to ``module use`` before.
        modules_init: the file that defines ``module``; the places where jobs look, where None.
        probe_seconds: time for each.
    """
    lines = [f"mark() {{ printf '\\n{_MARK} %s %s\\n' \"$@\"; }}"]
    if modules:
        lines += _module_lines(modules, module_paths, modules_init)
    values = shell_values(settings or {}, prepend or {})
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
    """Return the answers in ``text`` by probe; one that was cut off has status 124.

    Args:
        text: what the script printed.
        shown: probe -> its command for people.
    """
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
