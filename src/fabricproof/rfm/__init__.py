"""The only room that imports ReFrame: base classes, guards, settings.

Only ``checks/``, ``reframe_settings.py`` and the tests import it; nothing else of the library does.
"""
