"""The kept lock: when it holds, when it is solved again, where it comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricproof.core.errors import ConfigError, OutputError, UnavailableError
from fabricproof.stacks.spack.environment.externals import load_yaml
from fabricproof.stacks.spack.environment.lock import (
    Lock,
    digest_of_lock,
    kept_lock,
    lock,
    prove_compilers,
    why_stale,
)
from fabricproof.stacks.spack.layout import sha256_of
from pretended_spack import Lab

DATA = Path(__file__).resolve().parents[2] / "data" / "spack"


def locked(lab: Lab, **changed) -> Lock:
    return lock(lab.compose(), lab.layout, lab.open(), **changed)


def stale(lab: Lab) -> str | None:
    return why_stale(lab.compose(), lab.layout)


def kept(lab: Lab) -> Path:
    return kept_lock(lab.layout, "openmpi")


def test_two_solves_that_differ_only_in_order_have_one_digest(tmp_path: Path):
    data = json.loads((DATA / "openmpi.lock").read_text())
    assert len(data["roots"]) > 1
    turned = {key: data[key] for key in reversed(data)}
    turned["roots"] = data["roots"][::-1]
    turned["concrete_specs"] = dict(reversed(data["concrete_specs"].items()))
    fewer = {**data, "roots": data["roots"][1:]}
    gone = dict(data["concrete_specs"])
    gone.popitem()
    digests = []
    for number, each in enumerate((data, turned, fewer, {**data, "concrete_specs": gone})):
        path = tmp_path / f"{number}.lock"
        path.write_text(json.dumps(each))
        digests.append(digest_of_lock(path))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_the_first_lock_is_solved_and_kept_with_its_note(lab: Lab):
    assert stale(lab) == "there is none yet"
    solved = locked(lab)
    assert not solved.kept
    assert solved.path == lab.site / "spack" / "locks" / "openmpi.lock"
    note = json.loads(kept(lab).with_suffix(".json").read_text())
    assert note["inputs"] == lab.compose().digest
    assert note["lock_digest"] == sha256_of(kept(lab))
    assert solved.digest == digest_of_lock(kept(lab))
    assert note["spack"] == "1.1.1 (0123456789ab)"
    assert stale(lab) is None
    assert sorted(path.name for path in kept(lab).parent.iterdir()) == [
        "openmpi.json",
        "openmpi.lock",
    ]


def test_two_solves_of_one_input_keep_the_same_file(lab: Lab):
    """Spack writes the roots in another order (seen with 1.1.1: three files of four solves)."""
    locked(lab)
    first = kept(lab).read_bytes()
    recorded = lab.folder / "recorded.lock"
    data = json.loads(recorded.read_text())
    recorded.write_text(json.dumps({**data, "roots": data["roots"][::-1]}))
    assert not locked(lab, force=True).kept
    assert kept(lab).read_bytes() == first
    assert json.loads(first)["concrete_specs"].keys() == data["concrete_specs"].keys()
    assert sha256_of(lab.compose().lock) == sha256_of(kept(lab))


def test_a_lock_that_holds_is_kept_without_a_word_to_spack(lab: Lab):
    locked(lab)
    lab.forget()
    assert locked(lab).kept
    assert lab.commands == []


def test_force_solves_a_lock_that_holds(lab: Lab):
    locked(lab)
    lab.forget()
    assert not locked(lab, force=True).kept
    assert lab.commands == ["concretize"]


def test_a_lock_changed_by_hand_is_solved_again(lab: Lab):
    locked(lab)
    kept(lab).write_text(kept(lab).read_text().replace("5.0.11", "5.0.12"))
    assert stale(lab) == "it was changed by hand"
    assert not locked(lab).kept
    assert stale(lab) is None


@pytest.mark.parametrize("note", [None, "{", "[]", '{"inputs": "x"}', '{"inputs": 1'])
def test_a_lock_without_a_good_note_is_solved_again(lab: Lab, note: str | None):
    locked(lab)
    path = kept(lab).with_suffix(".json")
    path.unlink() if note is None else path.write_text(note)
    assert stale(lab) == "nothing says what it was solved from"


def test_a_changed_recipe_is_solved_again(lab: Lab):
    locked(lab)
    path = lab.layout.recipes / "openmpi" / "spack.yaml"
    path.write_text(path.read_text().replace("- openmpi\n", "- openmpi@5.0.11\n  - openmpi\n", 1))
    assert stale(lab) == "the recipe or the site's Spack configuration changed"


def test_the_kept_lock_reaches_spack_where_its_copy_is_another(lab: Lab):
    locked(lab)
    environment = lab.compose()
    environment.lock.write_text("{}")
    locked(lab)
    assert sha256_of(environment.lock) == sha256_of(kept(lab))


def test_a_damaged_lock_whose_note_fits_is_one_message(lab: Lab):
    locked(lab)
    kept(lab).write_text('{"roots": []}')
    note = json.loads(kept(lab).with_suffix(".json").read_text())
    note["lock_digest"] = sha256_of(kept(lab))
    kept(lab).with_suffix(".json").write_text(json.dumps(note))
    with pytest.raises(ConfigError, match=r"damaged lock.*stack lock --force"):
        locked(lab)


def test_a_site_folder_that_takes_no_lock_is_one_message(lab: Lab):
    (lab.site / "spack" / "locks").touch()
    with pytest.raises(OutputError, match="cannot keep the lock: "):
        locked(lab)


def test_a_failed_solve_keeps_the_old_lock_and_leaves_none_for_spack(lab: Lab):
    locked(lab)
    before = sha256_of(kept(lab))
    lab.order(concretize={"status": 1, "output": "==> Error: no\n"})
    with pytest.raises(Exception, match="concretize"):
        locked(lab, force=True)
    assert sha256_of(kept(lab)) == before
    assert not lab.compose().lock.exists()


def test_find_says_what_the_lock_has(lab: Lab):
    solved = locked(lab)
    found = solved.find("openmpi")
    assert found is not None
    assert found[0] in solved.specs
    assert solved.find("mpich") is None


def test_compilers_are_looked_for_once_and_kept_with_the_site(lab: Lab):
    locked(lab)
    found = load_yaml(lab.compose().compilers)["packages"]["gcc"]["externals"]
    assert found[0]["spec"].startswith("gcc@12.2.0")
    lab.forget()
    locked(lab, force=True)
    assert "compiler" not in lab.commands


def test_a_compiler_that_spack_knows_is_enough(lab: Lab):
    lab.order(knows=["==> Available compilers", "[e]  gcc@12.2.0"])
    locked(lab)
    assert lab.commands.count("compiler") == 1
    assert not lab.compose().compilers.exists()


@pytest.mark.parametrize("finds", [{}, {"c": "/usr/bin/gcc"}])
def test_no_compiler_or_half_a_one_is_one_message(lab: Lab, finds: dict[str, str]):
    lab.order(finds=finds)
    with pytest.raises(UnavailableError, match=r"no compiler for C and C\+\+"):
        locked(lab)
    assert not lab.compose().compilers.exists()


@pytest.mark.parametrize("name", ["compiler-find-offline", "compiler-find-half-clone"])
def test_recipes_out_of_reach_are_not_told_as_a_missing_compiler(lab: Lab, name: str):
    """Spack only warns, finds no compiler and ends well."""
    said = (DATA / f"{name}.out").read_text()
    lab.order(compiler={"output": said}, finds={})
    log = lab.folder / "logs" / "lock.log"
    with pytest.raises(UnavailableError, match="compiler find failed") as caught:
        locked(lab, log=log)
    warning = next(line for line in said.splitlines() if "Warning" in line)
    assert warning.partition("Warning: ")[2][:80] in str(caught.value)
    assert log.read_text().startswith(said)


def test_half_a_clone_of_the_recipes_is_removed_before_spack_takes_it_for_the_whole(lab: Lab):
    half, whole = (lab.layout.cache / "package_repos" / each for each in ("half", "whole"))
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
        ("", False),
    ],
)
def test_a_compiler_must_say_the_version_of_the_lock(lab: Lab, says: str, *, is_it: bool):
    solved = locked(lab)
    (lab.folder / "bin" / "gcc").write_text(f"#!/bin/sh\necho '{says}'\n")
    if is_it:
        prove_compilers(solved)
        return
    with pytest.raises(ConfigError, match="another compiler than this machine has"):
        prove_compilers(solved)


def test_a_compiler_that_is_gone_is_one_message(lab: Lab):
    solved = locked(lab)
    (lab.folder / "bin" / "gfortran").unlink()
    with pytest.raises(ConfigError, match=r"gfortran of gcc 12\.2\.0, got nothing there"):
        prove_compilers(solved)
