"""``ci/bootstrap.sh packages`` and ``ci/accept.sh``: what they do where nobody is root yet."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: an ordinary user of a Debian that lacks the packages in ABSENT
TOOLS = {
    "id": "echo 1000", "dpkg": "echo amd64",
    "dpkg-query": 'for it; do :; done; case " $ABSENT " in *" $it "*) ;; *) echo installed; esac',
    "apt-cache": "exit 0", "apt-get": "exit 1", "sleep": "exit 0", "systemctl": "exit 1",
}  # fmt: skip

#: a sudo that wants a password
ASKS = '[ "$1" = -n ] && exit 1; echo asked; exit 1'


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder with pretended programs, and links to the few real ones."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, text in TOOLS.items():
        put(folder, name, text)
    for name in ("grep", "tr", "dirname", "env", "sh"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def called(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def packages(tools: Path, absent: str) -> subprocess.CompletedProcess[str]:
    return called("ci/bootstrap.sh", "packages", PATH=str(tools), ABSENT=absent)


def test_nobody_is_asked_for_a_password_for_what_is_only_wished(tools: Path) -> None:
    put(tools, "sudo", ASKS)
    ended = packages(tools, "ibsim-utils opensm")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "all there but some for tests and guests" in ended.stdout
    assert "asked" not in ended.stdout


def test_what_is_needed_is_installed_with_sudo_that_asks(tools: Path) -> None:
    put(tools, "sudo", ASKS)
    ended = packages(tools, "slurmctld")
    assert "packages missing: slurmctld" in ended.stdout
    assert "asked" in ended.stdout


def test_what_is_only_wished_is_installed_where_sudo_does_not_ask(tools: Path) -> None:
    put(tools, "sudo", '[ "$1" = -n ] && exit 0; echo took; exit 1')
    assert "took" in packages(tools, "opensm").stdout


def test_what_is_needed_takes_root_where_there_is_no_sudo(tools: Path) -> None:
    ended = packages(tools, "slurmctld")
    assert ended.returncode == 77
    assert "root or sudo is needed to install: slurmctld" in ended.stderr


@pytest.fixture
def clone(tmp_path: Path, tools: Path) -> Path:
    """Return a project whose steps only say that they were called."""
    folder = tmp_path / "project"
    (folder / "ci").mkdir(parents=True)
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "accept.sh", folder / "ci")
    put(folder / "ci", "rootless.sh", 'echo "rootless $*"')
    put(folder / "ci", "bootstrap.sh", 'echo "bootstrap $*"')
    put(folder / ".venv" / "bin", "fabricproof", 'echo "fabricproof $*"')
    put(tools, "sudo", ASKS)
    return folder


def accepted(clone: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start it as a person who stands beside it does."""
    path = f"{clone.parent / 'tools'}:/usr/bin:/bin"
    return called("./accept.sh", cwd=clone / "ci", **{"PATH": path, **environment})


def test_where_user_namespaces_are_allowed_it_goes_on_in_one(clone: Path) -> None:
    ended = accepted(clone)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == f"rootless {clone / 'ci' / 'accept.sh'}"
    assert "needs it" not in ended.stdout
    assert "asked" not in ended.stdout


def test_sudo_that_does_not_ask_starts_it_from_any_folder(clone: Path) -> None:
    put(clone.parent / "tools", "sudo", 'echo "sudo $*"')
    words = accepted(clone).stdout.split()
    assert words[-1] == str(clone / "ci" / "accept.sh")


def test_packages_that_are_not_there_are_not_called_a_want_of_namespaces(clone: Path) -> None:
    put(clone / "ci", "bootstrap.sh", '[ "$1" = python ] || exit 77')
    ended = accepted(clone)
    assert ended.returncode == 77
    assert "lacks packages" in ended.stdout
    assert "the virtual cluster needs it" not in ended.stdout


def test_where_they_are_not_allowed_it_says_why_and_does_what_can_be_done(clone: Path) -> None:
    put(clone / "ci", "rootless.sh", "echo rootless: no newuidmap >&2; exit 77")
    ended = accepted(clone)
    assert ended.returncode == 77
    assert ended.stderr == "rootless: no newuidmap\n"
    assert "the virtual cluster needs it" in ended.stdout
    assert "fabricproof run --site local -t quick" in ended.stdout


@pytest.fixture
def inside(clone: Path) -> Path:
    """Return the project as the root of a namespace sees it."""
    put(clone.parent / "tools", "id", "echo 0")
    return clone


def test_in_a_namespace_a_project_that_nobody_prepared_is_told_how(inside: Path) -> None:
    """There is no network in there."""
    (inside / ".venv" / "bin" / "fabricproof").unlink()
    ended = accepted(inside, FABRICPROOF_ROOTLESS="inside")
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == (
        "accept: first, outside: ci/bootstrap.sh python; .venv/bin/fabricproof stack install\n"
    )


def test_in_a_namespace_it_says_with_what_the_cluster_ends(inside: Path) -> None:
    ended = accepted(inside, FABRICPROOF_ROOTLESS="inside")
    assert ended.returncode == 0, ended.stderr
    assert "bootstrap" not in ended.stdout
    assert ended.stdout.splitlines()[-1] == (
        "== the cluster ends with the command or shell that ci/rootless.sh started"
    )
