"""What each node of a job is made of: read on the node, kept once per change, compared."""
