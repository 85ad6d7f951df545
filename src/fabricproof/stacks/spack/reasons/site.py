"""Reasons that lie in what somebody wrote: Spack configuration, specs, repositories."""

from __future__ import annotations

import re

from fabricproof.core.errors import ConfigError, FabricproofError, UnavailableError
from fabricproof.stacks.spack.reasons.case import Case, short

_REPOSITORY = re.compile(
    r"^==> Warning: Error constructing repository '(?P<place>[^']+)': (?P<why>.+)$", re.MULTILINE
)
#: what Spack misses where it has no recipes
_MISSED = r"no compiler configured|does not exist|not found|(?i:unknown) namespace|not supported"
_INTERNAL = "Spack concretizer internal error"


def repository(case: Case) -> FabricproofError | None:
    """The recipes are not there: Spack only warns, and then misses compilers or packages."""
    found = _REPOSITORY.search(case.text)
    if found is None or not (case.step == "compiler find" or case.complaint(_MISSED)):
        return None
    why = found["why"]
    # A clone that failed leaves its folder, and Spack takes it for the clone ever after.
    if "clone" in why or "fetch" in why or "/package_repos/" in found["place"]:
        fatal = re.search(r"^(?:fatal|error): .*$", case.text, re.MULTILINE)
        return UnavailableError(
            "Spack's package recipes could not be fetched",
            source=found["place"],
            got=short(f"{fatal[0]}; {why}" if fatal else why),
            next_step="name a folder that has them in repos.yaml, or use --mirror DIR",
        )
    if "not supported by this version of Spack" in why:
        return UnavailableError(
            "this Spack and its package recipes do not fit together",
            source=found["place"],
            got=short(why),
            next_step="use another Spack (--spack), or recipes of its time",
        )
    return ConfigError(
        "Spack's package recipes are not where repos.yaml says",
        source=found["place"],
        got=short(why),
        next_step="correct repos.yaml",
    )


def damaged_file(case: Case) -> FabricproofError | None:
    """A YAML file that cannot be read, or holds what Spack does not know."""
    said = case.complaint(
        r"error parsing YAML: near (?P<file>.+?), (?P<line>\d+), \d+: (?P<why>.*)"
    )
    if said:
        complaint, found = said
        # The place after "near" counts from 0 and is where the block began; the last one below
        # it, where there is one, counts from 1 and is where it broke.
        lines = re.findall(r"line (\d+), column", complaint.whole)
        line = int(lines[-1]) if lines else int(found["line"]) + 1
        return _bad_file("a damaged YAML file", found["file"], line, found["why"])
    said = case.complaint(r"^(?:.*: )?(?P<file>/\S+\.yaml):(?P<line>\d+): (?P<why>.+)$")
    if said:
        found = said[1]
        return _bad_file(
            "Spack does not take this file", found["file"], int(found["line"]), found["why"]
        )
    return None


def _bad_file(problem: str, file: str, line: int, why: str) -> ConfigError:
    return ConfigError(
        problem, source=file, line=line, got=short(why), next_step="correct the file"
    )


def missing_file(case: Case) -> FabricproofError | None:
    """An included scope, or the environment itself, is not there."""
    said = case.complaint(
        r"Required path \((?P<path>[^)]+)\) does not exist|no environment in (?P<folder>.+)"
        r"|Invalid configuration scope: (?P<scope>.+)"
    )
    if said is None:
        return None
    place = next(part for part in said[1].groups() if part)
    return ConfigError(
        "a part of Spack's configuration is not there",
        source=place.strip(),
        got=short(said[1][0]),
        next_step="correct the include: list or the site's folder",
    )


def external_missing(case: Case) -> FabricproofError | None:
    """An external package has not what it should have: the prefix is wrong, or half of it."""
    said = case.complaint(
        r"Query of package '(?P<name>[^']+)' for '(?P<part>[^']+)' failed"
        r"[\s\S]*?prefix : (?P<prefix>.+)"
    )
    if said is None:
        return None
    found = said[1]
    return ConfigError(
        f"{found['name']} is not whole where it should lie",
        source=found["prefix"].strip(),
        expected=f"its {found['part']}",
        got=f"none below {found['prefix'].strip()}",
        next_step="if it is the site's own, correct its prefix in packages.yaml",
    )


def unknown_package(case: Case) -> FabricproofError | None:
    """A package, version or variant that no recipe has."""
    said = case.complaint(
        r"^(?:cannot concretize .* since '(?P<name>[^']+)' does not exist"
        r"|Package '(?P<gone>[^']+)' not found|No version exists that satisfies these input specs:"
        r"|No such variant .*|no such package: .*|Version requirement .* cannot match any known"
        r" version.*|unexpected characters in the spec string)"
    )
    if said is None:
        return None
    complaint, found = said
    name = found["name"] or found["gone"]
    return ConfigError(
        f"Spack knows no package {name!r}" if name else "Spack cannot take the specs as written",
        got=short(complaint.text if name or not complaint.details else _listed(complaint.whole)),
        next_step="correct the specs of the environment or the site's packages.yaml",
    )


def _listed(whole: str) -> str:
    """Return head and list in one line; the mark below a wrong character is left out."""
    lines = [line.strip() for line in whole.splitlines() if line.strip(" ^")]
    return f"{lines[0].rstrip(':')}: {', '.join(lines[1:])}"


def unsatisfiable(case: Case) -> FabricproofError | None:
    """The solver finds nothing that fits all that was asked for."""
    said = case.complaint(
        r"^failed to concretize (?P<specs>.+?) for the following reasons"
        r"|^\s+(?P<spec>.+?) is unsatisfiable"
        r"|^Spack is taking more than (?P<time>\d+) seconds to solve for (?P<slow>.+?),"
    )
    if said is None:
        return None
    complaint, found = said
    specs = (found["specs"] or found["spec"] or found["slow"]).replace("`", "")
    if found["time"]:
        why = f"no answer after {found['time']} s"
    elif found["spec"]:
        why = f"{found['spec']} is unsatisfiable, and Spack names no reason"
    else:
        why = _reasons(complaint.details)
    return ConfigError(
        f"Spack finds no solution for {specs}",
        got=short(why),
        next_step="relax one of the requirements in spack-envs or the site's packages.yaml",
    )


def _reasons(details: tuple[str, ...]) -> str:
    numbered = re.compile(r"\s+\d+\. (?P<why>.+)")
    found = [match["why"].strip() for line in details if (match := numbered.match(line))]
    if not found:
        return " ".join(details)
    # One that sets two demands side by side tells more than one that names the first only.
    told = next(
        (why for why in found if " and '" in why or "cannot satisfy constraint" in why), None
    )
    others = len(found) - 1
    return (told or found[0]) + (f" (and {others} more)" if others else "")
