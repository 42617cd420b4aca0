"""Methods of other packages that the package overrides exist, in every version that pyproject.toml allows.

A method that a new version renames would never be called again, without any error.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

import pytest

from sqlshell.client.http.pool import Pool

OURS = (Pool,)
"""Our subclasses of other packages' classes that use more of them than they document."""

NEW = {"drop_stale"}
"""Public methods that override none."""


def attributes(tree: ast.AST, of: str) -> Iterator[tuple[str, bool]]:
    """The names of attributes of `self` or of `super()`, each with whether it is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == of:
            yield node.attr, isinstance(node.ctx, ast.Store)


def source(of: object) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(of)))  # type: ignore[arg-type]


@pytest.mark.parametrize("ours", OURS, ids=lambda ours: str(ours.__name__))
def test_what_is_used_of_a_class_is_there(ours: type) -> None:
    tree = source(ours)
    theirs = ours.__mro__[1:]
    assert not theirs[0].__module__.startswith("sqlshell")
    public = {name for name in vars(ours) if not name.startswith("_")} - NEW
    inherited = public | {name for name, _ in attributes(tree, "super()")}
    assert not {name for name in inherited if not hasattr(theirs[0], name)}

    own = {name for name, assigned in attributes(tree, "self") if assigned} | vars(ours).keys()
    used = {name for name, _ in attributes(tree, "self")} - own
    methods = [method for base in theirs for method in vars(base).values() if inspect.isfunction(method)]
    made = {name for method in methods for name, assigned in attributes(source(method), "self") if assigned}
    assert not {name for name in used if name not in made and not hasattr(theirs[0], name)}
