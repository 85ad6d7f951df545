"""GPCNeT: what congestors cost the tests beside them, by the numbers that it prints.

An impact is taken from both numbers, alone and beside the congestors: the factor that is printed
has one decimal.  No law says what it may be, as nobody knows which links the two shared: only a
reference judges it.
"""

from __future__ import annotations

from fabricproof.core.measure import Table
from fabricproof.verdict.value import Judgement, Rules, judge_value

GPCNET = "gpcnet"

#: what an impact is of, in the name of its quantity
_KINDS = {
    "RR Two-sided Lat": "latency",
    "RR Two-sided BW+Sync": "bandwidth",
    "Multiple Allreduce": "allreduce",
}

#: of the mean, and of what 99 % are no worse than
_OF = ("avg", "p99")


def judge_gpcnet(table: Table, rules: Rules) -> list[Judgement]:
    """Judge the impacts of a test of network_load_test; of network_test its mean, which is told.

    Ranks of a node share its rails, and in a ring every node sends and receives at once: the
    reference of a pair is none for it.
    """
    row = table.named_rows[0]
    kind = "latency" if "latency_avg_us" in row else "rank_bandwidth"
    unit = "us" if kind == "latency" else "mib_s"
    if "impact_avg" not in row:
        value = row[f"{kind}_avg_{unit}"]
        return [_told(f"{kind}_avg", value, "us" if unit == "us" else "MiB/s")]
    found = []
    for which in _OF:
        name = f"{_KINDS[table.program]}_impact_{which}"
        alone, beside = (row[f"{loaded}{kind}_{which}_{unit}"] for loaded in ("", "loaded_"))
        value = beside / alone if kind == "latency" else alone / beside
        found.append(
            judge_value(
                name=name,
                value=value,
                unit="x",
                message_size=None,
                reference=rules.references.get(name),
            )
        )
    return found


def _told(name: str, value: float, unit: str) -> Judgement:
    return judge_value(name=name, value=value, unit=unit, message_size=None, reference=None)


def describe_gpcnet(table: Table) -> list[str]:
    """Return what is worth reading of a test and gets no verdict."""
    row = table.named_rows[0]
    said = table.attributes
    where = f"{said['num_processes']} ranks on {said['num_nodes']} nodes"
    if "impact_avg" not in row:
        _, mean, worst = row.values()
        return [f"{where}: mean {mean:g}, 99 % no worse than {worst:g}"]
    _, mean, worst, loaded_mean, loaded_worst, *_ = row.values()
    numbers = (
        f"mean {mean:g} alone, {loaded_mean:g} beside them; 99 % no worse than {worst:g} alone, "
        f"{loaded_worst:g} beside them"
    )
    places = f"{said['victim_nodes']} measure beside {said['congestor_nodes']} with congestors"
    return [f"{where}, {places}", numbers]
