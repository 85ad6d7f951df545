"""Solve an environment once and keep the answer with the site, until what it was solved from moves.

A solve takes half a minute and a gigabyte; the kept ``spack.lock`` takes neither and says exactly
what ran.  It fits one site only: it holds operating system, target, compiler and external paths.

Where nobody declares a compiler Spack would write those that it finds into its own installation,
for everybody; here it looks in an environment of its own, and the answer stays with the site.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.core.records import text_of
from fabricproof.core.units import stamp
from fabricproof.core.whole_file import refusal_of, whole_file
from fabricproof.stacks.environment import answer_of
from fabricproof.stacks.spack.environment.compose import Environment
from fabricproof.stacks.spack.environment.externals import load_yaml
from fabricproof.stacks.spack.failure import failure_of
from fabricproof.stacks.spack.layout import SpackLayout, sha256_of
from fabricproof.stacks.spack.tool import Spack, unheard


def _find_compilers(environment: Environment, spack: Spack, log: Path | None) -> None:
    if environment.compilers.is_file():
        return
    scratch = environment.folder / "compilers"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    asked = {"include": [str(path) for path in environment.includes], "view": False, "specs": []}
    (scratch / "spack.yaml").write_text(yaml.safe_dump({"spack": asked}), encoding="utf-8")
    known = spack.call(["-e", str(scratch), "compiler", "list"])
    if not known.status and re.search(r"^(?:\[.\]\s+)?[\w-]+@\d", known.output, re.MULTILINE):
        return
    answer = spack.call(
        ["-e", str(scratch), "compiler", "find", "--scope", f"env:{scratch}"], log=log
    )
    if answer.status:
        raise failure_of("compiler find", answer)
    found = load_yaml(scratch / "spack.yaml")["spack"].get("packages") or {}
    externals = [each for settings in found.values() for each in settings.get("externals", ())]
    # Without its recipes Spack knows no compiler either; it only warns, and ends well.
    if not externals and "Error constructing repository" in answer.output:
        raise failure_of("compiler find", answer)
    if not any({"c", "cxx"} <= set(each["extra_attributes"]["compilers"]) for each in externals):
        raise UnavailableError(
            "there is no compiler for C and C++",
            expected="gcc and g++ on PATH, or a compiler in the site's spack/packages.yaml",
            got=", ".join(str(each["spec"]) for each in externals) or "none",
            next_step="install gcc and g++, or load a compiler's module first",
        )
    text = "# Found by Spack on this machine; the site declares no compiler.\n"
    environment.compilers.write_text(text + yaml.safe_dump({"packages": found}), encoding="utf-8")


#: compilers whose ``--version`` has the version that Spack gives them
_SAY_THEIR_VERSION = frozenset({"gcc", "llvm"})


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A solved environment.

    Attributes:
        digest: of what decides the binaries, see :func:`digest_of_lock`.
        specs: its concrete specs by hash, as Spack writes them.
        kept: it was there and still holds.
    """

    path: Path
    digest: str
    specs: dict[str, dict[str, Any]]
    kept: bool
    seconds: float

    def find(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """Return hash and spec of package ``name``, None where the lock has none."""
        return next(((key, spec) for key, spec in self.specs.items() if spec["name"] == name), None)


def kept_lock(layout: SpackLayout, stack: str) -> Path:
    """Return where the lock of ``stack`` is kept."""
    return layout.locks / f"{stack}.lock"


def digest_of_lock(path: Path) -> str:
    """Return the identity of a solution, hexadecimal: the same from two solves of the same input.

    It is the SHA-256 of the hashes of all concrete specs and of which of them were asked for, both
    in order.  A spec's hash covers its versions, variants, compiler, target and all below it
    (Spack's ``dag_hash``); the file itself has specs and roots in the order of the solver's answer,
    and which Spack wrote it.

    Raises:
        ValueError, KeyError, TypeError: it is no lock.
        OSError: it cannot be read.
    """
    data = json.loads(text_of(path))
    roots = sorted({str(root["hash"]) for root in data["roots"]})
    words = [*sorted(data["concrete_specs"]), "roots", *roots]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def is_of_lock(digest: str, path: Path) -> bool:
    """Tell whether a record's ``digest`` is of the lock in ``path``; a damaged one has none."""
    try:
        return digest == digest_of_lock(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def why_stale(environment: Environment, layout: SpackLayout) -> str | None:
    """Return why the kept lock does not hold for ``environment``; None where it does."""
    path = kept_lock(layout, environment.stack.name)
    if not path.is_file():
        return "there is none yet"
    try:
        note = json.loads(text_of(path.with_suffix(".json")))
        inputs, digest = note["inputs"], note["lock_digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return "nothing says what it was solved from"
    if digest != sha256_of(path):
        return "it was changed by hand"
    if inputs != environment.digest:
        return "the recipe or the site's Spack configuration changed"
    return None


def lock(
    environment: Environment,
    layout: SpackLayout,
    spack: Spack,
    *,
    force: bool = False,
    on_line: Callable[[str], None] = unheard,
    log: Path | None = None,
) -> Lock:
    """Return the lock of ``environment``: the kept one, else a new one, which is then kept.

    The environment is written down for Spack; the caller holds the layout's lock.

    Raises:
        ConfigError: Spack finds no solution, or the kept lock is damaged.
        OutputError: the site folder cannot be written.
    """
    begin = time.monotonic()
    environment.write()
    kept = kept_lock(layout, environment.stack.name)
    stale = "asked to" if force else why_stale(environment, layout)
    if stale is not None:
        on_line(f"solving {environment.stack.name}: {stale}")
        _drop_half_clones(layout)
        _find_compilers(environment, spack, log)
        environment.lock.unlink(missing_ok=True)
        answer = spack.call(
            ["-e", str(environment.folder), "concretize", "--force"], on_line=on_line, log=log
        )
        if answer.status or not environment.lock.is_file():
            raise failure_of("concretize", answer)
        _keep(environment, kept, spack)
    if not environment.lock.is_file() or sha256_of(environment.lock) != sha256_of(kept):
        shutil.copyfile(kept, environment.lock)
    return _read(kept, kept=stale is None, seconds=time.monotonic() - begin)


def _drop_half_clones(layout: SpackLayout) -> None:
    """Remove recipes whose download failed: Spack would take what is left for the whole."""
    for folder in layout.cache.glob("package_repos/*"):
        if folder.is_dir() and [each.name for each in folder.iterdir()] == [".git"]:
            shutil.rmtree(folder, ignore_errors=True)


def _keep(environment: Environment, kept: Path, spack: Spack) -> None:
    text = _ordered(environment.lock)
    note = {
        "inputs": environment.digest,
        "lock_digest": hashlib.sha256(text.encode()).hexdigest(),
        "spack": spack.label,
        "made": stamp(),
    }
    with refusal_of("keep the lock", kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(kept) as file:
            file.write(text.encode())
        with whole_file(kept.with_suffix(".json")) as file:
            file.write((json.dumps(note, indent=1) + "\n").encode())


def _ordered(path: Path) -> str:
    """Return a lock with its roots and specs in order, a line for each fact.

    Spack 1.1 writes the roots in another order in every solve, all in one line: the file that is
    committed would change though nothing did.
    """
    text = text_of(path)
    try:
        data = json.loads(text)
        data["roots"] = sorted(data["roots"], key=lambda root: (root["hash"], root["spec"]))
        data["concrete_specs"] = dict(sorted(data["concrete_specs"].items()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return text  # no lock: whoever reads it says so
    return json.dumps(data, indent=1) + "\n"


def _read(path: Path, *, kept: bool, seconds: float) -> Lock:
    try:
        data = json.loads(text_of(path))
        return Lock(
            path=path,
            digest=digest_of_lock(path),
            specs=data["concrete_specs"],
            kept=kept,
            seconds=seconds,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            "damaged lock",
            source=str(path),
            expected="a spack.lock",
            got=type(error).__name__,
            next_step="fabricproof stack lock --force   # makes it again",
        ) from None


def prove_compilers(lock: Lock) -> None:
    """Refuse a lock whose compilers are others by now: what they build would bear a wrong name.

    Raises:
        ConfigError: a compiler is gone or says another version than the lock.
    """
    for spec in lock.specs.values():
        if spec["name"] not in _SAY_THEIR_VERSION or not spec.get("external"):
            continue
        programs = (spec["external"].get("extra_attributes") or {}).get("compilers") or {}
        for program in programs.values():
            said = _first_line(program)
            if not re.search(rf"(?<![\d.]){re.escape(str(spec['version']))}(?![\d])", said):
                raise ConfigError(
                    "the lock was solved with another compiler than this machine has",
                    source=str(lock.path),
                    expected=f"{program} of {spec['name']} {spec['version']}",
                    got=said or "nothing there",
                    next_step="fabricproof stack lock --force   # or mend the site's packages.yaml",
                )


def _first_line(program: str) -> str:
    try:
        return answer_of([program, "--version"], seconds=60).stdout.partition("\n")[0]
    except (OSError, subprocess.TimeoutExpired):
        return ""
