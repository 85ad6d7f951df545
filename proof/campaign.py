"""Many tries on all cores, kept line by line, so that a long proof may be ended and goes on.

Every line says which code it is of: a digest of the library's own sources.  Lines of other code are
no part of a proof of this one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fabricproof
from proof.library import FABRICS, FaultEntry, read_library
from proof.mutations import RULES, who_notices
from proof.tries import CleanCampaign, Try, attempt, clean


@dataclass(frozen=True, kw_only=True)
class ProofPlan:
    """How much is tried.

    Attributes:
        clean: campaigns without a fault.
        tries: of each fault, at the strength at which it must be caught.
        weaker: tries at each other strength.
        steady: histories of each kind of which nothing is to be told.
        seed: of the first campaign and of the first try.
        everybody: whether a rule that no fault names, or whose faults do not miss it, is tried with
            all others.
    """

    clean: int
    tries: int
    weaker: int
    steady: int = 0
    seed: int = 0
    everybody: bool = False


#: what CI can afford, and what is published
SHORT = ProofPlan(clean=40, tries=4, weaker=0, steady=4)
LONG = ProofPlan(clean=3000, tries=300, weaker=60, steady=300, everybody=True)

#: title, strength, seed and what else there is: a fabric, a rule
Key = tuple[str, float, int, str]

#: stand for a title
CLEAN, MUTATION = "clean", "mutation"


@cache
def digest_of_code() -> str:
    """Return a digest of all that decides a figure: sources and data of library and proof."""
    hashed = hashlib.sha256()
    for root in (Path(fabricproof.__file__).parent, Path(__file__).parent):
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.toml")]):
            hashed.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return hashed.hexdigest()[:12]


def units_of(plan: ProofPlan) -> Iterator[Key]:
    """Yield what is to be tried."""
    names = sorted(FABRICS)
    for number in range(plan.clean):
        yield CLEAN, 0.0, plan.seed + number, names[number % len(names)]
    for rule in RULES:
        yield MUTATION, 0.0, int(plan.everybody), rule.name
    for entry in read_library():
        if not entry.is_simulated:
            continue
        for strength in entry.strengths:
            due = entry.must if entry.must is not None else entry.strengths[-1]
            most = plan.steady if entry.is_steady else plan.tries
            for number in range(most if strength == due else plan.weaker):
                yield entry.title, strength, plan.seed + number, ""


def do(unit: Key) -> dict[str, Any]:
    """Do one unit and return its record."""
    title, strength, seed, fabric = unit
    if title == CLEAN:
        return {"kind": CLEAN, **asdict(clean(fabric, seed))}
    if title == MUTATION:
        rule = next(each for each in RULES if each.name == fabric)
        noticed = who_notices(rule, everybody=bool(seed))
        return {"kind": MUTATION, "rule": fabric, "seed": seed, "noticed": list(noticed)}
    return {"kind": "try", **asdict(attempt(_entry(title), strength, seed))}


def _entry(title: str) -> FaultEntry:
    return next(each for each in read_library() if each.title == title)


def read_kept(file: Path) -> list[dict[str, Any]]:
    """Return the records of this code that a file holds; none where it is not there."""
    if not file.exists():
        return []
    records = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue  # torn when the proof was ended: it is done again
    return [each for each in records if each.get("code") == digest_of_code()]


def key_of(record: dict[str, Any]) -> Key:
    """Return the unit that a record is of."""
    if record["kind"] == CLEAN:
        return CLEAN, 0.0, record["seed"], record["fabric"]
    if record["kind"] == MUTATION:
        return MUTATION, 0.0, record["seed"], record["rule"]
    return record["fault"], record["strength"], record["seed"], ""


def prove(
    plan: ProofPlan, file: Path, say: Callable[[int, int], object], jobs: int | None = None
) -> list[dict[str, Any]]:
    """Do what is not done yet of a plan; return all records of it.

    Args:
        plan: what.
        file: keeps the records, and has those of an earlier start.
        say: is told how many units are done, of how many.
        jobs: processes; as many as there are cores where None.
    """
    wanted = list(units_of(plan))
    kept = {key_of(each): each for each in read_kept(file)}
    left = [unit for unit in wanted if unit not in kept]
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        file.open("a", encoding="utf-8") as out,
        ProcessPoolExecutor(max_workers=jobs or os.cpu_count()) as pool,
    ):
        done = len(wanted) - len(left)
        for record in _each(pool, left):
            record["code"] = digest_of_code()
            out.write(json.dumps(record) + "\n")
            out.flush()
            kept[key_of(record)] = record
            done += 1
            say(done, len(wanted))
    return [kept[unit] for unit in wanted]


def _each(pool: ProcessPoolExecutor, units: Sequence[Key]) -> Iterator[dict[str, Any]]:
    # What takes longest begins first.
    order = sorted(units, key=lambda unit: unit[0] != MUTATION)
    for future in as_completed([pool.submit(do, unit) for unit in order]):
        yield future.result()


def tries_of(records: Iterable[dict[str, Any]]) -> list[Try]:
    """Return the tries among records."""
    return [Try(**_fields(each)) for each in records if each["kind"] == "try"]


def cleans_of(records: Iterable[dict[str, Any]]) -> list[CleanCampaign]:
    """Return the clean campaigns among records."""
    return [CleanCampaign(**_fields(each)) for each in records if each["kind"] == CLEAN]


def noticed_of(records: Iterable[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return rule -> who noticed that it was off."""
    return {each["rule"]: tuple(each["noticed"]) for each in records if each["kind"] == MUTATION}


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in {"kind", "code"}}
