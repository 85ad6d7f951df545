"""A campaign on a real machine: one launch, its record, proof of the path, verdict."""
