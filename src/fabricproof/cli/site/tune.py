"""``fabricproof tune``: where a stack's own choice of algorithm loses, and what mends it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from fabricproof.cli import options
from fabricproof.cli.output import Only, only_option
from fabricproof.cli.selection import one_run, perflogs
from fabricproof.core.errors import InputMissingError
from fabricproof.core.plain import plain
from fabricproof.core.project import site_option
from fabricproof.core.records import read_records, record_files
from fabricproof.core.units import by_key, size_label
from fabricproof.core.whole_file import refusal_of
from fabricproof.site import Site, site_of
from fabricproof.stacks.catalog import load_catalog, stacks_root
from fabricproof.stacks.spack import layout_for, read_built
from fabricproof.tuning import Proposal, Sweep, in_words, propose, sweeps_of, table_in, toml_line

_RUN = click.argument("words", default="", metavar="[RUN]")

#: where proposals lie, below the site's perflogs
FOLDER = ".tuning"


@click.group(name="tune", cls=options.HelpGroup)
@options.site
@options.as_json
@only_option("stack")
def command(**_: object) -> None:
    r"""Where a stack's own choice of a collective's algorithm loses, and what mends it.

    A sweep (the check AlgorithmSweep) measures the own choice and every algorithm that can be
    forced in turns in one job.  What it found is decided anew here from its records.

    \b
    fabricproof run -n AlgorithmSweep -p openmpi5        # sweep
    fabricproof tune show                                # what it found
    fabricproof tune write                               # write the mending, as a proposal
    fabricproof run -n AlgorithmSweep -p openmpi5 \
        -S AlgorithmSweep.tuning=FOLDER                  try it: own choice with it and without

    Nothing is ever applied by itself: a site adopts a proposal by its own site file.
    """


@command.command(name="show")
@_RUN
@options.of_group("site_name", "only", "as_json")
def show(words: str, site_name: str | None, only: Only, as_json: bool) -> None:
    """Show what the sweeps of RUN (default: the newest) found: times, the best, how sure."""
    site = site_of(site_name)
    sweeps = _sweeps(site, words, only["stack"])
    if as_json:
        record = {"site": site.name, "sweeps": [_sweep_record(each) for each in sweeps]}
        click.echo(json.dumps(record, indent=2))
        return
    for sweep in sweeps:
        click.echo("\n".join(_shown(sweep)))


@command.command(name="write")
@_RUN
@options.of_group("site_name", "only", "as_json")
@click.option(
    "--folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write there; all nodes must see it.  [default: perflogs/SITE/.tuning/RUN-STACK]",
)
def write(
    words: str,
    site_name: str | None,
    only: Only,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Write what mends the losing choices of RUN (default: the newest), and say how to try it.

    Open MPI gets a file of rules, Intel MPI a variable with ranges, MPICH its selection table with
    rules in front.  Only measured sizes and numbers of ranks are touched.
    """
    site = site_of(site_name)
    groups = _groups(_sweeps(site, words, only["stack"]))
    if folder is not None and len(groups) > 1:
        raise click.UsageError("--folder holds one stack: add --only stack=NAME")
    records = [_write_one(site, sweeps, folder, say=not as_json) for sweeps in groups]
    if as_json:
        click.echo(json.dumps({"site": site.name, "proposals": records}, indent=2))


def _perflogs(site: Site) -> Path:
    return perflogs() / site.name


def _sweeps(site: Site, words: str, stacks: tuple[str, ...]) -> list[Sweep]:
    """Return the sweeps of a run, of the newest that has any where none is named."""
    folder = _perflogs(site)
    records = [
        record
        for path in record_files(folder)
        for record in read_records(
            path, on_torn=lambda note: click.echo(note, err=True), fault_of=_without_run
        )
        if record.get("kind") == "sweep"
        and (not stacks or any(fnmatchcase(str(record.get("stack")), each) for each in stacks))
    ]
    newest = max((str(record["run_id"]) for record in records), default="")
    wanted = one_run(words, site) if words else newest
    chosen = [record for record in records if record["run_id"] == wanted]
    if not chosen:
        of_stacks = f" of {', '.join(stacks)}" if stacks else ""
        raise InputMissingError(
            f"no sweep{of_stacks} in run {wanted}" if words else f"no sweep{of_stacks} yet",
            source=str(folder),
            expected=f"one; the newest is of run {newest}" if newest else "a run of AlgorithmSweep",
            next_step=f"fabricproof run {site_option(site.name)} -n AlgorithmSweep",
        )
    return sweeps_of(chosen, str(folder))


def _without_run(record: Mapping[str, Any]) -> str:
    """Return the key of a sweep that nobody could find again; empty where it has it."""
    is_lost = record.get("kind") == "sweep" and not isinstance(record.get("run_id"), str)
    return "run_id" if is_lost else ""


