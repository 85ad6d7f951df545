"""One MPI stack of a site on one of its partitions: everything that a run has to know of it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from fabricproof.core.errors import ConfigError, FabricproofError
from fabricproof.core.provenance import SHOWN_DIGITS, StackIdentity, digest_of
from fabricproof.core.records import text_of
from fabricproof.site import FabricSpec, PartitionSpec, Site, StackSpec, protocol_of
from fabricproof.stacks.container import Container, enter, image_file
from fabricproof.stacks.environment import option_words, shell_values, stacks_root
from fabricproof.stacks.family import (
    default_transport,
    path_environment,
    rails_refusal,
    stated_transport,
)
from fabricproof.stacks.launch import Launch, plan_launch
from fabricproof.stacks.spack import (
    PACKAGE_OF,
    Built,
    SpackLayout,
    compose,
    layout_for,
    module_name,
    read_built,
    sha256_of,
    why_not_built,
)
from fabricproof.stacks.wheels import (
    IMB_HOME,
    InstallState,
    Located,
    find_wheels,
    installed_pins,
    locate,
    observe,
    stack_environment,
    stack_python,
    wheel_stacks,
)
from fabricproof.stacks.workload import imb_binary

#: what nobody says of a stack that is not ours
UNSAID = "not declared"

#: the suites that every environment of ``spack-envs`` builds
SPACK_SUITES = ("osu", "imb")

#: programs that start MPI and do next to nothing, best first; any of them tells what is loaded
_WITNESSES = ("osu_init", "osu_hello", "IMB-MPI1")


@dataclass(frozen=True, kw_only=True)
class NetPath:
    """Some rails of a fabric, the library and variables that force them, or why they cannot be."""

    fabric: str
    protocol: str
    rails: tuple[str, ...]
    transport: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""

    @property
    def name(self) -> str:
        """For people: ``eth0/rail0+rail1``."""
        return f"{self.fabric}/{'+'.join(self.rails)}"


@dataclass(frozen=True, kw_only=True)
class ResolvedStack:
    """A stack on a partition.

    Attributes:
        source: the site's file that says all this.
        kind: ``provisioned``, ``spack``, ``container`` or ``modules``.
        version: of the MPI that is there, else the declared one.
        launch: how ranks are started, None if that is impossible; ``launch_fault`` says why.
        prepend: folders to put in front of path variables.
        modules: to load; of a stack from wheels none, ``settings`` and ``prepend`` put it in use.
        prefix: where the MPI should lie; empty if only the modules know.
        library: the MPI library, a path or a soname; empty if only the loader knows.
        folders: where its programs are.
        python: interpreter with mpi4py; empty if it has none.
        net_paths: each rail of the partition's fabrics, and all rails of each together.
        absent, stale: why there is nothing to use, or not what the site asks for; ``mend`` is the
            command for that.
        assumed: a stack of Spack counts as built (a dry run).
    """

    site: str
    source: str
    spec: StackSpec
    partition: PartitionSpec
    fabrics: tuple[FabricSpec, ...]
    kind: str
    version: str
    launcher: str
    launch: Launch | None = None
    launch_fault: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    prepend: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    module_paths: tuple[str, ...] = ()
    modules_init: str | None = None
    prefix: str = ""
    library: str = ""
    folders: tuple[Path, ...] = ()
    python: str = ""
    net_paths: tuple[NetPath, ...] = ()
    absent: str = ""
    stale: str = ""
    mend: str = ""
    container: Container | None = None
    built: Built | None = None
    root: Path = Path()
    assumed: bool = False

    @property
    def nowhere(self) -> bool:
        """It is absent and so is its MPI: another's would answer in its place."""
        return bool(self.absent) and not (self.prefix and Path(self.prefix).is_dir())

    @property
    def name(self) -> str:
        """The name in the site file."""
        return self.spec.name

    @property
    def family(self) -> str:
        """The MPI's family."""
        return self.spec.family

    def launch_by(self, launcher: str) -> Launch:
        """Return how ``launcher`` starts the ranks.

        Raises:
            UnavailableError: Intel MPI under srun without libpmi2.
        """
        return plan_launch(self.family, launcher, pmi=self.spec.pmi, stated=self.spec.environment)

    @property
    def options(self) -> tuple[str, ...]:
        """All options of the launcher, in the order in which it reads them; the site's last."""
        ours = self.launch.options if self.launch else ()
        return (*ours, *option_words(self.spec.launcher_options))

    @property
    def access(self) -> tuple[str, ...]:
        """The partition's options for the scheduler, as words."""
        return tuple(option_words(self.partition.access))

    @property
    def exported(self) -> dict[str, str]:
        """What stands behind ``export NAME=`` where the stack's modules are loaded."""
        if self.kind == "provisioned" and self.spec.modules:
            return shell_values(self.spec.environment, {})
        return shell_values(self.settings, self.prepend)

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """The first file of each witness's name, so that every suite is looked into."""
        found = []
        for name in _WITNESSES:
            places = (path for at in self.folders for path in sorted(at.glob(f"**/{name}")))
            found += [str(path) for path in places if path.is_file()][:1]
        return tuple(found)

    def loaded_library(self, suite: str) -> str | None:
        """Return the MPI library that programs of ``suite`` must load; None if nobody proved one.

        A suite that the site declares beside a build is the site's own; beside an MPI from wheels
        it loads that MPI, or it measures another one.
        """
        is_the_sites = suite in self.spec.suites and self.kind != "provisioned"
        return None if is_the_sites or not self.library.startswith("/") else self.library

    def net_path(self, spec: FabricSpec, rails: Sequence[str], *, launcher: str = "") -> NetPath:
        """Return how this stack is told to take ``rails`` of a fabric, or why it cannot.

        ``launcher``: another than the stack's.
        """
        protocol, launcher = protocol_of(spec), launcher or self.launcher
        wanted = stated_transport(self.family, self.spec.transport, spec.transport)
        path = NetPath(fabric=spec.name, protocol=protocol, rails=tuple(rails))
        if len(rails) > 1 and self.spec.one_rail:
            return replace(path, refusal=f"left out by the site: {self.spec.one_rail}")
        refusal = rails_refusal(
            self.family,
            protocol,
            len(rails),
            transport=wanted,
            launcher=launcher,
            pmi1=self.spec.speaks_pmi1,
        )
        try:
            environment = path_environment(
                self.family,
                protocol,
                rails,
                version=self.version,
                transport=wanted,
                launcher=launcher,
                oversubscribed=self.partition.oversubscribed,
            )
        except FabricproofError as error:
            return replace(path, refusal=refusal or str(error))
        transport = wanted or default_transport(
            self.family, protocol, launcher=launcher, rails=len(rails)
        )
        return replace(path, transport=transport, environment=environment, refusal=refusal or "")

    def find(self, suite: str, program: str) -> Located:
        """Return how ``program`` of a suite with MPI is called, as provisioned, built, declared."""
        folder = self.spec.suites.get(suite)
        if self.kind == "provisioned" and not self._has_own(suite):
            return locate(find_wheels(self.spec.installed_as), self.root, suite, program)
        name = {"imb": imb_binary(program), "hpcc": "hpcc"}.get(suite, program)
        if name is None:
            return Located(argv=None, reason=f"no IMB binary has {program}")
        if folder is None:
            found = self._built_program(suite, name)
        elif folder == "PATH" or self.container is not None:
            # inside.sh looks into the image
            found = Located(argv=(name if folder == "PATH" else str(Path(folder) / name),))
        else:
            found = Located(argv=(str(_search(Path(folder), name)),))
        if found.argv is None or suite != "imb":
            return found
        return replace(found, argv=(*found.argv, printed_name(program)))

    def _has_own(self, suite: str) -> bool:
        """Tell whether the site names a folder of its own for a suite of a stack from wheels.

        One build of a suite against the MPI ABI (MPI 5.0) may serve several of them.
        """
        return self.spec.suites.get(suite, "provisioned") != "provisioned"

    def _built_program(self, suite: str, name: str) -> Located:
        """Return where Spack put a program file.

        What the build was told to leave out is absent; what it should have left there and did
        not, or what was removed since, is lost.
        """
        if self.kind != "spack":
            bring = "; stacks that have it: fabricproof stack install (wheels), stack build (Spack)"
            bring = bring if suite in SPACK_SUITES else ""
            return Located(argv=None, reason=f"stack {self.name} has no suite {suite}{bring}")
        if self.absent and suite in SPACK_SUITES:
            reason = f"{self.absent.replace('it', self.name, 1)}: {self.mend}"
            unbuilt = Located(argv=None, reason=reason, lost=True)
            return Located(argv=(name,)) if self.assumed else unbuilt
        package = self.built.programs.get(suite) if self.built is not None else None
        if package is None:
            return Located(argv=None, reason=f"stack {self.name} is built without {suite}")
        path = _search(package.folder_of(suite), name)
        if path.is_file():
            return Located(argv=(str(path),))
        lost = Located(argv=None, reason=f"{path} of {self.name} is gone: {self.mend}", lost=True)
        left_out = f"~{name.removeprefix('IMB-').lower()}" in package.spec
        if not left_out and not name.endswith(("_persistent", "-GPU")):
            return lost
        reason = f"stack {self.name} is built without {name}: {package.spec}"
        return Located(argv=None, reason=reason)

    def identity(self, suite: str) -> StackIdentity:
        """Return the identity of the stack as it stands now, with the package of ``suite``."""
        if self.kind == "spack":
            return self._built_identity(suite)
        if self.kind == "provisioned":
            return self._wheel_identity(suite)
        declared = self.spec.model_dump(
            include={"family", "version", "modules", "suites", "environment"}
        )
        image: tuple[str, ...] = ()
        if self.spec.container is not None:
            image = ("in", *_image_identity(self.spec.container.image))
            box = self.spec.container
            declared["container"] = [*image, box.runtime, *box.options]
        return StackIdentity(
            origin="declared",
            digest=digest_of(json.loads(json.dumps(declared))),
            mpi=" ".join([f"{self.family}@{self.version}", *self.spec.modules, *image]),
            program=self.spec.suites.get(suite, ""),
            compiler=UNSAID,
            target=UNSAID,
        )

    def _built_identity(self, suite: str) -> StackIdentity:
        built = self.built
        package = built.programs.get(suite) if built else None
        return StackIdentity(
            origin="spack",
            digest=built.lock_digest if built else "",
            mpi=built.mpi.spec if built else "not built",
            program=package.spec if package else "",
            compiler=built.compiler if built else "",
            target=built.target if built else "",
            library=file_digest(Path(built.library))[:SHOWN_DIGITS] if built else "",
        )

    def _wheel_identity(self, suite: str) -> StackIdentity:
        pins = installed_pins(self.root / self.spec.installed_as)
        packages = [str(each) for each in pins.get("wheels", [])]
        mpi = [each for each in packages if not each.startswith("mpi4py")]
        home = packages[-1:]
        if suite == "imb":
            other = installed_pins(self.root / IMB_HOME).get("wheels", [])
            home = [str(each) for each in other if "mpi4py" not in str(each)]
        found = StackIdentity(
            origin="wheels",
            digest=digest_of(pins) if pins else "",
            mpi=" ".join(mpi) or find_wheels(self.spec.installed_as).label,
            program=" ".join(home),
            compiler="as the wheels were built",
            target=os.uname().machine,
        )
        if not self._has_own(suite):
            return found
        folder = self.spec.suites[suite]
        digest = digest_of([found.digest, folder]) if found.digest else ""
        return replace(found, digest=digest, program=folder, compiler=UNSAID)


