"""The changes that can be made to a file, one at a time, which a test of the line should notice.

Left out is what no test should hold: sentences for people, annotations, assertions, and fractions, which are nearly
always durations.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}

DECLARATIONS = frozenset({"Literal", "NewType", "TypeVar", "ParamSpec", "cast", "assert_never", "TypeAliasType"})


@dataclass(frozen=True, slots=True)
class Change:
    """`start` and `end` are offsets in the file's bytes; `lines` are those that run the code that changes."""

    file: str
    kind: str
    scope: str
    lines: range
    in_function: bool
    start: int
    end: int
    text: bytes
    before: str
    after: str

    def made(self, source: bytes) -> bytes:
        return source[: self.start] + self.text + source[self.end :]

    @property
    def content(self) -> tuple[str, str, str]:
        """What tells the change from others, whatever file and line it is on."""
        return self.scope, self.before, self.after


def changes(root: Path, files: Iterable[Path]) -> list[Change]:
    return [
        change
        for file in sorted(files)
        for change in _Finder(file.relative_to(root).as_posix(), file.read_bytes()).found()
    ]


def sample(every: Iterable[Change], seed: int, count: int) -> list[Change]:
    """Changes of all kinds in turn; the same ones for the same seed and files."""
    chosen = random.Random(seed)
    kinds: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(every, key=lambda change: (change.file, change.start, change.text)):
        kinds[change.kind].append(change)
    waiting = [of_kind for _, of_kind in sorted(kinds.items())]
    for of_kind in waiting:
        chosen.shuffle(of_kind)
    found: list[Change] = []
    while waiting and len(found) < count:
        chosen.shuffle(waiting)
        found += [of_kind.pop() for of_kind in waiting]
        waiting = [of_kind for of_kind in waiting if of_kind]
    return found[:count]


