"""What guests have of Debian: the machine's own release, and a kernel with ``rdma_rxe``.

The newest of Debian's kernels is taken where the release has backports: its rxe counts bytes per
port (drivers/infiniband/sw/rxe/rxe_mad.c; not in 6.1 and 6.12), which are the proof of the path.
"""

from __future__ import annotations

import lzma
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from vcluster.errors import UnavailableError
from vcluster.processes import clean_environment, run

#: where Debian's own machines are reached, if the machine's sources name no mirror
_MIRROR = "http://deb.debian.org/debian"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, kw_only=True)
class Release:
    """The release that head and guests have in common: Slurm, Python and MPI must be the same.

    Attributes:
        suite: its code name, as ``bookworm``.
        mirror: where its packages come from.
    """

    suite: str
    mirror: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The lines of sources.list(5) for its packages."""
        return (self.line(self.suite), self.line(f"{self.suite}-updates"))

    def line(self, suite: str) -> str:
        """Return the line of sources.list(5) for a suite of the same mirror."""
        return f"deb [signed-by={_KEYRING}] {self.mirror} {suite} main"


def host_release(etc: Path = Path("/etc")) -> Release:
    """Return the release of this machine.

    Raises:
        UnavailableError: it is not Debian.
    """
    try:
        text = (etc / "os-release").read_text()
    except OSError:
        text = ""
    told = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))
    suite = told.get("VERSION_CODENAME", "")
    if told.get("ID") != "debian" or not suite:
        raise UnavailableError(
            "guests with Soft-RoCE are made of Debian's packages, of the machine's own release",
            source=str(etc / "os-release"),
            expected="Debian 12 or newer",
            got=told.get("PRETTY_NAME") or told.get("ID") or "nothing",
            next_step="a Debian machine or container; the kind 'namespaces' works here",
        )
    return Release(suite=suite, mirror=_mirror(etc / "apt"))


def _mirror(apt: Path) -> str:
    """Return the first mirror of Debian that the machine's own sources name."""
    more = sorted((apt / "sources.list.d").glob("*"))
    # apt reads no others (sources.list(5)): an administrator sets a source aside by its name.
    read = [path for path in more if path.suffix in {".list", ".sources"}]
    for path in [apt / "sources.list", *read]:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError):
            continue
        lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        found = re.search(
            r"(?:^deb\s+(?:\[[^]]*\]\s*)?|^URIs:\s*)(https?://\S+/debian)/?(?:\s|$)", lines, re.M
        )
        if found:
            return found[1]
    return _MIRROR


#: release -> suites to look for a kernel in, best first
SUITES: dict[str, tuple[str, ...]] = {
    "bookworm": ("trixie-backports", "sid"),
    "trixie": ("trixie-backports", "sid"),
    "forky": ("forky-backports", "forky", "sid"),
}
_OTHERWISE = ("sid",)
#: loaded when a guest starts, with what they need; those that a kernel has built in are not files
MODULES = (
    "virtio_pci",
    "virtio_blk",
    "virtio_net",
    "virtio-rng",
    "squashfs",
    "overlay",
    "9p",
    "9pnet_virtio",
    "ib_uverbs",
    "ib_umad",
    "rdma_ucm",
    "rdma_rxe",
    "sch_tbf",
    "sch_netem",
    "sch_htb",
    "cls_bpf",
)
#: without these there is no guest; the others may be built in
_NEEDED = ("virtio_net", "virtio_blk", "squashfs", "overlay", "9p", "rdma_rxe", "sch_tbf")
#: first kernel whose rxe has counters/port_xmit_data
OLDEST = (7, 0)
_PACKAGE = re.compile(r"linux-(image|binary|modules|base)-(\d[\w.+~-]*-amd64)\Z")
_SECONDS = 300.0


def add_kernel(release: Release, work: Path) -> str:
    """Fetch a kernel, and make ``vmlinuz`` and ``initramfs`` in ``work``.

    Returns:
        The kernel's release, as ``uname -r`` says it.

    Raises:
        UnavailableError: no suite has a kernel that is new enough, or a module is missing.
    """
    refusals: list[str] = []
    for suite in SUITES.get(release.suite, _OTHERWISE):
        try:
            return _from_suite(release, suite, work)
        except UnavailableError as failure:
            refusals.append(
                f"{suite}: {failure.problem}" + (f" ({failure.got})" if failure.got else "")
            )
            shutil.rmtree(work / "kernel", ignore_errors=True)
    raise UnavailableError(
        "no kernel for the guests is to be had",
        expected=f"linux-image-amd64 from {OLDEST[0]}.{OLDEST[1]} on, whose Soft-RoCE counts bytes",
        got="; ".join(refusals),
        next_step="the machine needs its package mirror; apt-get update says whether it answers",
    )


def _from_suite(release: Release, suite: str, work: Path) -> str:
    place = work / "kernel"
    environment = _apt(release, suite, place)
    run(["apt-get", "update", "-q"], environment=environment, timeout_s=_SECONDS)
    names = _packages(environment)
    fetch = ["apt-get", "download", "-q", *names]
    run(fetch, environment=environment, timeout_s=_SECONDS, cwd=place)
    packages = sorted(place.glob("*.deb"))
    if not packages:
        raise UnavailableError("the kernel could not be fetched", got="no package")
    for package in packages:
        run(["dpkg-deb", "--extract", str(package), str(place / "tree")], timeout_s=_SECONDS)
    return _assemble(place / "tree", work)


