"""How a program of a stack gets into a container image, and what it says from inside.

``inside.sh``, the first program in the image, leaves a file with one fact a line:
``root DEVICE:INODE`` (the root that the program sees), ``lacks TEXT`` (what of its rails or
variables it does not have), ``library PATH`` (the MPI library in the program's memory; several
joined by `` and ``).  A line of another form is damage.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabricproof.core.errors import ParseError
from fabricproof.stacks.environment import shell_word

#: the first program in a container; POSIX sh
INSIDE = Path(__file__).parent / "inside.sh"

#: stand in a site's own command for the folder of the job and for the image
FOLDER, IMAGE = "{folder}", "{image}"

#: runtimes that one word names; Singularity is Apptainer's older name and takes the same words
PYXIS = "pyxis"
EXEC_RUNTIMES = ("apptainer", "singularity")


@dataclass(frozen=True, kw_only=True)
class Container:
    """The image that the program of a leg runs in, and what starts it there.

    In all words :data:`FOLDER` stands for the job's folder, which the program must find inside by
    the same path.

    Attributes:
        image: path of the image on the nodes, or the reference by which the runtime fetches it.
        outer: options of the launcher; then everything of a rank runs inside, ``rank.sh`` too.
        inner: words between ``rank.sh`` and the program; then the program alone runs inside.
    """

    image: str
    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()


def in_folder(word: str, folder: str) -> str:
    """Return ``word`` for the shell with ``folder`` (``$here``) in the place of :data:`FOLDER`."""
    parts = (shell_word(each) if each else "" for each in word.split(FOLDER))
    return f'"{folder}"'.join(parts) or "''"


def enter(
    runtime: str, image: str, *, binds: Sequence[str] = (), options: Sequence[str] = ()
) -> Container:
    """Return how ``runtime`` (as in a site file) starts a program in ``image``.

    Sources: apptainer-exec(1) of Apptainer 1.3 (``--bind``); the help of Pyxis 0.20 in srun
    (``--container-image``, ``--container-mounts``).

    Raises:
        ValueError: a quote of the command that is not closed.
    """
    if runtime == PYXIS:
        mounts = ",".join(each if ":" in each else f"{each}:{each}" for each in (FOLDER, *binds))
        named = (f"--container-image={image}", f"--container-mounts={mounts}")
        return Container(image=image, outer=(*named, *options))
    if runtime in EXEC_RUNTIMES:
        bound = tuple(word for each in (FOLDER, *binds) for word in ("--bind", each))
        return Container(image=image, inner=(runtime, "exec", *bound, *options, image))
    words = (each.replace(IMAGE, image) for each in shlex.split(runtime))
    return Container(image=image, inner=(*words, *options))


def image_file(image: str) -> Path | None:
    """Return the file or folder that an image is; None for a reference to a registry."""
    return Path(image) if image.startswith("/") else None


@dataclass(frozen=True, kw_only=True)
class Inside:
    """What one rank's program saw: device and inode of its root (empty if unknown), what it lacks
    of the leg's rails and variables, the MPI library in its memory.
    """  # noqa: D205 - one sentence

    root: str = ""
    lacks: tuple[str, ...] = ()
    library: str = "unknown"


def parse_inside(text: str, source: str) -> Inside:
    """Read one rank's file.

    Raises:
        ParseError: a line of unknown form, or a second root.
    """
    found: dict[str, list[str]] = {"root": [], "lacks": [], "library": []}
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, rest = line.partition(" ")
        if word not in found or not rest.strip() or (word == "root" and found["root"]):
            raise ParseError(
                "damaged evidence", source=source, line=number, expected="a fact", got=repr(line)
            )
        found[word].append(rest.strip())
    return Inside(
        root="".join(found["root"]),
        lacks=tuple(found["lacks"]),
        library=(found["library"] or ["unknown"])[-1],
    )


#: what containers lack -> what mends it
_MENDS = {
    "infiniband": "bind /dev/infiniband and /sys into it, or let the runtime show the node's "
    "devices",
    "interface ": "let it share the node's network",
    " in its environment": "let the runtime hand the job's variables on, and the image not set "
    "them",
}


def told_lacks(lacks: Iterable[tuple[str, Inside]]) -> str:
    """Return what containers lack, by their nodes, and what mends it; empty if nothing."""
    by_text: dict[str, dict[str, None]] = {}
    for node, inside in lacks:
        if inside.lacks:
            by_text.setdefault(", no ".join(inside.lacks), {})[node] = None
    told = "; ".join(
        f"the container on {', '.join(nodes)} has no {text}" for text, nodes in by_text.items()
    )
    mends = "; ".join(mend for word, mend in _MENDS.items() if word in " ".join(by_text))
    return f"{told} ({mends})" if told else ""