def resolve(
    site: Site,
    partition: PartitionSpec,
    stack: StackSpec,
    *,
    root: Path | None = None,
    assumed: bool = False,
) -> ResolvedStack:
    """Return ``stack`` as it is on ``partition``; nothing is run.

    ``root`` is of all stacks, found if None; ``assumed`` takes a stack of Spack that is not built
    as if it were (a dry run).
    """
    root = root or stacks_root()
    launcher = stack.launcher or partition.launcher
    kinds = (("container", stack.container), ("provisioned", stack.provisioned))
    kind = next((word for word, is_it in (*kinds, ("spack", stack.spack)) if is_it), "modules")
    found = ResolvedStack(
        site=site.name,
        source=str(site.folder / "site.toml"),
        spec=stack,
        partition=partition,
        fabrics=tuple(site.fabric_spec(name) for name in partition.fabrics),
        kind=kind,
        version=stack.version,
        launcher=launcher,
        settings=dict(stack.environment),
        modules=tuple(stack.modules) if site.spec.modules_system != "nomod" else (),
        module_paths=tuple(site.spec.module_paths),
        modules_init=site.spec.modules_init,
        container=container_of(stack),
        root=root,
        assumed=assumed,
    )
    try:
        found = replace(found, launch=found.launch_by(launcher))
    except FabricproofError as error:
        found = replace(found, launch_fault=str(error))
    if kind == "provisioned":
        found = _with_wheels(found)
    elif kind == "spack":
        found = _with_build(found, layout_for(site.name, site.folder, root), site)
    elif kind == "modules":
        folders = tuple(Path(folder) for folder in stack.suites.values() if folder != "PATH")
        found = replace(found, folders=folders)
    paths = []
    for spec in found.fabrics:
        rails = tuple(rail.interface for rail in spec.rails)
        chosen = [(rail,) for rail in rails] + ([rails] if len(rails) > 1 else [])
        paths += [found.net_path(spec, each) for each in chosen]
    return replace(found, net_paths=tuple(paths))


