"""Read a folder of ``fabricproof stack mirror``: everything a build needs, without a network."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError, InputMissingError, OutputError
from fabricproof.core.records import text_of
from fabricproof.stacks.spack.layout import SpackLayout, sha256_of

#: of the manifest.
FORMAT = 1

#: our part of the folder; the rest is laid out by Spack.
OURS = "fabricproof"
MANIFEST = f"{OURS}/manifest.json"
SPACK_ARCHIVE = f"{OURS}/spack.tar.gz"
WHEELS = f"{OURS}/wheels"
REPOSITORIES = f"{OURS}/repositories"
LOCKS = f"{OURS}/locks"


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A mirror, unpacked as far as a build needs it.

    Attributes:
        program: its Spack.
        repositories: recipes by namespace, the first one wins.
        locks: the locks of the site it was made for, None where it has none for this site.
    """

    folder: Path
    program: Path
    wheels: Path
    repositories: Mapping[str, Path]
    locks: Path | None


def open_mirror(folder: Path, layout: SpackLayout, report: Callable[[str], None]) -> Mirror:
    """Return the mirror in ``folder``; its Spack and recipes are unpacked once.

    Raises:
        InputMissingError: there is none.
        ConfigError: it is damaged or was copied in part.
    """
    folder = folder.absolute()
    manifest = read_manifest(folder)
    _check_whole(folder, manifest)
    stamp = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:16]
    place = layout.root / "mirrored" / stamp
    if not place.is_dir():
        report(f"unpacking Spack and its recipes from {folder}")
        _unpack_all(folder, manifest["repositories"], place)
    locks = folder / LOCKS / layout.site
    return Mirror(
        folder=folder,
        program=place / "spack" / "bin" / "spack",
        wheels=folder / WHEELS,
        repositories={
            name: place / name / "spack_repo" / name for name in manifest["repositories"]
        },
        locks=locks if locks.is_dir() else None,
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the mirror in ``folder``.

    Raises:
        InputMissingError: there is none.
        ConfigError: it is damaged or of another format.
    """
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(text_of(path))
        known = manifest["format"] == FORMAT and _is_complete(manifest)
    except OSError:
        raise InputMissingError(
            "this is no mirror",
            source=str(folder),
            expected=MANIFEST,
            next_step="fabricproof stack mirror   # where there is a network",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise ConfigError(
            "damaged manifest of a mirror", source=str(path), expected=f"format {FORMAT}"
        )
    return manifest


def _is_complete(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest names the files that every mirror has, with size and digest."""
    facts, names = manifest["files"], manifest["repositories"]
    needed = {SPACK_ARCHIVE, *(f"{REPOSITORIES}/{name}.tar.gz" for name in names)}
    return (
        bool(names)
        and needed <= facts.keys()
        and all({"size_bytes", "sha256"} <= fact.keys() for fact in facts.values())
    )


def _check_whole(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a mirror that lost or changed something on its way, before minutes are spent on it."""
    for name, fact in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise ConfigError(
                "the mirror is not whole", source=str(path), expected="a file", got="nothing there"
            )
        if path.stat().st_size != fact["size_bytes"] or sha256_of(path) != fact["sha256"]:
            raise ConfigError(
                "a file of the mirror is not what it was",
                source=str(path),
                expected=f"{fact['size_bytes']} bytes, SHA-256 {fact['sha256'][:12]}",
                got=f"{path.stat().st_size} bytes, SHA-256 {sha256_of(path)[:12]}",
                next_step="copy it again",
            )


def _unpack_all(folder: Path, namespaces: Sequence[str], place: Path) -> None:
    """Unpack Spack and its recipes to ``place``, whole or not at all."""
    partial = place.with_name(f".partial-{place.name}-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _unpack(folder / SPACK_ARCHIVE, partial / "spack")
        for namespace in namespaces:
            _unpack(folder / REPOSITORIES / f"{namespace}.tar.gz", partial / namespace)
        partial.rename(place)
    except (OSError, tarfile.TarError) as error:
        if place.is_dir():
            return  # another process has unpacked the very same meanwhile
        raise OutputError(
            f"the mirror could not be unpacked: {error}", source=str(place.parent)
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unpack(archive: Path, target: Path) -> None:
    target.mkdir(parents=True)
    with tarfile.open(archive) as members:
        # Python 3.11.4 and newer know filters; before, the archive's digest is all there is.
        members.extraction_filter = getattr(tarfile, "data_filter", None)
        members.extractall(target)  # noqa: S202 - our own archives, whose digests were checked
