"""Read the matrices of pairs that any program wrote: a CSV, LinkTest, mpiGraph."""

from __future__ import annotations

from fabricproof.pairs.matrix import Matrix

#: a program says who it is in the beginning of its output, behind what launchers say
_BEGINNING = 2**20


def read_matrices(name: str, *, unit: str = "") -> tuple[Matrix, ...]:
    """Read file ``name``, ``-`` for standard input: a matrix for each quantity and message size.

    Columns may come in any order, others are ignored; comma, semicolon or tab part them.  Lines
    that begin with ``#`` are left out.  The output of LinkTest or mpiGraph is known by its words.

    ``unit`` is that of rows that name none; empty: more is better, and no verdict on the level.
    """
    # polars is loaded where a file is read, and not with each check that may measure pairs.
    from fabricproof.pairs.readers.linktest import is_of_linktest, read_linktest  # noqa: PLC0415
    from fabricproof.pairs.readers.mpigraph import is_of_mpigraph, read_mpigraph  # noqa: PLC0415
    from fabricproof.pairs.readers.table import bytes_of, read_table  # noqa: PLC0415

    data = bytes_of(name)
    source = "<stdin>" if name == "-" else name
    beginning = data[:_BEGINNING].decode("utf-8", errors="replace")
    if is_of_mpigraph(beginning):
        return (read_mpigraph(data.decode("utf-8", errors="replace"), source),)
    if is_of_linktest(beginning):
        return (read_linktest(data.decode("utf-8", errors="replace"), source),)
    return read_table(data, source, unit)
