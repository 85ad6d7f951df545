"""ReFrame as it comes: no guard of the house."""

site_configuration = {
    "systems": [
        {
            "name": "stock",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": name,
                    "scheduler": scheduler,
                    "launcher": "local",
                    "environs": ["plain"],
                    "max_jobs": 20,
                }
                for name, scheduler in (("node", "local"), ("queue", "squeue"))
            ],
        }
    ],
    "environments": [{"name": "plain"}],
    "general": [{"poll_rate_max": 50.0, "poll_rate_min": 20.0}],
}
