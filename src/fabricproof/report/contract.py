"""Judge a run by a contract: criteria of acceptance in a file that both sides sign.

A criterion names a check, a quantity and what the value must be.  A value counts only where the run
judged it: what was not measured, took another road or was disturbed fulfils no contract, however
good its number is.  The digest of the file says which text both sides signed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fabricproof.core.errors import UnitError
from fabricproof.core.measure import Verdict, worst
from fabricproof.core.plain import plain
from fabricproof.core.records import QuantityRecord
from fabricproof.core.units import convert, counted, split_quantity
from fabricproof.job.run import LegResult, SessionResult
from fabricproof.site import load_toml

Measured = tuple[LegResult, QuantityRecord]


class Criterion(BaseModel):
    """What one clause of a contract demands.

    Attributes:
        name: the clause, ``4.2``.
        says: its words.
        check: name of the check that shows it; ``*`` and ``?`` stand for any text, as below.
        quantity: name of the quantity, ``bandwidth_4MiB``.
        path: the rails, ``rail0`` or ``rail0+rail1``; of what is judged across legs its name.
        at_least: with its unit; of every value.
        nodes: so many nodes must have been measured; 0: any number.
    """

    # Strict: `nodes = true` is no clause on one node.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    says: str = ""
    check: str = Field(min_length=1)
    quantity: str = "*"
    partition: str = "*"
    stack: str = "*"
    fabric: str = "*"
    path: str = "*"
    at_least: str | None = None
    at_most: str | None = None
    nodes: int = Field(default=0, ge=0)

    @field_validator("at_least", "at_most")
    @classmethod
    def is_a_quantity(cls, text: str | None) -> str | None:
        """Refuse a number without a unit."""
        if text is not None:
            try:
                split_quantity(text)
            except UnitError as error:
                raise ValueError(error.expected or error.problem) from None
        return text

    @model_validator(mode="after")
    def names_the_quantity(self) -> Self:
        """Refuse a limit of everything that a check measures."""
        if self.quantity == "*" and (self.at_least or self.at_most):
            raise ValueError("a limit goes with the quantity that it limits")
        return self

    @model_validator(mode="after")
    def can_be_fulfilled(self) -> Self:
        """Refuse limits between which no value lies."""
        if self.at_least and self.at_most:
            least, unit = split_quantity(self.at_least)
            try:
                most = convert(*split_quantity(self.at_most), unit)
            except UnitError:
                raise ValueError("at_least and at_most of one kind of unit") from None
            if least > most:
                raise ValueError("at_least to be no more than at_most")
        return self

    def fits(self, leg: LegResult) -> bool:
        """Tell whether a leg is one of those that show it.

        A job that left no record had any path that it was to measure.
        """
        path = leg.leg if leg.relation else "+".join(leg.rails) or leg.leg
        is_of_all_paths = not path and leg.verdict is Verdict.MISSING
        named = (
            (leg.check, self.check),
            (leg.partition, self.partition),
            (leg.stack, self.stack),
            (leg.fabric, self.fabric),
        )
        return all(fnmatchcase(name, pattern) for name, pattern in named) and (
            is_of_all_paths or fnmatchcase(path, self.path)
        )


class Contract(BaseModel):
    """Criteria of acceptance.

    Attributes:
        title: what is accepted.
        parties: who signs.
        criteria: one or more, each name once.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    parties: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def names_each_once(self) -> Self:
        """Refuse two clauses of one name."""
        names = [each.name for each in self.criteria]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"each criterion to have a name of its own; {twice[0]!r} stands twice")
        return self


@dataclass(frozen=True, kw_only=True)
class Fulfilled:
    """What a run says of one criterion.

    Attributes:
        criterion: the clause.
        verdict: PASS where it is fulfilled; UNJUDGED, MISSING and INVALID: the run does not tell.
        reason: why, in one sentence.
        num_values: that were held against it.
    """

    criterion: Criterion
    verdict: Verdict
    reason: str
    num_values: int


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What a run says of a contract.

    Attributes:
        contract: the criteria.
        digest: SHA-256 of the contract's file.
        criteria: one for each of the contract, in its order.
    """

    contract: Contract
    digest: str
    run_id: str
    criteria: tuple[Fulfilled, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all criteria."""
        return worst([each.verdict for each in self.criteria])

    def record(self) -> dict[str, Any]:
        """Return it as plain data, the form of ``--json``."""
        return {
            "verdict": self.verdict.value,
            "title": self.contract.title,
            "parties": list(self.contract.parties),
            "sha256": self.digest,
            "run_id": self.run_id,
            "criteria": [
                {**each.criterion.model_dump(), **plain(each, without={"criterion"})}
                for each in self.criteria
            ],
        }

    def text(self) -> str:
        """Return it for people, verdict first."""
        lines = [
            f"{self.verdict.value}: {self.contract.title}, by run {self.run_id}",
            f"contract: SHA-256 {self.digest}",
            *(f"party: {each}" for each in self.contract.parties),
        ]
        for each in self.criteria:
            says = f"{each.criterion.says}: " if each.criterion.says else ""
            lines.append(f"{each.verdict.value:<8}  {each.criterion.name}: {says}{each.reason}")
        return "\n".join(lines)


def accepted(path: Path, session: SessionResult) -> Acceptance:
    """Return what a run says of the contract in a file.

    Raises:
        InputMissingError: the file cannot be read.
        ConfigError: not TOML, an unknown key, a missing one or a value of the wrong kind.
    """
    contract, _ = load_toml(path, Contract, expected="a contract in TOML")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found = tuple(fulfilled(each, session) for each in contract.criteria)
    return Acceptance(contract=contract, digest=digest, run_id=session.run_id, criteria=found)


