"""httpx, imported without its own command line.

Where click and pygments are installed, `import httpx` loads both for its command line: 20 to 30 ms of each start. httpx
provides for a missing command line itself, by an ImportError that it catches; here the ImportError is brought about.
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
