"""Write everything that an air-gapped site needs to build its stacks into one folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fabricproof.core.errors import ConfigError, DamagedDownloadError, OutputError, UnavailableError
from fabricproof.core.units import stamp
from fabricproof.core.whole_file import write_whole
from fabricproof.stacks.environment import answer_of
from fabricproof.stacks.spack.builder import Listen
from fabricproof.stacks.spack.environment.compose import Environment
from fabricproof.stacks.spack.environment.lock import kept_lock
from fabricproof.stacks.spack.environment.offline import (
    FORMAT,
    LOCKS,
    MANIFEST,
    OURS,
    REPOSITORIES,
    SPACK_ARCHIVE,
    WHEELS,
)
from fabricproof.stacks.spack.layout import SpackLayout, sha256_of
from fabricproof.stacks.spack.output.diagnose import diagnose
from fabricproof.stacks.spack.tool import PATCHER, SOLVER, Spack

#: asks Spack where its recipes lie; the first repository wins.
_ASK_REPOSITORIES = (
    "import spack.repo; print(*(f'repository {each.namespace} {each.root}' "
    "for each in spack.repo.PATH.repos), sep=chr(10))"
)

#: parts of a Spack folder that belong to its machine.
_LEFT_OUT = frozenset({".git", "__pycache__", "opt", ".spack-env"})

#: the digests that recipes use, by their length in hexadecimal.
_DIGESTS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}

#: with less than this left, a cut archive is the disk's doing.
_ROOM_BYTES = 16 << 20


@dataclass(frozen=True, kw_only=True)
class MirrorWritten:
    """What a mirror holds."""

    folder: Path
    files: int
    size_bytes: int
    stacks: tuple[str, ...]


def make_mirror(
    environments: Sequence[Environment],
    layout: SpackLayout,
    spack: Spack,
    folder: Path,
    *,
    build_cache: bool,
    listen: Listen,
    log: Path,
) -> MirrorWritten:
    """Fill ``folder``: sources, Spack, recipes, solver, locks, and the builds where asked for.

    The manifest is written last: a mirror that was interrupted is none, and the next call goes on.

    Raises:
        ConfigError: the folder holds something else: all that is in it would be the mirror's.
        UnavailableError: a download failed.
        OutputError: the folder cannot be written.
    """
    folder = folder.absolute()
    _refuse_a_strangers(folder)
    try:
        (folder / OURS).mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        for environment in environments:
            _sources(environment, spack, folder, listen, log)
            if build_cache:
                _builds(environment, spack, folder, listen, log)
        listen("spack", "packing Spack")
        _pack(spack.program.resolve().parents[1], folder / SPACK_ARCHIVE, "")
        namespaces = _recipes(environments[0], spack, folder, listen)
        listen("solver", f"fetching {SOLVER}, {PATCHER}")
        _wheels(folder / WHEELS)
        _locks(environments, layout, folder / LOCKS / layout.site)
        return _seal(environments, layout, spack, folder, namespaces, build_cache=build_cache)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"cannot write the mirror: {error.strerror}",
            source=str(error.filename or folder),
            next_step="make room; what is there stays, and the next call goes on",
        ) from None


def _refuse_a_strangers(folder: Path) -> None:
    """Refuse a folder that is neither empty nor a mirror, ours or Spack's, finished or not."""
    known = (folder / OURS, folder / "_source-cache")
    if not folder.is_dir() or any(each.is_dir() for each in known) or not any(folder.iterdir()):
        return
    raise ConfigError(
        "a mirror needs a folder of its own",
        source=str(folder),
        expected="a new or empty folder, or one of an earlier fabricproof stack mirror",
        got="a folder with other things in it",
        next_step=f"choose another, for example {folder / 'mirror'}",
    )


def _sources(
    environment: Environment, spack: Spack, folder: Path, listen: Listen, log: Path
) -> None:
    answer = spack.call(
        ["-e", str(environment.folder), "mirror", "create", "-d", str(folder), "--all"],
        on_line=lambda line: listen("sources", line),
        log=log,
    )
    damaged = _damaged_sources(folder)
    for path in damaged:
        path.unlink()
    _refuse_full_disk(folder, damaged)
    if answer.status or "Error:" in answer.output:
        raise diagnose("mirror create", answer.output, exit_status=answer.status)
    if damaged:
        raise DamagedDownloadError(
            "an archive was not what its recipe promises; it is removed",
            source=str(damaged[0]),
            expected="the digest that it is named after",
            got=f"{len(damaged)} of another",
            next_step="call it again: it is fetched anew",
        )


