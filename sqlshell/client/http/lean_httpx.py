"""httpx, imported without its command line.

If click and pygments are installed, `import httpx` imports both for its command line, which takes 20 to 30 ms. httpx
works without its command line: it catches the ImportError, which this module provokes.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

_modules = cast("dict[str, ModuleType | None]", sys.modules)
if "httpx" not in _modules:
    _modules["httpx._main"] = None
    import httpx

    del _modules["httpx._main"]
else:
    import httpx

__all__ = ["httpx"]
