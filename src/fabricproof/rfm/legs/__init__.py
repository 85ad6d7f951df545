"""Which legs each check plans."""
