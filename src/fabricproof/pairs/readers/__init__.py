"""Read a matrix of pairs that any program wrote: columns, LinkTest, mpiGraph."""
