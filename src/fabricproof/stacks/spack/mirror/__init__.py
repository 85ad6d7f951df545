"""A folder that an air-gapped site builds from: written with a network, read without one."""
