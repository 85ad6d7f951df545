"""Mirrors: written with a pretended Spack, read back, damaged in every way, built from."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabricproof.core.errors import (
    ConfigError,
    DamagedDownloadError,
    FabricproofError,
    InputMissingError,
    OutputError,
    UnavailableError,
)
from fabricproof.stacks.spack import mirror as mirror_module
from fabricproof.stacks.spack.environment.lock import digest_of_lock, lock
from fabricproof.stacks.spack.environment.offline import (
    LOCKS,
    MANIFEST,
    REPOSITORIES,
    SPACK_ARCHIVE,
    WHEELS,
    open_mirror,
)
from fabricproof.stacks.spack.mirror import MirrorWritten, make_mirror
from pretended_spack import Lab


@pytest.fixture
def site(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab with recipes and a solver to pack."""
    recipes = lab.folder / "recipes" / "spack_repo" / "builtin"
    (recipes / "packages" / "__pycache__").mkdir(parents=True)
    (recipes / "repo.yaml").write_text("repo: {namespace: builtin}\n")
    (recipes / "packages" / "__pycache__" / "x.pyc").touch()
    tool = lab.folder / "tool"
    for name in ("etc/spack/packages.yaml", "etc/spack/include.yaml", "opt/spack/x", ".git/HEAD"):
        (tool / name).parent.mkdir(parents=True, exist_ok=True)
        (tool / name).touch()

    def wheels(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "clingo.whl").write_bytes(b"wheel")

    monkeypatch.setattr(mirror_module, "_wheels", wheels)
    return lab


def written(lab: Lab, *, build_cache: bool = False) -> MirrorWritten:
    environment, spack = lab.compose(), lab.open()
    lock(environment, lab.layout, spack)
    return make_mirror(
        [environment],
        lab.layout,
        spack,
        lab.folder / "mirror",
        build_cache=build_cache,
        listen=lambda step, line: lab.heard.append((step, line)),
        log=lab.folder / "mirror.log",
    )


def opened(lab: Lab, **changed):
    return open_mirror(
        lab.folder / "mirror",
        replace(lab.layout, **changed),
        lambda text: lab.heard.append(("", text)),
    )


def test_a_mirror_has_sources_spack_recipes_solver_and_locks(site: Lab):
    result = written(site)
    folder = site.folder / "mirror"
    manifest = json.loads((folder / MANIFEST).read_text())
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert manifest["files"].keys() == there - {MANIFEST}
    assert result.files == len(manifest["files"])
    assert result.size_bytes == sum(fact["size_bytes"] for fact in manifest["files"].values())
    assert {SPACK_ARCHIVE, f"{REPOSITORIES}/builtin.tar.gz", f"{WHEELS}/clingo.whl"} <= there
    assert {f"{LOCKS}/lab/openmpi.lock", f"{LOCKS}/lab/openmpi.json"} <= there
    assert (manifest["stacks"], manifest["repositories"]) == (["openmpi"], ["builtin"])
    assert not manifest["build_cache"]


def test_what_belongs_to_the_machine_stays_there(site: Lab):
    written(site)
    with tarfile.open(site.folder / "mirror" / SPACK_ARCHIVE) as members:
        names = members.getnames()
    assert "bin/spack" in names
    assert "etc/spack/include.yaml" in names
    assert not [
        name for name in names if "packages.yaml" in name or name.startswith((".git", "opt"))
    ]
    with tarfile.open(site.folder / "mirror" / REPOSITORIES / "builtin.tar.gz") as members:
        assert not [name for name in members.getnames() if "__pycache__" in name]


def test_the_calls_for_a_mirror_with_a_build_cache(site: Lab):
    written(site, build_cache=True)
    folder = site.folder / "mirror"
    assert site.calls[-3:-1] == [
        ["mirror", "create", "-d", str(folder), "--all"],
        ["buildcache", "push", "--unsigned", folder.as_uri()],
    ]
    assert site.calls[-1][:2] == ["python", "-c"]


def test_an_archive_of_another_digest_is_deleted_and_refused(site: Lab):
    site.order(cut=5)
    with pytest.raises(DamagedDownloadError, match="not what its recipe promises"):
        written(site)
    folder = site.folder / "mirror"
    assert not [path for path in folder.rglob("*.tar.gz") if path.is_file()]
    assert not (folder / MANIFEST).exists()
    site.order()
    assert written(site).files > 4


def test_an_archive_cut_by_a_full_disk_is_the_disks_doing(
    site: Lab, monkeypatch: pytest.MonkeyPatch
):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    site.order(cut=5)
    with pytest.raises(OutputError, match="no space left on device"):
        written(site)


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("0cc175b9c0f1b6a831c399e269772661.tar.gz", True),
        ("86f7e437faa5a7fce15d1ddcb9eaea64b3b5d4e2.tgz", False),
        ("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8.tgz", True),
        ("v2.tar.gz", True),
        ("0" * 64, False),
    ],
)
def test_digests_of_every_kind_are_looked_at_and_other_names_say_nothing(
    site: Lab, name: str, *, is_kept: bool
):
    path = site.folder / "mirror" / "_source-cache" / "archive" / "aa" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a")
    if is_kept:
        written(site)
    else:
        with pytest.raises(DamagedDownloadError):
            written(site)
    assert path.exists() == is_kept


@pytest.mark.parametrize("step", ["mirror", "buildcache", "python"])
def test_a_mirror_whose_making_fails_is_none(site: Lab, step: str):
    written(site)
    site.order(**{step: {"status": 1, "output": "==> Error: broke\n"}})
    with pytest.raises(FabricproofError):
        written(site, build_cache=True)
    with pytest.raises(InputMissingError, match="this is no mirror"):
        opened(site)


