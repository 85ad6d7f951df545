"""Say before anything runs what a stack will use, and what would go wrong."""
