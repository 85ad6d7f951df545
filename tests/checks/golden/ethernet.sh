# TcpManyFlows
leg_rail0_flow1() { # iperf3 over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" bash peer.sh 8 rail0 iperf3 -t 2
}
leg_rail0_flows8() { # iperf3 over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" bash peer.sh 8 rail0 iperf3 -t 2 -P 8
}
leg_rail0_flow1_turn() { # iperf3 over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" bash peer.sh 8 rail0 iperf3 -t 2
}
leg_rail0_flows8_turn() { # iperf3 over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" bash peer.sh 8 rail0 iperf3 -t 2 -P 8
}

# MtuPath
leg_rail0_mtu() { # iperf3 over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    FABRICPROOF_FRAME=1500 \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" bash peer.sh 8 rail0 iperf3 -t 2
}

# TcpLinks
leg_rail0_links2() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=2 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}
leg_rail0_links1() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}
leg_rail0_links4() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=4 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}
leg_rail0_links2_turn() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=2 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1048576:3:2:4
}
leg_rail0_links1_turn() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=1 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1048576:3:2:4
}
leg_rail0_links4_turn() { # osu_bw over rail0
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS=rail0 \
    OMPI_MCA_btl=self,tcp \
    OMPI_MCA_btl_tcp_if_include=rail0 \
    OMPI_MCA_btl_tcp_links=4 \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_MCA_pml=ob1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1048576:3:2:4
}

# DefaultInterfaces
leg_untold() { # osu_bw over rail0+rail1
    env FABRICPROOF_PART=0 FABRICPROOF_RAILS='rail0 rail1' \
    OMPI_MCA_hwloc_base_binding_policy=none \
    OMPI_MCA_mpi_yield_when_idle=1 \
    PRTE_MCA_hwloc_default_binding_policy=none \
    timeout -k 5 30 \
    srun --mpi=pmix "$here/rank.sh" {STACKS}/openmpi5/venv/bin/python -EsP portrunner.py {STACKS}/openmpi5/share/osu-mpi4py/osu_bw.py 1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192:10:2:64 16384,32768,65536,131072,262144,524288,1048576:3:2:4
}
