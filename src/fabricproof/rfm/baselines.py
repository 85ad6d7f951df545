"""Lay beside a job's plan what the site's baseline says of its legs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fabricproof.core.errors import ConfigError
from fabricproof.job.leg import Leg
from fabricproof.site import Site
from fabricproof.verdict.baseline.file import path_of, read_baseline
from fabricproof.verdict.baseline.model import Baseline, Place
from fabricproof.verdict.baseline.stage import of_leg, write_stage


@functools.lru_cache(maxsize=2)
def _read(path: Path, stamp: int) -> Baseline:  # noqa: ARG001 - a file that changed is read anew
    return read_baseline(path)


def active(site: Site) -> Baseline | None:
    """Return the baseline that judges on this site; None where it has none.

    Raises:
        ConfigError: it is of another site.
        ParseError: its file is damaged.
        InputMissingError: its file is gone.
    """
    name = site.spec.baseline
    if name is None:
        return None
    path = path_of(site.folder, name)
    baseline = _read(path, path.stat().st_mtime_ns) if path.exists() else read_baseline(path)
    if baseline.site != site.name:
        raise ConfigError(
            "a baseline of another site", source=str(path), expected=site.name, got=baseline.site
        )
    return baseline


def with_baseline(
    legs: Iterable[Leg], folder: Path, site: Site, where: Place, builds: Mapping[str, str]
) -> tuple[Leg, ...]:
    """Return the legs, each knowing who judges it last; lay beside the plan what that says.

    Args:
        legs: of one job.
        folder: of the job.
        site: whose baseline judges.
        where: partition, fabric, stack, check of the legs; the rest is each leg's own.
        builds: suite to the beginning of the digest of what is measured.
    """
    baseline = active(site)
    legs = tuple(legs)
    if baseline is None:
        return legs
    told = {
        leg.name: of_leg(
            baseline,
            replace(
                where,
                build=builds[leg.suite],
                suite=leg.suite,
                program=leg.program,
                leg=leg.name,
                rails=",".join(leg.rails),
            ),
            leg.nodes,
        )
        for leg in legs
    }
    write_stage(folder, told)
    return tuple(replace(leg, baseline=baseline.name) for leg in legs)
