"""What lines and tables of each tool look like: numbers, headers, and what else stands around."""
