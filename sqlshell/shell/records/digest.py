"""The digest by which a statement is recognized in files that must not contain its text."""

from __future__ import annotations

import hashlib


def digest(text: str) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