def container_of(stack: StackSpec) -> Container | None:
    """Return how a program gets into the stack's image; None if it has none."""
    spec = stack.container
    if spec is None:
        return None
    options = option_words(spec.options)
    return enter(spec.runtime, spec.image, binds=spec.binds, options=options)


def _with_wheels(found: ResolvedStack) -> ResolvedStack:
    name = found.spec.installed_as
    if name not in wheel_stacks():
        known = ", ".join(wheel_stacks())
        return replace(
            found,
            absent=f"{name} is none of the stacks that can be provisioned: {known}",
            mend="name one of them, or remove provisioned = true from site.toml",
        )
    entry, prefix = find_wheels(name), found.root / name
    environment = stack_environment(entry, prefix)
    state = observe(entry, found.root).state
    return replace(
        found,
        settings={**environment.settings, **found.settings},
        prepend=environment.prepend,
        modules=(),
        module_paths=(),
        prefix="" if entry.is_system else str(prefix),
        library=entry.library if entry.is_system else str(prefix / entry.library),
        folders=(prefix / "bin",),
        python=str(stack_python(prefix)),
        absent="it is not installed" if state is InstallState.ABSENT else "",
        stale="it was installed with other pins" if state is InstallState.STALE else "",
        mend=f"fabricproof stack install {name}",
    )


