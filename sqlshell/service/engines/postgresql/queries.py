"""The queries of the server's catalog, which are kept as SQL in the folder `sql`."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"^--- (.+)\n", re.M)
_BLOCK: Final = re.compile(r"^ *-- (details|short|foreign)\n(.*?)^ *-- end\n", re.M | re.S)
_NAMED: Final = re.compile(r"(?<!:):([a-z]\w*)")


@functools.cache
def catalog_sql(name: str, *kept: str) -> str:
    """The query of this name, with those of its optional blocks whose words are `kept`, and the parts that it names."""
    parts = _parts()
    text = _BLOCK.sub(lambda block: block[2] if block[1] in kept else "", parts[name])
    while (whole := _NAMED.sub(lambda match: parts.get(f":{match[1]}", match[0]), text)) != text:
        text = whole
    return text


@functools.cache
def _parts() -> dict[str, str]:
    files = sorted((Path(__file__).parent / "sql").glob("*.sql"))
    texts = [_PART.split(file.read_text("utf-8"))[1:] for file in files]
    return {name: text.strip() + "\n" for each in texts for name, text in zip(each[::2], each[1::2], strict=True)}
