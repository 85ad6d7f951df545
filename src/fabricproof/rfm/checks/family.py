"""Checks that differ in program, level and a sentence: one line each in place of one class each."""

from __future__ import annotations

from collections.abc import Callable

from reframe.core.meta import make_test

from fabricproof.core.errors import ConfigError
from fabricproof.history.plan import LEVELS
from fabricproof.rfm.checks.base import FabricBenchmark

Check = type[FabricBenchmark]


def family(
    register: Callable[[Check], Check], module: str, base: Check, *tags: str, suite: str
) -> Callable[..., Check]:
    """Return what adds the checks of one suite that are ``base`` with another program.

    ``add(name, program, level, what, **values)`` adds the class that ``@rfm.simple_test`` over a
    ``class`` statement would make: ``name``, by which records and ``-n`` know the check; the first
    of :data:`LEVELS` that runs it; what it measures, in a sentence; values of other variables of
    the base class (``one_way=True``).

    Args:
        register: ``rfm.simple_test``.  The file itself has to import reframe: ReFrame passes over
            one that does not, without a word (4.10, ``frontend/loader.py``).
        module: ``__name__`` of the check file: ReFrame looks for the checks of a file there.
        base: what the checks do.
        tags: the folder's name, then others that all of them have.
        suite: ``osu``, ``imb``, ``perftest`` ...
    """

    def add(name: str, program: str, level: str, what: str, **values: object) -> Check:
        if level not in LEVELS:
            raise ConfigError(f"the level of {name}", expected=" or ".join(LEVELS), got=level)
        body = {
            "__doc__": what,
            "suite": suite,
            "program": program,
            "family_tags": [*tags, *LEVELS[LEVELS.index(level) :]],
            **values,
        }
        return register(make_test(name, (base,), body, module=module))

    return add
