"""A campaign as a check of a run: inside its job, and the rows that it gives."""
