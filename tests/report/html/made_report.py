"""Reports for tests: four recorded runs, and sites of any size with one planted fault."""

from __future__ import annotations

import datetime
import gzip
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fabricproof.core.findings import as_notes, findings_of
from fabricproof.core.measure import Verdict
from fabricproof.core.records import QuantityRecord, read_records
from fabricproof.core.units import size_label
from fabricproof.history.compare.model import (
    Compared,
    Comparison,
    FieldChange,
    Group,
    NotCompared,
    Side,
)
from fabricproof.history.stats.shifts import Change, Shift
from fabricproof.history.stats.steps import Drift, Step
from fabricproof.history.store import Key, Matrix, Run, open_store
from fabricproof.history.trend.model import Event, FoundDrift, FoundStep, Trend
from fabricproof.job.run import LegResult, RunResult
from fabricproof.report.model import Band, JudgedBounds, RawNumber, ReportData

RECORDED = Path(__file__).with_name("recorded") / "records.jsonl.gz"
MADE = datetime.datetime(2026, 11, 21, 23, tzinfo=datetime.UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>\x00\ud800 &amp; \"quoted\" 'so' <!-- ]]>"
MARGIN = 0.03


def recorded_report(folder: Path) -> ReportData:
    """Return the report of the newest of four recorded runs, unpacked below ``folder``."""
    path = folder / "vcluster" / "compute" / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return report_of(folder, "vcluster")


def report_of(perflogs: Path, site: str, run_id: str | None = None) -> ReportData:
    """Return the report of a run of a real history; of the newest by default."""
    store = open_store(perflogs, site)
    run = next((each for each in store.runs if each.run_id == run_id), store.runs[-1])
    matrix = store.matrix([each.run_id for each in store.runs])
    known = {key: key for key in matrix.keys}
    raw: dict[Key, list[RawNumber]] = defaultdict(list)
    bounds: dict[Key, JudgedBounds] = {}
    fields = Key.__dataclass_fields__
    for row in store.samples(each.run_id for each in store.runs).iter_rows(named=True):
        key = Key(**{name: row[name] for name in fields})
        key = known.get(key, key)
        raw[key].append(
            RawNumber(
                run_id=row["run_id"],
                attempt=row["attempt"],
                counts=row["counts"],
                value=row["value"],
                verdict=row["verdict"],
                reason=row["reason"],
                file=row["file"],
                line=row["line"],
            )
        )
        if row["run_id"] == run.run_id and row["counts"]:
            bounds[key] = JudgedBounds(
                ceiling=row["ceiling"],
                ceiling_name=row["ceiling_name"] or "",
                reference=row["reference"],
                lower=row["lower"],
                upper=row["upper"],
                origin=row["origin"] or "",
            )
    records = [
        each
        for path in sorted((perflogs / site).glob("*/records.jsonl"))
        for each in read_records(path, on_torn=lambda _: None)
        if each.get("run_id") == run.run_id
    ]
    return ReportData(
        site=site,
        made=MADE,
        run=run,
        session=RunResult(run_id=run.run_id, legs=tuple(_legs(records))),
        matrix=matrix,
        bounds=bounds,
        raw={key: tuple(numbers) for key, numbers in raw.items()},
        notes=store.notes,
    )


def _legs(records: list[dict[str, Any]]) -> Iterable[LegResult]:
    for leg in records:
        if leg["kind"] != "leg":
            continue
        mine = tuple(
            QuantityRecord.read(each)
            for each in records
            if each["kind"] == "quantity"
            and each["counts"]
            and all(each[name] == leg[name] for name in ("leg", "unique_name", "stack", "job_id"))
        )
        guilty = [each for each in mine if each.verdict == leg["verdict"]]
        said = f"{guilty[0].name}: {guilty[0].reason}" if guilty else ""
        facts = ("check", "partition", "stack", "suite", "program", "fabric", "leg", "job_id")
        yield LegResult(
            verdict=Verdict(leg["verdict"]),
            **{name: leg[name] for name in facts},
            nodes=mine[0].nodes if mine else (),
            quantities=mine,
            findings=findings_of(leg),
            reason="" if leg["verdict"] == "PASS" else said,
            stage_folder=leg["stage_folder"],
            net_path=leg["road"],
        )


def made_report(
    *,
    num_nodes: int = 6,
    num_rails: int = 2,
    num_sizes: int = 23,
    nights: int = 12,
    all_pairs: bool = True,
    latency: bool = True,
    stacks: tuple[str, ...] = ("openmpi5",),
    spoil: str = "",
) -> ReportData:
    """Return the report of a made-up site.

    From the middle night on rail1 carries 7 % less and waits 9 % longer, with a firmware that is
    new there; in the last night the second pair fails on rail0 besides.

    Args:
        num_nodes: nodes, ``node1`` and on.
        num_rails: rails of each.
        num_sizes: message sizes, powers of two from 1 byte.
        nights: runs.
        all_pairs: every pair of nodes; else each node with the next.
        latency: whether the latency was measured besides the bandwidth.
        stacks: names of the stacks.
        spoil: put into every text that comes from outside.
    """
    nodes = [f"node{number}{spoil}" for number in range(1, num_nodes + 1)]
    if all_pairs:
        pairs = [(one, two) for at, one in enumerate(nodes) for two in nodes[at + 1 :]]
    else:
        pairs = [(node, nodes[(at + 1) % num_nodes]) for at, node in enumerate(nodes)]
    sizes = [2**power for power in range(num_sizes)]
    programs = ["osu_bw", "osu_latency"] if latency else ["osu_bw"]
    keys = [
        _key(stack, program, rail, pair, size, size == sizes[-1], spoil)
        for stack in stacks
        for program in programs
        for rail in range(num_rails)
        for pair in pairs
        for size in sizes
    ]
    runs = _runs(nights, nodes)
    values = _values(keys, nights, pairs)
    verdicts = [["PASS"] * nights for _ in keys]
    for row, key in enumerate(keys):
        if _is_bad(key, pairs) and key.message_size == sizes[-1]:
            verdicts[row][-1] = "FAIL"
    matrix = Matrix(
        keys=tuple(keys), runs=runs, values=values, verdicts=tuple(map(tuple, verdicts))
    )
    change = nights // 2
    return ReportData(
        site=f"made{spoil}",
        made=MADE,
        run=runs[-1],
        session=_session(matrix, runs[-1], spoil),
        matrix=matrix,
        bounds={key: _bounds(key, spoil) for key in keys},
        raw=_raw(matrix, spoil),
        bands={key: _band(key, values[row, :change]) for row, key in enumerate(keys)},
        comparison=_comparison(matrix, change, spoil),
        trend=_trend(matrix, change, spoil),
        machines=_machines(nodes, spoil),
        inventory_changes=(_firmware(nodes, spoil),),
        notes=(f"a torn last line was passed over{spoil}",),
    )


def _key(
    stack: str, program: str, rail: int, pair: tuple[str, str], size: int, named: bool, spoil: str
) -> Key:
    metric, unit = ("bandwidth", "MB/s") if program == "osu_bw" else ("latency", "us")
    return Key(
        site="made",
        partition=f"compute{spoil}",
        fabric="ib0",
        stack=f"{stack}{spoil}",
        build="51af25c1cd81",
        suite="osu",
        program=f"{program}{spoil}",
        tool_version="7.5",
        check=f"Osu{metric.title()}",
        leg=f"rail{rail}.hops{1 if abs(_number(pair[0]) - _number(pair[1])) < 3 else 3}",
        rails=f"rail{rail}",
        nodes=",".join(sorted(pair)),
        settings="num_pairs=1 window_size=64",
        quantity=f"{metric}_{size_label(size)}",
        unit=unit,
        message_size=size,
        better=1 if unit == "MB/s" else -1,
        named=named,
    )


def _number(node: str) -> int:
    return int("".join(filter(str.isdecimal, node[4:].split("<", maxsplit=1)[0])) or 0)


def _runs(nights: int, nodes: list[str]) -> tuple[Run, ...]:
    begin = datetime.datetime(2026, 10, 20, 2, tzinfo=datetime.UTC)
    starts = [begin + datetime.timedelta(days=night) for night in range(nights)]
    return tuple(
        Run(
            run_id=f"{start:%Y%m%dT%H%M%SZ}-{night:06d}",
            start=start,
            inventory=dict.fromkeys(nodes, "new" if night >= nights // 2 else "old"),
            builds={"openmpi5": "51af25c1cd81"},
            rows=1,
        )
        for night, start in enumerate(starts)
    )


def _typical(key: Key) -> float:
    size = key.message_size or 1
    if key.unit == "MB/s":
        return 24000 * size / (size + 16384)
    return 1.3 + size / 24000


def _is_bad(key: Key, pairs: list[tuple[str, str]]) -> bool:
    return key.rails == "rail0" and key.nodes == ",".join(sorted(pairs[min(1, len(pairs) - 1)]))


def _values(keys: list[Key], nights: int, pairs: list[tuple[str, str]]) -> Any:
    noise = np.random.default_rng(20261121).normal(0, 0.006, (len(keys), nights))
    level = np.array([_typical(key) for key in keys])[:, None] * np.exp(noise)
    after = np.arange(nights) >= nights // 2
    for row, key in enumerate(keys):
        if key.rails == "rail1":
            level[row] *= np.where(after, 0.93 if key.better > 0 else 1.09, 1)
        if _is_bad(key, pairs):
            level[row, -1] *= 0.71 if key.better > 0 else 1.6
    return level


def _bounds(key: Key, spoil: str) -> JudgedBounds:
    typical = _typical(key)
    if key.better > 0:
        top = min(25000.0, typical * 1.3)
        return JudgedBounds(
            ceiling=top,
            ceiling_name=f"link{spoil}",
            reference=typical,
            lower=typical * 0.9,
            upper=top * 1.02,
            origin=f"site references.toml{spoil}",
        )
    return JudgedBounds(
        ceiling=typical * 0.6,
        ceiling_name="wire",
        reference=typical,
        lower=typical * 0.6,
        upper=typical * 1.15,
        origin="site",
    )


def _band(key: Key, values: Any) -> Band:
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return Band(low=float(low), median=float(middle), high=float(high), baseline="2026-10")


def _raw(matrix: Matrix, spoil: str) -> dict[Key, tuple[RawNumber, ...]]:
    raw: dict[Key, tuple[RawNumber, ...]] = {}
    num = len(matrix.keys)
    for row, key in enumerate(matrix.keys):
        numbers: list[RawNumber] = []
        for column, run in enumerate(matrix.runs):
            value, verdict = float(matrix.values[row, column]), matrix.verdicts[row][column]
            share = f"{value / _typical(key):.1%} of {_typical(key):.5g} {key.unit}"
            first = RawNumber(
                run_id=run.run_id,
                attempt=1,
                counts=verdict == "PASS",
                value=value,
                verdict=verdict,
                reason=f"{share} (site){spoil}",
                file=f"perflogs/made/compute/records.jsonl{spoil}",
                line=column * num + row + 1,
            )
            numbers.append(first)
            if verdict != "PASS":
                numbers.append(replace(first, attempt=2, counts=True, line=first.line + 1))
        raw[key] = tuple(numbers)
    return raw


def _session(matrix: Matrix, run: Run, spoil: str) -> RunResult:
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(matrix.keys):
        groups[key.stack, key.program, key.leg, key.nodes].append(row)
    legs = [_leg(matrix, rows, spoil) for rows in groups.values()]
    first = legs[0]
    missing = replace(
        first,
        verdict=Verdict.MISSING,
        leg="rail9",
        quantities=(),
        net_path=None,
        reason="job 7: TIMEOUT",
    )
    return RunResult(run_id=run.run_id, legs=(*legs, missing))


def _leg(matrix: Matrix, rows: list[int], spoil: str) -> LegResult:
    key = matrix.keys[rows[0]]
    quantities = [_quantity(matrix, row) for row in rows]
    is_red = any(each.verdict is Verdict.FAIL for each in quantities)
    moved = {"state": "proved", "reason": f"all bytes on {key.rails}{spoil}", "bytes": 123456789}
    return LegResult(
        verdict=Verdict.FAIL if is_red else Verdict.PASS,
        check=key.check,
        partition=key.partition,
        stack=key.stack,
        suite=key.suite,
        program=key.program,
        fabric=key.fabric,
        leg=key.leg,
        nodes=tuple(key.nodes.split(",")),
        quantities=tuple(quantities),
        findings=as_notes([f"second look: red again{spoil}"]) if is_red else (),
        reason=f"{quantities[-1].name}: 71.0% of what it must be{spoil}" if is_red else "",
        job_id="42",
        stage_folder="/srv/stage",
        net_path=moved,
    )


def _quantity(matrix: Matrix, row: int) -> QuantityRecord:
    key = matrix.keys[row]
    return QuantityRecord(
        name=key.quantity,
        value=float(matrix.values[row, -1]),
        unit=key.unit,
        message_size=key.message_size,
        named=key.named,
        verdict=Verdict(matrix.verdicts[row][-1]),
        reason="",
        ceiling=_bounds(key, "").ceiling,
        rails=(key.rails,),
    )


def _shift(first: Any, second: Any, better: int) -> Shift:
    ratio = float(np.median(second) / np.median(first))
    wide = math.exp(
        2 * float(np.std(np.log(first)) + np.std(np.log(second))) / math.sqrt(len(first))
    )
    low, high = ratio / wide, ratio * wide
    change = Change.UNDECIDED
    if low > 1 / (1 + MARGIN) and high < 1 + MARGIN:
        change = Change.SAME
    elif high < 1 - MARGIN / 2 or low > 1 + MARGIN / 2:
        change = Change.BETTER if (ratio > 1) == (better > 0) else Change.WORSE
    return Shift(
        change=change,
        ratio=ratio,
        low=low,
        high=high,
        level=0.95,
        p=0.002 if change in {Change.BETTER, Change.WORSE} else 0.61,
        detectable=wide * wide,
        more_runs=4 if change is Change.UNDECIDED else 0,
        num_first=len(first),
        num_second=len(second),
        median_first=float(np.median(first)),
        median_second=float(np.median(second)),
    )


def _comparison(matrix: Matrix, change: int, spoil: str) -> Comparison:
    compared = []
    for row, key in enumerate(matrix.keys):
        first, second = matrix.values[row, :change], matrix.values[row, change:]
        compared.append(
            Compared(
                key=key, shift=_shift(first, second, key.better), first={}, second={}, note=spoil
            )
        )
    order = [Change.WORSE, Change.BETTER, Change.UNDECIDED, Change.SAME]
    compared.sort(key=lambda each: order.index(each.shift.change))
    return Comparison(
        site=f"made{spoil}",
        first=Side(words=f"firmware=28.39{spoil}", runs=matrix.runs[:change]),
        second=Side(words=f"firmware=28.41{spoil}", runs=matrix.runs[change:]),
        overall=Change.WORSE,
        reason=f"rail1 carries 7 % less on every pair{spoil}",
        quantities=tuple(compared),
        groups=tuple(_groups(matrix, change, spoil)),
        changes=(_firmware([], spoil),),
        warnings=(f"firmware and MTU changed together: they cannot be told apart{spoil}",),
        not_compared=(
            NotCompared(
                side=1, reason=f"not measured on the other side{spoil}", unlike=(), quantities=1
            ),
        ),
        alpha=0.05,
        margins={"bandwidth": 0.03, "latency": 0.05},
    )


def _groups(matrix: Matrix, change: int, spoil: str) -> Iterable[Group]:
    kinds: dict[str, Any] = {
        "overall": lambda key: "all",
        "rail": lambda key: key.rails,
        "pair": lambda key: key.pair,
        "node": lambda key: key.nodes.split(",")[0],
        "stack": lambda key: key.stack,
    }
    for kind, name_of in kinds.items():
        rows: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row, key in enumerate(matrix.keys):
            rows[name_of(key), key.quantity.partition("_")[0]].append(row)
        for (name, metric), mine in rows.items():
            level = matrix.values[mine] / matrix.values[mine][:, :1]
            typical = np.median(level, axis=0)
            shift = _shift(typical[:change], typical[change:], matrix.keys[mine[0]].better)
            yield Group(
                kind=kind,
                name=name,
                metric=metric,
                change=shift.change,
                shift=None if kind == "overall" else shift,
                counts={shift.change: len(mine)},
                sentence=f"{len(mine)} quantities of {metric}{spoil}",
            )


def _trend(matrix: Matrix, change: int, spoil: str) -> Trend:
    rows = [row for row, key in enumerate(matrix.keys) if key.rails == "rail1" and key.named]
    run = matrix.runs[change]
    steps = tuple(
        FoundStep(
            key=matrix.keys[row],
            step=Step(row=row, at=change, earliest=change, latest=change, ratio=0.93, p=0.001),
            worse=True,
            run=run,
        )
        for row in rows[:40]
    )
    event = Event(
        run=run,
        steps=steps,
        where=f"rail1{spoil}",
        coincides=(f"firmware of rail1 on all nodes: 28.39 to 28.41{spoil}",),
        sentence=f"rail1 loses 7 % on {len(rows)} quantities{spoil}",
    )
    drift = FoundDrift(
        key=matrix.keys[0],
        drift=Drift(row=0, per_run=0.998, total=0.95, p=0.01),
        worse=True,
        run=matrix.runs[0],
    )
    return Trend(
        site="made",
        runs=matrix.runs,
        num_quantities=len(matrix.keys),
        num_short=3,
        events=(event,),
        drifts=(drift,),
        warnings=(f"a clock jumped{spoil}",),
        alpha=0.05,
    )


def _firmware(nodes: list[str], spoil: str) -> FieldChange:
    return FieldChange(
        part=f"interface rail1{spoil}",
        fact="firmware",
        nodes=tuple(nodes),
        first=f"28.39{spoil}",
        second="28.41",
        sentence=f"firmware of rail1: 28.39 before, 28.41 after{spoil}",
    )


def _machines(nodes: list[str], spoil: str) -> Mapping[str, Any]:
    return {
        node: {
            "node": {"kernel": "6.8.0", "memory_gib": 512, "serial": f"S{at}{spoil}"},
            f"interface rail0{spoil}": {"firmware": "28.39", "mtu": 4096 if at else 2048},
            "interface rail1": {"firmware": "28.41", "rate_gb_s": 200},
        }
        for at, node in enumerate(nodes)
    }
