"""Reasons that lie in what was downloaded, or could not be."""

from __future__ import annotations

import re

from fabricproof.core.errors import DamagedDownloadError, FabricproofError, UnavailableError
from fabricproof.stacks.spack.reasons.case import Case, short, words_of

_STAGE = re.compile(r"(?:resource-.*-)?spack-stage-(?P<id>.+?)(?:-[a-z0-9]{32})?$")
_NOT_THERE = re.compile(r"No such file or directory|404|Not Found")


def checksum(case: Case) -> FabricproofError | None:
    """A file with another digest: damaged, cut short, or another file of the same name."""
    said = case.complaint(r"^(?P<how>\w+) checksum failed for (?P<file>.+)$")
    if said is None:
        return None
    complaint, found = said
    facts = re.search(
        r"Expected (?P<due>\w+) but got (?P<got>\w+)\. File size = (?P<size>\d+) bytes",
        complaint.whole,
    )
    url = re.search(r"URL = (?P<url>\S+?),?(?: |$)", complaint.whole)
    how = found["how"]
    return DamagedDownloadError(
        f"{found['file'].rpartition('/')[2]} is not what its recipe promises",
        source=url["url"] if url else found["file"],
        expected=f"{how} {facts['due']}" if facts else None,
        got=f"{facts['got']} ({facts['size']} bytes)" if facts else short(complaint.whole),
        next_step=(
            "compare its size with the original: a short one was cut off, fetch it again; "
            "one of full length is another file"
        ),
    )


def cut_archive(case: Case) -> FabricproofError | None:
    """An archive that ends too early, where nobody compared a checksum before."""
    line = case.line_with(
        "Unexpected EOF in archive", "not in gzip format", "stdin: unexpected end"
    )
    said = case.complaint(r"'-\w*xf' '(?P<file>/[^']+)'$")
    if line is None or said is None:
        return None
    return DamagedDownloadError(
        f"{said[1]['file'].rpartition('/')[2]} cannot be unpacked",
        source=said[1]["file"],
        expected="a whole archive",
        got=words_of(line),
        next_step="fetch it again, with checksums on",
    )


def nothing_fetched(case: Case) -> FabricproofError | None:
    """No mirror has it, and its home does not answer."""
    said = case.complaint(r"^All fetchers failed for (?P<stage>\S+)")
    if said is None:
        return None
    complaint, found = said
    stage = _STAGE.match(found["stage"])
    return UnavailableError(
        f"the sources of {stage['id'] if stage else found['stage']} could not be downloaded",
        expected="them in a mirror or at their home",
        got=short("; ".join(dict.fromkeys(_attempt(line) for line in complaint.details))),
        next_step=(
            "without a network, use --mirror DIR (fabricproof stack mirror writes it elsewhere)"
        ),
    )


def _attempt(line: str) -> str:
    """Return where one try went and how it ended, without the long names of files."""
    place, _, why = line.strip().partition(": ")
    scheme, _, rest = place.partition("://")
    host = (
        f"{scheme}://{rest.split('/_source-cache/')[0] if scheme == 'file' else rest.split('/')[0]}"
    )
    if _NOT_THERE.search(why):
        return f"{host} has it not"
    reason = re.search(r"errored with: (?:\[Errno -?\d+\] )?(?P<words>.+?)>?$", why)
    return f"{host}: {reason['words'] if reason else why.partition(': ')[2] or why}"


def no_binary(case: Case) -> FabricproofError | None:
    """Only a build cache was allowed, and it has not the package."""
    said = case.complaint(r"No binary found when cache-only was specified")
    if said is None:
        return None
    found = re.search(r"^==> Error: Failed to install (\S+) due to", case.text, re.MULTILINE)
    return UnavailableError(
        f"the build cache has no {found[1] if found else 'such package'}",
        got=said[1][0],
        next_step="build from source, or push it into the cache on the machine that built it",
    )


def mirror_incomplete(case: Case) -> FabricproofError | None:
    """``spack mirror create`` could not get all archives."""
    said = case.complaint(r"^Failed downloads:")
    if said is None:
        return None
    lost = [line.strip() for line in said[0].details]
    tries = re.findall(r"^\s+(\w+://\S+: \w+Error: .+)$", case.text, re.MULTILINE)
    return UnavailableError(
        f"{len(lost)} of the stack's archives could not be downloaded: {short(', '.join(lost))}",
        got=short("; ".join(dict.fromkeys(map(_attempt, tries)))) or None,
        next_step="run the same command where their homes can be reached; what is there is kept",
    )


def not_pushed(case: Case) -> FabricproofError | None:
    """``spack buildcache push`` left packages out."""
    said = case.complaint(r"^The following (?P<count>\d+) errors? occurred while pushing")
    if said is None:
        return None
    details = said[0].details
    absent = [line for line in details if "PackageNotInstalledError" in line]
    first = "build the stack" if len(absent) == len(details) else "mend that"
    return UnavailableError(
        f"{said[1]['count']} of the stack's packages could not go into the build cache",
        got=short("; ".join(line.strip() for line in details)),
        next_step=f"{first}, then run the same command again",
    )
