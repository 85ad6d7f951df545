"""Parsers: the text that a benchmark printed in, frozen tables out."""

from fabricproof.benchmarks.parsers.detect import TextRead, parse_text, read_tables

__all__ = ["TextRead", "parse_text", "read_tables"]
