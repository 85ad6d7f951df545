"""Who is blamed for faults that are made for real: campaigns on a virtual cluster, with a table.

    .venv/bin/python benchmarks/pairs_live.py [--full] [--confirm] [CASE[:SEED] ...]
    .venv/bin/python benchmarks/pairs_live.py --table FILE.jsonl
    .venv/bin/python benchmarks/pairs_live.py --draws FILE.jsonl >> proof/live.jsonl

Without a case it prints what each case draws from its first seeds and measures nothing; ``--full``
measures all of them, two seeds each; ``--confirm`` has red measured by stock programs as well.  A
case brings up a cluster of its own (root; a fault, two minutes) and takes it down.  Rows go to
``work/pairs_live.jsonl``, which ``--table`` prints, and ``--draws`` as docs/proof.md counts them.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from proof.live import LiveDraw

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "work" / "pairs_live.jsonl"
NAME = "pairslive"
WORK = ROOT / "work" / "pairs-live"
ENVIRONMENT = {**os.environ, "FABRICPROOF_VCLUSTER": NAME, "FABRICPROOF_WORK": str(WORK)}
NODES, LEAVES, RATE_MBIT, UPLINK_MBIT = 16, 4, 25, 100
SECONDS = 0.3
#: of a soak; and line rate of the rails of a node that asks for admission
SOAK_MINUTES, ADMIT_MBIT = "4", 200


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Faults that are put in, and who must be blamed.

    Attributes:
        faults: words for ``vcluster fault``.
        blame: kind, name and direction of each.
        options: of ``pairs run``.
        uplink_mbit: line rate of the cluster's uplinks.
        note: what must be said where nobody is to be blamed, as nothing could be measured.
        verdict: the right one where somebody is to be blamed.
        admit: the node that asks for admission; empty: all are measured.
        moments: seconds after ranks began at which each of ``faults`` is made; none: before all.
        launch: which launch's ranks these are, from 1: each rail is measured by one of its own.
    """

    faults: tuple[str, ...] = ()
    moments: tuple[float, ...] = ()
    launch: int = 1
    blame: frozenset[tuple[str, str, str]] = frozenset()
    note: str = ""
    verdict: str = "FAIL"
    admit: str = ""
    options: tuple[str, ...] = ()
    uplink_mbit: int = UPLINK_MBIT


HEALTHY = Draw()


#: a direction of ``vcluster fault`` -> what is said of it
WAYS = {"in": "receive", "out": "transmit", "": "both"}


def _bad_rail(dice: random.Random, fault: str, way: str = "") -> Draw:
    node, rail = dice.randint(1, NODES), dice.randint(0, 1)
    words = f"vc{node} rail{rail} {fault}" + (f" --direction {way}" if way else "")
    blame = ("rail", f"vc{node} rail{rail}", WAYS[way])
    return Draw(faults=(words,), blame=frozenset({blame}))


def _slow_rail(dice: random.Random, share: int, way: str = "") -> Draw:
    return _bad_rail(dice, f"--rate {share}%", way)


def _cut(dice: random.Random) -> Draw:
    node, rail = dice.randint(1, NODES), dice.randint(0, 1)
    return Draw(faults=(f"vc{node} rail{rail} --down",), note=f"not up: vc{node} rail{rail} down")


def _flaps(dice: random.Random) -> Draw:
    """While it is measured a rail goes away for a moment, three times."""
    node, rail = dice.randint(1, NODES), dice.randint(0, 1)
    moments = [1 + 2 * index + dice.random() for index in range(3)]
    return Draw(
        faults=(f"vc{node} rail{rail} --down", f"vc{node} rail{rail} --clear") * len(moments),
        blame=frozenset({("rail", f"vc{node} rail{rail}", "both")}),
        moments=tuple(each for moment in moments for each in (moment, moment + 0.2)),
        launch=rail + 1,
    )


def _slow_rails(dice: random.Random) -> Draw:
    node = dice.randint(1, NODES)
    return Draw(faults=(f"vc{node} --rate 70%",), blame=frozenset({("node", f"vc{node}", "both")}))


