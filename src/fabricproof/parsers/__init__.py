"""Parsers: the text that a benchmark printed in, frozen tables out."""

from fabricproof.parsers.detect import parse_text

__all__ = ["parse_text"]
