"""What of a run lies where: the files that a vendor needs, and what of them is gone."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fabricproof import __version__
from fabricproof.core.provenance import identity_of
from fabricproof.job.run import Workplace
from fabricproof.nodes.inventory.store import FOLDER
from fabricproof.physics import device_word
from fabricproof.report.formats.page import render_html
from fabricproof.report.formats.record import report_record
from fabricproof.report.gather import Gathered
from fabricproof.report.model import ReportData
from fabricproof.report.red import with_device
from fabricproof.report.text.drain import render_drain
from fabricproof.report.text.screen import summary
from fabricproof.site import Site

#: a raw output that is longer says the same again and again; it is named, not sent
LARGEST_BYTES = 16 * 1024 * 1024

#: files of a site that say what was expected
SITE_FILES = ("site.toml", "fabric.toml", "references.toml", "roll.json", "topology.conf")


@dataclass(frozen=True, kw_only=True)
class BundleFile:
    """One file of a bundle."""

    name: str
    content: str | bytes | Path


@dataclass(frozen=True, kw_only=True)
class Absent:
    """Something that the bundle should hold and does not."""

    name: str
    reason: str


def evidence(found: Gathered, site: Site, place: Workplace) -> Iterator[BundleFile | Absent]:
    """Yield all that the bundle is to hold, and what it cannot.

    What is made from ``found`` itself (page, JSON, summary) is in :func:`made`.
    """
    run_id = found.data.run.run_id
    lines = "".join(json.dumps(each, sort_keys=True) + "\n" for each in found.records)
    if found.records:
        yield BundleFile(name="records.jsonl", content=lines)
    else:
        yield Absent(name="records.jsonl", reason="this run left no record")
    yield _file("reframe/report.json", place.report_file(run_id))
    yield _file("reframe/reframe.log", place.log_file(run_id))
    yield from _jobs(found, place)
    yield from _inventories(found, place.perflogs / site.name / FOLDER)
    for name in SITE_FILES:
        if (site.folder / name).exists():
            yield _file(f"site/{name}", site.folder / name)
    yield BundleFile(name="environment.json", content=_dumped(_environments(found.records)))
    yield BundleFile(name="versions.json", content=_dumped(_versions(found.records)))


def made(data: ReportData, records: Iterable[Mapping[str, Any]]) -> Iterator[BundleFile | Absent]:
    """Yield the report itself, in all of its forms."""
    records = tuple(records)
    screen = "".join(line.text + "\n" for line in summary(data, records, whole=True))
    yield BundleFile(name="summary.txt", content=screen)
    yield BundleFile(name="drain.txt", content=render_drain(data, records))
    yield BundleFile(name="report.json", content=_dumped(report_record(data, records)))
    yield BundleFile(name="report.html", content=render_html(data, records))


def _file(name: str, path: Path) -> BundleFile | Absent:
    try:
        size = path.stat().st_size
        path.open("rb").close()
    except OSError as error:
        return Absent(name=name, reason=f"{path}: {error.strerror}")
    if size > LARGEST_BYTES:
        return Absent(name=name, reason=f"{path}: {size} bytes, more than {LARGEST_BYTES}")
    return BundleFile(name=name, content=path)


def _jobs(found: Gathered, place: Workplace) -> Iterator[BundleFile | Absent]:
    """Yield what each job left: the stage folder of one that failed, the kept copy of another."""
    folders: dict[str, str] = {}
    for record in found.records:
        if record.get("stage_folder"):
            folders[str(record["stage_folder"])] = str(record.get("job_id"))
    root = place.stage_folder(found.data.run.run_id)
    for folder, job in sorted(folders.items()):
        parts = Path(folder).parts
        tail = (
            Path(*parts[parts.index(found.data.run.run_id) + 1 :])
            if found.data.run.run_id in parts
            else Path(*parts[-4:])
        )
        name = f"jobs/{tail.as_posix()}"
        kept = place.output_folder(found.data.run.run_id) / tail
        there = next((each for each in (Path(folder), root / tail, kept) if each.is_dir()), None)
        if there is None:
            yield Absent(
                name=name,
                reason=f"raw outputs of job {job} are gone: neither {folder} nor {kept} is there",
            )
            continue
        for path in sorted(there.rglob("*")):
            if path.is_symlink():
                yield Absent(name=f"{name}/{path.relative_to(there)}", reason="a link elsewhere")
            elif path.is_file():
                yield _file(f"{name}/{path.relative_to(there).as_posix()}", path)


def _inventories(found: Gathered, folder: Path) -> Iterator[BundleFile | Absent]:
    for node, digest in sorted(found.data.run.inventory.items()):
        name = f"inventory/{node}.json"
        if digest is None:
            yield Absent(name=name, reason="nobody saw it, or it changed within the run")
        else:
            yield _file(name, folder / node / f"{digest}.json")
    if not found.data.run.inventory:
        yield Absent(name="inventory", reason="this run looked at no node")


def _environments(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each environment once, with the legs that ran in it."""
    known: dict[str, dict[str, Any]] = {}
    for each in records:
        if each.get("kind") == "environment":
            entry = known.setdefault(
                str(each["environment_digest"]),
                {"digest": each["environment_digest"], "legs": [], **each["environment"]},
            )
            net_path = with_device(each["leg"], device_word(str(each.get("link") or "")))
            entry["legs"].append(
                f"{each['stack']} {each['check']} {net_path} attempt {each['attempt']}"
            )
    return list(known.values())


def _versions(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    stacks: dict[str, Any] = {}
    tools: dict[str, None] = {}
    for each in records:
        identity = identity_of(each)
        stacks[f"{each.get('stack')} {each.get('suite', '')}".strip()] = {
            "version": each.get("stack_version"),
            "identity": identity.record() if identity else None,
        }
        if each.get("tool_version"):
            tools[f"{each['suite']} {each['tool_version']}"] = None
    return {
        "fabricproof": __version__,
        "reframe": version("ReFrame-HPC"),
        "python": platform.python_version(),
        "kernel_of_the_head_node": platform.release(),
        "stacks": stacks,
        "tools": list(tools),
    }


def _dumped(thing: Any) -> str:
    return json.dumps(thing, indent=1, allow_nan=False) + "\n"