def _slow_uplink(dice: random.Random) -> Draw:
    leaf, rail, way = dice.randint(1, LEAVES), dice.randint(0, 1), dice.choice(["in", "out"])
    return Draw(
        faults=(f"uplink{leaf} rail{rail} --rate 40% --direction {way}",),
        blame=frozenset({("uplink", f"leaf{leaf} rail{rail}", WAYS[way])}),
    )


def _slow_leaf(dice: random.Random) -> Draw:
    leaf = dice.randint(1, LEAVES)
    return Draw(
        faults=(f"leaf{leaf} --rate 50%",),
        blame=frozenset({("leaf", f"leaf{leaf}", "both")}),
    )


def _bad_pair(dice: random.Random) -> Draw:
    one, other = sorted(dice.sample(range(1, NODES + 1), 2))
    return Draw(
        faults=(f"vc{one} --with vc{other} --rate 40%",),
        blame=frozenset({("pair", f"vc{one} - vc{other}", "both")}),
        options=("--full",),
    )


def _slow_node(dice: random.Random) -> Draw:
    node = dice.randint(1, NODES)
    return Draw(faults=(f"vc{node} --cpu 1",), blame=frozenset({("node", f"vc{node}", "both")}))


def _crossed(dice: random.Random) -> Draw:
    node = dice.randint(1, NODES)
    blame = {("rail", f"vc{node} rail{rail}", "both") for rail in (0, 1)}
    return Draw(faults=(f"vc{node} --crossed",), blame=frozenset(blame), verdict="INVALID")


def _asks(fault: Callable[[random.Random], Draw] | None = None) -> Callable[[random.Random], Draw]:
    """Return how a node is drawn that asks for admission, whatever is wrong with it."""

    def draw(dice: random.Random) -> Draw:
        of = fault(dice) if fault else Draw()
        node = of.faults[0].split()[0] if of.faults else f"vc{dice.randint(1, NODES)}"
        return replace(of, admit=node)

    return draw


def _soaks(fault: Callable[[random.Random], Draw]) -> Callable[[random.Random], Draw]:
    return lambda dice: replace(fault(dice), options=("--for", SOAK_MINUTES))


def _thin_uplinks(dice: random.Random) -> Draw:
    """Every uplink of a rail carries less than is declared: no cable of one leaf is at fault."""
    rail, share = dice.randint(0, 1), dice.randint(30, 45)
    return Draw(
        faults=tuple(f"uplink{leaf} rail{rail} --rate {share}%" for leaf in range(1, LEAVES + 1)),
        verdict="UNJUDGED",
    )


def _two(dice: random.Random) -> Draw:
    one = _slow_rail(dice, 30, "in")
    while True:
        other = _slow_rail(dice, 50, "out")
        if other.faults[0].split()[0] != one.faults[0].split()[0]:
            return Draw(faults=one.faults + other.faults, blame=one.blame | other.blame)


CASES: dict[str, Callable[[random.Random], Draw]] = {
    "clean": lambda _: Draw(),
    "clean-full": lambda _: Draw(options=("--full",)),
    "receive-30": lambda dice: _slow_rail(dice, 30, "in"),
    "receive-half": lambda dice: _slow_rail(dice, 50, "in"),
    "transmit-half": lambda dice: _slow_rail(dice, 50, "out"),
    "half": lambda dice: _slow_rail(dice, 50),
    "lanes": lambda dice: _slow_rail(dice, 75),
    "slot": lambda dice: _slow_rail(dice, dice.randint(35, 70)),
    "flap": _flaps,
    "memory": _slow_rails,
    "loss": lambda dice: _bad_rail(dice, "--loss 0.3"),
    "loss-in": lambda dice: _bad_rail(dice, "--loss 0.3", "in"),
    "loss-out": lambda dice: _bad_rail(dice, "--loss 0.3", "out"),
    "dead": _cut,
    "uplink": _slow_uplink,
    "leaf": _slow_leaf,
    "pair": _bad_pair,
    "cpu": _slow_node,
    "crossed": _crossed,
    "thin": _thin_uplinks,
    "two": _two,
    "admit-clean": _asks(),
    "admit-receive": _asks(lambda dice: _slow_rail(dice, dice.randint(40, 60), "in")),
    "admit-loss": _asks(lambda dice: _bad_rail(dice, "--loss 0.01")),
    "soak-clean": _soaks(lambda _: Draw()),
    "soak-loss": _soaks(lambda dice: _bad_rail(dice, "--loss 0.01")),
}


