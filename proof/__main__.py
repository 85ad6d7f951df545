"""Prove the verdict: ``python -m proof [--full]``."""

from __future__ import annotations

import argparse
import datetime
import sys
from dataclasses import replace
from pathlib import Path

from proof.campaign import (
    LONG,
    SHORT,
    cleans_of,
    digest_of_code,
    noticed_of,
    prove,
    tries_of,
)
from proof.figures import FaultFigures, of_clean, of_fault
from proof.library import read_library
from proof.live import read_live
from proof.mutations import UNNOTICED
from proof.page import page


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    parser.add_argument("--full", action="store_true", help="3,000 campaigns, 300 of each fault")
    parser.add_argument("--clean", type=int, help="campaigns without a fault")
    parser.add_argument("--tries", type=int, help="of each fault, where it must be caught")
    parser.add_argument("--weaker", type=int, help="tries at each other strength")
    parser.add_argument("--steady", type=int, help="histories of each kind without a change")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, help="processes; all cores where not said")
    parser.add_argument("--keep", type=Path, default=Path("work/proof.jsonl"))
    parser.add_argument("--page", type=Path, help="write proof.md into this folder")
    return parser.parse_args()


def main() -> int:
    """Run it; return 1 where a figure is not as it must be, else 0."""
    given = _arguments()
    asked = {name: getattr(given, name) for name in ("clean", "tries", "weaker", "steady")}
    plan = replace(
        LONG if given.full else SHORT,
        seed=given.seed,
        **{name: value for name, value in asked.items() if value is not None},
    )
    records = prove(plan, given.keep, _progress, given.jobs)
    clean = of_clean(cleans_of(records))
    tries = tries_of(records)
    noticed = noticed_of(records)
    faults = [of_fault(entry, tries) for entry in read_library() if entry.is_simulated]
    text = page(
        date=datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d"),
        code=digest_of_code(),
        seed=plan.seed,
        clean=clean,
        faults=faults,
        noticed=noticed,
        live=read_live(),
    )
    if given.page:
        (given.page / "proof.md").write_text(text, encoding="utf-8")
    _tell(faults, {word: str(share) for word, share in clean.false.items()})
    for name, who in noticed.items():
        sys.stdout.write(f"without {name[:41]:42} {', '.join(who) or 'nobody notices'}\n")
    wrong = [word for word, share in clean.false.items() if share.hits]
    missed = [each.entry.title for each in faults if not each.is_as_promised]
    silent = [name for name, who in noticed.items() if not who and name not in UNNOTICED]
    if wrong or missed or silent:
        sys.stdout.write(f"NOT PROVEN: false {wrong}, missed {missed}, unnoticed {silent}\n")
        return 1
    return 0


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty() or done % 200 == 0 or done == of:
        sys.stderr.write(f"\r{done} of {of}" + ("\n" if done == of else ""))


def _tell(faults: list[FaultFigures], clean: dict[str, str]) -> None:
    for word, share in clean.items():
        sys.stdout.write(f"{'without a fault: ' + word:50} {share}\n")
    for each in faults:
        if each.caught.of:
            blamed = f"blamed {each.blamed.hits}, said {each.worded.hits}"
            sys.stdout.write(f"{each.entry.title[:49]:50} {each.caught}, {blamed}\n")


if __name__ == "__main__":
    sys.exit(main())
