"""One archive with all evidence of a run, for the vendor; whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from fabricproof import __version__
from fabricproof.core.errors import OutputError
from fabricproof.core.whole_file import whole_file
from fabricproof.job.run import Workplace
from fabricproof.report.formats.evidence import (
    Absent,
    BundleFile,
    evidence,
    hosts_of,
    made,
    serials_of,
    users_of,
)
from fabricproof.report.formats.pseudonyms import Anonymous, accounts_in, macs_in
from fabricproof.report.gather import Gathered
from fabricproof.site import Site

#: rises where the layout of the archive changes
FORMAT = 1

#: as many pieces that are not there are told on the terminal; README.txt has all
TOLD = 5

_README = """\
fabricproof {version}: evidence of run {run_id}, site {site}, begun {begun} UTC
verdict: {verdict}

README.txt         this
manifest.json      every file with its size and SHA-256, and what could not be included
report.html        the report as one page: open it in a browser, no network is needed
report.json        the same as data
summary.txt        the same on one screen
drain.txt          which nodes the evidence blames, and which pairs it cannot tell apart
records.jsonl      every number of every attempt, with its limits, verdict, reason, environment
jobs/SITE/PARTITION/STACK/CHECK/
  rfm_job.sh       the job script as it was submitted; rfm_job.out and rfm_job.err: what it printed
  plan.json        which legs were planned, and what each had to reach
  legs.sh          the commands of every leg, to be repeated by hand
  legs/LEG.N/      attempt N of a leg: stdout, stderr, status, counters of every rank
