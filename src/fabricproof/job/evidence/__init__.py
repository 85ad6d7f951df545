"""What one job left as evidence: ranks, devices, errors, others on the road, its end."""