#: case -> its title in the fault library, where it is one of it
TITLES = {
    "clean": "",
    "clean-full": "",
    "receive-30": "half-rate link, what the node receives",
    "receive-half": "half-rate link, what the node receives",
    "transmit-half": "half-rate link, what the node sends",
    "half": "half-rate link",
    "lanes": "link trained to fewer lanes",
    "slot": "slow PCIe slot",
    "flap": "flapping link",
    "memory": "slow node (memory)",
    "loss-in": "one-way loss (receive)",
    "loss-out": "one-way loss (transmit)",
    "dead": "dead link",
    "uplink": "slow uplink",
    "leaf": "slow leaf",
    "pair": "a bad pair only",
    "cpu": "slow node (CPU)",
    "crossed": "rails cabled crosswise",
    "thin": "oversubscribed uplink beyond what is declared",
    "admit-clean": "",
    "admit-receive": "half-rate link, what the node receives",
    "admit-loss": "loss of 1e-4 with bandwidth intact, of a node that asks for admission",
    "soak-clean": "",
    "soak-loss": "loss of 1e-4 with bandwidth intact",
}


#: first word of a case -> what measures it, where it is no usual campaign
BY = {"admit": "admit", "soak": "pairs run --for"}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a campaign came to.

    Attributes:
        case: name.
        seed: of the draw.
        faults: words for ``vcluster fault``.
        expected: who must be blamed.
        verdict: of the campaign.
        blame: kind, name, direction, share and confidence of each that was blamed.
        notes: why it is not PASS, undecided ones, and what was disturbed.
        note: one of them that must be there.
        due: the right verdict where somebody is to be blamed.
        load: processes that wanted a core when it began, averaged over a minute.
        date: when, in UTC.
        rounds: measured, over all paths.
        seconds: wall time of ``pairs run``.
        level: least, mean and most MB/s of each path.
    """

    case: str
    seed: int
    faults: list[str]
    expected: list[list[str]]
    verdict: str
    blame: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    note: str = ""
    due: str = "FAIL"
    load: float = 0.0
    rounds: int = 0
    seconds: float = 0.0
    level: dict[str, list[float]] = field(default_factory=dict)
    date: str = ""

    @property
    def draw(self) -> LiveDraw:
        """It, as the self-proof counts it."""
        due = "MISSING" if self.note else self.due
        is_red = self.verdict in {"FAIL", "INVALID", "MISSING"}
        return LiveDraw(
            fault=TITLES[self.case],
            by=BY.get(self.case.partition("-")[0], "pairs run"),
            draw="; ".join(self.faults),
            verdict=self.verdict,
            caught=self.verdict == due if self.faults else not is_red,
            blamed=self.is_right if self.faults else not self.blame,
            date=self.date,
            load=self.load,
        )

    @property
    def is_right(self) -> bool:
        """Tell whether these and no others are blamed, and nothing is red without a fault."""
        found = sorted([each["kind"], each["name"], each["direction"]] for each in self.blame)
        if self.case == "flap" or self.case.endswith("-loss"):
            # It is blamed for its downs, and as a rule for what it lost one way meanwhile, too; and
            # which way packets were lost is told only where there were enough.
            whom = {(each["kind"], each["name"]) for each in self.blame}
            return whom == {(kind, name) for kind, name, _ in self.expected}
        if self.note:
            return not found and self.verdict == "MISSING" and self.note in self.notes
        due = {self.due} if self.faults else {"PASS", "UNJUDGED"}
        return found == sorted(self.expected) and self.verdict in due


def vcluster(verb: str, *words: str) -> str:
    """Return what a command of the virtual cluster prints."""
    command = [sys.executable, "-m", "vcluster", verb, "--name", NAME, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def site_in(folder: Path, *, is_usual: bool) -> Path:
    """Return the site of the cluster, written into a folder, or the usual one."""
    site = folder / "site"
    shutil.copytree(ROOT / "site-configs" / "vcluster", site)
    if is_usual:
        return site
    changes = (
        ("fabric.toml", r"200MbE", f"{RATE_MBIT}MbE"),
        ("site.toml", r'max_message_size = "\w+"', 'max_message_size = "128KiB"'),
        ("site.toml", r"leg_seconds = [\d.]+", f"leg_seconds = {SECONDS}"),
        ("site.toml", r"num_nodes = \d+", f"num_nodes = {NODES}"),
    )
    for name, pattern, text in changes:
        file = site / name
        changed, count = re.subn(pattern, text, file.read_text())
        assert count, (name, pattern)
        file.write_text(changed)
    return site


@contextmanager
def cluster(draw: Draw = HEALTHY) -> Iterator[list[Path | str]]:
    """Bring a cluster up; give the command of a campaign or an admission, and take it down."""
    rate = ADMIT_MBIT if draw.admit else RATE_MBIT
    sizes = ["--nodes", str(NODES), "--leaves", str(LEAVES), "--rate", f"{rate}mbit"]
    uplink = draw.uplink_mbit * rate // RATE_MBIT
    vcluster("down")
    vcluster("up", *sizes, "--uplink", f"{uplink}mbit")
    words = ["admit", draw.admit] if draw.admit else ["pairs", "run", "--over", "each"]
    try:
        # Not below /tmp, of which each node has its own.
        WORK.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WORK) as folder:
            site = site_in(Path(folder), is_usual=bool(draw.admit))
            yield [ROOT / "bin" / "fabricproof", *words, "--json", "--site", site, *draw.options]
    finally:
        vcluster("down")


def campaign(draw: Draw, *, confirm: bool = False) -> tuple[dict[str, Any], float]:
    """Measure one draw on a cluster of its own; return what the command printed and its wall time.

    Args:
        draw: the faults.
        confirm: have red measured by stock programs, which takes as long again.
    """
    with cluster(draw) as command:
        if not draw.moments:
            for each in draw.faults:
                vcluster("fault", *each.split())
        command.extend([] if confirm or draw.admit else ["--no-confirm"])
        since, begin = time.time(), time.monotonic()
        process = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if draw.moments:
            _make_meanwhile(draw, since)
        out, err = process.communicate(timeout=900)
        took = time.monotonic() - begin
    if not out:
        raise SystemExit(err)
    print(err, file=sys.stderr)
    return json.loads(out), took


def _make_meanwhile(draw: Draw, since: float) -> None:
    """Make the faults at their moments once a rank's program is there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _launches(since) < draw.launch:
        time.sleep(0.05)
    begin = time.monotonic()
    for fault, moment in zip(draw.faults, draw.moments, strict=True):
        time.sleep(max(0.0, begin + moment - time.monotonic()))
        vcluster("fault", *fault.split())


