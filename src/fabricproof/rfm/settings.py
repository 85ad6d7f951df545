"""Turn a site into ReFrame's configuration, or extend the configuration that a site has."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import ENTRY_POINT, ROOT_VARIABLE, check_folders, project_root
from fabricproof.job.job_end import RECORD_END
from fabricproof.job.run import knows_exit_statuses
from fabricproof.rfm.current import SITE_KEY, tell_at_the_end
from fabricproof.site import PartitionSpec, Site, StackSpec, check_access, load_site
from fabricproof.stacks.environment import defines_module, shell_word, stacks_root
from fabricproof.stacks.spack import layout_for
from fabricproof.stacks.stack import resolve
from fabricproof.stacks.wheels import MODULEFILES, check_provisioned

#: one fixed column list, so that a new quantity never renames an old perflog (reframe-traps)
PERFLOG_COLUMNS = tuple(
    f"%({name})s" if name == "version" else f"%(check_{name})s"
    for name in (
        *("job_completion_time", "run_id", "version", "system", "partition", "environ"),
        *("stack_version", "unique_name", "fabric", "suite", "program", "jobid", "job_nodelist"),
        *("result", "perf_var", "perf_value", "perf_unit", "perf_ref"),
        *("perf_lower_thres", "perf_upper_thres", "environment_digest", "stack_digest"),
        *("stack_mpi", "stack_program", "stack_compiler", "stack_target"),
    )
)

#: options of ``general`` that no ``[reframe]`` table may set
_GUARDS = {"trap_job_errors", "check_search_path", "check_search_recursive"}


def reframe_configuration(site: Site) -> dict[str, Any]:
    """Return ReFrame's site configuration for ``site``.

    A ``[reframe]`` table of the site file adds raw options to ``general``; it cannot switch off
    a guard.

    Raises:
        ConfigError: it tries to, or a stack is to be one of the catalogue's and is none.
    """
    check_access(site)
    check_provisioned(site)
    if refused := _GUARDS & site.reframe.keys():
        raise ConfigError(
            f"[reframe] may not set {', '.join(sorted(refused))}",
            source=str(site.folder / "site.toml"),
            expected="options of ReFrame's general section that are no guard",
        )
    general = {
        "purge_environment": False,
        "resolve_module_conflicts": False,
        "save_log_files": True,
        "poll_rate_max": 4.0,
        "poll_rate_min": 1.0,
        **site.reframe,
        "check_search_path": [str(folder) for folder in check_folders(project_root())],
        "check_search_recursive": True,
        "trap_job_errors": knows_exit_statuses(site),
    }
    system = {
        "name": site.name,
        "descr": site.spec.description,
        "hostnames": [".*"],
        "modules_system": site.spec.modules_system,
        "partitions": [_partition(site, each) for each in site.partitions],
    }
    return {
        "systems": [system],
        "environments": [_environment(site, stack) for stack in site.stacks],
        "general": [general],
        "logging": [_logging()],
        "storage": [{"enable": True}],
    }


#: what ``trap_job_errors`` would put into a job's script
END_AT_ERRORS = "trap 'exit $?' ERR"


def extend(site_configuration: Mapping[str, Any], site: str) -> dict[str, Any]:
    """Return a site's own ReFrame configuration with what our checks need; nothing is taken away.

    A partition that has the name of one of the site folder gets its fabrics as features
    (``fabric-NAME``), its stacks as environments and the line by which a job says how it ended.
    ReFrame's partition says how jobs are submitted and started, whatever ``site.toml`` says.
    After a run (``-r``) that our checks took part in, their verdicts follow ReFrame's last line,
    and the exit status is theirs.

    Args:
        site_configuration: as in ReFrame's settings file.
        site: name of the site folder, or its path.

    Raises:
        ConfigError: no partition of any system has such a name, or the site file is wrong.
        InputMissingError: there is no such site.
    """
    ours = load_site(site)
    check_provisioned(ours)
    project = ours.folder.resolve().parents[1]
    if (project / ENTRY_POINT).is_file():
        os.environ.setdefault(ROOT_VARIABLE, str(project))
    configuration = copy.deepcopy(dict(site_configuration))
    specs = {each.name: each for each in ours.partitions}
    systems = configuration.get("systems", [])
    systems = [each for each in systems if each["name"] == ours.name] or systems
    theirs = [(system, each) for system in systems for each in system.get("partitions", [])]
    extended = [(system, each) for system, each in theirs if each["name"] in specs]
    names = sorted({each["name"] for _, each in theirs})
    lacking = sorted(set(specs) - set(names))
    if not extended:
        raise ConfigError(
            f"no partition of ReFrame's settings is one of site {ours.name}",
            source=str(ours.folder / "site.toml"),
            expected=f"one of: {', '.join(specs)}",
            got=", ".join(names) or "none",
        )
    if lacking:
        sys.stderr.write(
            f"fabricproof: not measured: {', '.join(lacking)} of {ours.folder / 'site.toml'}: "
            f"no partition of ReFrame's settings has that name; there are: {', '.join(names)}\n"
        )
    for system, partition in extended:
        spec = specs[partition["name"]]
        stacks = [ours.stack(name) for name in spec.stacks]
        modules = _finds_modules(ours, system.get("modules_system", "nomod"))
        if not modules and (need := [each.name for each in stacks if each.modules or each.spack]):
            sys.stderr.write(
                f"fabricproof: the modules of {', '.join(need)} are not loaded: ReFrame's system "
                f"{system['name']} has no modules_system\n"
            )
        partition["prepare_cmds"] = [RECORD_END, *modules, *partition.get("prepare_cmds", [])]
        partition["extras"] = {**partition.get("extras", {}), **_extras(ours)}
        for key, more in (("features", _features(spec)), ("environs", spec.stacks)):
            partition[key] = list(dict.fromkeys([*partition.get(key, []), *more]))
        for stack in stacks:
            _add_environment(configuration, ours, stack, system["name"], partition["name"])
    # ReFrame itself asks about each module, unless told not to resolve conflicts.
    paths = [*_module_paths(ours), os.environ.get("MODULEPATH", "")]
    os.environ["MODULEPATH"] = os.pathsep.join(dict.fromkeys(filter(None, paths)))
    for logging in configuration.get("logging", []):
        # Without a line for each number our columns say nothing.
        if logging.get("perflog_multiline"):
            logging["handlers_perflog"] = [*logging.get("handlers_perflog", []), _perflog()]
    tell_at_the_end(ours)
    return configuration


def _add_environment(
    configuration: dict[str, Any], site: Site, stack: StackSpec, system: str, partition: str
) -> None:
    """Add ``stack`` as an environment; one of that name there stays, with our features."""
    environments = configuration.setdefault("environments", [])
    mine = {"*", system, f"{system}:{partition}"}
    there = [
        each
        for each in environments
        if each["name"] == stack.name and mine & {*each.get("target_systems", ["*"])}
    ]
    added = _environment(site, stack)
    for each in there:
        each["features"] = list(dict.fromkeys([*each.get("features", []), *added["features"]]))
    if not there:
        environments.append({**added, "target_systems": [f"{system}:{partition}"]})


def _partition(site: Site, partition: PartitionSpec) -> dict[str, Any]:
    stated = {
        "name": partition.name,
        "scheduler": partition.scheduler,
        "launcher": partition.launcher,
        "access": list(partition.access),
        "environs": list(partition.stacks),
        "max_jobs": partition.max_jobs,
        "features": _features(partition),
        "prepare_cmds": [
            RECORD_END,
            *([] if knows_exit_statuses(site) else [END_AT_ERRORS]),
            *_finds_modules(site, site.spec.modules_system),
        ],
        "sched_options": {"sched_access_in_submit": False},
        "extras": _extras(site),
    }
    return _with_own(stated, partition.reframe)


def _with_own(ours: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return ours with the site's own keys of ReFrame: lists follow ours, ours win in tables."""
    merged = {**ours}
    for key, value in own.items():
        if isinstance(ours.get(key), list):
            merged[key] = [*ours[key], *value]
        else:
            merged[key] = {**value, **ours[key]} if isinstance(ours.get(key), dict) else value
    return merged