def _apt(release: Release, suite: str, place: Path) -> dict[str, str]:
    """Return an environment in which apt sees one suite alone, and leaves the machine as it is."""
    for folder in ("state/lists/partial", "cache/archives/partial", "tree"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (place / "status").touch()
    (place / "sources.list").write_text(release.line(suite) + "\n")
    (place / "apt.conf").write_text(
        f'Dir::State "{place}/state";\nDir::State::status "{place}/status";\n'
        f'Dir::Cache "{place}/cache";\nDir::Etc::sourcelist "{place}/sources.list";\n'
        'Dir::Etc::sourceparts "-";\nAPT::Architecture "amd64";\nAPT::Sandbox::User "root";\n'
        'Acquire::Retries "3";\nAcquire::Languages "none";\n'
    )
    kept = {
        name: os.environ[name] for name in ("http_proxy", "https_proxy") if os.environ.get(name)
    }
    return clean_environment(**kept, APT_CONFIG=str(place / "apt.conf"))


def _packages(environment: dict[str, str]) -> list[str]:
    """Return the packages that hold the kernel and its modules: one until 7.2, several since."""
    image = _depends("linux-image-amd64", environment, "image")
    if not image:
        raise UnavailableError("it has no linux-image-amd64")
    version = re.search(r"-(\d+)\.(\d+)", image[0])
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise UnavailableError(f"{image[0]} is too old")
    parts = _depends(image[0], environment, "binary|modules|base")
    return [image[0], *parts]


def _depends(package: str, environment: dict[str, str], kinds: str) -> list[str]:
    done = run(["apt-cache", "depends", package], environment=environment, check=False)
    names = re.findall(r"^\s*\|?Depends: (\S+)$", done.stdout, re.MULTILINE)
    return [
        name for name in names if (found := _PACKAGE.match(name)) and found[1] in kinds.split("|")
    ]


def _assemble(tree: Path, work: Path) -> str:
    folders = sorted((tree / "usr/lib/modules").glob("*")) or sorted(
        (tree / "lib/modules").glob("*")
    )
    if not folders:
        raise UnavailableError("its packages hold no modules")
    modules = folders[0]
    kernel = [*modules.glob("vmlinuz"), *(tree / "boot").glob("vmlinuz-*")]
    if not kernel:
        raise UnavailableError("its packages hold no kernel")
    shutil.copyfile(kernel[0], work / "vmlinuz")
    files = _module_files(modules)
    _write_initramfs(files, work)
    return modules.name


def _module_files(modules: Path) -> list[Path]:
    """Return the files of the modules in the order in which they are to be loaded."""
    base = modules.parent.parent.parent  # depmod looks in BASE/lib/modules
    if base.name == "usr":
        base = base.parent
        if not (base / "lib").exists():
            (base / "lib").symlink_to("usr/lib")
    run(["depmod", "--basedir", str(base), modules.name], timeout_s=_SECONDS)
    found: list[Path] = []
    for name in MODULES:
        command = ["modprobe", "--dirname", str(base), "--set-version", modules.name]
        done = run([*command, "--show-depends", name], check=False)
        files = [Path(path) for path in re.findall(r"^insmod (\S+)", done.stdout, re.MULTILINE)]
        if not files and name in _NEEDED:
            raise UnavailableError(f"kernel {modules.name} has no module {name}")
        found += [path for path in files if path not in found]
    return found


def _write_initramfs(files: list[Path], work: Path) -> None:
    """Make the initramfs: busybox, the modules, unpacked, and ``initramfs.sh`` as its init."""
    place = work / "kernel" / "initramfs"
    for folder in ("bin", "dev", "proc", "sys", "modules", "image", "memory", "new"):
        (place / folder).mkdir(parents=True)
    shutil.copy(work / "root/bin/busybox", place / "bin/busybox")
    names = []
    for path in files:
        target = place / "modules" / path.name.removesuffix(".xz")
        target.write_bytes(
            lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        )
        names.append(target.name)
    (place / "modules/order").write_text("".join(f"{name}\n" for name in names))
    (place / "init").write_text((Path(__file__).parent / "initramfs.sh").read_text())
    (place / "init").chmod(0o755)
    paths = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    for path in place.rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)
    command = ["cpio", "--create", "--format=newc", "--reproducible", "--owner=0:0", "--quiet"]
    command.append(f"--file={work / 'initramfs'}")
    run(command, stdin="\n".join(paths), cwd=place, timeout_s=_SECONDS)


def installed_packages(root: Path) -> dict[str, str]:
    """Return name to version of what dpkg has installed below ``root``."""
    text = (root / "var/lib/dpkg/status").read_text()
    pairs = re.findall(
        r"^Package: (\S+)\nStatus: install ok installed\n(?:.+\n)*?Version: (\S+)$", text, re.M
    )
    return dict(sorted(pairs))
