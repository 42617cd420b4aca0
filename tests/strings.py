"""`python -m tests.strings [PATH...]`: every string of the package that a person may read, with its place.

A line is `FILE:LINE  where it stands  "text"`; the values of an f-string are shown as {…}. Listed are docstrings of
backslash commands, arguments of exceptions and of calls that print, `help` texts, and every other literal that has
two words. Some of those are SQL or keys of a protocol: the list leaves nothing out rather than be short.

`--docstrings` lists the first lines of all docstrings instead, `--comments` all comments. `--changed REV` lists only
what that commit did not have.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import signal
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[1]
HOLE = "{…}"

TELLING = frozenset({"Say", "say", "warn", "warn_here", "note", "detail", "error", "write", "echo", "append", "print"})
"""Calls whose single words are shown too."""

_WORDS = re.compile(r"[A-Za-z\]}'),.:;…]\s+[A-Za-z{\[(']")
_PATTERN = re.compile(r"\(\?[:<!=P]|\\[sSdbAZ]|\[\^|[+*]\+")


class Found(Struct, frozen=True):
    file: str
    line: int
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.where}  {self.text}"


def strings(file: str, source: str) -> Iterator[Found]:
    """The literals of a module that may reach a person, in the order of the lines."""
    finder = _Finder(file)
    finder.visit(ast.parse(source))
    return iter(sorted(finder.found, key=lambda found: found.line))


def docstrings(file: str, source: str) -> Iterator[Found]:
    """The first line of each docstring, those that stand after a constant or a field included."""
    tree = ast.parse(source)
    names = {}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for before, after in zip([node, *body], body, strict=False):
                names[after] = before
    found = []
    for node, before in names.items():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = node.value.value.strip().partition("\n")[0]
            found.append(Found(file, node.lineno, _name(before), text))
    return iter(sorted(found, key=lambda found: found.line))


def comments(file: str, source: str) -> Iterator[Found]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type:")):
            yield Found(file, token.start[0], "#", token.string.removeprefix("#").strip())


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Found] = []
        self.where: list[str] = ["module"]
        self.raising = 0

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        is_command = any(_called(item) == "command" for item in node.decorator_list)
        for item in node.decorator_list:
            self.visit(item)
        help_text = ast.get_docstring(node)
        if is_command and help_text:
            self.found.append(Found(self.file, node.body[0].lineno, f"help of {node.name}", repr(help_text)))
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._inside(node.name + "()", node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._inside(_name(node), [node.value])

    def visit_Assign(self, node: ast.Assign) -> None:
        self._inside(_name(node), [node.value])

    def visit_Raise(self, node: ast.Raise) -> None:
        self.raising += 1
        self.generic_visit(node)
        self.raising -= 1

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        self.visit(node.func)
        told = bool(self.raising) or name in TELLING or name.endswith(("Error", "Failure", "Request", "Warning"))
        for argument in node.args:
            self._argument(argument, name, told)
        for keyword in node.keywords:
            self._argument(keyword.value, f"{name} {keyword.arg}=", told or keyword.arg in {"help", "hint", "message"})

    def _argument(self, node: ast.expr, where: str, told: bool) -> None:
        self.where.append(where)
        text = _text(node)
        if text is not None:
            self._keep(node, text, told)
            self._holes(node)
        else:
            self.visit(node)
        self.where.pop()

    def visit_Constant(self, node: ast.Constant) -> None:
        self._plain(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._plain(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._plain(node)

    def _plain(self, node: ast.expr) -> None:
        text = _text(node)
        if text is None:
            self.generic_visit(node)
        else:
            self._keep(node, text, told=False)
            self._holes(node)

    def _keep(self, node: ast.expr, text: str, told: bool) -> None:
        words = text.replace(HOLE, "x")
        if (told and re.search(r"[A-Za-z]{2}", words)) or (_WORDS.search(text) and not _PATTERN.search(text)):
            self.found.append(Found(self.file, node.lineno, self.where[-1], repr(text)))

    def _holes(self, node: ast.expr) -> None:
        """What the values of a text say themselves: `f"{'is' if one else 'are'}"`."""
        if isinstance(node, ast.BinOp):
            for side in (node.left, node.right):
                if _text(side) is None:
                    self.visit(side)
                else:
                    self._holes(side)
        for value in getattr(node, "values", ()):
            if isinstance(value, ast.FormattedValue):
                self.visit(value.value)

    def _inside(self, where: str, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        self.where.append(where)
        for node in nodes:
            self.visit(node)
        self.where.pop()


def _text(node: ast.AST) -> str | None:
    """A literal as it is read: joined where it is put together of several, with {…} for each value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) or HOLE for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else (left or HOLE) + (right or HOLE)
    return None


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _name(node: ast.AST) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
    return str(getattr(target, "name", None) or getattr(target, "id", None) or getattr(target, "attr", "module"))


def at(revision: str) -> Iterator[tuple[str, str]]:
    """The modules of the package as a commit has them: file, source."""
    for file in _git("ls-tree", "-r", "--name-only", revision, "sqlshell").splitlines():
        if file.endswith(".py"):
            yield file, _git("show", f"{revision}:{file}")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(prog="python -m tests.strings", description=__doc__.partition("\n\n")[0])
    parser.add_argument("paths", nargs="*", default=["sqlshell"], help="files or folders; without them the package")
    parser.add_argument("--docstrings", action="store_true", help="list the first lines of docstrings")
    parser.add_argument("--comments", action="store_true", help="list comments")
    parser.add_argument("--changed", metavar="REV", help="list only what that commit did not have")
    given = parser.parse_args()
    read = docstrings if given.docstrings else comments if given.comments else strings
    old = {found.text for file, source in at(given.changed) for found in read(file, source)} if given.changed else set()
    for path in (ROOT / path for path in given.paths):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for found in read(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")):
                if found.text not in old:
                    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main()
