"""A proposal: what a stack would have to read so that what a sweep found is mended; its trial."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabricproof.core.errors import ParseError
from fabricproof.core.records import text_of
from fabricproof.core.units import size_label
from fabricproof.tuning.sweeps import Rule, Sweep, one_for_all, rules_of
from fabricproof.tuning.write import Mending, TuningWritten, write

#: what a program reads of a proposal
TRIAL_FILE = "tuning.json"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What ``fabricproof tune write`` proposed, for a second run that measures with it.

    Attributes:
        num_ranks: ranks that it was measured with.
    """

    stack: str
    collectives: tuple[str, ...]
    num_ranks: int
    environment: Mapping[str, str]


def read_trial(path: Path) -> Trial:
    """Read a proposal.

    Args:
        path: its ``tuning.json``, or the folder that holds it.

    Raises:
        ParseError: there is none, or it is damaged.
    """
    file = path / TRIAL_FILE if path.is_dir() else path
    try:
        record = json.loads(text_of(file))
        if record["format"] != FORMAT:
            raise ParseError(
                "tuning of another format",
                source=str(file),
                expected=str(FORMAT),
                got=str(record["format"]),
            )
        return Trial(
            stack=str(record["stack"]),
            collectives=tuple(map(str, record["collectives"])),
            num_ranks=int(record["num_ranks"]),
            environment={str(name): str(each) for name, each in record["environment"].items()},
        )
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ParseError):
            raise
        raise ParseError(
            f"no tuning that can be read: {error}",
            source=str(file),
            expected="what 'fabricproof tune write' left",
        ) from None


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What one stack is to read, and what it rests on.

    Attributes:
        sweeps: of one stack and one number of ranks; at least one of them has something to mend.
        rules: collective -> its rules.
        replaced: variables of the site's environment that it takes the place of.
    """

    sweeps: tuple[Sweep, ...]
    rules: Mapping[str, tuple[Rule, ...]]
    written: TuningWritten
    replaced: tuple[str, ...]

    @property
    def stack(self) -> str:
        """The stack that it is for."""
        return self.sweeps[0].stack

    def adopted(self, environment: Mapping[str, str], folder: str) -> dict[str, str]:
        """Return the stack's ``environment`` of the site file after the proposal is adopted."""
        kept = {name: text for name, text in environment.items() if name not in self.replaced}
        return {**kept, **self.written.placed(folder)}

    def trial_record(self, folder: str) -> dict[str, Any]:
        """Return what a second run reads; its variables also take back what the site forces."""
        neutral: dict[str, str] = {}
        for sweep in self.sweeps:
            neutral |= sweep.knobs.neutral if sweep.own_environment else {}
        return {
            "format": FORMAT,
            "stack": self.stack,
            "stack_version": self.sweeps[0].stack_version,
            "site": self.sweeps[0].site,
            "run_id": self.sweeps[0].run_id,
            "nodes": list(self.sweeps[0].nodes),
            "collectives": sorted(self.rules),
            "num_ranks": self.sweeps[0].num_ranks,
            "environment": {**neutral, **self.written.placed(folder)},
            "rules": {
                name: [_rule_record(rule) for rule in rules] for name, rules in self.rules.items()
            },
        }


def _rule_record(rule: Rule) -> dict[str, Any]:
    return {
        "first_bytes": rule.first_bytes,
        "last_bytes": rule.last_bytes,
        "algorithm": rule.algorithm.id if rule.algorithm is not None else None,
        "gain": round(rule.gain, 3),
    }


def propose(sweeps: Sequence[Sweep], library_table: str | None = None) -> Proposal | None:
    """Return what mends the sweeps of one stack, None where there is nothing to mend.

    Raises:
        ConfigError: this MPI cannot be told what would mend it.
    """
    found = {sweep.knobs.collective: (sweep, rules_of(sweep)) for sweep in sweeps}
    mended = {name: pair for name, pair in found.items() if pair[1]}
    if not mended:
        return None
    mendings = [
        Mending(knobs=sweep.knobs, num_ranks=sweep.num_ranks, rules=rules, for_all=_for_all(sweep))
        for sweep, rules in mended.values()
        if any(rule.algorithm is not None for rule in rules)
    ]
    header = _header([pair[0] for pair in mended.values()])
    return Proposal(
        sweeps=tuple(pair[0] for pair in mended.values()),
        rules={name: rules for name, (_, rules) in mended.items()},
        written=write(mendings, header, library_table) if mendings else TuningWritten(),
        replaced=tuple(name for sweep, _ in mended.values() for name in sweep.own_environment),
    )


def _for_all(sweep: Sweep) -> str | None:
    algorithm = one_for_all(sweep)
    return algorithm.id if algorithm is not None else None


def _header(sweeps: Sequence[Sweep]) -> list[str]:
    """Return what a file says of itself: run, nodes, versions, sizes and gains, in plain lines."""
    first = sweeps[0]
    layout = f"{first.num_nodes} nodes with {first.ranks_per_node} ranks each"
    return [
        "written by 'fabricproof tune write', a proposal: nothing reads it until a site adopts it",
        f"run {first.run_id} on {first.site}, {', '.join(first.nodes)}",
        f"stack {first.stack} ({first.stack_version}), {layout}, over {'+'.join(first.rails)}",
        *(
            f"{sweep.knobs.collective}{in_words(rule)}"
            for sweep in sweeps
            for rule in rules_of(sweep)
        ),
    ]


def in_words(rule: Rule) -> str:
    """Return a rule as the rest of a line: `` from 16KiB to 64KiB: 4 ring, measured gain 2 x``."""
    name = rule.algorithm.label if rule.algorithm is not None else "the library's own choice"
    sizes = ""
    if rule.first_bytes is not None and rule.last_bytes is not None:
        sizes = f" from {size_label(rule.first_bytes)} to {size_label(rule.last_bytes)}"
    worth = f"measured gain {rule.gain:.2f} x" if rule.gain > 1 else "as the site has it"
    return f"{sizes}: {name}, {worth}"


def toml_line(environment: Mapping[str, str]) -> str:
    """Return the line of a site file that holds ``environment``."""
    pairs = ", ".join(f"{name} = {json.dumps(text)}" for name, text in environment.items())
    return f"environment = {{ {pairs} }}"
