"""The only room that imports ReFrame: base classes, guards, settings.

Only ``checks/``, ``reframe_settings.py`` and the tests import it; nothing else of the library does.
"""

#: What the checks may import.
FRONT: dict[str, str] = {
    "checks.all_pairs": "the checks of all nodes",
    "checks.base": "what every check is",
    "checks.collectives": "checks of collectives",
    "checks.ethernet": "checks of sockets, of verbs without MPI, and of MPI over TCP",
    "checks.family": "checks between two nodes",
    "checks.gpu": "checks with buffers on GPUs",
    "checks.multirail": "checks of several rails",
    "checks.preflight": "the check of the nodes themselves",
    "legs.rails": "legs over several rails",
    "settings": "the configuration that ReFrame is given",
}
