"""duckdb, imported without looking up the version of its package.

`import duckdb` reads the version with importlib.metadata, which imports the modules for e-mail and archives: a tenth of
the start of an engine's process, where nobody asks for the version.
"""

from __future__ import annotations

import sys
from types import ModuleType

if "duckdb" not in sys.modules and "importlib.metadata" not in sys.modules:
    _stand_in = ModuleType("importlib.metadata")
    _stand_in.__dict__["version"] = lambda name: "unknown"
    sys.modules["importlib.metadata"] = _stand_in
    try:
        import duckdb
    finally:
        del sys.modules["importlib.metadata"]
else:
    import duckdb

__all__ = ["duckdb"]
