"""Why a number may be out of its bounds: a table of causes, and what its rows look at."""
