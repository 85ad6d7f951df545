"""What goes into an environment, what its digest covers, when its kept lock holds."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricproof.core.errors import ConfigError, FabricproofError, OutputError
from fabricproof.site import load_site
from fabricproof.stacks.spack.environment import (
    PACKAGE_OF,
    Lock,
    SpackLayout,
    compose,
    lock,
    read_lock,
    why_stale,
)
from pretended_spack import PACKAGES, RECIPES, Lab

ROOT = RECIPES.parent


def text_of(lab: Lab, name: str) -> str:
    environment = lab.compose()
    return environment.texts[environment.folder / name]


def test_our_own_settings_win_then_the_site_options_and_what_is_common(lab: Lab):
    lab.change(options=["tools", "cuda", "rocm"], mpi_spec="openmpi@4.1")
    scopes = lab.compose().folder / "scopes"
    body = yaml.safe_load(text_of(lab, "spack.yaml"))["spack"]
    names = ("own", "site", "option-tools", "option-cuda", "option-rocm")
    assert body["include"] == [
        *(str(scopes / each) for each in names),
        str(lab.layout.recipes / "common"),
    ]
    assert body["packages"]["mpi"] == {"require": ["openmpi@4.1"]}
    assert body["specs"][-3:] == ["iperf3", "iperf2", "qperf"]
    own = yaml.safe_load(text_of(lab, "scopes/own/config.yaml"))["config"]
    assert all(str(lab.layout.root) in str(place) for place in own.values())


def test_variables_are_expanded_and_others_left_alone(lab: Lab):
    lab.packages.write_text(PACKAGES + "  all:\n    prefer: ['$spack ${nobody} $HOME']\n")
    text = text_of(lab, "scopes/site/packages.yaml")
    assert f"prefix: {lab.folder}/openmpi5" in text
    assert f"$spack ${{nobody}} {os.environ['HOME']}" in text


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def site_file(name: str, text: str):
    return lambda lab: (lab.packages.parent / name).write_text(text)


def recipe_file(name: str, old: str, new: str):
    return lambda lab: replace_in(lab.layout.recipes / name, old, new)


MOVES = {
    "a pin": site_file("packages.yaml", PACKAGES.replace("5.0.11", "5.0.10")),
    "the solver": site_file("concretizer.yaml", "concretizer: {reuse: true}"),
    "a toolchain": site_file("toolchains.yaml", "toolchains: {}"),
    "what is common": recipe_file("common/packages.yaml", "x86_64_v3", "x86_64_v4"),
    "the recipes": recipe_file("common/repos.yaml", "commit: d4f7", "commit: e4f7"),
    "an external of what the MPI may need": site_file(
        "packages.yaml", f"{PACKAGES}  ucx: {{externals: [{{spec: ucx@1.20, prefix: /}}]}}\n"
    ),
    "the recipe": recipe_file("openmpi/spack.yaml", "specs:", "specs:\n  - hwloc"),
    "an option": lambda lab: lab.change(options=["tools"]),
    "the MPI": lambda lab: lab.change(mpi_spec="openmpi@4"),
}

STAYS = {
    "a mirror of the site": site_file("mirrors.yaml", "mirrors: {m: file:///m}"),
    "recipes of the site": site_file("repos.yaml", "repos: {m: /m}"),
    "a comment of the site": site_file("packages.yaml", f"{PACKAGES}# and more\n"),
    "an external of another MPI, away": site_file(
        "packages.yaml", f"{PACKAGES}  mpich: {{externals: [{{spec: mpich@4.2, prefix: /m}}]}}\n"
    ),
    "a wish for another MPI": site_file(
        "packages.yaml", f"{PACKAGES}  'mpich:': {{require: ['@4.2']}}\n"
    ),
    "a comment of the recipe": recipe_file("openmpi/spack.yaml", "specs:", "specs: # more"),
    "the environment of runs": lambda lab: lab.change(environment={"A": "b"}),
}


@pytest.mark.parametrize("what", [*MOVES, *STAYS])
def test_what_decides_the_lock_moves_the_digest_and_nothing_else(lab: Lab, what: str):
    before = lab.compose().digest
    {**MOVES, **STAYS}[what](lab)
    assert (lab.compose().digest != before) == (what in MOVES)


def test_an_external_that_is_not_there_is_refused_with_its_file(lab: Lab):
    (lab.folder / "openmpi5").rename(lab.folder / "away")
    with pytest.raises(ConfigError, match=r"openmpi@5\.0\.11.*is not where the site") as caught:
        lab.compose()
    assert caught.value.source == str(lab.packages)


EXTERNAL = "packages: {{ucx: {{externals: [{}]}}}}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (EXTERNAL.format("{spec: ucx@1}"), "is not where"),
        ("packages::\n  ucx::\n    externals::\n    - {spec: ucx@1, prefix: /none}\n", "is not"),
        (EXTERNAL.format("{spec: ucx@1, prefix: 7}"), "is not where"),
        ("- a\n- b\n", "not a Spack file"),
        ("packages:\n  ucx: [\n", r"yaml:3: not valid YAML"),
        ("packages:\n\tucx: {}\n", "yaml:2: not valid YAML"),
    ],
)
def test_a_wrong_packages_file_is_one_message(lab: Lab, text: str, words: str):
    lab.packages.write_text(text)
    with pytest.raises(ConfigError, match=words):
        lab.compose()


def test_an_external_of_modules_needs_no_prefix(lab: Lab):
    lab.packages.write_text(EXTERNAL.format("{spec: ucx@1, modules: [ucx]}"))
    lab.compose()


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
def test_no_packages_file_brings_anything_but_one_message(lab: Lab, content):
    lab.packages.write_text(yaml.safe_dump(content))
    with contextlib.suppress(ConfigError):
        lab.compose()


@pytest.mark.parametrize(("key", "value"), [("spack", "openmpi9"), ("options", ["cudaa"])])
def test_an_unknown_recipe_or_option_is_named(lab: Lab, key: str, value: object):
    lab.change(**{key: value})
    with pytest.raises(ConfigError, match=r"openmpi9/spack\.yaml|cudaa\.yaml"):
        lab.compose()


RECIPE_FOLDERS = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "intel-mpi": "intel-oneapi-mpi",
    "mvapich": "mvapich",
}


def test_every_recipe_asks_for_its_mpi_and_both_suites_and_no_other_mpi():
    assert {path.parent.name for path in RECIPES.glob("*/spack.yaml")} == RECIPE_FOLDERS.keys()
    assert set(RECIPE_FOLDERS.values()) == set(PACKAGE_OF.values())
    for folder, mpi in RECIPE_FOLDERS.items():
        recipe = yaml.safe_load((RECIPES / folder / "spack.yaml").read_text())["spack"]
        assert recipe["specs"] == [mpi, "osu-micro-benchmarks", "intel-mpi-benchmarks"]
        assert recipe["packages"]["mpi"] == {"require": [mpi]}
        assert recipe["view"] is False


SPACK_STACKS = [
    (site.parent, stack.name)
    for site in sorted((ROOT / "site-configs").glob("*/site.toml"))
    for stack in load_site(str(site.parent)).stacks
    if stack.spack is not None
]


@pytest.mark.parametrize(
    ("folder", "name"), SPACK_STACKS, ids=[f"{folder.name}-{name}" for folder, name in SPACK_STACKS]
)
def test_every_stack_of_every_site_composes(
    folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    is_dir = Path.is_dir
    # What a site's images have counts as there, but for what lies below the project.
    monkeypatch.setattr(Path, "is_dir", lambda path: is_dir(path) or not path.is_relative_to(ROOT))
    site = load_site(str(folder))
    layout = SpackLayout(
        root=tmp_path / "spack", site=site.name, recipes=RECIPES, site_folder=site.folder
    )
    stack = site.stack(name)
    environment = compose(stack, layout)
    assert environment.packages["mpi"] == PACKAGE_OF[stack.family]
    assert all(isinstance(yaml.safe_load(text), dict) for text in environment.texts.values())


# The lock.


def locked(lab: Lab, **how) -> Lock:
    return lock(lab.compose(), lab.open(), str, lab.folder / "log", **how)


def stale(lab: Lab) -> str | None:
    return why_stale(lab.compose())


def kept(lab: Lab) -> Path:
    return lab.layout.kept_lock("openmpi")


def test_the_identity_of_a_lock_is_its_packages_and_roots_in_any_order(lab: Lab):
    data = json.loads((lab.folder / "recorded.lock").read_text())
    turned = {key: data[key] for key in reversed(data)}
    turned["roots"] = data["roots"][::-1]
    turned["concrete_specs"] = dict(reversed(data["concrete_specs"].items()))
    gone = dict(data["concrete_specs"])
    gone.popitem()
    digests = []
    for each in (
        data,
        turned,
        {**data, "roots": data["roots"][1:]},
        {**data, "concrete_specs": gone},
    ):
        path = lab.folder / "one.lock"
        path.write_text(json.dumps(each))
        digests.append(read_lock(path).digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_the_first_lock_is_solved_and_kept_and_then_holds_without_a_word_to_spack(lab: Lab):
    assert stale(lab) == "there is none yet"
    solved = locked(lab)
    assert solved.path == lab.site / "spack" / "locks" / "openmpi.lock"
    assert solved.inputs == lab.compose().digest
    assert stale(lab) is None
    lab.forget()
    assert locked(lab) == solved
    assert lab.commands == []
    assert locked(lab, force=True).digest == solved.digest
    assert lab.commands == ["concretize"]


def test_two_solves_of_one_input_keep_the_same_file(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    """Spack writes the roots in another order (seen with 1.1.1: three files of four solves)."""
    monkeypatch.setattr("fabricproof.stacks.spack.environment.stamp", lambda: "now")
    locked(lab)
    first = kept(lab).read_bytes()
    recorded = lab.folder / "recorded.lock"
    data = json.loads(recorded.read_text())
    recorded.write_text(json.dumps({**data, "roots": data["roots"][::-1]}))
    locked(lab, force=True)
    assert kept(lab).read_bytes() == first
    assert json.loads(first)["concrete_specs"].keys() == data["concrete_specs"].keys()


def test_a_changed_recipe_makes_a_lock_stale(lab: Lab):
    locked(lab)
    MOVES["the recipe"](lab)
    assert stale(lab) == "the recipe or the site's Spack configuration changed"


def test_a_lock_that_somebody_else_solved_is_stale(lab: Lab):
    kept(lab).parent.mkdir(parents=True)
    kept(lab).write_text((lab.folder / "recorded.lock").read_text())
    assert stale(lab) is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"roots": []}', '{"roots": [{}]}'])
def test_a_damaged_lock_is_one_message(lab: Lab, text: str):
    locked(lab)
    kept(lab).write_text(text)
    with pytest.raises(ConfigError, match=r"damaged lock.*stack lock --force"):
        locked(lab)
    locked(lab, force=True)
    assert stale(lab) is None


def test_a_site_folder_that_takes_no_lock_is_one_message(lab: Lab):
    (lab.site / "spack" / "locks").touch()
    with pytest.raises(OutputError, match="cannot keep the lock: "):
        locked(lab)


def test_a_failed_solve_keeps_the_old_lock_and_leaves_none_for_spack(lab: Lab):
    before = locked(lab)
    lab.order(concretize={"status": 1, "output": "==> Error: no\n"})
    with pytest.raises(FabricproofError, match="concretize"):
        locked(lab, force=True)
    assert read_lock(kept(lab)) == before
    assert not (lab.compose().folder / "spack.lock").exists()


def test_half_a_clone_of_the_recipes_is_removed_before_spack_takes_it_for_the_whole(lab: Lab):
    half, whole = (lab.layout.root / "cache" / "package_repos" / each for each in ("half", "whole"))
    for folder in (half, whole):
        (folder / ".git").mkdir(parents=True)
    (whole / "spack-repo-index.yaml").touch()
    locked(lab)
    assert (half.exists(), whole.exists()) == (False, True)


@pytest.mark.parametrize(
    ("says", "is_it"),
    [
        ("gcc (Debian 12.2.0-14) 12.2.0", True),
        ("gcc (GCC) 12.2.0 20240101 (Red Hat 12.2.0-5)", True),
        ("gcc (Debian 14.2.0-1) 14.2.0", False),
        ("gcc 112.2.0", False),
        ("gcc 12.2.01", False),
        (None, False),
    ],
)
def test_a_compiler_must_say_the_version_of_the_lock(lab: Lab, says: str | None, *, is_it: bool):
    locked(lab)
    program = lab.folder / "bin" / "gcc"
    program.unlink() if says is None else program.write_text(f"#!/bin/sh\necho '{says}'\n")
    if is_it:
        locked(lab)
        return
    with pytest.raises(ConfigError, match="another compiler than this machine has"):
        locked(lab)
