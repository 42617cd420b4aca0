"""The capabilities of Spark Connect servers for the service."""

from __future__ import annotations

from typing import Final

from sqlshell.service.engines.engine import Capabilities

CAPABILITIES: Final = Capabilities(cancel=True, typed_results=True, reattaching=True)
"""Without progress, which a server has once it reports some."""
