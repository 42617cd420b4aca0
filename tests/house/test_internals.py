"""What the package overrides in classes of other packages is there, in every version that pyproject.toml admits.

A method that a new version renames would never be called again, and nothing else would say so.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from sqlshell.client.http.pool import Pool
from sqlshell.client.results import frames
from sqlshell.service.wire.protocol import BoundedProtocol
from sqlshell.service.wire.websocket import BoundedSocket

OWN = {
    Pool: {"drop_stale"},
    frames.Connection: {"frames", "ended", "ending", "reason"},
    frames._Straight: set(),
    BoundedProtocol: set(),
    BoundedSocket: set(),
}
"""Our subclasses of other packages' classes, with the public methods that are ours."""


@pytest.mark.parametrize("ours", OWN, ids=lambda ours: str(ours.__name__))
def test_every_method_that_is_overridden_is_there(ours: type) -> None:
    theirs = ours.__mro__[1]
    assert not theirs.__module__.startswith("sqlshell")
    body = ast.parse(textwrap.dedent(inspect.getsource(ours))).body[0]
    assert isinstance(body, ast.ClassDef)
    methods = {node.name for node in body.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    overridden = {name for name in methods if not name.startswith("_")} - OWN[ours]
    called = {
        node.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
    }
    assert not {name for name in overridden | called if not hasattr(theirs, name)}
