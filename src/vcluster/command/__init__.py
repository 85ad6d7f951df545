"""What the command does: its options, what it does with a cluster, and what it shows of one."""
