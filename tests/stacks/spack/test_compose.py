"""What goes into an environment, in which order, what its digest covers, what is refused."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError
from fabricproof.site import load_site
from fabricproof.stacks.spack.environment.compose import PACKAGE_OF, compose
from fabricproof.stacks.spack.environment.externals import check_externals, what_is_missing
from fabricproof.stacks.spack.layout import SpackLayout
from pretended_spack import PACKAGES, RECIPES, Lab

ROOT = RECIPES.parent


def written(lab: Lab, name: str = "spack.yaml", **changed) -> dict:
    environment = lab.compose(**changed)
    environment.write()
    return yaml.safe_load((environment.folder / name).read_text())


def test_our_own_settings_win_then_the_site_options_and_what_is_common(lab: Lab):
    lab.stack = lab.stack.model_copy(update={"options": ["tools"]})
    folder = lab.layout.environments / "openmpi"
    assert written(lab)["spack"]["include"] == [
        str(folder / "own"),
        str(folder / "scopes" / "0"),
        str(folder / "options"),
        str(lab.layout.recipes / "common"),
        str(lab.layout.mine / "compilers"),
    ]
    assert "openmpi5" in (folder / "scopes" / "0" / "packages.yaml").read_text()


def test_where_things_go_is_the_layouts_matter(lab: Lab):
    own = written(lab, "own/config.yaml")["config"]
    assert own["install_tree"] == {"root": str(lab.layout.install_tree)}
    assert "build_jobs" not in own
    assert all(str(lab.layout.root) in str(place) for place in own.values())


def test_the_mpi_of_the_site_file_is_required(lab: Lab):
    lab.stack = lab.stack.model_copy(update={"mpi_spec": "openmpi@4.1"})
    assert written(lab)["spack"]["packages"]["mpi"] == {"require": ["openmpi@4.1"]}


def test_options_add_specs_and_settings_and_those_of_one_package_are_joined(lab: Lab):
    lab.stack = lab.stack.model_copy(update={"options": ["tools", "cuda", "rocm"]})
    environment = lab.compose()
    assert environment.tools == ("iperf3", "iperf2", "qperf")
    environment.write()
    text = (environment.folder / "options" / "packages.yaml").read_text()
    packages = yaml.safe_load(text)["packages"]
    assert packages["osu-micro-benchmarks"]["require"] == ["+cuda", "+rocm"]
    assert packages["ucx"]["prefer"] == ["+cuda+gdrcopy", "+rocm"]


def test_variables_are_expanded_and_others_left_alone(lab: Lab):
    lab.packages.write_text(PACKAGES + "  all:\n    prefer: ['$spack ${nobody} $HOME']\n")
    texts = lab.compose().texts
    text = texts[lab.layout.environments / "openmpi" / "scopes" / "0"]["packages.yaml"]
    assert f"prefix: {lab.folder}/openmpi5" in text
    assert f"$spack ${{nobody}} {os.environ['HOME']}" in text


MOVES = {
    "a pin": lambda lab: lab.packages.write_text(PACKAGES.replace("5.0.11", "5.0.10")),
    "the solver": lambda lab: (lab.packages.parent / "concretizer.yaml").write_text(
        "concretizer: {reuse: true}"
    ),
    "a toolchain": lambda lab: (lab.packages.parent / "toolchains.yaml").write_text(
        "toolchains: {}"
    ),
    "what is common": lambda lab: replace_in(
        lab.layout.recipes / "common" / "packages.yaml", "x86_64_v3", "x86_64_v4"
    ),
    "the recipes": lambda lab: replace_in(
        lab.layout.recipes / "common" / "repos.yaml", "commit: d4f7", "commit: e4f7"
    ),
    "an external of what the MPI may need": lambda lab: lab.packages.write_text(
        f"{PACKAGES}  ucx: {{buildable: false, externals: [{{spec: ucx@1.20, prefix: /}}]}}\n"
    ),
    "the recipe": lambda lab: replace_in(
        lab.layout.recipes / "openmpi" / "spack.yaml", "specs:", "specs:\n  - hwloc"
    ),
    "an option": lambda lab: option(lab, "tools"),
    "the MPI": lambda lab: change(lab, mpi_spec="openmpi@4"),
}

STAYS = {
    "a mirror of the site": lambda lab: (lab.packages.parent / "mirrors.yaml").write_text(
        "mirrors: {m: file:///m}"
    ),
    "modules of the site": lambda lab: (lab.packages.parent / "modules.yaml").write_text(
        "modules: {}"
    ),
    "a comment of the site": lambda lab: append(lab.packages),
    "an external of another MPI": lambda lab: lab.packages.write_text(
        f"{PACKAGES}  mpich: {{buildable: false, externals: [{{spec: mpich@4.2, prefix: /m}}]}}\n"
    ),
    "a wish for another MPI": lambda lab: lab.packages.write_text(
        f"{PACKAGES}  'mpich:': {{require: ['@4.2']}}\n"
    ),
    "a comment of the recipe": lambda lab: append(lab.layout.recipes / "openmpi" / "spack.yaml"),
    "common modules": lambda lab: append(lab.layout.recipes / "common" / "modules.yaml"),
    "the environment of runs": lambda lab: change(lab, environment={"A": "b"}),
}


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n# and more\n")


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def change(lab: Lab, **changed) -> None:
    lab.stack = lab.stack.model_copy(update=changed)


def option(lab: Lab, name: str) -> None:
    change(lab, options=[name])


@pytest.mark.parametrize("what", MOVES)
def test_what_decides_the_lock_moves_the_digest(lab: Lab, what: str):
    before = lab.compose().digest
    MOVES[what](lab)
    assert lab.compose().digest != before


@pytest.mark.parametrize("what", STAYS)
def test_what_does_not_decide_the_lock_leaves_the_digest(lab: Lab, what: str):
    before = lab.compose().digest
    STAYS[what](lab)
    assert lab.compose().digest == before


def test_jobs_leave_the_digest(lab: Lab):
    assert lab.compose(jobs=7).digest == lab.compose().digest


def test_an_external_that_is_not_there_has_file_and_line(lab: Lab):
    (lab.folder / "openmpi5").rename(lab.folder / "away")
    with pytest.raises(ConfigError, match="is not where the site says") as caught:
        lab.compose()
    assert (caught.value.source, caught.value.line) == (str(lab.packages), 7)
    assert "openmpi@5.0.11" in caught.value.problem


WRONG = {
    "no prefix": ("packages:\n  ucx:\n    externals:\n    - spec: ucx@1.17\n", 4, "no prefix"),
    "a longer prefix first": (
        (
            "packages:\n  ucx:\n    externals:\n    - spec: ucx@1.17\n      prefix: /none/a\n"
            "    - spec: ucx@1.18\n      prefix: /none\n"
        ),
        5,
        "ucx@1.17",
    ),
    "a comment that names it": (
        (
            "# /none/b was here\npackages:\n  ucx:\n    externals:\n    - spec: ucx@1\n"
            "      prefix: /none/b  # away\n"
        ),
        6,
        "is not where",
    ),
    "no mapping": ("- a\n- b\n", None, "not a Spack file"),
    "not YAML": ("packages:\n  ucx: [\n", 3, "not valid YAML"),
    "a tab": ("packages:\n\tucx: {}\n", 2, "not valid YAML"),
    "packages as a list": ("packages: [ucx]\n", None, "'packages' is not what Spack takes"),
    "a package as a word": ("packages:\n  ucx: yes please\n", None, "'ucx' is not what"),
    "externals as a word": ("packages: {ucx: {externals: none}}\n", None, "'externals'"),
    "an external as a word": ("packages: {ucx: {externals: [ucx@1]}}\n", None, "no mapping"),
    "behind a double colon": (
        "packages::\n  ucx::\n    externals::\n    - spec: ucx@1\n      prefix: /none/c\n",
        5,
        "is not where",
    ),
    "a prefix that is a number": (
        "packages: {ucx: {externals: [{spec: ucx@1, prefix: 7}]}}\n",
        1,
        "is not where",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_packages_file_is_one_message_with_its_line(lab: Lab, what: str):
    text, line, words = WRONG[what]
    lab.packages.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        lab.compose()
    assert (caught.value.source, caught.value.line) == (str(lab.packages), line)


def test_the_mpi_of_another_stack_may_be_away(lab: Lab):
    away = "{externals: [{spec: x@1, prefix: /none/x}]}"
    lab.packages.write_text(f"packages: {{intel-oneapi-mpi: {away}, mpich: {away}}}")
    lab.compose()
    lab.packages.write_text(f"packages: {{openmpi: {away}}}")
    with pytest.raises(ConfigError, match="is not where the site says"):
        lab.compose()


def test_an_external_of_modules_needs_no_prefix(tmp_path: Path):
    text = "packages: {ucx: {externals: [{spec: ucx@1, modules: [ucx]}]}}"
    check_externals(text, tmp_path / "packages.yaml")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["packages", "ucx", "externals", "spec", "prefix"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_no_packages_file_brings_anything_but_one_message(tmp_path: Path, content):
    path = tmp_path / "packages.yaml"
    with contextlib.suppress(ConfigError):
        check_externals(yaml.safe_dump(content), path)


def test_bytes_that_are_no_text_are_one_message(lab: Lab):
    lab.packages.write_bytes(b"packages: \xff\xfe")
    with pytest.raises(ConfigError, match="cannot read"):
        lab.compose()


def test_an_unknown_option_says_which_there_are(lab: Lab):
    option(lab, "cudaa")
    with pytest.raises(ConfigError, match=r"one of cuda, linktest, rocm, tools, got 'cudaa'"):
        lab.compose()


def test_an_unknown_environment_says_which_there_are(lab: Lab):
    change(lab, spack="openmpi9")
    with pytest.raises(ConfigError, match=r"one of intel-mpi, mpich, mvapich, openmpi, got"):
        lab.compose()


def test_a_family_that_is_not_the_environments_is_refused(lab: Lab):
    change(lab, family="mpich")
    with pytest.raises(ConfigError, match="an environment of mpich, got openmpi, osu"):
        lab.compose()


def test_a_stack_that_is_not_spacks_is_refused(lab: Lab):
    change(lab, spack=None)
    with pytest.raises(ConfigError, match="is not built by Spack"):
        lab.compose()


def test_composing_again_touches_no_file(lab: Lab):
    lab.compose().write()
    before = {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*.yaml")}
    lab.compose().write()
    after = {path: path.stat().st_mtime_ns for path in lab.layout.root.rglob("*.yaml")}
    assert (before, len(before) > 4) == (after, True)


RECIPE_FOLDERS = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "intel-mpi": "intel-oneapi-mpi",
    "mvapich": "mvapich",
}


def test_every_recipe_is_known_here():
    assert {path.parent.name for path in RECIPES.glob("*/spack.yaml")} == RECIPE_FOLDERS.keys()
    assert set(RECIPE_FOLDERS.values()) == set(PACKAGE_OF.values())


@pytest.mark.parametrize("folder", RECIPE_FOLDERS)
def test_a_recipe_asks_for_its_mpi_and_both_suites_and_no_other_mpi(folder: str):
    recipe = yaml.safe_load((RECIPES / folder / "spack.yaml").read_text())["spack"]
    mpi = RECIPE_FOLDERS[folder]
    assert recipe["specs"] == [mpi, "osu-micro-benchmarks", "intel-mpi-benchmarks"]
    assert recipe["packages"]["mpi"] == {"require": [mpi]}
    assert recipe["view"] is False
    assert "../common" in recipe["include"]


@pytest.mark.parametrize(
    "path", sorted(RECIPES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(RECIPES))
)
def test_every_file_of_the_recipes_is_a_yaml_mapping(path: Path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


SITES = sorted(path.parent for path in (ROOT / "site-configs").glob("*/site.toml"))
SPACK_STACKS = [
    (site, stack.name)
    for site in SITES
    for stack in load_site(str(site)).stacks
    if stack.spack is not None
]


@pytest.mark.parametrize("gone", ["include", "bin/mpicc"])
def test_an_mpi_that_nothing_can_be_built_with_is_refused_at_once(lab: Lab, gone: str):
    """A runtime package without its development part; Spack says so after it has solved."""
    path = lab.folder / "openmpi5" / gone
    path.rename(path.with_name("away"))
    missing = {"include": "headers", "bin/mpicc": "mpicc"}[gone]
    with pytest.raises(ConfigError, match=f"'openmpi@5.*it has no {missing}") as caught:
        lab.compose()
    assert caught.value.line == 7
    assert caught.value.source == str(lab.packages)
    # Another of the same name will do.
    whole = lab.folder / "whole"
    for name in ("include/mpi.h", "bin/mpicc"):
        (whole / name).parent.mkdir(parents=True)
        (whole / name).touch()
    text = f"{lab.packages.read_text()}    - {{spec: openmpi@4.1, prefix: {whole}}}\n"
    lab.packages.write_text(text)
    assert lab.compose().mpi == "openmpi"


def test_oneapi_has_its_mpi_below_its_root(tmp_path: Path):
    assert what_is_missing(tmp_path) == "headers"
    mpi = tmp_path / "mpi" / "2021.14"
    for name in ("include/mpi.h", "bin/mpicc"):
        (mpi / name).parent.mkdir(parents=True)
        (mpi / name).touch()
    assert what_is_missing(tmp_path) is None


@pytest.mark.parametrize(
    ("folder", "name"), SPACK_STACKS, ids=[f"{folder.name}-{name}" for folder, name in SPACK_STACKS]
)
def test_every_stack_of_every_site_composes(
    folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "fabricproof.stacks.spack.environment.compose.Path.is_dir", _is_dir_or_of_a_site
    )
    monkeypatch.setattr(
        "fabricproof.stacks.spack.environment.externals.what_is_missing", lambda prefix: None
    )
    site = load_site(str(folder))
    layout = SpackLayout(
        root=tmp_path / "spack", site=site.name, recipes=RECIPES, site_folder=site.folder
    )
    stack = site.stack(name)
    environment = compose(stack, layout)
    assert environment.mpi == PACKAGE_OF[stack.family]
    for texts in environment.texts.values():
        assert all(isinstance(yaml.safe_load(text), dict) for text in texts.values())


_is_dir = Path.is_dir


def _is_dir_or_of_a_site(path: Path) -> bool:
    """Pretend that what a site's images have is there; not below the project."""
    return _is_dir(path) or not path.is_relative_to(ROOT)


def test_there_is_a_spack_stack_of_each_family_among_the_sites():
    stacks = [load_site(str(site)).stack(name) for site, name in SPACK_STACKS]
    assert {stack.family for stack in stacks} >= {"openmpi", "mpich", "intelmpi"}
