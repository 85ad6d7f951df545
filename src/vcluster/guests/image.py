"""The image that every guest starts from: built once from Debian packages, kept, never changed.

It is a squashfs of a minimal Debian (mmdebstrap(1)), a kernel with ``rdma_rxe`` and an initramfs
(``guest_kernel``).  Its folder is named after a digest of all that decides what is in it; a build
is made beside it and moved into place when it is whole: a half-built image is never used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.guests import debian
from vcluster.guests.debian import Release, host_release
from vcluster.paths import project_root
from vcluster.processes import clean_environment, find_program

Report = Callable[[str], None]

#: what is needed on the machine outside, and Debian's package of it
PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mksquashfs": "squashfs-tools",
    "cpio": "cpio",
    "modprobe": "kmod",
    "apt-get": "apt",
}
#: changed when the way of building changes, so that older images are built again
_RECIPE = 1
#: no daemon starts while packages are unpacked (invoke-rc.d(8))
_NO_DAEMONS = (
    "mkdir -p $1/usr/sbin && printf '#!/bin/sh\\nexit 101\\n' >$1/usr/sbin/policy-rc.d && "
    "chmod 755 $1/usr/sbin/policy-rc.d"
)
#: what an image consists of
_FILES = ("root.squashfs", "vmlinuz", "initramfs")
#: mmdebstrap mounts /proc and /sys of the machine in what it unpacks: where it is killed nothing
#: of it may stay mounted, for what is left is removed by the next build
_APART = (
    *("unshare", "--mount", "--propagation", "private", "--mount-proc"),
    *("--pid", "--fork", "--kill-child"),
)
_HERE = Path(__file__).parent
_BUILD_SECONDS = 900
#: a minimal Debian, its packages while they are unpacked, and the squashfs of it
_DISK_BYTES = 2 * 10**9
#: every file of an image has this time, so that two builds from the same packages are the same
_EPOCH = "1700000000"


@dataclass(frozen=True, kw_only=True)
class Image:
    """A whole image; ``image.json`` in its folder says of what it is made."""

    folder: Path

    @property
    def root(self) -> Path:
        """The read-only root file system."""
        return self.folder / "root.squashfs"

    @property
    def kernel(self) -> Path:
        """The kernel."""
        return self.folder / "vmlinuz"

    @property
    def initramfs(self) -> Path:
        """What the kernel starts with."""
        return self.folder / "initramfs"


def images_folder() -> Path:
    """Return where images are kept: with the checkout, so that removing it removes them."""
    return project_root() / ".vcluster" / "images"


def wanted_packages() -> tuple[str, ...]:
    """Return the packages of a guest, in the order of ``guest_packages.txt``."""
    lines = (_HERE / "guest_packages.txt").read_text().splitlines()
    return tuple(line for raw in lines if (line := raw.partition("#")[0].strip()))


def digest(release: Release) -> str:
    """Return what tells this image from any other: packages, suites, scripts and recipe."""
    initramfs = (_HERE / "initramfs.sh").read_text()
    parts = (
        str(_RECIPE),
        release.suite,
        " ".join(wanted_packages()),
        " ".join(debian.SUITES.get(release.suite, ())),
        " ".join(debian.MODULES),
        initramfs,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def find_image(release: Release) -> Image | None:
    """Return the image, if it is there and whole."""
    return _read(images_folder() / f"{release.suite}-{digest(release)}")


def _read(folder: Path) -> Image | None:
    try:
        told = json.loads((folder / "image.json").read_text())
        for name in _FILES:
            if (folder / name).stat().st_size != told["sizes"][name]:
                return None
        return Image(folder=folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def ensure_image(report: Report) -> Image:
    """Return the image, built first where it is not there.

    Raises:
        UnavailableError: no Debian, a tool or disk space is missing, or a package cannot be
            had; the log of the build is kept and named.
    """
    release = host_release()
    found = find_image(release)
    if found is not None:
        return found
    _require_programs()
    folder = images_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, report):
        found = find_image(release)  # another command may have built it meanwhile
        if found is not None:
            return found
        _remove_half_built(folder)
        _require_disk(folder)
        built = _build(release, folder / f"{release.suite}-{digest(release)}", report)
        _remove_older(folder, built.folder)
        return built


def _require_programs() -> None:
    missing = [name for name in PROGRAMS if find_program(name) is None]
    if missing:
        raise UnavailableError(
            f"programs for the guests' image are missing: {', '.join(missing)}",
            next_step=f"apt-get install {' '.join(PROGRAMS[name] for name in missing)} "
            "(ci/bootstrap.sh packages)",
        )


def _require_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _DISK_BYTES:
        raise UnavailableError(
            "the disk is too full for the guests' image",
            source=str(folder),
            expected=f"{_DISK_BYTES / 1e9:.0f} GB free",
            got=f"{free / 1e9:.1f} GB",
        )


@contextlib.contextmanager
def _locked(folder: Path, report: Report) -> Iterator[None]:
    """Let one command build at a time; the others wait for its image."""
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another command builds the guests' image: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_half_built(folder: Path) -> None:
    """Remove what a build that was killed has left; the lock says that none runs."""
    for left in folder.glob("building-*"):
        shutil.rmtree(left, ignore_errors=True)


def _remove_older(folder: Path, newest: Path) -> None:
    """Remove images that a newer one replaced, but for the last: guests may still run from it."""
    others = [each.parent for each in folder.glob("*/image.json") if each.parent != newest]
    others.sort(key=lambda each: (each / "image.json").stat().st_mtime)
    for old in others[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def _build(release: Release, target: Path, report: Report) -> Image:
    work = Path(tempfile.mkdtemp(prefix="building-", dir=target.parent))
    work.chmod(0o755)  # apt's own user must reach its folders
    (target.parent / "build.log").unlink(missing_ok=True)
    try:
        report(f"image of the guests: Debian {release.suite} packages")
        _install(release, work)
        report("image of the guests: kernel with Soft-RoCE")
        kernel_release = debian.add_kernel(release, work)
        report("image of the guests: squashfs")
        _squash(work)
        _describe(release, work, kernel_release)
        shutil.rmtree(work / "root")
        shutil.rmtree(work / "kernel", ignore_errors=True)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    whole = _read(target)
    if whole is None:
        raise UnavailableError("the image was built and is not whole", source=str(target))
    return whole


def _install(release: Release, work: Path) -> None:
    command = ["mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory"]
    command += [f"--include={','.join(wanted_packages())}"]
    command += ["--aptopt=APT::Install-Recommends false"]
    for unread in ("doc", "man", "locale", "info"):
        command += [f"--dpkgopt=path-exclude=/usr/share/{unread}/*"]
    command += [
        f"--setup-hook={_NO_DAEMONS}",
        # Keys made by the package's own script would be the same on every machine that has the
        # image, and different in two builds; every cluster makes its own.
        "--customize-hook=rm -f $1/etc/ssh/ssh_host_* $1/etc/munge/munge.key",
        "--customize-hook=: >$1/etc/machine-id; rm -f $1/etc/resolv.conf $1/etc/hostname",
    ]
    command += [release.suite, str(work / "root"), *release.sources]
    _call(command, work, _APART)


def _squash(work: Path) -> None:
    target = work / "root.squashfs"
    # lz4: software emulation decompresses it fastest of all that squashfs has.
    command = ["mksquashfs", str(work / "root"), str(target), "-comp", "lz4", "-noappend"]
    # Its times come from SOURCE_DATE_EPOCH (mksquashfs(1)).
    command += ["-no-progress", "-quiet"]
    _call(command, work)


def _describe(release: Release, work: Path, kernel_release: str) -> None:
    packages = debian.installed_packages(work / "root")
    told = {
        "suite": release.suite,
        "kernel": kernel_release,
        "packages": packages,
        "sizes": {name: (work / name).stat().st_size for name in _FILES},
        "sha256": {name: _sha256(work / name) for name in _FILES},
    }
    (work / "image.json").write_text(json.dumps(told, indent=1) + "\n")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _call(command: list[str], work: Path, apart: Sequence[str] = ()) -> None:
    """Run a step of the build; what it says is kept where the image would be.

    Raises:
        UnavailableError: it failed or took too long; holds its last words.
    """
    log = work.parent / "build.log"
    environment = clean_environment(SOURCE_DATE_EPOCH=_EPOCH, TMPDIR=tempfile.gettempdir())
    for name in ("http_proxy", "https_proxy", "no_proxy", "APT_CONFIG"):
        if os.environ.get(name):
            environment[name] = os.environ[name]
    # Killed with -9, we take the step along: it must not go on in what the next build removes.
    mortal = ["setpriv", "--pdeathsig", "KILL", *apart, *command]
    with log.open("ab") as file:
        child = subprocess.Popen(
            mortal,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,
        )
        try:
            status = child.wait(timeout=_BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            _end_group(child)
            raise _build_failed(command[0], f"no end after {_BUILD_SECONDS} s", log) from None
        except BaseException:
            _end_group(child)
            raise
    if status != 0:
        raise _build_failed(command[0], f"status {status}", log)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End a step with all it started; it unmounts what it mounted when it is asked to end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The second also where the first ended the leader: what it started may not have listened.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10)


def _build_failed(program: str, how: str, log: Path) -> UnavailableError:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "Err:", "FATAL"))]
    return UnavailableError(
        f"the image of the guests could not be built: {program} ended with {how}",
        source=str(log),
        line=len(lines),
        got=" / ".join((errors or lines)[-3:]) or "no message",
        next_step="the machine needs its package mirrors (apt-get update); then again",
    )
