"""The families of checks: what each measures, and the legs that it plans."""
