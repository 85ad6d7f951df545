"""How each MPI is told its path, started, and how much it moves; what Spack and wheels provide."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "catalog": "the stacks that come as wheels",
    "container": "how a program gets into a container image, and what it says there",
    "environment": "the environment in which a stack answers",
    "family": "how an MPI is told its path",
    "install": "stacks of wheels, put in place",
    "launch": "how ranks are started",
    "programs": "where the programs of a suite are",
    "spack": "stacks that Spack builds",
    "witness": "ranks that say where they are",
    "workload": "what a program moves, and the options that make it",
}
