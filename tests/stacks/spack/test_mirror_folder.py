"""Where a mirror may be written: all that lies in the folder becomes the mirror's."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, UnavailableError
from fabricproof.stacks.spack.environment.offline import MANIFEST, OURS
from fabricproof.stacks.spack.mirror import make_mirror
from fabricproof.stacks.spack.tool import solver_python
from pretended_spack import Lab


def _write(lab: Lab, folder: Path) -> None:
    make_mirror(
        [lab.compose()],
        lab.layout,
        lab.open(),
        folder,
        build_cache=False,
        listen=lambda *_: None,
        log=lab.folder / "mirror.log",
    )


@pytest.mark.parametrize("name", ["", "stacks"])
def test_a_folder_with_other_things_is_refused_and_left_as_it_is(lab: Lab, name: str) -> None:
    folder = lab.folder / name
    folder.mkdir(exist_ok=True)
    (folder / "theirs").touch()
    lab.open()
    before = sorted(folder.iterdir())
    with pytest.raises(ConfigError, match="a mirror needs a folder of its own") as caught:
        _write(lab, folder)
    assert f"choose another, for example {folder}" in str(caught.value)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("mark", [None, OURS])
def test_a_new_folder_and_a_mirror_that_was_begun_are_gone_on_with(
    lab: Lab, mark: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    if mark is not None:
        (folder / mark).mkdir(parents=True)
        (folder / "_source-cache").mkdir()
    # Without a lock it ends later; what counts is that the folder is taken.
    with pytest.raises(Exception, match=r"\w") as caught:
        _write(lab, folder)
    assert "a folder of its own" not in str(caught.value)
    assert (folder / OURS).is_dir()
    assert not (folder / MANIFEST).exists()


def test_wheels_of_another_python_say_how_the_mirror_is_made_for_this_one(lab: Lab) -> None:
    (lab.layout.root / "python" / "bin" / "python").unlink()
    wheels = lab.folder / "wheels"
    wheels.mkdir()
    with pytest.raises(UnavailableError, match="could not be installed") as caught:
        solver_python(lab.layout, wheels)
    assert "make it with Python 3." in str(caught.value)
    assert "use --mirror DIR" not in str(caught.value)
