"""Stacks that Spack builds: one environment for each MPI, locked with the site, verified, kept.

``spack-envs`` says what a stack is, ``site-configs/<site>/spack`` what the site has; this room
brings the two together, lets Spack build, and writes down what came out (:mod:`.built`).
"""
