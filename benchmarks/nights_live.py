"""Nights made for real, of which a rail is slower: what compare, trend and a baseline say.

    .venv/bin/python benchmarks/nights_live.py [--of KIND] [--draws N | --again]

Without ``--draws`` it prints what the first seeds draw and measures nothing.  Else one virtual
cluster comes up (root), some 13 seconds a night.  Kinds are steps,
noise, drift and others.  Of steps: healthy nights are measured once, then
for each draw nights on which a rail has a drawn share of its rate, a little less than its rate,
another firmware, and is down, then healthy ones again; each history of the library is made of
these.  Of noise: twenty nights a draw, in each of which a drawn number of busy loops wants the
cores, and no fault.  Of drift: twenty a draw, in which a rail loses a little more each night.  Of
others: seven quiet nights a draw, then seven beside a drawn number of busy loops.
``--again`` asks of the nights that were measured last.  Rows go to
``work/nights_live.jsonl`` (``proof.live``).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proof.library import read_library
from proof.live import LiveDraw

ROOT = Path(__file__).parents[1]
NAME = "nightslive"
WORK = ROOT / "work" / "nights-live"
ROWS = ROOT / "work" / "nights_live.jsonl"
FABRICPROOF = ROOT / "bin" / "fabricproof"
RAILS = ("rail0", "rail1")
#: a process that wants a core as long as it lives
BUSY = (sys.executable, "-c", "while True: pass")
#: nights before any fault, of each draw, and after all of them
BEFORE, SLOW, AFTER = 20, 7, 6
#: the most busy loops of a noisy night
MOST_BUSY = 2
#: nights on each side, that cannot tell, and of a baseline; and of what is below the margin, of
#: another firmware, and of a rail that is down
SIDE, FEW, LEARNT = 7, 3, 10
OTHERS = {"mild": ("--rate 98.5%", 5), "firmware": ("--firmware drawn", 5), "silent": ("--down", 3)}

Runs = Sequence[str]


def environment() -> dict[str, str]:
    """Return what every command here has in its environment."""
    return {
        **os.environ,
        "FABRICPROOF_VCLUSTER": NAME,
        "FABRICPROOF_WORK": str(WORK),
        "FABRICPROOF_PERFLOGS": str(WORK / "perflogs"),
        "FABRICPROOF_NODES": "vc1,vc2",
    }


def vcluster(*words: str) -> None:
    """Run a command of the virtual cluster."""
    command = [sys.executable, "-m", "vcluster", words[0], "--name", NAME, *words[1:]]
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120, check=True)


def asked(site: Path, *words: str) -> dict[str, Any]:
    """Return the JSON of a command, with its exit status and what it said."""
    command = [FABRICPROOF, *words, "--site", site, "--json"]
    done = subprocess.run(
        list(map(str, command)),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return {"exit": done.returncode, "said": done.stderr, **json.loads(done.stdout or "{}")}


def nights(site: Path, number: int) -> dict[str, str]:
    """Measure so many nights; return their runs, each with its verdict."""
    check = ["-c", str(ROOT / "checks" / "pt2pt" / "pairs.py"), "-n", "^OsuBandwidth%"]
    runs = {}
    for _ in range(number):
        night = asked(site, "run", *check, "-p", "^openmpi5$")
        if night["verdict"] == "SKIPPED":
            raise SystemExit(night["said"] or json.dumps(night["legs"]))
        runs[night["run_id"]] = night["verdict"]
        print(night["run_id"], night["verdict"], flush=True)
    return runs


def compared(site: Path, before: Runs, after: Runs) -> tuple[str, set[str], str]:
    """Return the word of a comparison, the rails that moved, and what was said."""
    found = asked(site, "compare", ",".join(before), ",".join(after))
    moved = {
        each["key"]["rails"]
        for each in found["quantities"]
        if each["shift"]["change"] in {"WORSE", "BETTER"}
    }
    return found["overall"], moved, json.dumps(found)


def over_time(site: Path, runs: Runs) -> tuple[str, set[str], str]:
    """Return the word of a trend, the rails that changed, and what was said."""
    found = asked(site, "trend", ",".join(runs))
    word = {1: "WORSE", 5: "UNDECIDED"}.get(found["exit"], "SAME")
    steps = [step for event in found["events"] for step in event["steps"]]
    rails = {each["key"]["rails"] for each in (*steps, *found["drifts"])}
    rails |= {rail for rail in RAILS for each in found["silent"] if rail in each}
    return word, rails, json.dumps(found)


def by_baseline(site: Path, learnt: Runs, looks: Runs) -> tuple[str, set[str], str]:
    """Return whether a night and its second look are beyond a baseline, by the same numbers."""
    frozen = asked(site, "baseline", "freeze", "drawn", ",".join(learnt), "--replace")
    found = [asked(site, "baseline", "diff", "drawn", run)["rows"] for run in looks]
    red = [{(each["leg"], each["quantity"]) for each in rows if each["outside"]} for rows in found]
    twice = set.intersection(*red)
    rails = {each["rails"] for each in found[0] if (each["leg"], each["quantity"]) in twice}
    return ("FAIL" if twice else "PASS"), rails, json.dumps(found) + frozen["said"]


def histories(
    site: Path, before: Runs, slow: Runs, after: Runs
) -> Iterator[tuple[str, tuple[str, set[str], str], bool]]:
    """Yield title, what was said, and whether the rail is to be named, of each history."""
    title = "rail slower than it was, "
    yield title + "two sides compared", compared(site, before[-SIDE:], slow), True
    few = compared(site, before[-FEW:], slow[:FEW])
    yield title + "three nights against three", few, False
    yield title + "as a step", over_time(site, [*before[SLOW:], *slow]), True
    yield title + "since the last night", over_time(site, [*before[1:], slow[0]]), True
    yield title + "since two nights", over_time(site, [*before[2:], *slow[:2]]), True
    back = [*before[-SIDE:], *slow, *after]
    yield title + "as a step that was taken back", over_time(site, back), False
    yield (
        title + "than its baseline of ten nights",
        by_baseline(site, before[:LEARNT], slow[:2]),
        True,
    )
    yield "one bad night", over_time(site, [*before[-13:], slow[0], *after]), False


def others(
    site: Path, before: Runs, drawn: dict[str, dict[str, str]]
) -> Iterator[tuple[str, tuple[str, set[str], str], bool]]:
    """Yield the same of what changed no number, or left none, and of baselines of sick nights."""
    mild, firmware, silent = (list(drawn[each]) for each in OTHERS)
    title = "change below the margin, "
    yield title + "two sides compared", compared(site, before[-SIDE:], mild), False
    yield title + "over the nights", over_time(site, [*before, *mild]), False
    yield "firmware that changes nothing", compared(site, before[-SIDE:], firmware), False
    title = "rail that is no longer measured, "
    yield title + "two sides compared", compared(site, before[-SIDE:], silent), False
    yield title + "over the nights", over_time(site, [*before, *silent]), True
    slow, title = list(drawn["slow"]), "baseline frozen on a sick night"
    sick = [*before[: LEARNT - 1], slow[0]]
    yield title, by_baseline(site, sick, slow[1:3]), True
    verdicts = {drawn["slow"][each] for each in slow[:FEW]}
    how = {"FAIL": ", on three of ten, which failed", "PASS": ", on three of ten, which passed"}
    if len(verdicts) == 1:
        sick = [*before[: LEARNT - FEW], *slow[:FEW]]
        yield title + how[verdicts.pop()], by_baseline(site, sick, slow[FEW : FEW + 2]), True


def healthy(site: Path, before: Runs) -> Iterator[tuple[str, tuple[str, set[str], str], bool]]:
    """Yield the same of histories without a change."""
    yield (
        "nothing changed, two sides compared",
        compared(site, before[:SIDE], before[SIDE : 2 * SIDE]),
        False,
    )
    yield "nothing changed, over the nights", over_time(site, before), False
    judged = by_baseline(site, before[:LEARNT], before[LEARNT : LEARNT + 2])
    yield "nothing changed, a night judged by a baseline of ten", judged, False


def drawn(seed: int) -> tuple[str, int]:
    """Return the rail and its share of the rate, in percent."""
    dice = random.Random(f"nights {seed}")
    return dice.choice(RAILS), dice.randint(80, 92)


def row(
    title: str, of: tuple[str, set[str], str], draw: str, *, rail: str, named: bool
) -> LiveDraw:
    """Return what one history came to."""
    entry = next(each for each in read_library() if each.title == title)
    word, rails, _ = of
    return LiveDraw(
        fault=title,
        by="nights",
        draw=draw,
        verdict=word,
        caught=word in {each.value for each in entry.verdicts},
        blamed=rails == {rail} if named else None,
        date=datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d"),
        load=round(os.getloadavg()[0], 1),
    )


def keep(found: LiveDraw, said: str) -> None:
    """Write a row, and print it."""
    with ROWS.open("a") as file:
        file.write(json.dumps(asdict(found)) + "\n")
    print(json.dumps(asdict(found)), "" if found.caught else said[:2000], flush=True)


def measure_steps(site: Path, draws: int) -> dict[str, Any]:
    """Measure the nights; return the runs before any fault, of each draw, and after all of them."""
    before = nights(site, BEFORE)
    made: dict[str, dict[str, dict[str, str]]] = {}
    for seed in range(1, draws + 1):
        rail, share = drawn(seed)
        made[str(seed)] = {}
        for name, (fault, number) in {"slow": (f"--rate {share}%", SLOW), **OTHERS}.items():
            vcluster("fault", "vc1", rail, *fault.split())
            made[str(seed)][name] = nights(site, number)
            vcluster("fault", "vc1", rail, "--clear")
    return {"before": before, "drawn": made, "after": nights(site, AFTER)}


def measure_noise(site: Path, draws: int) -> dict[str, Any]:
    """Measure twenty nights of each draw, each beside as many busy loops as are drawn."""
    return {str(seed): _noisy(site, random.Random(f"noise {seed}")) for seed in seeds(draws)}


def measure_others(site: Path, draws: int) -> dict[str, Any]:
    """Measure quiet nights of each draw, and as many beside busy loops."""
    made = {}
    for seed in seeds(draws):
        quiet = nights(site, SIDE)
        with busy(_loops(seed)):
            made[str(seed)] = {"quiet": quiet, "disturbed": nights(site, SIDE)}
    return made


def _loops(seed: int) -> int:
    return random.Random(f"others {seed}").randint(6, 12)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Have so many busy loops meanwhile."""
    running = [subprocess.Popen(BUSY) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def _noisy(site: Path, dice: random.Random) -> dict[str, str]:
    runs: dict[str, str] = {}
    for _ in range(BEFORE):
        with busy(dice.randint(0, MOST_BUSY)):
            runs |= nights(site, 1)
    return runs


def measure_drift(site: Path, draws: int) -> dict[str, Any]:
    """Measure twenty nights of each draw, on each of which the rail has lost a little more."""
    made: dict[str, dict[str, str]] = {}
    for seed in seeds(draws):
        rail, share = drawn(seed)
        made[str(seed)] = {}
        for night in range(BEFORE):
            left = 100 - (100 - share) * night / (BEFORE - 1)
            vcluster("fault", "vc1", rail, "--rate", f"{left:.1f}%")
            made[str(seed)] |= nights(site, 1)
        vcluster("fault", "vc1", rail, "--clear")
    return made


def seeds(draws: int) -> range:
    """Return the seeds of so many draws."""
    return range(1, draws + 1)


def keep_steps(site: Path, measured: dict[str, Any]) -> None:
    """Ask of steps."""
    before, after = list(measured["before"]), list(measured["after"])
    for title, of, _ in healthy(site, before):
        keep(row(title, of, "", rail="", named=False), of[2])
    for seed, runs in measured["drawn"].items():
        rail, share = drawn(int(seed))
        told = histories(site, before, list(runs["slow"]), after)
        for title, of, named in (*told, *others(site, before, runs)):
            keep(row(title, of, f"vc1 {rail} {share}%", rail=rail, named=named), of[2])


def keep_noise(site: Path, measured: dict[str, Any]) -> None:
    """Ask of nights that are noisy and without a fault."""
    noisy = {
        "nothing changed, two sides compared": "two sides of a noisy fabric compared",
        "nothing changed, over the nights": "over the nights of a noisy fabric",
        "nothing changed, a night judged by a baseline of ten": (
            "a night of a noisy fabric judged by a baseline of ten"
        ),
    }
    for seed, runs in measured.items():
        for title, of, _ in healthy(site, list(runs)):
            of_noise = f"nothing changed, {noisy[title]}"
            keep(row(of_noise, of, f"noise {seed}", rail="", named=False), of[2])


def keep_others(site: Path, measured: dict[str, Any]) -> None:
    """Ask of sides of which others disturbed one, whichever that is."""
    for seed, runs in measured.items():
        disturbed, quiet = list(runs["disturbed"]), list(runs["quiet"])
        draw = f"{_loops(int(seed))} busy loops"
        title = "nothing changed, two sides compared, of which others disturbed one"
        for said, sides in (("after", (quiet, disturbed)), ("before", (disturbed, quiet))):
            of = compared(site, *sides)
            keep(row(title, of, f"{draw} {said}", rail="", named=False), of[2])
        of = over_time(site, [*quiet, *disturbed])
        title = "nothing changed, over nights of which others disturbed the later ones"
        keep(row(title, of, draw, rail="", named=False), of[2])


def keep_drift(site: Path, measured: dict[str, Any]) -> None:
    """Ask of a rail that lost a little each night."""
    for seed, runs in measured.items():
        rail, share = drawn(int(seed))
        of = over_time(site, list(runs))
        title = "rail slower than it was, a little each night"
        keep(row(title, of, f"vc1 {rail} to {share}%", rail=rail, named=True), of[2])


KINDS = {
    "steps": (measure_steps, keep_steps),
    "noise": (measure_noise, keep_noise),
    "drift": (measure_drift, keep_drift),
    "others": (measure_others, keep_others),
}


def main() -> None:
    """Measure the nights of so many draws, or say what they draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--of", choices=KINDS, default="steps")
    given = parser.parse_args()
    measure, ask = KINDS[given.of]
    if not given.draws and not given.again:
        for seed in (1, 2, 3):
            print("{}: {} % of its rate".format(*drawn(seed)))
        return
    site, kept = WORK / "site", WORK / f"{given.of}.json"
    if not given.again:
        shutil.rmtree(WORK, ignore_errors=True)
        shutil.copytree(ROOT / "site-configs" / "vcluster", site)
        vcluster("down")
        vcluster("up")
        try:
            kept.write_text(json.dumps(measure(site, given.draws)))
        finally:
            vcluster("down")
    ask(site, json.loads(kept.read_text()))


if __name__ == "__main__":
    main()
