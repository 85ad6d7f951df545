"""Links, cards and slots of every node, against the site and against each other."""

from typing import ClassVar

import reframe as rfm

from fabricproof.rfm.checks.preflight import PreflightBenchmark


@rfm.simple_test
class LinkPreflight(PreflightBenchmark):
    """Looks in seconds, before anything is measured, at what each node and its links are."""

    family_tags: ClassVar = ["pt2pt", "quick", "nightly", "full"]
