"""What stands in the environment of a stack, and how a shell is told it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.project import project_root

#: environment variable that overrides where stacks are installed
ROOT_VARIABLE = "FABRICPROOF_STACKS"


def stacks_root() -> Path:
    """Return where stacks are installed: ``$FABRICPROOF_STACKS``, else ``.stacks`` of the project.

    The nodes of a cluster must see it under the same path.
    """
    override = os.environ.get(ROOT_VARIABLE)
    return Path(override).absolute() if override else project_root() / ".stacks"


@dataclass(frozen=True, kw_only=True)
class StackEnvironment:
    """Variables to set, and folders to put in front of path variables."""

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


#: what no plain quotes of a shell may hold here: see :func:`shell_word`
_TO_CODES = re.compile(r"[^ -~]|[$`\\']")


def shell_word(text: str) -> str:
    r"""Return ``text`` as one word of bash that means these bytes and nothing else.

    What a shell would expand is written as codes (``$'\x24(cmd)'``): ReFrame runs ``$(cmd)`` and
    expands ``$NAME`` in the values of variables itself, on the login node, within quotes too
    (``osext.expandvars`` of 4.10.4), and writes a script in whatever coding the locale has.
    """
    if not _TO_CODES.search(text):
        return shlex.quote(text)
    coded = _TO_CODES.sub(_codes, text)
    return f"$'{coded}'"


def _codes(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode(errors="surrogateescape"))


def shell_line(words: Iterable[str]) -> str:
    """Return words as a line of bash, each as :func:`shell_word` has it."""
    return " ".join(map(shell_word, words))


def answer_of(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
    text: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return what a command printed, each stream by itself, and its status, whatever that is.

    ``environment`` is our own if None, ``text`` its input, ``seconds`` the time after which it is
    killed.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it did not end in time.
    """
    return subprocess.run(
        command,
        env=None if environment is None else dict(environment),
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )


def option_words(options: Iterable[str]) -> list[str]:
    """Return the words of options, of which one entry may hold several (``--map-by 'ppr:1:node'``).

    Raises:
        ValueError: a quote that is not closed.
    """
    return [word for each in options for word in shlex.split(each)]


def shell_values(settings: Mapping[str, str], prepend: Mapping[str, str]) -> dict[str, str]:
    """Return variable -> what stands behind ``export NAME=`` in bash.

    A setting wins over a folder in front of the variable of that name.
    """
    folders = {
        name: f"{shell_word(folder)}${{{name}:+:${name}}}" for name, folder in prepend.items()
    }
    return {**folders, **{name: shell_word(value) for name, value in settings.items()}}


def family_settings(family: str, prefix: Path) -> dict[str, str]:
    """Return what an MPI of ``family`` in ``prefix`` wants beside PATH and LD_LIBRARY_PATH."""
    settings = _FAMILY_SETTINGS.get(family, {})
    return {variable: value.format(prefix=prefix) for variable, value in settings.items()}


def quoted(text: str) -> str:
    """Return ``text`` as a Lua string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


#: where Debian, EPEL, OpenHPC and Environment Modules put what defines ``module``.
MODULE_INITS = (
    "/usr/share/lmod/lmod/init/bash",
    "/opt/ohpc/admin/lmod/lmod/init/bash",
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/usr/share/modules/init/bash",
    "/usr/share/Modules/init/bash",
)


def defines_module(init: str | None = None) -> str:
    """Return the line that defines ``module`` if the shell has none: by ``init``, or as usual."""
    if init:
        return f"type module >/dev/null 2>&1 || . {shell_word(init)}"
    return (
        f"for each in {' '.join(MODULE_INITS)}; do "
        'type module >/dev/null 2>&1 && break; [ ! -r "$each" ] || . "$each"; done'
    )
