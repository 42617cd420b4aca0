"""uvicorn, imported without its command line and its supervisors of processes.

`import uvicorn` imports them with its server, which takes 30 ms. They are imported when a program that shares this
process asks for them: `uvicorn.run`, `uvicorn.Server` and `uvicorn.main` work as ever.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_LATER = ("Server", "main", "run")
_COMMAND_LINE = "uvicorn.main"


def _first_use(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'uvicorn' has no attribute {name!r}")
    module = importlib.import_module(_COMMAND_LINE)
    for later in _LATER:
        setattr(uvicorn, later, getattr(module, later))
    return getattr(uvicorn, name)


_first = "uvicorn" not in sys.modules
if _first:
    _stand_in = ModuleType(_COMMAND_LINE)
    _stand_in.__dict__.update(dict.fromkeys(_LATER))
    sys.modules[_COMMAND_LINE] = _stand_in
try:
    import uvicorn
    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState
finally:
    if _first:
        del sys.modules[_COMMAND_LINE]
if _first:
    for _name in _LATER:
        delattr(uvicorn, _name)
    uvicorn.__dict__["__getattr__"] = _first_use

__all__ = ["Config", "HttpToolsProtocol", "ServerState"]
