"""Every node with every node: rounds of pairs, and whose fault a slow pair is."""

from __future__ import annotations

from fabricproof.pairs.blame.judge import Judged, MatrixVerdict, judge_matrix, verdict_of_all
from fabricproof.pairs.blame.say import Blame, Said, joined
from fabricproof.pairs.blame.suspects import SuspectKind
from fabricproof.pairs.blame.undecided import say
from fabricproof.pairs.fabric import Leaves, leaves_by_name, leaves_of
from fabricproof.pairs.ladder import FIRST_ROUNDS, Ladder
from fabricproof.pairs.limits import Limits, limits_of
from fabricproof.pairs.matrix import Kind, Matrix
from fabricproof.pairs.picture import (
    KEY,
    MARGIN,
    RECORD_KIND,
    Picture,
    drawing,
    healthy_words,
    picture_of,
    read_picture,
    side_of,
    svg,
)
from fabricproof.pairs.population import (
    POPULATION_COLUMNS,
    population_cells,
    population_lines,
    populations_of,
)
from fabricproof.pairs.readers import read_matrices
from fabricproof.pairs.schedule import Order, Schedule, least_rounds

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "check.admission": "whether users may have a node (back)",
    "campaign.again": "what is measured again, and how two looks become one verdict",
    "campaign.matrices": "the values of a campaign as matrices",
    "campaign.nodes": "which nodes take part, and why others do not",
    "campaign.plan": "what a campaign is to measure, and its file",
    "campaign.record": "what a campaign has measured, and what is left",
    "campaign.verdict": "what a campaign came to",
    "check.in_job": "a campaign inside the job of a check",
    "check.partners": "with whom a node is measured for that",
    "check.rows": "what a campaign came to, as rows of a run",
}

__all__ = [
    "FIRST_ROUNDS",
    "KEY",
    "MARGIN",
    "POPULATION_COLUMNS",
    "RECORD_KIND",
    "Blame",
    "Judged",
    "Kind",
    "Ladder",
    "Leaves",
    "Limits",
    "Matrix",
    "MatrixVerdict",
    "Order",
    "Picture",
    "Said",
    "Schedule",
    "SuspectKind",
    "drawing",
    "healthy_words",
    "joined",
    "judge_matrix",
    "least_rounds",
    "leaves_by_name",
    "leaves_of",
    "limits_of",
    "picture_of",
    "population_cells",
    "population_lines",
    "populations_of",
    "read_matrices",
    "read_picture",
    "say",
    "side_of",
    "svg",
    "verdict_of_all",
]
