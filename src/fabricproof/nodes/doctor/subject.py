"""What is examined: a stack of a site, with everything the site says of it.  Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.core.records import text_of
from fabricproof.site import FabricSpec, PartitionSpec, Site, StackSpec
from fabricproof.stacks.catalog import load_catalog, stacks_root
from fabricproof.stacks.container import Container, enter
from fabricproof.stacks.environment import option_words, stack_environment, stack_python
from fabricproof.stacks.family import (
    default_transport,
    path_environment,
    rails_refusal,
    stated_transport,
)
from fabricproof.stacks.install import InstallState, observe
from fabricproof.stacks.launch import Launch, plan_launch
from fabricproof.stacks.spack import (
    PACKAGE_OF,
    Built,
    SpackLayout,
    layout_for,
    read_built,
    without_modules,
)

#: programs that start MPI and do next to nothing, best first; any of them tells what is loaded.
_WITNESSES = ("osu_init", "osu_hello", "IMB-MPI1")


@dataclass(frozen=True, kw_only=True)
class NetPath:
    """One path of the site's fabrics, as this stack would be told to take it.

    Attributes:
        refusal: why this stack cannot take it; empty where it can.
    """

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
class Subject:
    """A stack on a partition.

    Attributes:
        source: the site's file that says all this.
        kind: ``provisioned``, ``spack``, ``container`` or ``modules``.
        launch: how ranks are started, None where that is impossible.
        options: all of the launcher's, in the order in which it reads them.
        settings: variables of the stack and of the site.
        modules_init: the file that defines ``module``, None where it is in a usual place.
        prefix: where the MPI should lie; empty where only the modules know.
        library: the MPI library, a path or a soname; empty where only the loader knows.
        programs: files of the stack to look into.
        python: interpreter with mpi4py, for the stacks that have one.
        absent: why there is nothing to examine; empty where there is.
        stale: why what is there is not what the site asks for.
        mend: what puts absent and stale right.
        container: the image that programs and MPI are in; None where they are on the node.
    """

    site: str
    source: str
    stack: str
    family: str
    version: str
    kind: str
    partition: str
    scheduler: str
    launcher: str
    launch: Launch | None = None
    launch_fault: str = ""
    options: tuple[str, ...] = ()
    access: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    prepend: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    module_paths: tuple[str, ...] = ()
    modules_init: str | None = None
    prefix: str = ""
    library: str = ""
    programs: tuple[str, ...] = ()
    python: str = ""
    net_paths: tuple[NetPath, ...] = ()
    fabrics: tuple[FabricSpec, ...] = ()
    absent: str = ""
    stale: str = ""
    mend: str = ""
    same_node: bool = False
    declared: PartitionSpec | None = None
    container: Container | None = None

    @property
    def uses_slurm(self) -> bool:
        """Whether jobs go through Slurm."""
        return self.scheduler in {"slurm", "squeue"}

    @property
    def rails(self) -> tuple[str, ...]:
        """The rails of all fabrics."""
        return tuple(rail.interface for spec in self.fabrics for rail in spec.rails)


def make_subject(
    site: Site, stack: StackSpec, partition: PartitionSpec, *, root: Path | None = None
) -> Subject:
    """Return what there is to examine of ``stack`` on ``partition``."""
    launcher = stack.launcher or partition.launcher
    launch, fault = _plan(stack.family, launcher)
    return Subject(
        site=site.name,
        source=str(site.folder / "site.toml"),
        stack=stack.name,
        family=stack.family,
        version=stack.version,
        kind=_kind(stack),
        container=container_of(stack),
        partition=partition.name,
        scheduler=partition.scheduler,
        launcher=launcher,
        launch=launch,
        launch_fault=fault,
        options=(*(launch.options if launch else ()), *option_words(stack.launcher_options)),
        access=tuple(option_words(partition.access)),
        net_paths=_net_paths(site, stack, partition, launcher),
        fabrics=tuple(site.fabric_spec(name) for name in partition.fabrics),
        same_node=partition.same_node,
        declared=partition,
        modules_init=site.spec.modules_init,
        **_whereabouts(site, stack, root or stacks_root()),  # type: ignore[arg-type]
    )


def _kind(stack: StackSpec) -> str:
    if stack.container is not None:
        return "container"
    return "provisioned" if stack.provisioned else "spack" if stack.spack else "modules"


def container_of(stack: StackSpec) -> Container | None:
    """Return how a program gets into the stack's image; None where it has none."""
    spec = stack.container
    if spec is None:
        return None
    options = option_words(spec.options)
    return enter(spec.runtime, spec.image, binds=spec.binds, options=options)


def _plan(family: str, launcher: str) -> tuple[Launch | None, str]:
    try:
        return plan_launch(family, launcher), ""
    except FabricproofError as error:
        return None, str(error)


def _whereabouts(site: Site, stack: StackSpec, root: Path) -> dict[str, object]:
    if stack.provisioned:
        return _provisioned(stack, root)
    if stack.spack:
        return _spack(site, stack, layout_for(site.name, site.folder, root))
    outside = {} if stack.container else stack.suites
    folders = [Path(folder) for folder in outside.values() if folder != "PATH"]
    return {
        "settings": dict(stack.environment),
        "modules": tuple(stack.modules) if site.spec.modules_system != "nomod" else (),
        "module_paths": tuple(site.spec.module_paths),
        "programs": _find_programs(folders),
    }


