"""The compilers of a machine, where the site does not declare any.

Left alone, Spack looks for them itself and writes what it finds into its own installation, for
everybody.  Here Spack looks too, in an environment of its own, and the answer stays with the site.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import yaml

from fabricproof.core.errors import UnavailableError
from fabricproof.stacks.spack.diagnose import diagnose, recipes_absent
from fabricproof.stacks.spack.environment import Environment
from fabricproof.stacks.spack.tool import Spack
from fabricproof.stacks.spack.yaml_files import load_yaml

#: packages that are compilers to Spack 1 (its ``compiler`` tag).
COMPILERS = frozenset(
    {
        "gcc", "llvm", "apple-clang", "aocc", "cce", "nvhpc", "intel-oneapi-compilers",
        "intel-oneapi-compilers-classic", "llvm-amdgpu", "acfl", "fj", "xl",
    }
)  # fmt: skip


def declared(scopes: Iterable[Path]) -> bool:
    """Tell whether one of ``scopes`` declares a compiler."""
    for scope in scopes:
        path = scope / "packages.yaml"
        packages = load_yaml(path).get("packages") or {} if path.is_file() else {}
        if any((packages.get(name) or {}).get("externals") for name in COMPILERS):
            return True
    return False


def find_compilers(environment: Environment, spack: Spack, log: Path | None = None) -> bool:
    """Have Spack look for compilers where nobody declares one; True where it had to.

    Without its recipes Spack knows no compiler either; it only warns, and ends well.

    Args:
        environment: written down.
        spack: the tool.
        log: takes what Spack prints.

    Raises:
        UnavailableError: there is none, or Spack has no recipes to know one by.
    """
    target = environment.compilers / "packages.yaml"
    if target.is_file() or declared(environment.scopes):
        return False
    scratch = environment.folder / "compilers"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    asked = {"include": [str(path) for path in environment.includes], "view": False, "specs": []}
    (scratch / "spack.yaml").write_text(yaml.safe_dump({"spack": asked}), encoding="utf-8")
    answer = spack.call(
        ["-e", str(scratch), "compiler", "find", "--scope", f"env:{scratch}"], log=log
    )
    if answer.status:
        raise diagnose("compiler find", answer.output, exit_status=answer.status)
    found = load_yaml(scratch / "spack.yaml")["spack"].get("packages") or {}
    externals = [each for settings in found.values() for each in settings.get("externals", ())]
    if not externals and _lists_one(scratch, spack):
        return False  # declared in Spack's own installation
    if not externals and (broken := recipes_absent(answer.output)):
        raise broken
    if not any({"c", "cxx"} <= set(each["extra_attributes"]["compilers"]) for each in externals):
        raise UnavailableError(
            "there is no compiler for C and C++",
            expected="gcc and g++ on PATH, or a compiler in the site's spack/packages.yaml",
            got=", ".join(str(each["spec"]) for each in externals) or "none",
            next_step="install gcc and g++, or load a compiler's module first",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "# Found by Spack on this machine; the site declares no compiler.\n"
    target.write_text(text + yaml.safe_dump({"packages": found}), encoding="utf-8")
    return True


def _lists_one(folder: Path, spack: Spack) -> bool:
    """Tell whether Spack knows a compiler from anywhere."""
    answer = spack.call(["-e", str(folder), "compiler", "list"])
    return not answer.status and bool(
        re.search(r"^(?:\[.\]\s+)?[\w-]+@\d", answer.output, re.MULTILINE)
    )
