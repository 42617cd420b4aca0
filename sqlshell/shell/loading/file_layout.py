"""The layout of a file that is loaded: its columns, and how it is read."""

from __future__ import annotations

from msgspec import Struct


class SourceColumn(Struct, frozen=True):
    """A column of the file: its name, DuckDB's type, and the interface's type that a table made of it has."""

    name: str
    type: str
    table_type: str


class FileLayout(Struct, frozen=True):
    """The layout of the file: `about` says how it was read. With `named` its columns have names."""

    columns: tuple[SourceColumn, ...]
    named: bool
    about: str
    reader: tuple[tuple[str, str], ...] = ()
    """Arguments of DuckDB's reader, as SQL."""
    warnings: tuple[str, ...] = ()
    """Warnings about information that the types of a new table do not keep."""
