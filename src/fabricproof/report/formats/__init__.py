"""A report as files: HTML, JSON, JUnit, Prometheus text, lines to drain nodes, and the bundle."""