inventory/NODE.json  what each node was made of: cards, firmware, links, slots, kernel, tuning
environment.json   each environment that ranks ran in, with the legs that did
versions.json      versions of the programs, the MPI stacks, fabricproof and ReFrame
reframe/           ReFrame's own report and log
site/              what the site declares of itself
{anonymous}
{absent}"""

_ANONYMOUS = """
Names of nodes, accounts, the site, its folders, addresses, GUIDs and serial numbers are replaced,
each by the same stand-in everywhere; so are accounts that Slurm charges and mail addresses.  So
digests of inventories no longer fit their files.  The site's files are JSON here, without comments,
descriptions, hostnames and [night].
"""


@dataclass
class _Archive:
    """An archive that is being written, with the manifest of what is in it."""

    tar: tarfile.TarFile
    time: int
    files: list[dict[str, str | int]]
    absent: list[Absent]

    def add(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(f"{self.root}/{name}")
        info.size, info.mtime, info.mode = len(content), self.time, 0o644
        self.tar.addfile(info, io.BytesIO(content))
        digest = hashlib.sha256(content).hexdigest()
        self.files.append({"path": name, "bytes": len(content), "sha256": digest})

    root: str = "evidence"


def write_bundle(
    path: Path, found: Gathered, site: Site, place: Workplace, *, anonymous: bool = False
) -> list[str]:
    """Write the archive and return what must be told of it, first that it is written.

    Raises:
        OutputError: it is there, or cannot be written; no half of it is left.
    """
    if path.exists() or path.is_symlink():
        raise _exists(path)
    mask = _mask(found, site, place) if anonymous else None
    try:
        with whole_file(path, replace=False) as file:
            archive = _written(file, found, site, place, mask)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise OutputError(
            f"cannot write the bundle: {error.strerror or error}",
            source=str(path),
            next_step="make room, or name a file in a folder that you can write",
        ) from None
    size = path.stat().st_size
    told = [f"written: {path}, {len(archive.files)} files, {size / 1e6:.1f} MB"]
    told += [f"not included: {each.name}: {each.reason}" for each in archive.absent[:TOLD]]
    more = len(archive.absent) - TOLD
    return [*told, f"and {more} more not included: README.txt in it has all"] if more > 0 else told


def _exists(path: Path) -> OutputError:
    return OutputError(
        "the bundle is there already and is not overwritten",
        source=str(path),
        next_step="name another file, or remove it",
    )


def _mask(found: Gathered, site: Site, place: Workplace) -> Anonymous:
    report = place.report_file(found.data.run.run_id)
    nodes = {*found.data.run.inventory, *found.data.machines}
    for record in found.records:
        nodes |= {str(node) for node in record.get("nodes") or ()}
        for rank in (record.get("environment") or {}).get("ranks", ()):
            nodes.add(str(rank["node"]))
    for run in found.data.matrix.runs:
        nodes |= set(run.inventory)
    said = json.dumps([list(found.records), found.data.machines], default=str)
    options = "\n".join(option for each in site.partitions for option in each.access)
    return Anonymous(
        nodes=nodes | hosts_of(report),
        users=users_of(report),
        serials=serials_of(found),
        sites=_names_of(site),
        accounts=accounts_in(f"{options}\n{said}"),
        macs=macs_in(said),
        folders={
            *map(str, (place.project, place.root, place.perflogs, site.folder, Path.home())),
            *_other_checkouts(found),
        },
    )


def _other_checkouts(found: Gathered) -> set[str]:
    """Return the checkouts that the run was made from, where this is another one."""
    stages = {str(each.get("stage_folder") or "") for each in found.records}
    works = {before for each in stages for before, mark, _ in (each.partition("/stage/"),) if mark}
    return works | {each.removesuffix("/work") for each in works}


def _names_of(site: Site) -> list[str]:
    """Return what names a site: itself, whom its nights write to and by which host."""
    mails = [*site.night.mail_to, site.night.mail_from or ""]
    domains = {mail.rpartition("@")[2] for mail in mails if "@" in mail}
    smtp = (site.night.smtp or "").rpartition(":")[0] or site.night.smtp or ""
    others = {*site.spec.hostnames, *domains, smtp.strip("[]")}
    return [site.name, *sorted(others - {"", "localhost", "127.0.0.1"})]


def _written(
    file: IO[bytes], found: Gathered, site: Site, place: Workplace, mask: Anonymous | None
) -> _Archive:
    pieces = evidence(found, site, place, private=mask is None)
    data = mask.of(found.data) if mask else found.data
    records = mask.of(found.records) if mask else found.records
    time = int(found.data.made.timestamp())
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        archive = _Archive(tar=tar, time=time, files=[], absent=[])
        archive.root = f"fabricproof-{found.data.run.run_id}"
        for each in (*made(data, records), *_masked(pieces, mask)):
            _add(archive, each, mask)
        archive.add("README.txt", _readme(found, data.site, archive.absent, mask).encode())
        manifest = {
            "format": FORMAT,
            "fabricproof": __version__,
            "run_id": found.data.run.run_id,
            "anonymous": mask is not None,
            "files": archive.files,
            "not_included": [vars(each) for each in archive.absent],
        }
        # Last, and not in its own list.
        archive.add("manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return archive


def _masked(
    pieces: Iterable[BundleFile | Absent], mask: Anonymous | None
) -> Iterator[BundleFile | Absent]:
    for each in pieces:
        if mask is None:
            yield each
        elif isinstance(each, Absent):
            yield Absent(name=mask.text(each.name), reason=mask.text(each.reason))
        else:
            yield replace(each, name=mask.text(each.name))


def _add(archive: _Archive, each: BundleFile | Absent, mask: Anonymous | None) -> None:
    if isinstance(each, Absent):
        archive.absent.append(each)
        return
    try:
        content = _bytes(each.content)
    except OSError as error:
        # The file went away between the look and the reading; writing fails elsewhere.
        archive.absent.append(Absent(name=each.name, reason=error.strerror or str(error)))
        return
    if mask is not None and each.is_text:
        if b"\0" in content:
            reason = "no text: nobody could say which names are in it"
            archive.absent.append(Absent(name=each.name, reason=reason))
            return
        content = mask.text(content.decode("utf-8", errors="replace")).encode()
    archive.add(each.name, content)


def _bytes(content: str | bytes | Path) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    return content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")


def _readme(found: Gathered, site: str, absent: Iterable[Absent], mask: Anonymous | None) -> str:
    lines = [f"  {each.name}: {each.reason}" for each in absent]
    missing = "\n".join(["Could not be included:", *lines]) if lines else "Nothing is left out."
    return _README.format(
        version=__version__,
        run_id=found.data.run.run_id,
        site=site,
        begun=found.data.run.night,
        verdict=found.data.session.verdict.value,
        anonymous=_ANONYMOUS if mask else "",
        absent=missing + "\n",
    )