def _launches(since: float) -> int:
    """Return of how many launches the kernel has begun its record since then."""
    return sum(each.stat().st_mtime > since for each in WORK.rglob("launch.*/record.jsonl"))


def seen(case: str, seed: int, *, confirm: bool = False) -> Seen:
    """Measure one draw of a case."""
    draw = CASES[case](random.Random(f"{case} {seed}"))
    load = round(os.getloadavg()[0], 1)
    record, took = campaign(draw, confirm=confirm)
    (ROOT / "work" / f"pairs_live.{case}.{seed}{'.confirm' * confirm}.json").write_text(
        json.dumps(record)
    )
    if draw.admit:
        (node,) = record["nodes"]
        is_red = node["verdict"] != "PASS"
        blamed, notes, level = (_refused(node["reasons"]) if is_red else []), node["reasons"], {}
        blamed += [{"kind": "node", "name": each} for each in record["bad_partners"]]
    else:
        blamed, notes, level = _judged(record)
    return Seen(
        case=case,
        seed=seed,
        faults=list(draw.faults),
        expected=sorted(list(each) for each in draw.blame),
        verdict=record["verdict"],
        blame=blamed,
        notes=notes,
        note=draw.note,
        due=draw.verdict,
        load=load,
        date=datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d"),
        rounds=record.get("rounds", 0),
        seconds=round(took, 1),
        level=level,
    )


