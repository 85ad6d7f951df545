"""How each MPI is told its path, started, and how much it moves; what Spack and wheels provide."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "container": "how a program gets into a container image, and what it says there",
    "environment": "how a shell is told the environment of a stack",
    "family": "how an MPI is told its path",
    "launch": "how ranks are started",
    "spack": "stacks that Spack builds",
    "stack": "one stack of a site on a partition: all that a run has to know of it",
    "wheels": "stacks from wheels: which there are, putting them in place",
    "witness": "ranks that say where they are",
    "workload": "what a program moves, and the options that make it",
}
