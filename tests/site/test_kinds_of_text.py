"""What a shell, a launcher or a header could not take as it stands is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError
from fabricproof.site import Site, load_site

SITE = """\
[site]
name = "s"
{site}

[[partitions]]
name = "p"
fabrics = ["f"]
stacks = ["one"]
{partition}

[[stacks]]
name = "one"
family = "openmpi"
version = "4.1"
suites = {{ osu = "PATH" }}
{stack}
"""
LINES = {"site": 3, "partition": 9, "stack": 16}


def _load(folder: Path, **said: str) -> Site:
    text = SITE.format(**{name: said.get(name, "") for name in LINES})
    (folder / "site.toml").write_text(text)
    (folder / "fabric.toml").write_text('[[fabrics]]\nname = "f"\nrails = [{interface = "e"}]\n')
    return load_site(str(folder))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("stack", 'environment = { "A B" = "x" }'),
        ("stack", 'environment = { "A=B" = "x" }'),
        ("stack", 'environment = { "1A" = "x" }'),
        ("stack", 'environment = { "$(touch X)" = "x" }'),
        ("stack", 'environment = { "A\\n" = "x" }'),
        ("stack", 'environment = { A = "a\\ntouch X" }'),
        ("stack", 'environment = { A = "a\\u0000" }'),
        ("stack", 'modules = ["gcc openmpi"]'),
        ("stack", 'modules = ["gcc\\nopenmpi"]'),
        ("stack", 'launcher_options = ["--a\\ntouch X"]'),
        ("stack", 'launcher_options = ["--a=\'b"]'),
        ("stack", 'launcher_options = [" "]'),
        ("partition", 'access = ["--partition=x\\ntouch X"]'),
        ("partition", 'access = ["--comment=\'x"]'),
        ("site", 'module_paths = ["/opt\\ntouch X"]'),
        ("site", 'modules_init = "/etc\\u0007"'),
        ("site", 'environment = { "A B" = "x" }'),
        ("site", 'environment = { A = "\\u0000" }'),
    ],
)
def test_what_cannot_be_handed_on_is_refused_with_its_line(
    tmp_path: Path, table: str, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, **{table: text})
    assert (caught.value.source, caught.value.line) == (
        str(tmp_path / "site.toml"),
        LINES[table],
    )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("stack", "launcher_options", ["--map-by ppr:1:node", "--cpu-bind='map_cpu:0,1'"]),
        ("stack", "environment", {"_A1": "", "I_MPI_PIN_ORDER": "a b;c $(d)"}),
        ("stack", "modules", ["gcc/12.2", "openmpi/5.0+cuda@x86_64"]),
        ("partition", "access", ["-p compute --qos=test", "--constraint='a&b'"]),
    ],
)
def test_what_can_be_handed_on_stays_as_it_is(
    tmp_path: Path, table: str, key: str, value: object
) -> None:
    shown = json.dumps(value)
    if isinstance(value, dict):
        shown = shown.replace('": ', '" = ')
    site = _load(tmp_path, **{table: f"{key} = {shown}"})
    tables = {"stack": site.stacks[0], "partition": site.partitions[0]}
    assert getattr(tables[table], key) == value


def test_two_fabrics_of_one_name_are_named_also_where_a_reference_names_them(
    tmp_path: Path,
) -> None:
    _load(tmp_path)
    fabric = (tmp_path / "fabric.toml").read_text()
    (tmp_path / "fabric.toml").write_text(fabric + fabric)
    (tmp_path / "references.toml").write_text(
        '[[references]]\nquantity = "latency"\nvalue = "9 us"\nfabric = "f"\norigin = "o"\n'
    )
    with pytest.raises(ConfigError, match="two fabrics share the name 'f'"):
        load_site(str(tmp_path))
