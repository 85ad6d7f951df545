"""The ``[night]`` table of a site: what may be left out, and what is refused with its line."""

import shutil
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site import load_site

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    shutil.copytree(ROOT / "site-configs" / "vcluster", folder)

    def load(table):
        path = folder / "site.toml"
        path.write_text((ROOT / "site-configs" / "vcluster" / "site.toml").read_text() + table)
        return load_site(str(folder))

    return load


def test_a_site_without_the_table_has_nights_that_tell_nobody(site):
    night = site("").night
    assert night.tags == ["nightly"]
    assert night.keep_days is None
    assert (night.mail_to, night.webhook, night.html) == ([], None, None)


def test_all_of_it_is_read(site):
    night = site(
        '\n[night]\ntags = ["quick"]\nkeep_days = 60\nmail_to = ["a@b.org"]\nsmtp = "mail:25"\n'
        'webhook = "HOOK"\njunit = "/x/night.xml"\n'
    ).night
    assert (night.tags, night.keep_days, night.webhook) == (["quick"], 60, "HOOK")


@pytest.mark.parametrize(
    "line",
    [
        'webhook = "https://hooks.example.org/secret"',
        "keep_days = 0",
        "tags = []",
        'mail_to = ["no address"]',
        "flutter_nights = 2",
        "confirm_cheks = 3",
    ],
)
def test_what_is_wrong_is_refused_with_its_line(site, line):
    with pytest.raises(ConfigError) as refused:
        site(f"\n[night]\n{line}\n")
    assert "site.toml:" in str(refused.value)
    assert line.partition(" ")[0] in str(refused.value)


def test_the_document_shows_the_defaults():
    """docs/nightly.md says what a table that is left out is."""
    text = (ROOT / "docs" / "nightly.md").read_text()
    night = load_site("vcluster").night
    for name in ("confirm_checks", "confirm_minutes", "flutter_nights", "max_gap_hours"):
        assert f"{name} = {getattr(night, name)} " in text
