"""Removing: the manifest first, packages that nobody else needs, never another stack's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, FabricproofError
from fabricproof.stacks.spack.builder import remove
from fabricproof.stacks.spack.tool import Spack
from pretended_spack import Lab


def removed(lab: Lab) -> bool:
    return remove(lab.stack, lab.layout, lab.open, lambda step, line: None)


def installed(lab: Lab) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in (lab.folder / "install").iterdir())


def test_a_removed_stack_leaves_its_lock_with_the_site_and_nothing_else(lab: Lab):
    lab.build()
    assert removed(lab)
    assert installed(lab) == []
    assert not lab.manifest.exists()
    assert not (lab.layout.environments / "openmpi").exists()
    assert not list(lab.layout.modulefiles.iterdir())
    assert not list(lab.layout.modules.iterdir())
    assert (lab.layout.locks / "openmpi.lock").exists()
    assert (lab.folder / "openmpi5" / "lib").is_dir()


def test_what_was_never_built_was_not_there_and_spack_is_not_asked(lab: Lab):
    def never() -> Spack:
        raise AssertionError("Spack was asked for")

    assert not remove(lab.stack, lab.layout, never, lambda step, line: None)


def other_lock(lab: Lab, text: str | None = None) -> Path:
    other = lab.layout.root / "sites" / "other" / "environments" / "mine" / "spack.lock"
    other.parent.mkdir(parents=True)
    other.write_text(text or (lab.layout.environments / "openmpi" / "spack.lock").read_text())
    return other


def test_what_another_site_needs_stays(lab: Lab):
    lab.build()
    lock = json.loads((lab.layout.environments / "openmpi" / "spack.lock").read_text())
    specs = lock["concrete_specs"]
    kept = {key: spec for key, spec in specs.items() if "runtime" in spec["name"]}
    other_lock(lab, json.dumps({"concrete_specs": kept}))
    removed(lab)
    assert installed(lab) == ["gcc-runtime-12.2.0"]


def test_where_another_lock_cannot_be_read_nothing_is_uninstalled(lab: Lab):
    lab.build()
    before = installed(lab)
    other_lock(lab, '{"concrete_specs"')
    with pytest.raises(ConfigError, match="none can be uninstalled"):
        removed(lab)
    assert installed(lab) == before
    assert not lab.manifest.exists()


@pytest.mark.parametrize("step", ["find", "uninstall"])
def test_a_removal_that_fails_says_so_and_can_be_done_again(lab: Lab, step: str):
    lab.build()
    lab.order(**{step: {"status": 1, "output": "==> Error: no\n"}})
    with pytest.raises(FabricproofError):
        removed(lab)
    assert not lab.manifest.exists()
    lab.order()
    assert removed(lab)
    assert installed(lab) == []


def test_a_removed_stack_is_built_again_from_its_lock(lab: Lab):
    first, _ = lab.build()
    removed(lab)
    lab.forget()
    again, stood = lab.build()
    assert "concretize" not in lab.commands
    assert (again.lock_digest, stood) == (first.lock_digest, False)
