"""Parsers: the text that a benchmark printed in, frozen tables out."""

from fabricproof.benchmarks.parsers.detect import TextRead, parse_text, read_tables
from fabricproof.benchmarks.parsers.kernel import name_of_mpi

__all__ = ["TextRead", "name_of_mpi", "parse_text", "read_tables"]
