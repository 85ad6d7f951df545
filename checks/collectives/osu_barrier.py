"""Nobody goes on before everybody came, on every layout (osu_barrier)."""

import reframe as rfm

from fabricproof.rfm.checks.collectives import CollectiveBenchmark


@rfm.simple_test
class OsuBarrier(CollectiveBenchmark):
    """Nobody goes on before everybody came, on every layout (osu_barrier)."""

    suite = "osu"
    program = "osu_barrier"
    family_tags = ["collectives", "quick", "nightly", "full"]
