"""Which column of a file goes into which column of a table."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.humanize import format_count
from sqlshell.shell.loading.column_types import TargetColumn
from sqlshell.shell.loading.file_layout import FileLayout, SourceColumn
from sqlshell.shell.loading.request import LoadRequest
from sqlshell.sql.identifiers import quoted


class ColumnMatch(Struct, frozen=True):
    """Pairs of columns in the order of the file; `left` are columns of the table that get their defaults."""

    pairs: tuple[tuple[SourceColumn, TargetColumn], ...]
    left: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[TargetColumn, ...]:
        return tuple(target for _, target in self.pairs)

    @property
    def listed(self) -> str:
        """The columns of the table, as SQL."""
        return ", ".join(quoted(target.name) for target in self.targets)


def match_columns(request: LoadRequest, looked: FileLayout, table: Sequence[TargetColumn]) -> ColumnMatch:
    """Match by name where the file has names, and else by position. Raises UsageError."""
    wanted = _wanted(request, table)
    known = {"*", *(column.name.lower() for column in table)}
    for option, listed in (("force_not_null", request.force_not_null), ("force_null", request.force_null)):
        if unknown := next((name for name in listed if name not in known), ""):
            raise UsageError(f"{option}: {request.table} has no column {unknown!r}")
    if not looked.columns:
        return ColumnMatch(())
    if looked.named and (request.columns or request.format not in {"csv", "text"} or _known(looked, wanted)):
        by_name = _by_name(request, looked, wanted)
        if by_name is not None:
            return ColumnMatch(by_name, _left(table, by_name))
    if looked.named and request.header is None:
        names = [column.name.lower() for column in looked.columns]
        if _known(looked, wanted):
            missing = [target.name for target in wanted if target.name.lower() not in names]
            why = f"some columns of {request.table} are missing: {', '.join(missing[:20])}"
        else:
            names = [column.name for column in looked.columns[:20]]
            why = f"contains no column name of {request.table}: {', '.join(names)}"
        raise UsageError(
            f"{request.name}: the first line looks like a header, but {why}",
            "if the line is data, use --with 'HEADER false' (in \\copy: HEADER false); if it is a header with other "
            "names, use --with HEADER (in \\copy: HEADER), and list the columns of the table in the order of the file: "
            "t (a, b)",
        )
    if len(looked.columns) != len(wanted):
        raise UsageError(
            f"{request.name} has {format_count(len(looked.columns), 'column')}, "
            f"but {request.table} has {format_count(len(wanted), 'column')} to fill",
            "list the columns of the table in the order of the file: t (a, b)",
        )
    pairs = tuple(zip(looked.columns, wanted, strict=True))
    return ColumnMatch(pairs, _left(table, pairs))


def new_columns(looked: FileLayout) -> tuple[TargetColumn, ...]:
    """The columns of a table that is made for the file."""
    return tuple(TargetColumn(column.name, column.table_type) for column in looked.columns)


def _wanted(request: LoadRequest, table: Sequence[TargetColumn]) -> list[TargetColumn]:
    if not request.columns:
        return list(table)
    by_name = {column.name.lower(): column for column in table}
    targets = []
    for written in request.columns:
        name = written[1:-1].replace(written[0] * 2, written[0]) if written[:1] in {'"', "`"} else written
        if name.lower() not in by_name:
            raise UsageError(f"{request.table} has no column {name!r}", f"it has {', '.join(by_name)}")
        targets.append(by_name[name.lower()])
    return targets


def _known(looked: FileLayout, wanted: Sequence[TargetColumn]) -> bool:
    names = {column.name.lower() for column in wanted}
    return any(column.name.lower() in names for column in looked.columns)


def _by_name(
    request: LoadRequest, looked: FileLayout, wanted: Sequence[TargetColumn]
) -> tuple[tuple[SourceColumn, TargetColumn], ...] | None:
    """None where listed columns are the file's by their position alone."""
    by_name = {column.name.lower(): column for column in wanted}
    pairs = [(each, by_name[each.name.lower()]) for each in looked.columns if each.name.lower() in by_name]
    if request.columns:
        return tuple(pairs) if len(pairs) == len(wanted) else None
    unknown = [each.name for each in looked.columns if each.name.lower() not in by_name]
    if unknown:
        raise UsageError(
            f"{request.name}: {request.table} has no column {unknown[0]!r}; it has {', '.join(by_name)}",
            "list the columns to load, t (a, b), or create the table with --create (in \\copy: CREATE)",
        )
    targets = [target.name for _, target in pairs]
    if twice := next((name for name in targets if targets.count(name) > 1), ""):
        raise UsageError(f"{request.name}: two columns are named {twice!r}", "rename one of them")
    return tuple(pairs)


def _left(table: Sequence[TargetColumn], pairs: Sequence[tuple[SourceColumn, TargetColumn]]) -> tuple[str, ...]:
    filled = {target.name for _, target in pairs}
    return tuple(column.name for column in table if column.name not in filled)