def _damaged_sources(folder: Path) -> list[Path]:
    """Return the archives that are not what their name, a digest, says.

    On a full disk Spack 1.1 writes half of one, reports success, and finds it "already present"
    ever after.
    """
    archives = (folder / "_source-cache" / "archive").glob("*/*")
    return [path for path in archives if path.is_file() and not _is_its_name(path)]


def _is_its_name(path: Path) -> bool:
    """Tell whether an archive has the digest that it is named after; other names say nothing."""
    name = path.name.partition(".")[0]
    kind = _DIGESTS.get(len(name))
    if kind is None:
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest() == name


def _refuse_full_disk(folder: Path, damaged: Sequence[Path]) -> None:
    if damaged and shutil.disk_usage(folder).free < _ROOM_BYTES:
        raise OutputError(
            "the mirror could not be written: no space left on device",
            source=str(folder),
            next_step="make room and call it again",
        )


def _builds(
    environment: Environment, spack: Spack, folder: Path, listen: Listen, log: Path
) -> None:
    answer = spack.call(
        ["-e", str(environment.folder), "buildcache", "push", "--unsigned", folder.as_uri()],
        on_line=lambda line: listen("builds", line),
        log=log,
    )
    if answer.status:
        raise diagnose("buildcache push", answer.output, exit_status=answer.status)


def _pack(source: Path, archive: Path, inside: str) -> None:
    partial = archive.with_name(f".{archive.name}.{os.getpid()}")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(partial, "w:gz", compresslevel=6) as members:
        for path in sorted(source.iterdir()):
            if path.name not in _LEFT_OUT:
                members.add(path, arcname=f"{inside}{path.name}", filter=_without_caches)
    partial.replace(archive)


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what belongs to the machine: caches, and configuration written into Spack."""
    path = PurePosixPath(member.name)
    local = str(path.parent) == "etc/spack" and path.suffix == ".yaml" and path.stem != "include"
    return None if local or {"__pycache__", ".git"} & set(path.parts) else member


def _recipes(environment: Environment, spack: Spack, folder: Path, listen: Listen) -> list[str]:
    answer = spack.call(["-e", str(environment.folder), "python", "-c", _ASK_REPOSITORIES])
    found = [
        line.split(maxsplit=2)[1:]
        for line in answer.output.splitlines()
        if line.startswith("repository ")
    ]
    if answer.status or not found:
        raise diagnose("repo list", answer.output, exit_status=answer.status)
    for namespace, root in found:
        listen("recipes", f"packing the recipes of {namespace}")
        target = folder / REPOSITORIES / f"{namespace}.tar.gz"
        _pack(Path(root), target, f"spack_repo/{namespace}/")
    return [namespace for namespace, _ in found]


def _wheels(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "--no-input", "download", "--quiet"]
    done = answer_of([*command, "--only-binary", ":all:", "-d", str(folder), SOLVER, PATCHER])
    if done.returncode:
        raise UnavailableError(
            "the solver's wheels could not be fetched",
            expected=f"{SOLVER}, {PATCHER}",
            got=" ".join(done.stderr.split())[-200:],
            next_step="check pip's index settings (pip config list)",
        )


def _locks(environments: Sequence[Environment], layout: SpackLayout, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for environment in environments:
        lock = kept_lock(layout, environment.stack.name)
        for path in (lock, lock.with_suffix(".json")):
            if not path.is_file():
                raise ConfigError(
                    "a stack without a lock cannot be mirrored", source=str(path), got="none"
                )
            shutil.copyfile(path, target / path.name)


def _seal(
    environments: Sequence[Environment],
    layout: SpackLayout,
    spack: Spack,
    folder: Path,
    namespaces: list[str],
    *,
    build_cache: bool,
) -> MirrorWritten:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    files = {
        str(path.relative_to(folder)): {
            "size_bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in paths
    }
    manifest = {
        "format": FORMAT,
        "site": layout.site,
        "stacks": [environment.stack.name for environment in environments],
        "spack": spack.label,
        "python": ".".join(map(str, sys.version_info[:2])),
        "made": stamp(),
        "repositories": namespaces,
        "build_cache": build_cache,
        "files": files,
    }
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return MirrorWritten(
        folder=folder,
        files=len(files),
        size_bytes=sum(int(str(fact["size_bytes"])) for fact in files.values()),
        stacks=tuple(manifest["stacks"]),  # type: ignore[arg-type]
    )
