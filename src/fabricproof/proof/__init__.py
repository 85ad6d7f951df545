"""How often the verdict is wrong: faults, a model that leaves the files of jobs, and figures.

Everything behind those files is the product itself.  ``python -m fabricproof.proof``.
"""

from __future__ import annotations

#: What other rooms may import: nothing.
FRONT: dict[str, str] = {}