def test_an_error_that_spack_hides_behind_a_good_status_is_seen(site: Lab):
    site.order(mirror={"status": 0, "output": "==> Error: could not fetch x\n"})
    with pytest.raises(FabricproofError):
        written(site)


def test_a_folder_that_cannot_be_written_is_one_message(site: Lab):
    (site.folder / "mirror").touch()
    with pytest.raises(OutputError, match="cannot write the mirror"):
        written(site)


def test_a_stack_without_a_lock_is_not_mirrored(site: Lab):
    with pytest.raises(ConfigError, match="without a lock"):
        make_mirror(
            [site.compose()],
            site.layout,
            site.open(),
            site.folder / "mirror",
            build_cache=False,
            listen=lambda step, line: None,
            log=site.folder / "mirror.log",
        )


def test_a_mirror_is_opened_once_and_used_again(site: Lab):
    written(site)
    first = opened(site)
    assert first.program.is_file()
    assert (first.repositories["builtin"] / "repo.yaml").is_file()
    assert first.locks == site.folder / "mirror" / LOCKS / "lab"
    site.heard.clear()
    assert opened(site) == first
    assert site.heard == []


def test_the_mirror_of_another_site_has_no_locks_for_this_one(site: Lab):
    written(site)
    assert opened(site, site="other").locks is None


def test_a_stack_is_built_from_a_mirror_without_solving(site: Lab):
    written(site)
    shutil.rmtree(site.layout.locks)
    site.forget()
    built, _ = site.build(mirror=opened(site))
    assert "concretize" not in site.commands
    assert ["install", "--no-check-signature"] in site.calls
    assert built.lock_digest == digest_of_lock(site.layout.locks / "openmpi.lock")
    own = (site.layout.environments / "openmpi" / "own" / "mirrors.yaml").read_text()
    assert (site.folder / "mirror").as_uri() in own


def no_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def changed_manifest(**changed: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = json.loads((folder / MANIFEST).read_text())
        (folder / MANIFEST).write_text(json.dumps({**manifest, **changed}))

    return change


def text_for_manifest(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / MANIFEST).write_text(text) and None


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-1]) and None


def turned(name: str) -> Callable[[Path], None]:
    def turn(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    return turn


def source(folder: Path) -> None:
    next((folder / "_source-cache").rglob("*.tar.gz")).unlink()


def source_turned(folder: Path) -> None:
    """Change one byte of a source; its size stays."""
    path = next((folder / "_source-cache").rglob("*.tar.gz"))
    turned(str(path.relative_to(folder)))(folder)


DAMAGE: dict[str, tuple[Callable[[Path], None], type[FabricproofError], str]] = {
    "no manifest": (no_manifest, InputMissingError, "this is no mirror"),
    "half a manifest": (text_for_manifest('{"format": 1,'), ConfigError, "damaged manifest"),
    "a manifest of nothing": (text_for_manifest("[]"), ConfigError, "damaged manifest"),
    "another format": (changed_manifest(format=2), ConfigError, "expected format 1"),
    "no files": (changed_manifest(files={}), ConfigError, "damaged manifest"),
    "files as a list": (changed_manifest(files=["a"]), ConfigError, "damaged manifest"),
    "files without facts": (changed_manifest(files={"a": 1}), ConfigError, "damaged manifest"),
    "no recipes": (changed_manifest(repositories=[]), ConfigError, "damaged manifest"),
    "unlisted recipes": (changed_manifest(repositories=["x"]), ConfigError, "damaged manifest"),
    "Spack gone": (gone(SPACK_ARCHIVE), ConfigError, "not whole"),
    "Spack cut": (cut(SPACK_ARCHIVE), ConfigError, "is not what it was"),
    "a bit of Spack": (turned(SPACK_ARCHIVE), ConfigError, "is not what it was"),
    "a bit of a source": (source_turned, ConfigError, "is not what it was"),
    "a wheel cut": (cut(f"{WHEELS}/clingo.whl"), ConfigError, "is not what it was"),
    "a lock turned": (turned(f"{LOCKS}/lab/openmpi.lock"), ConfigError, "is not what it was"),
    "a source gone": (source, ConfigError, "not whole"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_mirror_is_one_message_and_nothing_of_it_is_used(site: Lab, what: str):
    written(site)
    damage, kind, words = DAMAGE[what]
    damage(site.folder / "mirror")
    with pytest.raises(kind, match=words):
        opened(site)
    assert not (site.layout.root / "mirrored").exists()


def test_an_archive_that_is_none_leaves_nothing_unpacked(site: Lab):
    written(site)
    folder = site.folder / "mirror"
    (folder / SPACK_ARCHIVE).write_bytes(b"no archive")
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"][SPACK_ARCHIVE] = {
        "size_bytes": 10,
        "sha256": mirror_module.sha256_of(folder / SPACK_ARCHIVE),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(OutputError, match="could not be unpacked"):
        opened(site)
    assert list((site.layout.root / "mirrored").iterdir()) == []


def test_two_that_unpack_at_once_both_have_it(site: Lab, monkeypatch: pytest.MonkeyPatch):
    written(site)
    rename = Path.rename

    def other_was_first(self: Path, target: Path) -> Path:
        shutil.copytree(self, target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", other_was_first)
    assert opened(site).program.is_file()
    assert len(list((site.layout.root / "mirrored").iterdir())) == 1


def test_wheels_that_cannot_be_fetched_are_one_message(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    import sys  # noqa: PLC0415

    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(UnavailableError, match="wheels could not be fetched"):
        mirror_module._wheels(lab.folder / "wheels")
