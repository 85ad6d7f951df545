"""The judge: pure, no files, no clock; tables, curves, references, likely causes."""
