"""What the nodes of a run were made of, and what changed of them since they were seen before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fabricproof.core.errors import FabricproofError
from fabricproof.history.compare.model import FieldChange
from fabricproof.history.store import Run
from fabricproof.nodes.inventory.compare import Difference, compare
from fabricproof.nodes.inventory.store import FOLDER, read_index, read_kept
from fabricproof.report.red import folded

Facts = Mapping[str, Mapping[str, str | int]]


def machines_of(perflogs: Path, run: Run, on_doubt: Callable[[str], object]) -> dict[str, Facts]:
    """Return node -> part -> facts as ``run`` saw them.

    Args:
        perflogs: of the site.
        run: the run.
        on_doubt: takes a sentence on nodes whose inventory cannot be read.
    """
    found: dict[str, Facts] = {}
    unseen: list[str] = []
    lost: dict[str, str] = {}
    for node, digest in sorted(_digests(perflogs, run, on_doubt).items()):
        if digest is None:
            unseen.append(node)
            continue
        try:
            found[node] = read_kept(perflogs / FOLDER, node, digest).facts
        except FabricproofError as error:
            lost[node] = str(error)
    if unseen:
        on_doubt(f"nobody saw what {folded(unseen)} was made of in this run, or it changed in it")
    if lost:
        on_doubt(
            f"the inventory of {folded(list(lost))} is lost, first {next(iter(lost.values()))}"
        )
    return found


def _digests(
    perflogs: Path, run: Run, on_doubt: Callable[[str], object]
) -> Mapping[str, str | None]:
    """Return node -> digest as the run's records have it, or where it has none, as the index."""
    if run.inventory:
        return run.inventory
    try:
        index = read_index(perflogs / FOLDER)
    except FabricproofError as error:
        on_doubt(str(error))
        return {}
    return {each.node: each.digest for each in index if each.run_id == run.run_id}


def inventory_changes(perflogs: Path, run: Run, earlier: Iterable[Run]) -> tuple[FieldChange, ...]:
    """Return what differs from when each node, and each stack, was seen before.

    The inventories that cannot be read were told by :func:`machines_of`.

    Args:
        perflogs: of the site.
        run: the run.
        earlier: the runs before it, oldest first.
    """
    last_seen: dict[str, str] = {}
    last_build: dict[str, str] = {}
    for each in earlier:
        last_seen.update({node: digest for node, digest in each.inventory.items() if digest})
        last_build.update({stack: build for stack, build in each.builds.items() if build})
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    sentences: dict[tuple[str, str, str, str], str] = {}
    for node, digest in sorted(run.inventory.items()):
        was = last_seen.get(node)
        if digest is None or was is None or was == digest:
            continue
        for difference in _differences(perflogs / FOLDER, node, was, digest):
            key = (
                difference.part,
                difference.fact,
                _word(difference.first),
                _word(difference.second),
            )
            grouped.setdefault(key, []).append(node)
            sentences.setdefault(key, difference.sentence)
    nodes = tuple(
        FieldChange(
            part=key[0],
            fact=key[1],
            nodes=tuple(names),
            first=key[2],
            second=key[3],
            sentence=f"{', '.join(names)}: {_plain(sentences[key])}",
        )
        for key, names in grouped.items()
    )
    return (*nodes, *_builds(run, last_build))


def _differences(folder: Path, node: str, was: str, now: str) -> tuple[Difference, ...]:
    try:
        sides = read_kept(folder, node, was), read_kept(folder, node, now)
    except FabricproofError:
        sentence = f"inventory {was} is now {now}, and one of them cannot be read"
        return (
            Difference(part="node", fact="inventory", first=was, second=now, sentence=sentence),
        )
    return compare(*sides, ("before", "now"))


def _plain(sentence: str) -> str:
    """Return a sentence of two machines as one of two times."""
    return sentence.replace(" on before", " before").replace(" on now", " now")


def _word(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _builds(run: Run, before: Mapping[str, str]) -> Iterable[FieldChange]:
    for stack, build in sorted(run.builds.items()):
        was = before.get(stack, "")
        if build and was and was != build:
            yield FieldChange(
                part=f"stack {stack}",
                fact="build",
                nodes=(),
                first=was,
                second=build,
                sentence=f"stack {stack}: build {was} before, {build} now: its numbers are not "
                "joined with those before",
            )
