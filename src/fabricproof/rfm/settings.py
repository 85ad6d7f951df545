"""Turn a site into ReFrame's configuration, with the guards that hold for every check."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ConfigError
from fabricproof.core.project import check_folders, project_root
from fabricproof.job.job_end import RECORD_END
from fabricproof.site import PartitionSpec, Site, StackSpec, check_access
from fabricproof.stacks.environment import (
    defines_module,
    shell_word,
    stacks_root,
)
from fabricproof.stacks.spack import layout_for
from fabricproof.stacks.stack import resolve
from fabricproof.stacks.wheels import MODULEFILES, check_provisioned

#: one fixed column list, so that a new quantity never renames an old perflog (reframe-traps)
PERFLOG_COLUMNS = (
    "%(check_job_completion_time)s",
    "%(check_run_id)s",
    "%(version)s",
    "%(check_system)s",
    "%(check_partition)s",
    "%(check_environ)s",
    "%(check_stack_version)s",
    "%(check_unique_name)s",
    "%(check_fabric)s",
    "%(check_suite)s",
    "%(check_program)s",
    "%(check_jobid)s",
    "%(check_job_nodelist)s",
    "%(check_result)s",
    "%(check_perf_var)s",
    "%(check_perf_value)s",
    "%(check_perf_unit)s",
    "%(check_perf_ref)s",
    "%(check_perf_lower_thres)s",
    "%(check_perf_upper_thres)s",
    "%(check_environment_digest)s",
    "%(check_stack_digest)s",
    "%(check_stack_mpi)s",
    "%(check_stack_program)s",
    "%(check_stack_compiler)s",
    "%(check_stack_target)s",
)


def reframe_configuration(site: Site) -> dict[str, Any]:
    """Return ReFrame's site configuration for ``site``.

    A ``[reframe]`` table of the site file adds raw options to ``general``; it cannot switch off
    a guard.

    Raises:
        ConfigError: it tries to, or a stack is to be one of the catalogue's and is none.
    """
    check_access(site)
    check_provisioned(site)
    general = {
        "purge_environment": False,
        "resolve_module_conflicts": False,
        "save_log_files": True,
        "poll_rate_max": 4.0,
        "poll_rate_min": 1.0,
        **_raw_general(site),
        "check_search_path": [str(folder) for folder in check_folders(project_root())],
        "check_search_recursive": True,
        "trap_job_errors": True,
    }
    return {
        "systems": [_system(site)],
        "environments": [_environment(site, stack) for stack in site.stacks],
        "general": [general],
        "logging": [_logging()],
        "storage": [{"enable": True}],
    }


def _raw_general(site: Site) -> dict[str, Any]:
    guards = {"trap_job_errors", "check_search_path", "check_search_recursive"}
    if refused := guards & site.reframe.keys():
        raise ConfigError(
            f"[reframe] may not set {', '.join(sorted(refused))}",
            source=str(site.folder / "site.toml"),
            expected="options of ReFrame's general section that are no guard",
        )
    return dict(site.reframe)


def _system(site: Site) -> dict[str, Any]:
    return {
        "name": site.name,
        "descr": site.spec.description,
        "hostnames": [".*"],
        "modules_system": site.spec.modules_system,
        "partitions": [_partition(site, partition) for partition in site.partitions],
    }


def _partition(site: Site, partition: PartitionSpec) -> dict[str, Any]:
    stated = {
        "name": partition.name,
        "scheduler": partition.scheduler,
        "launcher": partition.launcher,
        "access": list(partition.access),
        "environs": list(partition.stacks),
        "max_jobs": partition.max_jobs,
        "features": sorted({f"fabric-{name}" for name in partition.fabrics}),
        "prepare_cmds": _prepare(site),
        "sched_options": {"sched_access_in_submit": False},
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


def _prepare(site: Site) -> list[str]:
    """Return the first lines of a job script: keep how it ends, and make ``module`` work."""
    if site.spec.modules_system == "nomod":
        return [RECORD_END]
    lines = [RECORD_END, defines_module(site.spec.modules_init)]
    paths = [*site.spec.module_paths, *_provisioned_paths(site)]
    return lines + [f"module use {shell_word(path)}" for path in paths]


def _provisioned_paths(site: Site) -> list[str]:
    """Return the folders of the modules that fabricproof itself writes for this site's stacks."""
    paths = []
    if any(stack.provisioned for stack in site.stacks):
        paths.append(str(stacks_root() / MODULEFILES))
    if any(stack.spack for stack in site.stacks):
        paths.append(str(layout_for(site.name, site.folder).modulefiles))
    return paths


def _environment(site: Site, stack: StackSpec) -> dict[str, Any]:
    # The build fixture runs in this environment too: the module of a stack that Spack is still to
    # build cannot be loaded here.  The checks load it, and set the site's variables after it.
    ours = stack.spack is None
    exported = resolve(site, site.partitions[0], stack).exported if ours else {}
    # ReFrame writes modules and values into the job's script as they are.
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
    return {
        "level": "info" if dry else "debug",
        "perflog_multiline": True,
        "handlers$": [
            {"type": "stream", "name": "stdout", "level": "info", "format": "%(message)s"}
        ],
        "handlers": [
            {
                "type": "file",
                "level": "info" if dry else "debug2",
                "name": os.environ.get("FABRICPROOF_REFRAME_LOG", "reframe.log"),
                "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                "append": False,
            }
        ],
        "handlers_perflog": [
            {
                "type": "filelog",
                "prefix": "%(check_system)s/%(check_partition)s",
                "basedir": str(perflog_root()),
                "level": "info",
                "format": "|".join(PERFLOG_COLUMNS),
                "append": True,
                "locking_enable": True,
            }
        ],
    }


def perflog_root() -> Path:
    """Return the folder that perflogs go to."""
    return Path(os.environ.get("FABRICPROOF_PERFLOGS", project_root() / "perflogs"))
