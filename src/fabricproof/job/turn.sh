#!/bin/bash
# A task prolog of Slurm (srun(1), --task-prolog): what it prints is the task's environment.
# Hydra's proxies take their place among the nodes from this number: counted from the last node,
# rank 0 comes to sit there.
echo "export SLURM_NODEID=$((SLURM_NNODES - 1 - SLURM_NODEID))"