def fulfilled(criterion: Criterion, session: SessionResult) -> Fulfilled:
    """Return what a run says of a criterion."""
    legs = [each for each in session.legs if criterion.fits(each)]
    values = [
        (leg, each)
        for leg in legs
        for each in leg.quantities
        if fnmatchcase(each.name, criterion.quantity)
    ]
    said = [*_not_measured(criterion, legs, values), *(_held(criterion, *each) for each in values)]
    # Of a run that did not end as it should nobody knows what else there was to fit.
    said += [(leg.verdict, f"{leg.check}: {leg.reason}") for leg in session.legs if leg.doubts_run]
    verdict = worst([each for each, _ in said])
    reason = next(reason for each, reason in said if each is verdict)
    if verdict is Verdict.PASS:
        reason = _worst_value(criterion, values)
    return Fulfilled(criterion=criterion, verdict=verdict, reason=reason, num_values=len(values))


def _not_measured(
    criterion: Criterion, legs: Sequence[LegResult], values: Sequence[Measured]
) -> Iterator[tuple[Verdict, str]]:
    """Yield what is due and not there."""
    if not legs:
        yield Verdict.MISSING, f"the run has no leg of {criterion.check} that fits"
        return
    for leg in legs:
        # What none of its numbers has is of all of them: nobody saw the road, or the job failed.
        is_of_all = leg.verdict not in {Verdict.PASS, *(each.verdict for each in leg.quantities)}
        if is_of_all or leg.verdict in {Verdict.MISSING, Verdict.INVALID}:
            verdict = Verdict.MISSING if leg.verdict is Verdict.SKIPPED else leg.verdict
            left_out = "; a criterion may say stack, fabric and path" * (verdict is not leg.verdict)
            yield verdict, f"{_where(leg)}: {leg.verdict.value}: {leg.reason}{left_out}"
    if not values:
        there = sorted({each.name for leg in legs for each in leg.quantities})
        named = ", ".join(there) or "nothing"
        yield Verdict.MISSING, f"no {criterion.quantity} was measured; there is {named}"
    nodes = {node for leg, _ in values for node in leg.nodes}
    if len(nodes) < criterion.nodes:
        yield Verdict.MISSING, f"{len(nodes)} of {counted(criterion.nodes, 'node')} measured"


def _held(criterion: Criterion, leg: LegResult, value: QuantityRecord) -> tuple[Verdict, str]:
    """Return what one value says of a criterion."""
    named = f"{_where(leg)}: {value.name}"
    is_number = value.value is not None and not math.isinf(value.value)
    if value.verdict not in {Verdict.PASS, Verdict.FAIL} or value.value is None or not is_number:
        verdict = Verdict.MISSING if value.verdict is Verdict.SKIPPED else value.verdict
        # A word without a number ("this node is healthy") fulfils what states no number.
        if verdict is not Verdict.PASS or _limits(criterion):
            verdict = Verdict.UNJUDGED if verdict is Verdict.PASS else verdict
            return verdict, f"{named}: {value.reason or 'it has no number'}"
        return Verdict.PASS, named
    if not _limits(criterion) or (value.verdict is Verdict.FAIL and not _is_of_level(value)):
        return value.verdict, f"{named}: {value.reason}"
    for limit, is_least in _limits(criterion):
        number, unit = split_quantity(limit)
        try:
            bound = convert(number, unit, value.unit)
        except UnitError:
            reason = f"{named} is in {value.unit or 'no unit'}, and the contract says {limit}"
            return Verdict.UNJUDGED, reason
        # So put, no number (NaN) keeps no limit.
        if not (value.value >= bound if is_least else value.value <= bound):
            words = "at least" if is_least else "at most"
            return Verdict.FAIL, f"{named} is {_number(value)}; {words} {limit} was agreed"
    return Verdict.PASS, named


def _limits(criterion: Criterion) -> list[tuple[str, bool]]:
    """Return the limits of a criterion, each with whether a value must reach it."""
    found = ((criterion.at_least, True), (criterion.at_most, False))
    return [(limit, is_least) for limit, is_least in found if limit is not None]


def _is_of_level(value: QuantityRecord) -> bool:
    """Tell whether a value is FAIL for its level alone, of which a contract has its own view."""
    assert value.value is not None, "the caller asked"
    return (value.lower is not None and value.value < value.lower) or (
        value.upper is not None and value.value > value.upper
    )


def _worst_value(criterion: Criterion, values: Iterable[Measured]) -> str:
    """Return the value that is nearest to the limit, in words."""
    numbers = [(leg, each) for leg, each in values if each.value is not None]
    if not numbers or not _limits(criterion):
        return f"{counted(len(list(values)), 'value')}, all PASS"
    least = criterion.at_least is not None
    pick = min if least else max
    leg, value = pick(numbers, key=lambda each: each[1].value or 0.0)
    return (
        f"{'least' if least else 'most'} of {counted(len(numbers), 'value')}: {_number(value)}, "
        f"{_where(leg)}"
    )


def _number(value: QuantityRecord) -> str:
    return f"{value.value:.5g} {value.unit}".strip()


def _where(leg: LegResult) -> str:
    nodes = f" on {', '.join(leg.nodes)}" if 0 < len(leg.nodes) <= _NAMED else ""
    named = " ".join(filter(None, (leg.check, leg.stack, leg.path_name)))
    return f"{named}{nodes}"


#: nodes of a leg that are named
_NAMED = 4