class _Finder:
    def __init__(self, file: str, source: bytes) -> None:
        self._file, self._source = file, source
        self._tree = ast.parse(source)
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def found(self) -> Iterator[Change]:
        yield from self._block(self._tree.body, (), in_function=False)

    def _block(self, body: list[ast.stmt], scope: tuple[str, ...], *, in_function: bool) -> Iterator[Change]:
        for statement in body:
            yield from self._statement(statement, scope, in_function=in_function)

    def _statement(self, node: ast.stmt, scope: tuple[str, ...], *, in_function: bool) -> Iterator[Change]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self._within(
                node,
                [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.decorator_list],
                scope,
                in_function,
            )
            yield from self._block(node.body, (*scope, node.name), in_function=True)
            return
        if isinstance(node, ast.ClassDef):
            if not any(_name(base) in {"Protocol", "TypedDict", "NamedTuple"} for base in node.bases):
                yield from self._block(node.body, (*scope, node.name), in_function=False)
            return
        if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            yield from self._block(node.orelse, scope, in_function=in_function)
            return
        yield from self._deletions(node, scope, in_function)
        if isinstance(node, ast.If | ast.While):
            yield self._turned(node.test, node, scope, in_function)
        expressions = [
            child
            for name, value in ast.iter_fields(node)
            if name not in {"annotation", "targets", "target"}
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.expr | ast.withitem)
        ]
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield from self._within(node, expressions, scope, in_function)
        for name in ("body", "orelse", "finalbody"):
            yield from self._block(getattr(node, name, []), scope, in_function=in_function)
        for handler in getattr(node, "handlers", []):
            yield from self._block(handler.body, scope, in_function=in_function)
        for case in getattr(node, "cases", []):
            if case.guard is not None:
                yield self._turned(case.guard, node, scope, in_function)
                yield from self._within(node, [case.guard], scope, in_function)
            yield from self._block(case.body, scope, in_function=in_function)

    def _deletions(self, node: ast.stmt, scope: tuple[str, ...], in_function: bool) -> Iterator[Change]:
        kind, text = "", "pass"
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Await):
                kind = "awaited call deleted"
            elif isinstance(node.value, ast.Call) and _name(node.value.func) not in DECLARATIONS:
                kind = "call deleted"
        elif isinstance(node, ast.Raise):
            kind = "raise deleted"
        elif isinstance(node, ast.Break | ast.Continue):
            kind = "jump deleted"
        elif isinstance(node, ast.Return):
            if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                kind, text = "return value dropped", "return None"
        elif isinstance(node, ast.AugAssign | ast.Delete) or (
            isinstance(node, ast.Assign) and any(isinstance(to, ast.Attribute | ast.Subscript) for to in node.targets)
        ):
            kind = "assignment deleted"
        if kind:
            yield self._change(kind, node, text, node, scope, in_function)

    def _within(
        self, statement: ast.stmt, roots: Iterable[ast.AST], scope: tuple[str, ...], in_function: bool
    ) -> Iterator[Change]:
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if (isinstance(node, ast.Subscript) and _name(node.value) in DECLARATIONS) or (
                isinstance(node, ast.Call) and _name(node.func) in DECLARATIONS
            ):
                continue
            if isinstance(node, ast.JoinedStr):
                waiting += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
                continue
            inside = isinstance(node, ast.Lambda) or in_function
            if isinstance(node, ast.Lambda):
                yield from self._within(statement, [node.body], scope, inside)
                continue
            waiting += ast.iter_child_nodes(node)
            if isinstance(node, ast.comprehension):
                for condition in node.ifs:
                    yield self._turned(condition, statement, scope, inside)
            elif isinstance(node, ast.IfExp):
                yield self._turned(node.test, statement, scope, inside)
            elif isinstance(node, ast.Compare):
                for number, operator in enumerate(node.ops):
                    ops = [*node.ops[:number], COMPARISONS[type(operator)], *node.ops[number + 1 :]]
                    other = ast.Compare(node.left, ops, node.comparators)
                    yield self._change("comparison changed", node, ast.unparse(other), statement, scope, inside)
            elif isinstance(node, ast.BoolOp):
                turned = ast.Or() if isinstance(node.op, ast.And) else ast.And()
                text = f"({ast.unparse(ast.BoolOp(turned, node.values))})"
                yield self._change("boolean operator changed", node, text, statement, scope, inside)
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                yield self._change("not dropped", node, f"({ast.unparse(node.operand)})", statement, scope, inside)
            elif isinstance(node, ast.Constant) and (text := _other(node.value)):
                yield self._change("constant changed", node, text, statement, scope, inside)

    def _turned(self, node: ast.expr, statement: ast.stmt, scope: tuple[str, ...], in_function: bool) -> Change:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            text = f"({ast.unparse(node.operand)})"
        else:
            text = f"(not ({ast.unparse(node)}))"
        return self._change("condition turned", node, text, statement, scope, in_function)

    def _change(
        self, kind: str, node: ast.expr | ast.stmt, text: str, statement: ast.stmt, scope: tuple[str, ...], inside: bool
    ) -> Change:
        first, last = node.lineno, node.end_lineno or node.lineno
        start = self._starts[first - 1] + node.col_offset
        end = self._starts[last - 1] + (node.end_col_offset or 0)
        left, right = self._starts[first - 1], self._starts[last]
        before = self._source[left:right]
        after = self._source[left:start] + text.encode() + self._source[end:right]
        body = getattr(statement, "body", None)
        header = range(statement.lineno, body[0].lineno if body else (statement.end_lineno or 0) + 1)
        lines = range(first, last + 1) if isinstance(node, ast.expr) else header
        return Change(
            self._file, kind, ".".join(scope), lines, inside, start, end, text.encode(), _joined(before), _joined(after)
        )


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _other(value: object) -> str:
    """Another constant of the type, as source; "" for those that are left alone."""
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, int):
        return repr(value + 1)
    if isinstance(value, str):
        return "" if " " in value.strip() else repr(f"{value}X")
    if isinstance(value, bytes):
        return "" if b" " in value.strip() else repr(value + b"X")
    return ""


def _joined(lines: bytes) -> str:
    return " ".join(lines.decode().split())
