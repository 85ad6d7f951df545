"""What one job left as evidence: ranks, devices, errors, others on the path, its end."""
