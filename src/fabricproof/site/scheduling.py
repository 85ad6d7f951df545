"""What this Slurm will not do for a partition of the site, known before the first job.  Pure.

Facts are the texts of ``scontrol show config`` and ``scontrol -o show partition`` (scontrol(1),
slurm.conf(5)).
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fabricproof.core.errors import ConfigError
from fabricproof.core.findings import Finding, FindingKind, Where
from fabricproof.core.measure import Verdict
from fabricproof.site.schema import PartitionSpec

#: how ``scontrol show config`` says that nobody keeps accounts: releases up to 22.05, and later
_NO_ACCOUNTS = frozenset({"accounting_storage/none", "(null)", "none"})

_SETTING = re.compile(r"^(\w+)\s*=\s*(.*?)\s*$", re.M)

#: those of sbatch's options that are asked for; argparse reads an option as getopt_long(3) does
_SBATCH = argparse.ArgumentParser(add_help=False, exit_on_error=False)
_SBATCH.add_argument("-p", "--partition", default="")
_SBATCH.add_argument("-L", "--licenses", default="")
_SBATCH.add_argument("-C", "--constraint", default="")
_SBATCH.add_argument("-w", "--nodelist", default="")
_SBATCH.add_argument("-x", "--exclude", default="")
_SBATCH.add_argument("--reservation", default="")


@dataclass(frozen=True, kw_only=True)
class SlurmTraits:
    """What matters of a Slurm; empty and None where nobody could ask.

    Attributes:
        sacct_fault: what sacct says where it fails; None where it answers or was not asked.
        oversubscribe: partition of Slurm -> its OverSubscribe, ``NO``, ``EXCLUSIVE``, ``YES:4``,
            ``FORCE:4``.
        default_partition: where Slurm puts jobs that name none; empty if there is none.
    """

    accounting: str = ""
    sacct_fault: str | None = None
    oversubscribe: Mapping[str, str] = field(default_factory=dict)
    default_partition: str = ""


def read_traits(config: str, partitions: str, sacct_fault: str | None = None) -> SlurmTraits:
    """Return what matters of the texts of scontrol; one that is damaged or empty says nothing."""
    lines = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in partitions.splitlines()]
    return SlurmTraits(
        accounting=dict(_SETTING.findall(config)).get("AccountingStorageType", ""),
        sacct_fault=sacct_fault,
        oversubscribe={
            line["PartitionName"]: line.get("OverSubscribe", "")
            for line in lines
            if "PartitionName" in line
        },
        default_partition="".join(
            line.get("PartitionName", "") for line in lines if line.get("Default") == "YES"
        ),
    )


def keeps_accounts(accounting: str) -> bool | None:
    """Tell whether sacct can answer, by AccountingStorageType; None where nobody said it."""
    return None if not accounting else accounting not in _NO_ACCOUNTS


def shares_nodes(oversubscribe: str) -> bool:
    """Tell whether jobs share nodes whatever they ask for.

    ``FORCE`` without a count and with one above 1 does (slurm.conf(5)); ``YES`` only lets jobs ask
    for it, and honours ``--exclusive`` (tried with Slurm 22.05).
    """
    word, _, count = oversubscribe.partition(":")
    return word == "FORCE" and count != "1"


def access_options(access: Iterable[str]) -> argparse.Namespace:
    """Return what ``access`` asks for as sbatch reads it, by option; empty if it does not.

    ReFrame writes a line ``#SBATCH`` for each item, and sbatch reads the words of all these lines
    as one command line (``_opt_batch_script`` of Slurm's sbatch): the last of an option counts.

    Raises:
        ConfigError: the last word is an option that wants a value, or a quotation has no end.
    """
    try:
        words = [word for each in access for word in shlex.split(each, comments=True)]
        return _SBATCH.parse_known_args(words)[0]
    except (ValueError, argparse.ArgumentError) as error:
        raise ConfigError(f"access = {[*access]}: {error}", expected="options of sbatch") from None


def asked_partitions(access: Iterable[str]) -> list[str]:
    """Return the partitions of Slurm that ``access`` names; none: Slurm's default partition."""
    return [name for name in access_options(access).partition.split(",") if name]


def find_troubles(partition: PartitionSpec, traits: SlurmTraits) -> Iterator[Finding]:
    """Yield what will not work, the worst first.

    FAIL where no number would count; UNJUDGED where jobs of others may disturb.
    """

    def trouble(verdict: Verdict, text: str, means: str, next_step: str) -> Finding:
        return Finding(
            kind=FindingKind.SCHEDULER,
            verdict=verdict,
            where=Where(partition=partition.name),
            fact="scheduler",
            text=f"partition {partition.name}: {text}",
            means=means,
            next_step=next_step,
        )

    seen = f"sacct fails ({traits.sacct_fault})" if traits.sacct_fault is not None else ""
    if keeps_accounts(traits.accounting) is False:
        seen = f"this Slurm keeps no accounts (AccountingStorageType = {traits.accounting})"
    if seen and partition.scheduler == "slurm":
        text = f'scheduler = "slurm" asks sacct how a job ended, and {seen}'
        mend = 'set scheduler = "squeue" in site.toml'
        yield trouble(Verdict.FAIL, text, "no check would come to a verdict", mend)
    asked = asked_partitions(partition.access) or [traits.default_partition]
    for name in asked if partition.uses_slurm else ():
        how = traits.oversubscribe.get(name, "")
        if not shares_nodes(how):
            continue
        text = f"Slurm's {name} has OverSubscribe={how}, so --exclusive is not honoured"
        means = "jobs of others{} may run on the nodes that are measured"
        mend = "give it a partition with OverSubscribe=EXCLUSIVE or a reservation"
        if partition.max_jobs == 1 or access_options(partition.access).licenses:
            yield trouble(Verdict.UNJUDGED, text, means.format(""), mend)
        else:
            mend = f"set max_jobs = 1 in site.toml; against others, {mend}"
            yield trouble(Verdict.FAIL, text, means.format(", and our own jobs,"), mend)