def _groups(sweeps: list[Sweep]) -> list[list[Sweep]]:
    """Return the sweeps by stack and partition: what one proposal can be for."""
    return list(by_key(((sweep.stack, sweep.partition), sweep) for sweep in sweeps).values())


def _sweep_record(sweep: Sweep) -> dict[str, Any]:
    own = {"knobs", "tables", "bar"}
    return plain(sweep, "num_ranks", without=own, collective=sweep.knobs.collective)


def _shown(sweep: Sweep) -> Iterator[str]:
    yield (
        f"{sweep.knobs.collective} with {sweep.stack} ({sweep.stack_version}), {sweep.program} of "
        f"{sweep.suite}, {sweep.num_nodes} nodes x {sweep.ranks_per_node} ranks over "
        f"{'+'.join(sweep.rails)}, run {sweep.run_id}"
    )
    yield from (f"  the site sets {name}={text}" for name, text in sweep.own_environment.items())
    if sweep.tuning:
        yield "  the own choice is with a tuning on trial"
    yield f"  {'size':>8} {'own us':>10} {'best us':>10} {'gain':>7} {'surely':>7}  finding"
    for choice in sweep.choices:
        size = "-" if choice.size is None else size_label(choice.size)
        best = sweep.label(choice.best) if choice.best else "none"
        yield (
            f"  {size:>8} {choice.own_us:>10.4g} {choice.best_us:>10.4g} {choice.gain:>6.2f}x "
            f"{choice.at_least:>6.2f}x  {choice.standing.value}: best {best}, "
            f"noise {choice.noise:.0%}"
        )
    yield from (f"  {each}" for each in sweep.left_out)


def _write_one(
    site: Site, sweeps: list[Sweep], folder: Path | None, *, say: bool
) -> dict[str, Any]:
    """Write the proposal of one stack and return what a program wants to know of it."""
    first = sweeps[0]
    proposal = propose(sweeps, _library_table(site, first))
    if proposal is None:
        if say:
            click.echo(
                f"{first.stack}: nothing to write: no algorithm surely beats the own choice in "
                f"{', '.join(each.knobs.collective for each in sweeps)}"
            )
        return {"stack": first.stack, "folder": None}
    place = (folder or _perflogs(site) / FOLDER / f"{first.run_id}-{first.stack}").absolute()
    record = proposal.trial_record(str(place))
    _put(place, {**proposal.written.files, "tuning.json": json.dumps(record, indent=1) + "\n"})
    adopted = proposal.adopted(site.stack(first.stack).environment, str(place))
    if say:
        click.echo("\n".join(_told(site, proposal, place, adopted)))
    return {**record, "folder": str(place), "adopted_environment": adopted}


def _library_table(site: Site, sweep: Sweep) -> str | None:
    """Return MPICH's own selection table, None for other MPIs and where no library is known."""
    if sweep.knobs.family != "mpich":
        return None

    stack = site.stack(sweep.stack)
    library = None
    if stack.provisioned:
        name = stack.installed_as
        library = stacks_root() / name / load_catalog().find(name).library
    elif stack.spack is not None:
        built = read_built(layout_for(site.name, site.folder).built(stack.name))
        library = Path(built.library) if built is not None else None
    try:
        return table_in(library.read_bytes()) if library is not None else None
    except OSError:
        return None


def _put(folder: Path, files: dict[str, str]) -> None:
    with refusal_of("write the tuning", folder, "choose another --folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")


def _told(site: Site, proposal: Proposal, folder: Path, adopted: dict[str, str]) -> Iterator[str]:
    names = sorted({*proposal.written.files, "tuning.json"})
    yield f"{proposal.stack}: written to {folder}: {', '.join(names)}"
    for collective, rules in proposal.rules.items():
        yield from (f"  {collective}{in_words(rule)}" for rule in rules)
    yield from (f"  note: {note}" for note in proposal.written.notes)
    which = "|".join(sorted(proposal.rules))
    yield "try it (the own choice with it, without it, and all algorithms, in one job):"
    yield (
        f"  fabricproof run {site_option(site.name)} -n 'AlgorithmSweep.*collective=({which})' "
        f"-p {proposal.stack} -S {shlex.quote(f'AlgorithmSweep.tuning={folder}')}"
    )
    yield f'adopt it in {site.folder}/site.toml, under [[stacks]] name = "{proposal.stack}":'
    yield f"  {toml_line(adopted)}"
    if proposal.replaced:
        yield f"  (this takes the place of {', '.join(proposal.replaced)})"
    if proposal.written.files:
        yield "  (the files must lie where all nodes see them: --folder)"
