"""A report as text for a terminal: the table of verdicts, and one screen of what matters."""
