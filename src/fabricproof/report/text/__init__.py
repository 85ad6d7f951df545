"""A report as text: the table of verdicts, one screen of what matters, lines to drain nodes."""
