#!/bin/bash
# HPC Challenge in a folder of its own:  rank.sh hpcc.sh PROGRAM
# It reads hpccinf.txt and appends to hpccoutf.txt where it is started; the first rank writes the one,
# with problems so small that the rings take nearly all of the time, and shows the other.  One rank
# solves the linear equations: several of them poll for each other's panels for minutes over TCP where
# they outnumber the cores (HPL_bcast, seen with Open MPI 4.1).
program=$1
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
folder="$FABRICPROOF_LEG/hpcc.${FABRICPROOF_PART:-0}"
mkdir -p "$folder" && cd "$folder" || exit 74
if [ "$rank" = 0 ]; then
    rm -f hpccoutf.txt
    cat >hpccinf.txt <<'INPUT' || exit 74
HPLinpack benchmark input file
written by hpcc.sh
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
128          Ns
1            # of NBs
32           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
1            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
INPUT
fi
"$program"
status=$?
if [ "$rank" = 0 ]; then
    cat hpccoutf.txt || status=74
fi
exit $status
