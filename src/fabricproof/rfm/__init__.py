"""The only room that imports ReFrame: base classes, guards, settings.

Only ``checks/``, ``reframe_settings.py``, a site's own settings and checks, and the tests import
it; nothing else of the library does.
"""

from fabricproof.core.project import check_folders, project_root
from fabricproof.rfm.own import Referenced
from fabricproof.rfm.settings import extend

__all__ = ["CHECKS", "Referenced", "extend"]

#: the folder of our checks, for ReFrame's ``-c``
CHECKS = str(check_folders(project_root())[0])

#: What the checks may import.
FRONT: dict[str, str] = {
    "checks.base": "what every check is",
    "checks.family": "checks between two nodes",
    "checks.preflight": "the check of the nodes themselves",
    "families.all_pairs": "the checks of all nodes",
    "families.collectives": "checks of collectives and of rings",
    "families.gpus": "checks with buffers on GPUs",
    "families.places": "checks by distance and by socket",
    "families.rails": "checks of several rails",
    "families.sockets": "checks of sockets, of verbs without MPI, and of MPI over TCP",
    "families.sweep": "the check of a collective's algorithms",
    "settings": "the configuration that ReFrame is given",
}
