"""Read YAML with a message that has file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from fabricproof.errors import ConfigError


def load_yaml(path: Path, *, shown_as: Path | None = None) -> dict[str, Any]:
    """Return the mapping that ``path`` holds; an empty file is an empty one.

    Args:
        path: the file.
        shown_as: the file that a person would mend, where it is another.

    Raises:
        ConfigError: not YAML, or no mapping.
    """
    source = str(shown_as or path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"not valid YAML: {error.problem}", source=source, line=line) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"not valid YAML: {type(error).__name__}", source=source) from None
    except OSError as error:
        raise ConfigError(f"cannot read: {error.strerror}", source=source) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(
            "not a Spack file", source=source, expected="a mapping", got=type(data).__name__
        )
    return data
