"""A root that Spack's wrappers and scripts could not name is refused before anything is built."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.stacks.spack.builder import building
from pretended_spack import Lab


@pytest.mark.parametrize("blank", [" ", "\t", "\n"])
def test_a_root_with_a_blank_is_refused_and_not_made(lab: Lab, blank: str) -> None:
    root = lab.folder / f"my{blank}stacks"
    layout = replace(lab.layout, root=root)
    refused = pytest.raises(ConfigError, match="with a blank in its path")
    with refused, building(layout, "openmpi", lambda *_: None):
        pass
    assert not root.exists()
