"""The guests' image: which one it is, whole or not, and a build that does not come to its end.

The programs of a build are played by shell scripts: what is tried is how their ends are handled.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from vcluster.errors import UnavailableError
from vcluster.guests import debian, image
from vcluster.guests.debian import Release, host_release
from vcluster.processes import clean_environment, start_time

_RELEASE = Release(suite="bookworm", mirror="http://mirror.example/debian")
_DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n'


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for images of the test's own, on a machine that is Debian 12."""
    folder = tmp_path / "images"
    monkeypatch.setattr(image, "images_folder", lambda: folder)
    monkeypatch.setattr(image, "host_release", lambda: _RELEASE)
    monkeypatch.setattr(image, "find_program", lambda name: f"/usr/bin/{name}")
    return folder


@pytest.fixture
def programs(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for programs that play those of a build; each does its part when all is well."""
    folder = tmp_path / "programs"
    folder.mkdir()
    _play(folder, "mmdebstrap", 'for last; do case $last in */root) mkdir "$last"; esac; done')
    _play(folder, "mksquashfs", 'echo squashed >"$2"')

    def environment(**extra: str) -> dict[str, str]:
        clean = clean_environment(**extra)
        return {**clean, "PATH": f"{folder}:{clean['PATH']}"}

    def kernel(release: Release, work: Path) -> str:
        for name in ("vmlinuz", "initramfs"):
            (work / name).write_text(name)
        return "7.3.1-amd64"

    monkeypatch.setattr(image, "clean_environment", environment)
    monkeypatch.setattr(image, "_APART", ())  # for root alone
    monkeypatch.setattr(debian, "add_kernel", kernel)
    monkeypatch.setattr(debian, "installed_packages", lambda root: {"slurmd": "22.05"})
    return folder


def _play(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def _quiet(_: str) -> None:
    return None


def test_an_image_is_built_once_and_described(programs: Path, images: Path) -> None:
    phases: list[str] = []
    built = image.ensure_image(phases.append)
    assert [path.is_file() for path in (built.root, built.kernel, built.initramfs)] == [True] * 3
    told = json.loads((built.folder / "image.json").read_text())
    assert (told["kernel"], told["packages"]) == ("7.3.1-amd64", {"slurmd": "22.05"})
    assert told["sha256"]["vmlinuz"] == image._sha256(built.kernel)
    assert len(phases) == 3
    assert sorted(path.name for path in built.folder.iterdir()) == [
        "image.json",
        "initramfs",
        "root.squashfs",
        "vmlinuz",
    ]
    again: list[str] = []
    shutil.rmtree(programs)
    assert image.ensure_image(again.append) == built
    assert again == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "root.squashfs").write_text("short"),
        lambda folder: (folder / "initramfs").unlink(),
        lambda folder: (folder / "image.json").unlink(),
        lambda folder: (folder / "image.json").write_text('{"kernel": "7.3", "sizes": {'),
        lambda folder: (folder / "image.json").write_text(
            '{"kernel": "7.3", "sizes": {}, "packages": {}}'
        ),
        lambda folder: (folder / "image.json").write_text("[]"),
    ],
)
def test_an_image_that_is_not_whole_is_none_and_built_again(
    programs: Path, images: Path, damage: object
) -> None:
    built = image.ensure_image(_quiet)
    assert callable(damage)
    damage(built.folder)
    assert image.find_image(_RELEASE) is None
    assert image.ensure_image(_quiet) == built
    assert image.find_image(_RELEASE) == built


def test_a_new_image_leaves_the_one_before_it_and_no_older(
    programs: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    for number in range(4):
        monkeypatch.setattr(image, "_RECIPE", 100 + number)
        built.append(image.ensure_image(_quiet).folder)
        os.utime(built[-1] / "image.json", (number, number))
    assert sorted(path for path in images.iterdir() if path.is_dir()) == sorted(built[2:])


def test_every_thing_that_an_image_is_made_of_makes_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = {image.digest(_RELEASE), image.digest(Release(suite="trixie", mirror=""))}
    with monkeypatch.context() as changed:
        changed.setattr(image, "wanted_packages", lambda: ("busybox-static",))
        seen.add(image.digest(_RELEASE))
    with monkeypatch.context() as changed:
        changed.setitem(debian.SUITES, "bookworm", ("bookworm-backports",))
        seen.add(image.digest(_RELEASE))
    with monkeypatch.context() as changed:
        changed.setattr(debian, "MODULES", ("virtio_net",))
        seen.add(image.digest(_RELEASE))
    with monkeypatch.context() as changed:
        changed.setattr(image, "_RECIPE", -1)
        seen.add(image.digest(_RELEASE))
    for name in ("initramfs.sh", "guest_packages.txt"):
        shutil.copy(Path(image.__file__).parent / name, tmp_path / name)
    with (tmp_path / "initramfs.sh").open("a") as file:
        file.write("# a word\n")
    with monkeypatch.context() as changed:
        changed.setattr(image, "_HERE", tmp_path)
        seen.add(image.digest(_RELEASE))
    assert len(seen) == 7
    assert image.digest(_RELEASE) == image.digest(
        Release(suite="bookworm", mirror="http://other.example/debian")
    )


def test_the_list_of_packages_is_names_and_no_remarks() -> None:
    names = image.wanted_packages()
    assert {"slurmd", "munge", "rdma-core", "busybox-static"} <= set(names)
    assert all(name == name.strip() and " " not in name and "#" not in name for name in names)
    assert len(set(names)) == len(names)


def test_what_a_killed_build_left_is_removed(programs: Path, images: Path) -> None:
    left = images / "building-abc" / "root" / "etc"
    left.mkdir(parents=True)
    (left / "passwd").write_text("")
    image.ensure_image(_quiet)
    assert [path.name for path in images.iterdir() if path.name.startswith("building-")] == []


def test_a_second_build_waits_for_the_first_and_takes_its_image(
    programs: Path, images: Path
) -> None:
    built = image.ensure_image(_quiet)
    put_aside = built.folder.with_name("aside")
    built.folder.rename(put_aside)
    with (images / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [sys.executable, "-c", _SECOND, str(images)]
        second = subprocess.Popen(command, stdout=-1, stderr=-1, text=True)
        assert second.stdout is not None
        assert "waiting for it" in second.stdout.readline()
        assert second.poll() is None
        put_aside.rename(built.folder)
    out, err = second.communicate(timeout=20)
    assert out.strip() == str(built.folder), err


#: a build of its own would fail: it must not try
_SECOND = """
import sys
from pathlib import Path
from vcluster.guests import image
from vcluster.guests.debian import Release
image.images_folder = lambda: Path(sys.argv[1])
image.host_release = lambda: Release(suite="bookworm", mirror="http://mirror.example/debian")
image.find_program = lambda name: name
print(image.ensure_image(lambda words: print(words, flush=True)).folder)
"""


def test_a_full_disk_is_told_before_anything_is_fetched(
    programs: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SimpleNamespace(total=10**11, used=10**11, free=123_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    _play(programs, "mmdebstrap", "exit 99")
    with pytest.raises(UnavailableError, match=r"disk is too full.*2 GB free.*got 0\.1 GB"):
        image.ensure_image(_quiet)


def test_missing_programs_of_a_build_are_named_with_their_packages(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {"mksquashfs", "cpio"}
    monkeypatch.setattr(image, "find_program", lambda name: None if name in gone else name)
    with pytest.raises(UnavailableError, match=r"mksquashfs, cpio.*install squashfs-tools cpio"):
        image.ensure_image(_quiet)


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        (
            "mmdebstrap",
            "echo 'W: all is fine'; echo 'E: Unable to fetch some archives' >&2; exit 25",
            r"mmdebstrap ended with status 25.*got E: Unable to fetch some archives; next:",
        ),
        ("mmdebstrap", "exit 3", r"status 3.*got no message"),
        ("mmdebstrap", "kill -SEGV $$", r"mmdebstrap ended with status -11"),
        (
            "mksquashfs",
            "echo 'FATAL ERROR: write failed because No space left on device' >&2; exit 1",
            r"mksquashfs ended with status 1.*No space left on device",
        ),
    ],
)
def test_a_step_that_fails_is_quoted_and_leaves_its_log_alone(
    programs: Path, images: Path, name: str, body: str, words: str
) -> None:
    _play(programs, name, body)
    with pytest.raises(UnavailableError, match=words) as caught:
        image.ensure_image(_quiet)
    assert caught.value.source == str(images / "build.log")
    assert sorted(path.name for path in images.iterdir()) == ["build.log", "lock"]


def test_a_step_that_hangs_is_ended_with_all_it_started(
    programs: Path, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = tmp_path / "numbers"
    _play(programs, "mmdebstrap", f"sleep 600 & echo $! $$ >{numbers}; wait")
    monkeypatch.setattr(image, "_BUILD_SECONDS", 1)
    with pytest.raises(UnavailableError, match="mmdebstrap ended with no end after 1 s"):
        image.ensure_image(_quiet)
    _wait_until_gone([int(word) for word in numbers.read_text().split()])
    assert not list(images.glob("building-*"))


def test_a_step_ends_with_the_command_that_started_it(programs: Path, tmp_path: Path) -> None:
    # kill -9 of the command: nothing of ours runs that could end the step
    numbers, work = tmp_path / "numbers", tmp_path / "images" / "building-x"
    work.mkdir(parents=True)
    script = tmp_path / "step"
    _play(tmp_path, "step", f"echo $$ >{numbers}; exec sleep 600")
    words = "import sys; from pathlib import Path; from vcluster.guests import image; "
    words += "image._call([sys.argv[1]], Path(sys.argv[2]))"
    child = subprocess.Popen([sys.executable, "-c", words, str(script), str(work)])
    deadline = time.monotonic() + 20
    while not numbers.exists() or not numbers.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=10)
    _wait_until_gone([int(numbers.read_text())])


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces are for root")
def test_what_a_killed_step_had_mounted_is_gone_with_all_it_started(tmp_path: Path) -> None:
    # The machine's own /sys would otherwise be below what the next build removes.
    work, ready = tmp_path / "images" / "building-x", tmp_path / "ready"
    mounted = work / "root"
    mounted.mkdir(parents=True)
    _play(tmp_path, "step", f"mount -t tmpfs t {mounted}; sleep 4713 & echo >{ready}; wait")
    words = "import sys; from pathlib import Path; from vcluster.guests import image; "
    words += "image._call([sys.argv[1]], Path(sys.argv[2]), image._APART)"
    command = [sys.executable, "-c", words, str(tmp_path / "step"), str(work)]
    child = subprocess.Popen(command)
    deadline = time.monotonic() + 20
    while not ready.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert str(mounted) not in Path("/proc/mounts").read_text()
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=10)
    deadline = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", "sleep 4713"], capture_output=True, check=False).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_nothing_of_a_build_that_was_interrupted_stays(
    programs: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(release: Release, work: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(debian, "add_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        image.ensure_image(_quiet)
    assert not list(images.glob("building-*"))
    assert image.find_image(_RELEASE) is None


def test_a_kernel_that_no_suite_has_is_told_suite_by_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(release: Release, suite: str, work: Path) -> str:
        raise UnavailableError(f"no kernel in {suite}", got="404")

    monkeypatch.setattr(debian, "_from_suite", refuse)
    with pytest.raises(
        UnavailableError, match=r"trixie-backports: no kernel .*\(404\); sid: no kernel in sid"
    ):
        debian.add_kernel(_RELEASE, tmp_path)


def test_a_kernel_whose_soft_roce_counts_no_bytes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as apt-cache depends of Debian 12 says it
    answers = {"linux-image-amd64": "linux-image-amd64\n  Depends: linux-image-6.1.0-49-amd64\n"}

    def play(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 0, answers.get(argv[-1], ""), "")

    monkeypatch.setattr(debian, "run", play)
    with pytest.raises(UnavailableError, match=r"6\.1\.0-49-amd64 is too old"):
        debian._packages({})
    answers["linux-image-amd64"] = ""
    with pytest.raises(UnavailableError, match="has no linux-image-amd64"):
        debian._packages({})
    answers["linux-image-amd64"] = "  Depends: linux-image-7.3.1+deb14-amd64\n"
    answers["linux-image-7.3.1+deb14-amd64"] = (
        "  Depends: kmod\n  Depends: linux-binary-7.3.1+deb14-amd64\n"
        "  Depends: linux-modules-7.3.1+deb14-amd64\n  Recommends: apparmor\n"
    )
    assert debian._packages({}) == [
        "linux-image-7.3.1+deb14-amd64",
        "linux-binary-7.3.1+deb14-amd64",
        "linux-modules-7.3.1+deb14-amd64",
    ]


def test_installed_packages_are_read_from_dpkgs_own_list(tmp_path: Path) -> None:
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: slurmd\nStatus: install ok installed\nPriority: optional\nVersion: 22.05.8-4\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: munge\nStatus: install ok installed\nVersion: 0.5.15-2\nDepends: x\n"
    )
    assert debian.installed_packages(tmp_path) == {"munge": "0.5.15-2", "slurmd": "22.05.8-4"}


def _etc(tmp_path: Path, release: str | None, **sources: str) -> Path:
    etc = tmp_path / "etc"
    (etc / "apt" / "sources.list.d").mkdir(parents=True)
    if release is not None:
        (etc / "os-release").write_text(release)
    for name, text in sources.items():
        (etc / "apt" / name.replace("__", "/").replace("_", ".")).write_text(text)
    return etc


_DEB822 = (
    "# from the installer\nTypes: deb\nURIs: http://mirror.example/debian\n"
    "Suites: bookworm bookworm-updates\nComponents: main\n"
    "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
    "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\n"
)
_ONE_LINE = (
    "# deb http://old.example/debian bookworm main\n"
    "deb-src http://source.example/debian bookworm main\n"
    "deb http://security.debian.org/debian-security bookworm-security main\n"
    "deb [arch=amd64 signed-by=/a.gpg] https://mirror.example/debian/ bookworm main\n"
)


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        ({"sources.list.d__debian_sources": _DEB822}, "http://mirror.example/debian"),
        ({"sources_list": _ONE_LINE}, "https://mirror.example/debian"),
        ({"sources.list.d__slurm_list": _ONE_LINE}, "https://mirror.example/debian"),
        ({}, "http://deb.debian.org/debian"),
        (
            {"sources_list": "deb cdrom:[Debian 12]/ bookworm main\n"},
            "http://deb.debian.org/debian",
        ),
        # set aside by an administrator: apt does not read it
        ({"sources.list.d__old_list.save": _ONE_LINE}, "http://deb.debian.org/debian"),
    ],
)
def test_the_mirror_is_the_machines_own(
    tmp_path: Path, sources: dict[str, str], mirror: str
) -> None:
    release = host_release(_etc(tmp_path, _DEBIAN, **sources))
    assert (release.suite, release.mirror) == ("bookworm", mirror)
    assert release.line("sid").endswith(f" {mirror} sid main")
    assert all(release.mirror in line for line in release.sources)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\nVERSION_CODENAME=noble\n', "Ubuntu 24.04.1"),
        ("ID=debian\nPRETTY_NAME=Debian testing\n", "Debian testing"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "got rocky"),
        ("", "got nothing"),
        (None, "got nothing"),
    ],
)
def test_what_is_no_debian_is_refused_with_what_works_there(
    tmp_path: Path, text: str | None, got: str
) -> None:
    with pytest.raises(UnavailableError, match=f"{got}.*kind 'namespaces' works here"):
        host_release(_etc(tmp_path, text))


@pytest.mark.skipif(os.geteuid() != 0, reason="cpio --owner=0:0 is for root")
def test_two_initramfs_of_the_same_files_are_the_same(tmp_path: Path) -> None:
    packed = []
    for name in ("first", "second"):
        work = tmp_path / name
        (work / "root/bin").mkdir(parents=True)
        (work / "root/bin/busybox").write_text("a program")
        module = work / "virtio_net.ko"
        module.write_text("a module")
        debian._write_initramfs([module], work)
        packed.append((work / "initramfs").read_bytes())
        time.sleep(1.1)
    assert packed[0] == packed[1]
    assert b"virtio_net.ko" in packed[0]


def test_what_a_step_started_ends_with_it_though_it_does_not_listen(tmp_path: Path) -> None:
    told = tmp_path / "child"
    deaf = f"trap '' TERM; echo $$ >{told}.new; mv {told}.new {told}; exec sleep 60"
    leader = subprocess.Popen(
        ["bash", "-c", f'bash -c "{deaf.replace("$", chr(92) + "$")}" & wait'],
        start_new_session=True,
    )
    deadline = time.monotonic() + 20
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(told.read_text())
    image._end_group(leader)
    while start_time(child) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert start_time(child) is None
