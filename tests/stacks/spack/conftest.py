"""A pretended Spack for every test of this room."""

from pretended_spack import lab

__all__ = ["lab"]