def _provisioned(stack: StackSpec, root: Path) -> dict[str, object]:
    catalog = load_catalog()
    name = stack.installed_as
    mend = f"fabricproof stack install {name}"
    if name not in catalog.stacks:
        known = ", ".join(catalog.stacks)
        return {
            "absent": f"{name} is none of the stacks that can be provisioned: {known}",
            "mend": "name one of them, or remove provisioned = true from site.toml",
        }
    entry = catalog.stacks[name]
    prefix = root / name
    environment = stack_environment(entry, prefix)
    state = observe(catalog, entry, root).state
    return {
        "settings": {**environment.settings, **stack.environment},
        "prepend": environment.prepend,
        "prefix": "" if entry.is_system else str(prefix),
        "library": entry.library if entry.is_system else str(prefix / entry.library),
        "python": str(stack_python(prefix)),
        "programs": _find_programs([prefix / "bin"]),
        "absent": "it is not installed" if state is InstallState.ABSENT else "",
        "stale": "it was installed with other pins" if state is InstallState.STALE else "",
        "mend": mend,
    }


def _spack(site: Site, stack: StackSpec, layout: SpackLayout) -> dict[str, object]:
    mend = f"fabricproof stack build {stack.name}"
    try:
        built = read_built(layout.built(stack.name))
    except FabricproofError as error:
        return {"absent": str(error), "mend": mend}
    if built is None:
        return {
            "absent": f"it is not built (no {layout.built(stack.name)})",
            "mend": mend,
            **_declared(stack, layout),
        }
    folders = [Path(package.prefix) for package in built.programs.values()]
    gone = [folder for folder in (Path(built.mpi.prefix), *folders) if not folder.is_dir()]
    try:
        loaded = _loaded(site, stack, built)
    except FabricproofError as error:
        return {"absent": str(error), "mend": error.next_step or mend}
    return {
        **loaded,
        "prefix": built.mpi.prefix,
        "library": built.library,
        "programs": _find_programs(folders),
        "absent": f"it was built, but {gone[0]} is gone" if gone else "",
        "stale": _staleness(stack, built, layout),
        "mend": mend,
    }


def _loaded(site: Site, stack: StackSpec, built: Built) -> dict[str, object]:
    """Return how the checks load what Spack built, as ``rfm.stacks`` does."""
    if site.spec.modules_system == "nomod":
        environment = without_modules(built, stack.family, str(site.folder / "site.toml"))
        settings = {**environment.settings, **stack.environment}
        return {"settings": settings, "prepend": environment.prepend}
    return {
        "settings": dict(stack.environment),
        # The module, as the checks load it: an external MPI may need more than its prefix.
        "modules": (*stack.modules, built.module),
        "module_paths": (*site.spec.module_paths, built.module_path),
    }


def _declared(stack: StackSpec, layout: SpackLayout) -> dict[str, object]:
    """Return where the site says its own MPI lies, so that it can be looked at before a build."""
    import yaml  # noqa: PLC0415 - needed here only

    source = layout.site_folder / "spack" / "packages.yaml"
    try:
        packages = yaml.safe_load(text_of(source))["packages"]
        prefix = str(packages[PACKAGE_OF[stack.family]]["externals"][0]["prefix"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, IndexError):
        return {}
    return {"prefix": prefix, "prepend": {"PATH": f"{prefix}/bin"}}


def _staleness(stack: StackSpec, built: Built, layout: SpackLayout) -> str:
    """Return why what was built is not what the site asks for now."""
    from fabricproof.stacks.spack import is_of_lock, kept_lock  # noqa: PLC0415 - needed here only

    if built.environment != stack.spack:
        return f"it was built from {built.environment}, the site says {stack.spack}"
    lock = kept_lock(layout, stack.name)
    if not lock.is_file():
        return f"the site keeps no lock of it ({lock})"
    same = is_of_lock(built.lock_digest, lock)
    return "" if same else "the site's lock is another than it was built from"


def _find_programs(folders: list[Path]) -> tuple[str, ...]:
    """Return the first file of each witness's name, so that every suite is looked into."""
    found = []
    for name in _WITNESSES:
        places = (path for folder in folders for path in sorted(folder.glob(f"**/{name}")))
        found += [str(path) for path in places if path.is_file()][:1]
    return tuple(found)


def _net_paths(
    site: Site, stack: StackSpec, partition: PartitionSpec, launcher: str
) -> tuple[NetPath, ...]:
    net_paths = []
    for name in partition.fabrics:
        spec = site.fabric_spec(name)
        rails = tuple(rail.interface for rail in spec.rails)
        protocol = "tcp" if spec.link is None else site.fabric(name).framing.name
        chosen = [(rail,) for rail in rails] + ([rails] if len(rails) > 1 else [])
        net_paths += [
            _net_path(spec, protocol, stack, partition, launcher, each) for each in chosen
        ]
    return tuple(net_paths)


def _net_path(
    spec: FabricSpec,
    protocol: str,
    stack: StackSpec,
    partition: PartitionSpec,
    launcher: str,
    rails: tuple[str, ...],
) -> NetPath:
    facts = {"fabric": spec.name, "protocol": protocol, "rails": rails}
    try:
        wanted = stated_transport(stack.family, stack.transport, spec.transport)
        transport = wanted or default_transport(
            stack.family, protocol, launcher=launcher, rails=len(rails)
        )
        refusal = rails_refusal(
            stack.family,
            protocol,
            len(rails),
            transport=wanted,
            launcher=launcher,
            pmi1=stack.speaks_pmi1,
        )
        environment = path_environment(
            stack.family,
            protocol,
            rails,
            version=stack.version,
            transport=wanted,
            launcher=launcher,
            oversubscribed=partition.oversubscribed,
        )
    except FabricproofError as error:
        return NetPath(**facts, refusal=str(error))  # type: ignore[arg-type]
    return NetPath(
        **facts,  # type: ignore[arg-type]
        transport=transport,
        environment=environment,
        refusal=refusal or "",
    )