def _with_build(found: ResolvedStack, layout: SpackLayout, site: Site) -> ResolvedStack:
    """Return ``found`` with what Spack built, loaded by one module that is named after the stack.

    Without modules the environment is what Spack sets to load it; the site's variables win.
    """
    found = replace(found, mend=f"fabricproof stack build {found.name}")
    uses_modules = site.spec.modules_system != "nomod"
    try:
        built = read_built(layout.built(found.name))
    except ConfigError as error:
        return replace(found, absent=str(error))
    if built is None:
        found = _before_build(replace(found, absent="it is not built"), layout)
        later = (module_name(found.name),) if found.assumed and uses_modules else ()
        return replace(found, modules=(*found.modules, *later))
    folders = tuple(Path(package.prefix) for package in built.programs.values())
    gone = [folder for folder in (Path(built.mpi.prefix), *folders) if not folder.is_dir()]
    found = replace(
        found,
        built=built,
        version=built.mpi.version,
        prefix=built.mpi.prefix,
        library=built.library,
        folders=folders,
        absent=f"it was built, but {gone[0]} is gone" if gone else "",
    )
    if gone:
        # Spack's database still has what somebody removed by hand.
        found = replace(found, mend=f"fabricproof stack remove {found.name} && {found.mend}")
    if uses_modules:
        return replace(
            found,
            modules=(*found.modules, built.module),
            module_paths=(*found.module_paths, built.module_path),
        )
    settings = {**built.environment.settings, **found.settings}
    return replace(found, settings=settings, prepend=built.environment.prepend)


