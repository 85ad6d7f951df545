"""A machine that does not exist: what its jobs leave on file."""