def _judged(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    """Return who a campaign blames, what it notes, and the level of each path."""
    own = [each for each in record["results"] if each["quantity"] == "bandwidth"]
    blamed = [
        {**one, "kind": one["fact"], "direction": one["where"]["direction"]}
        for each in own
        for one in each["blame"]
    ]
    blamed += [each for each in record["losses"] if each["verdict"] == "FAIL"]
    for each in (*record["down_links"], *record["wrong_paths"]):
        name = f"{each['where']['node']} {each['where']['rail']}"
        blamed.append({"kind": "rail", "name": name, "direction": "both", "sentence": each["text"]})
    notes = [each["reason"] for each in own if each["verdict"] != "PASS"] + record["notes"]
    level = {
        each["net_path"]: [each[key] for key in ("least", "mean", "most")]
        for result in own
        for each in result["population"]
    }
    return blamed, notes, level


def _refused(reasons: list[str]) -> list[dict[str, Any]]:
    """Return the rails that the reasons of an admission name."""
    ways = {"receives": "receive", "sends": "transmit"}
    return [
        {"kind": "rail", "name": name, "direction": ways.get(word, "both"), "sentence": reason}
        for reason in reasons
        for name, word in _named(reason)
    ]


def _named(reason: str) -> list[tuple[str, str]]:
    """Return rail and verb of what a reason names first."""
    lost = re.findall(r"of what (vc\d+) ([a-z ]+) over (rail\d)", reason)
    if lost:
        return [(f"{node} {rail}", word) for node, word, rail in lost[:1]]
    return re.findall(r"(vc\d+ rail\d)\W* (\w+)", reason)[:1]


def _how_sure(blame: dict[str, Any]) -> str:
    if "confidence" in blame:
        return f"{blame['share']:.0%}, {blame['confidence']:.3g}"
    if "events" not in blame:
        return str(blame["sentence"])
    return f"{blame['events']} of {blame['packets']} packets lost"


def table(rows: Iterable[Seen]) -> str:
    """Return rows as a Markdown table, the wrong ones marked."""
    lines = ["| case | fault | verdict | blamed (share, confidence) | right |", "| --- " * 5 + "|"]
    for row in rows:
        blamed = "; ".join(
            f"{each['kind']} {each['name']} {each['direction']} ({_how_sure(each)})"
            for each in row.blame
        )
        fault = "; ".join(f"`{each}`" for each in row.faults) or "none"
        right = "yes" if row.is_right else "**no**"
        lines.append(f"| {row.case} {row.seed} | {fault} | {row.verdict} | {blamed} | {right} |")
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Measure the cases that are named, or say what they draw."""
    if "--table" in words:
        lines = Path(words[words.index("--table") + 1]).read_text().splitlines()
        print(table(Seen(**json.loads(line)) for line in lines))
        return
    if "--draws" in words:
        for line in Path(words[words.index("--draws") + 1]).read_text().splitlines():
            row = Seen(**json.loads(line))
            if row.case in TITLES:
                print(json.dumps(asdict(row.draw)))
        return
    asked = [word.partition(":") for word in words if not word.startswith("--")]
    chosen = [(case, int(seed or 1)) for case, _, seed in asked]
    if "--full" in words:
        chosen = [(case, seed) for case in CASES for seed in (1, 2)]
    for case, seed in chosen or [(case, seed) for case in CASES for seed in (1, 2)]:
        draw = CASES[case](random.Random(f"{case} {seed}"))
        print(f"{case}:{seed}: {'; '.join(draw.faults) or 'no fault'}", flush=True)
        if chosen:
            row = seen(case, seed, confirm="--confirm" in words)
            ROWS.parent.mkdir(exist_ok=True)
            with ROWS.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            print(table([row]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