def with_build_checked(found: ResolvedStack, site: Site) -> ResolvedStack:
    """Return a stack of Spack with why it does not stand as locked; all its inputs are read."""
    if found.kind != "spack":
        return found
    build = f"fabricproof stack build {found.name}"
    try:
        environment = compose(found.spec, layout_for(site.name, site.folder, found.root))
        reason = why_not_built(environment) or ""
    except ConfigError as error:
        mend = error.next_step or "correct that file"
        mend = mend if build in mend else f"{mend}, then {build}"
        return replace(found, absent=f"{error.source}: {error.problem}", prefix="", mend=mend)
    if found.absent:
        return found
    if reason.endswith(" is gone"):
        mend = f"fabricproof stack remove {found.name} && {build}"
        return replace(found, absent=f"it was built, but {reason}", mend=mend)
    return replace(found, stale=reason)


def _before_build(found: ResolvedStack, layout: SpackLayout) -> ResolvedStack:
    """Return ``found`` with the prefix of the site's own MPI: it can be looked at already."""
    import yaml  # noqa: PLC0415 - needed here only

    try:
        source = text_of(layout.site_folder / "spack" / "packages.yaml")
        external = yaml.safe_load(source)["packages"][PACKAGE_OF[found.family]]["externals"][0]
        prefix = str(external["prefix"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, IndexError):
        return found
    return replace(found, prefix=prefix, prepend={"PATH": f"{prefix}/bin"})


def printed_name(program: str) -> str:
    """Return the name under which a benchmark prints its table: ``P2P/PingPong`` is PingPong."""
    return program.rpartition("/")[2]


def _search(folder: Path, name: str) -> Path:
    """Return ``name`` in ``folder`` or in the sub-folders that OSU's install has."""
    return next(
        (each for each in sorted(folder.glob(f"**/{name}")) if each.is_file()), folder / name
    )


def binary_digest(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the SHA-256 of the program that a command runs, hexadecimal; empty if unknown.

    Of a port of mpi4py it is the script.  A command that begins with a script of ours names its
    program in its environment.  One found by PATH may be another on each node.
    """
    words = [Path(each) for each in command]
    scripts = [each for each in words if each.suffix == ".py"]
    named = Path(environment.get("FABRICPROOF_PROGRAM", words[0])) if words else Path()
    program = scripts[-1] if scripts else named
    return file_digest(program) if program.is_absolute() else ""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as it stands now, hexadecimal; empty if it is gone.

    A site's own MPI may be updated in its place, and keep its name and its version.
    """
    try:
        facts = path.stat()
        return _digest(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    except OSError:
        return ""


@functools.cache
def _digest(path: Path, *_state: int) -> str:
    """Return the digest of ``path``, read once for each state that it was seen in."""
    return sha256_of(path)


def _image_identity(image: str) -> tuple[str, ...]:
    """Return which image it is: its path with the SHA-256 of its file, or the reference alone."""
    path = image_file(image)
    digest = file_digest(path) if path is not None and path.is_file() else ""
    return (image, f"sha256:{digest}") if digest else (image,)
