"""A site, its stack and a Spack that only pretends: what building does, without building."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fabricproof.site.schema import StackSpec
from fabricproof.stacks.spack.builder import build
from fabricproof.stacks.spack.environment import Environment, SpackLayout, compose
from fabricproof.stacks.spack.proof import Built
from fabricproof.stacks.spack.tool import Spack, open_spack

TESTS = Path(__file__).parent
RECIPES = TESTS.parent / "spack-envs"
RECORDED_LOCK = TESTS / "data" / "spack" / "openmpi.lock"

PACKAGES = """\
# what this machine has
packages:
  openmpi:
    buildable: false
    externals:
    - spec: openmpi@5.0.11 fabrics=ofi,ucx schedulers=none
      prefix: ${FABRICPROOF_STACKS}/openmpi5
"""

SITE = """\
[site]
name = "lab"
description = "a site for tests"

[[partitions]]
name = "all"
fabrics = ["eth0"]
stacks = ["openmpi"]

[[stacks]]
name = "openmpi"
family = "openmpi"
version = "5.0.11"
spack = "openmpi"

[[stacks]]
name = "plain"
family = "mpich"
version = "4.2"
modules = ["mpich/4.2"]
"""

FABRIC = """\
[[fabrics]]
name = "eth0"
link = "1GbE"
rails = [{ interface = "eth0" }]
"""


@dataclass(kw_only=True)
class Lab:
    """A layout with a pretended Spack; the folders of the real thing, and its orders."""

    folder: Path
    stack: StackSpec
    heard: list[tuple[str, str]] = field(default_factory=list)

    @property
    def layout(self) -> SpackLayout:
        return SpackLayout(
            root=self.folder / "spack",
            site="lab",
            recipes=self.folder / "spack-envs",
            site_folder=self.site,
        )

    @property
    def site(self) -> Path:
        return self.folder / "sites" / "lab"

    @property
    def program(self) -> Path:
        return self.folder / "tool" / "bin" / "spack"

    @property
    def packages(self) -> Path:
        return self.site / "spack" / "packages.yaml"

    @property
    def manifest(self) -> Path:
        return self.layout.built(self.stack.name)

    @property
    def calls(self) -> list[list[str]]:
        """The calls of Spack so far, without ``-e FOLDER``."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        calls = [json.loads(line) for line in lines]
        return [each[2:] if each[0] == "-e" else each for each in calls]

    @property
    def commands(self) -> list[str]:
        """The first word of each call but the question for the version."""
        return [each[0] for each in self.calls if each != ["--version"]]

    def forget(self) -> None:
        (self.folder / "calls").unlink(missing_ok=True)

    def order(self, **orders: Any) -> None:
        """Say what goes wrong from now on; underlines stand for blanks."""
        plain = {name.replace("_", " "): what for name, what in orders.items()}
        (self.folder / "orders.json").write_text(json.dumps(plain))

    def change(self, **changed: Any) -> None:
        self.stack = self.stack.model_copy(update=changed)

    def compose(self) -> Environment:
        return compose(self.stack, self.layout)

    def open(self) -> Spack:
        return open_spack(self.program, self.layout.root)

    def build(
        self, *, open_tool: Callable[[], Spack] | None = None, **wishes: Any
    ) -> tuple[Built, bool]:
        listen = lambda step, line: self.heard.append((step, line))  # noqa: E731
        return build(self.stack, self.layout, open_tool or self.open, listen, **wishes)


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_lab(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Lay a site, an Open MPI, compilers, a linker and a Spack out below ``folder``."""
    stack = StackSpec(name="openmpi", family="openmpi", version="5.0.11", spack="openmpi")
    lab = Lab(folder=folder, stack=stack)
    python, program = sys.executable, TESTS / "pretended_spack_program.py"
    executable(lab.program, f'#!/bin/sh\nexec {python} -IS {program} "$@"\n')
    _machine(lab)
    shutil.copytree(RECIPES, folder / "spack-envs")
    texts = {"spack/packages.yaml": PACKAGES, "site.toml": SITE, "fabric.toml": FABRIC}
    for name, text in texts.items():
        (lab.site / name).parent.mkdir(parents=True, exist_ok=True)
        (lab.site / name).write_text(text)
    shutil.copyfile(RECORDED_LOCK, folder / "recorded.lock")
    lab.order()
    _variables(lab, monkeypatch)
    return lab


def _machine(lab: Lab) -> None:
    tools, mpi = lab.folder / "bin", lab.folder / "openmpi5"
    for name in ("gcc", "g++", "gfortran"):
        executable(tools / name, f'#!/bin/sh\necho "{name} (pretended 12.2.0-14) 12.2.0"\n')
    executable(tools / "ldd", f'#!/bin/sh\ncat {lab.folder}/ldd-$(basename "$1")\n')
    executable(mpi / "bin" / "mpiexec", '#!/bin/sh\nshift 2\nexec "$@"\n')
    library = mpi / "lib" / "libmpi.so.40"
    library.parent.mkdir()
    library.touch()
    (mpi / "include").mkdir()
    (mpi / "include" / "mpi.h").touch()
    executable(mpi / "bin" / "mpicc", "#!/bin/sh\n")
    for program in ("osu_latency", "IMB-MPI1"):
        text = f"\tlibmpi.so.40 => {library} (0x00007fd389a00000)\n"
        (lab.folder / f"ldd-{program}").write_text(text)
    # Answers "import clingo" with nothing, and the question to an MPI library with a version.
    says = f'#!/bin/sh\ncase "$*" in *MPI_Get_library*) cat {lab.folder}/says;; esac\n'
    executable(lab.layout.root / "python" / "bin" / "python", says)
    (lab.folder / "says").write_text("Open MPI v5.0.11, package: Open MPI\n")


def _variables(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("SPACK_", "FABRICPROOF_")):
            monkeypatch.delenv(name)
    settings: Mapping[str, str] = {
        "FAKE_SPACK": str(lab.folder),
        "PATH": os.pathsep.join([str(lab.folder / "bin"), os.environ["PATH"]]),
        "FABRICPROOF_STACKS": str(lab.folder),
        "FABRICPROOF_SITES": str(lab.site.parent),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return make_lab(tmp_path, monkeypatch)
