"""Read YAML with a message that has file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fabricproof.core.errors import ConfigError


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping that ``path`` holds; an empty file is an empty one.

    Raises:
        ConfigError: cannot be read, not YAML, or no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not valid YAML: {error.reason}", source=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot read: {error.strerror}", source=str(path)) from None
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> dict[str, Any]:
    """Return the mapping that ``text`` is; an empty one where it is empty.

    Args:
        text: YAML.
        path: the file that a person would mend.

    Raises:
        ConfigError: not YAML, or no mapping.
    """
    source = str(path)
    try:
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"not valid YAML: {error.problem}", source=source, line=line) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not valid YAML: {type(error).__name__}", source=source) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            "not a Spack file", source=source, expected="a mapping", got=type(data).__name__
        )
    return data
