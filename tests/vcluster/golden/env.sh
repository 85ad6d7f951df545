export FABRICPROOF_VCLUSTER=tiny
export SLURM_CONF=/run/fabricproof/vcluster/tiny/etc/slurm.conf
case ":$PATH:" in *:/run/fabricproof/vcluster/tiny/bin:*) ;; *) export PATH="/run/fabricproof/vcluster/tiny/bin:$PATH" ;; esac
