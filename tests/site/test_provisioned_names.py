"""A stack that the catalogue lacks is refused before any job, wherever a session begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricproof.core.errors import ConfigError, ExitStatus
from fabricproof.job.run.start import session_environment, workplace
from fabricproof.rfm.settings import reframe_configuration
from fabricproof.site import Site, load_site
from fabricproof.stacks.catalog import load_catalog
from fabricproof.stacks.install import check_provisioned

SITE = """\
[site]
name = "s"

[[partitions]]
name = "p"
fabrics = ["memory"]
stacks = ["one"]

[[stacks]]
name = "one"
family = "openmpi"
version = "4.1"
provisioned = {}
"""
FABRIC = '[[fabrics]]\nname = "memory"\nrails = [{ interface = "lo" }]\n'


def _site(folder: Path, said: str) -> Site:
    (folder / "site.toml").write_text(SITE.format(said))
    (folder / "fabric.toml").write_text(FABRIC)
    return load_site(str(folder))


@pytest.mark.parametrize(("said", "name"), [('"nope"', "nope"), ("true", "one")])
def test_the_catalogue_has_what_is_provisioned(
    tmp_path: Path, fabricproof: Callable[..., Any], said: str, name: str
) -> None:
    site = _site(tmp_path, said)
    for asks in (
        check_provisioned,
        reframe_configuration,
        lambda each: session_environment(each, workplace(tmp_path), "run"),
    ):
        with pytest.raises(ConfigError) as refused:
            asks(site)
        assert (refused.value.source, refused.value.line) == (str(tmp_path / "site.toml"), 13)
        assert refused.value.expected == f"one of {', '.join(load_catalog().stacks)}"
        assert refused.value.got == repr(name)
    answer = fabricproof("site", "check", tmp_path)
    assert answer.status == ExitStatus.CONFIG
    assert "site.toml:13: stack 'one'" in answer.err
    check_provisioned(_site(tmp_path, '"openmpi4"'))
    check_provisioned(_site(tmp_path, "false"))
