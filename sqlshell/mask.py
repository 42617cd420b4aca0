"""The text that replaces a secret in everything that is shown or stored."""

from typing import Final

MASK: Final = "***"
