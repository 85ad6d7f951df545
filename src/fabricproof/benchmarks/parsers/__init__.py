"""Parsers: the text that a benchmark printed in, frozen tables out."""

from fabricproof.benchmarks.parsers.detect import Reading, parse_text, read_tables

__all__ = ["Reading", "parse_text", "read_tables"]
