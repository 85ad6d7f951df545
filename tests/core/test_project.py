"""Which word finds a site again, in a command that is printed."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from fabricproof.core.project import site_option, site_word
from fabricproof.site import load_site

ROOT = Path(__file__).resolve().parents[2]


def test_a_site_that_was_given_by_its_folder_is_found_by_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "my sites" / "copy"
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder)
    site = load_site(str(folder))
    option, word = shlex.split(site_option(site.name))
    assert option == "--site"
    assert load_site(word).folder == folder


def test_a_command_that_takes_the_site_by_itself_gets_the_same_word(tmp_path: Path) -> None:
    folder = tmp_path / "my sites" / "copy"
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder)
    site = load_site(str(folder))
    (word,) = shlex.split(site_word(site.name))
    assert load_site(word).folder == folder
    assert site_word("") == ""


@pytest.mark.parametrize("word", ["vcluster", str(ROOT / "site-configs" / "vcluster")])
def test_one_of_site_configs_keeps_its_name(word: str) -> None:
    assert site_option(load_site(word).name) == "--site vcluster"


def test_a_folder_of_another_name_than_the_site_is_the_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FABRICPROOF_SITES", str(tmp_path))
    shutil.copytree(ROOT / "site-configs" / "vcluster", tmp_path / "tonight")
    assert site_option(load_site("tonight").name) == "--site tonight"


def test_what_nobody_loaded_is_called_by_its_name_and_nothing_is_nothing() -> None:
    assert site_option("frontier") == "--site frontier"
    assert site_option("") == ""
