"""One archive with all evidence of a run, for the vendor; whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
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
    made,
)
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

{absent}"""


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


def write_bundle(path: Path, found: Gathered, site: Site, place: Workplace) -> list[str]:
    """Write the archive and return what must be told of it, first that it is written.

    Raises:
        OutputError: it is there, or cannot be written; no half of it is left.
    """
    if path.exists() or path.is_symlink():
        raise _exists(path)
    try:
        with whole_file(path, replace=False) as file:
            archive = _written(file, found, site, place)
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


def _written(file: IO[bytes], found: Gathered, site: Site, place: Workplace) -> _Archive:
    time = int(found.data.made.timestamp())
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        archive = _Archive(tar=tar, time=time, files=[], absent=[])
        archive.root = f"fabricproof-{found.data.run.run_id}"
        for each in (*made(found.data, found.records), *evidence(found, site, place)):
            _add(archive, each)
        lines = [f"  {each.name}: {each.reason}" for each in archive.absent]
        missing = "\n".join(["Could not be included:", *lines]) if lines else "Nothing is left out."
        archive.add(
            "README.txt",
            _README.format(
                version=__version__,
                run_id=found.data.run.run_id,
                site=found.data.site,
                begun=found.data.run.night,
                verdict=found.data.session.verdict.value,
                absent=missing + "\n",
            ).encode(),
        )
        manifest = {
            "format": FORMAT,
            "fabricproof": __version__,
            "run_id": found.data.run.run_id,
            "files": archive.files,
            "not_included": [vars(each) for each in archive.absent],
        }
        # Last, and not in its own list.
        archive.add("manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
    return archive


def _add(archive: _Archive, each: BundleFile | Absent) -> None:
    if isinstance(each, Absent):
        archive.absent.append(each)
        return
    try:
        content = _bytes(each.content)
    except OSError as error:
        # The file went away between the look and the reading; writing fails elsewhere.
        archive.absent.append(Absent(name=each.name, reason=error.strerror or str(error)))
        return
    archive.add(each.name, content)


def _bytes(content: str | bytes | Path) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    return content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")
