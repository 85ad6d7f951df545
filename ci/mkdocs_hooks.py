"""Links of the documents that leave them, to code and perflogs, become the path in words."""

import re
from typing import Any

_LEAVES = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<path>(?:\.\./)+[^)]*)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page with every link that goes above ``docs`` as text."""
    depth = page.file.src_uri.count("/")

    def plain(match: re.Match[str]) -> str:
        above = match["path"].count("../") > depth
        path = match["path"].replace("../", "")
        words = match["words"]
        return (
            f"{words} (`{path}`)" if above and path not in words else words if above else match[0]
        )

    return _LEAVES.sub(plain, markdown)