def _extras(site: Site) -> dict[str, str]:
    return {SITE_KEY: str(site.folder.resolve())}


def _features(partition: PartitionSpec) -> list[str]:
    return sorted({f"fabric-{name}" for name in partition.fabrics})


def _finds_modules(site: Site, modules_system: str) -> list[str]:
    """Return the lines by which a job finds the site's modules, and those that we write for it."""
    if modules_system == "nomod":
        return []
    uses = [f"module use {shell_word(path)}" for path in _module_paths(site)]
    return [defines_module(site.spec.modules_init), *uses]


def _module_paths(site: Site) -> list[str]:
    paths = list(site.spec.module_paths)
    if any(stack.provisioned for stack in site.stacks):
        paths.append(str(stacks_root() / MODULEFILES))
    if any(stack.spack for stack in site.stacks):
        paths.append(str(layout_for(site.name, site.folder).modulefiles))
    return paths


def _environment(site: Site, stack: StackSpec) -> dict[str, Any]:
    # The build fixture runs in this environment too: the module of a stack that Spack is still to
    # build cannot be loaded here.  The checks load it, and set the site's variables after it.
    # ReFrame writes modules and values into the job's script as they are.
    ours = stack.spack is None
    exported = resolve(site, site.partitions[0], stack).exported if ours else {}
    stated = {
        "name": stack.name,
        "modules": [shell_word(each) for each in stack.modules] if ours else [],
        "features": ["mpi", stack.family],
        "env_vars": [list(each) for each in exported.items()],
        "cc": "mpicc",
        "cxx": "mpicxx",
        "ftn": "mpifort",
    }
    return _with_own(stated, stack.reframe)


def _logging() -> dict[str, Any]:
    # Each line of the log reads every attribute of its test: a quarter of a dry run's time, which
    # submits nothing that could need a log.
    dry = "--dry-run" in sys.argv
    log = {
        "type": "file",
        "level": "info" if dry else "debug2",
        "name": os.environ.get("FABRICPROOF_REFRAME_LOG", "reframe.log"),
        "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
        "append": False,
    }
    screen = {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}
    return {
        "level": "info" if dry else "debug",
        "perflog_multiline": True,
        "handlers$": [screen],
        "handlers": [log],
        "handlers_perflog": [_perflog()],
    }


def _perflog() -> dict[str, Any]:
    return {
        "type": "filelog",
        "prefix": "%(check_system)s/%(check_partition)s",
        "basedir": str(perflog_root()),
        "level": "info",
        "format": "|".join(PERFLOG_COLUMNS),
        "append": True,
        "locking_enable": True,
    }


def perflog_root() -> Path:
    """Return the folder that perflogs go to."""
    return Path(os.environ.get("FABRICPROOF_PERFLOGS", project_root() / "perflogs"))
