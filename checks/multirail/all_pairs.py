"""Every usable node with others, over each rail and over all: whose fault a slow pair is."""

from typing import ClassVar

import reframe as rfm

from fabricproof.rfm.families.all_pairs import (
    AdmissionBenchmark,
    AllPairsBenchmark,
    CampaignBenchmark,
    Extent,
)


@rfm.simple_test
class AllPairsRound(AllPairsBenchmark):
    """Every node in one round of pairs; further ones only where something is low."""

    extent = Extent.ROUND
    family_tags: ClassVar = ["multirail", "quick"]


@rfm.simple_test
class AllPairsLadder(AllPairsBenchmark):
    """Four random rounds, then suspects with partners that were good."""

    extent = Extent.LADDER
    family_tags: ClassVar = ["multirail", "nightly"]


@rfm.simple_test
class AllPairsMatrix(AllPairsBenchmark):
    """Every pair of nodes."""

    extent = Extent.FULL
    family_tags: ClassVar = ["multirail", "full"]


@rfm.simple_test
class AllPairsAdmission(AdmissionBenchmark):
    """Nodes after a repair, each with partners known good (fabricproof admit)."""

    family_tags: ClassVar = ["multirail", "admission"]


@rfm.simple_test
class AllPairsCampaign(CampaignBenchmark):
    """A campaign as its options say, or what is left of it (fabricproof pairs run)."""

    family_tags: ClassVar = ["multirail", "campaign"]
