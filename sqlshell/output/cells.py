"""Text from a service made safe to print, and its width in terminal cells."""

from __future__ import annotations

import re

# Everything that steers a terminal or hides text: C0, DEL, C1, line and paragraph separators, bidirectional controls,
# zero-width marks that reorder or join nothing visible, surrogates, non-characters, tags.
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    """`text` with every character that could steer a terminal written visibly (`\\x1b`, `\\u202e`); `keep` stay."""
    if text.isascii() and text.isprintable():
        return text

    def visible(found: re.Match[str]) -> str:
        char = found[0]
        if char in keep:
            return char
        code = ord(char)
        if char in _NAMED:
            return _NAMED[char]
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _HOSTILE.sub(visible, text)


def cells(text: str) -> int:
    """The terminal cells of one printable line."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width = int(wcswidth(text))
    return width if width >= 0 else len(text)
