"""Which folder is the project: the checkout, or what ``fabricproof init`` laid out for a site."""

from __future__ import annotations

import functools
import os
import shlex
from pathlib import Path

#: names the project's folder to a fabricproof that was installed as a package; ``env.sh`` sets it
ROOT_VARIABLE = "FABRICPROOF_ROOT"

#: what makes a folder a project
ENTRY_POINT = "reframe_settings.py"


def project_root() -> Path:
    """Return the folder that holds ``site-configs``, ``perflogs`` and a site's own ``checks``.

    The checkout that this package runs from.  Where it was installed as a package: the folder in
    :data:`ROOT_VARIABLE`, else the nearest one with :data:`ENTRY_POINT` from the current folder
    up, else the current folder.
    """
    if (checkout := _checkout()) is not None:
        return checkout
    if named := os.environ.get(ROOT_VARIABLE):
        return Path(named).absolute()
    here = Path.cwd()
    laid_out = (each for each in (here, *here.parents) if (each / ENTRY_POINT).is_file())
    return next(laid_out, here)


def shipped() -> Path | None:
    """Return the folder with what the package brings beside its code; None in a checkout.

    The names are those of a checkout (``pyproject.toml``, the wheel's ``force-include``).
    """
    return None if _checkout() else Path(__file__).resolve().parents[1] / "shipped"


def check_folders(project: Path) -> list[Path]:
    """Return where ReFrame looks for checks: ours, and those of ``project`` itself."""
    ours, own = shipped(), project / "checks"
    if ours is None:
        return [own]
    return [ours / "checks", *([own] if own.is_dir() else [])]


def entry_point(project: Path) -> Path:
    """Return ReFrame's settings file: that of ``project``, else the one that the package brings."""
    ours, own = shipped(), project / ENTRY_POINT
    return own if ours is None or own.is_file() else ours / ENTRY_POINT


def recipes_folder() -> Path:
    """Return the folder of the stacks' Spack recipes: the project's own where it has one."""
    ours, own = shipped(), project_root() / "spack-envs"
    return own if ours is None or own.is_dir() else ours / "spack-envs"


#: name of a site that this process loaded -> the word behind ``--site`` that finds it again
_SITE_WORDS: dict[str, str] = {}


def remember_site(name: str, folder: Path, usual: Path) -> None:
    """Remember the folder of a site, so that printed commands find it again.

    Below ``usual``, where ``--site`` looks for names, its name is enough.
    """
    here = folder.resolve()
    is_usual = here.parent == usual.resolve()
    _SITE_WORDS[name] = here.name if is_usual else str(folder.absolute())


def site_word(name: str) -> str:
    """Return the word that finds the site again, quoted for a shell; empty if ``name`` is."""
    return shlex.quote(_SITE_WORDS.get(name, name)) if name else ""


def site_option(name: str) -> str:
    """Return ``--site`` and that word; empty if ``name`` is."""
    return f"--site {site_word(name)}" if name else ""


@functools.cache
def _checkout() -> Path | None:
    # A plan asks three thousand times.
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "src" / "fabricproof").is_dir():
            return folder
    return None
