"""A report as files: HTML, JSON, JUnit, Prometheus text, and the bundle."""
