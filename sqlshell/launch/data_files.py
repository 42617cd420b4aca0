"""Data files as TARGET: the views that they become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sqlshell.errors import UsageError
from sqlshell.mask import MASK
from sqlshell.runtime.files import expanded

DATA_ENDINGS: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
COMPRESSED_ENDINGS: Final = (".gz", ".zst")
DATABASE_ENDINGS: Final = (".db", ".duckdb", ".ddb")
STDIN: Final = "stdin"
"""The view of the data on stdin."""

_ENDINGS: Final = "|".join(map(re.escape, (*DATA_ENDINGS, *DATABASE_ENDINGS)))
_HEADER: Final = 16
"""The bytes that distinguish a DuckDB database from other files."""
_NAME: Final = re.compile(r"[\w.-]{1,24}")
_PATH: Final = re.compile(rf"(?!/?/)[^:\s]*/[^:\s]*|(?:~?/|\.{{1,2}}/)[^:@\n]*|[^:\n]*(?:{_ENDINGS})")
_URL: Final = re.compile(r"https?://[\w.-]{1,99}(?::\d{1,5})?(?:/[\w.-]{1,24}){0,4}/?")
_URL_BEGUN: Final = re.compile(r"https?[/\\;]|//|bearer\b|basic\b", re.I)
_RANDOM: Final = re.compile(r"[A-Za-z0-9+=]{20}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|\beyJ")
"""Text that tokens contain, and names seldom do."""


def views_of(texts: Sequence[str]) -> dict[str, Path]:
    """A view for each data file: those of `texts`, and those in directories of `texts`, but not in their
    subdirectories. Raises UsageError for other files, and for two of the same name in any case.
    """
    views: dict[str, Path] = {}
    taken: dict[str, Path] = {}
    for text in texts:
        for path in _data_files(text):
            name = path.name[: len(without_compression(path))].rpartition(".")[0]
            other = taken.setdefault(name.lower(), path)
            if other is not path:
                raise UsageError(
                    f"{other} and {path} would both become the view {name}",
                    "rename one of them, or give only one of them as TARGET",
                )
            views[name] = path
    return views


_WHICH: Final = f"data files end in {', '.join(DATA_ENDINGS)}, or in one of these and {' or '.join(COMPRESSED_ENDINGS)}"


def check_not_a_pipe(path: Path) -> None:
    """Raises UsageError for a pipe or device: a query may read a file more than once, and the service opens it by
    name."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(
            f"{shown_target(str(path))} is not a regular file",
            "pass its data on stdin, sqlshell - -c 'from stdin' < PIPE, or copy it to a file",
        )


def check_is_database(path: Path) -> None:
    """Raises UsageError for a file that DuckDB cannot open as a database."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER)
    except OSError:
        # The error of DuckDB says why.
        return
    if head and head[8:12] != b"DUCK" and not head.startswith(b"SQLite"):
        raise UsageError(
            f"{shown_target(str(path))} is not a DuckDB database",
            "save it as csv or parquet"
            if head.startswith((b"PK\x03\x04", b"ARROW1"))
            else f"{_WHICH}; rename it, or use: sqlshell - < FILE",
        )


def looks_like_url(text: str) -> bool:
    """Whether a TARGET that refers to nothing begins as a mistyped URL, such as `https//host` or `//host/v2`."""
    return text.startswith("//") or bool(re.match(r"https?[/\\;]", text, re.I))


def shown_target(text: str) -> str:
    """A TARGET that refers to nothing, as an error shows it: with its text if that has the form of a name, path or URL.

    Any other text may contain a token: it may be a mistyped URL, or a token in the place of one.
    """
    forms = (_NAME, _URL) if _URL_BEGUN.match(text) else (_NAME, _URL, _PATH)
    if not _RANDOM.search(text) and any(form.fullmatch(text) for form in forms):
        return text
    login, _, rest = text.rpartition("@")
    is_host = _NAME.fullmatch(rest.replace("/", "_")) and not _RANDOM.search(rest)
    return f"{MASK}@{rest}" if login and is_host else MASK


def without_compression(path: Path) -> str:
    """The name of a file in lower case, without the ending of its compression."""
    bare = path.name.lower()
    for ending in COMPRESSED_ENDINGS:
        bare = bare.removesuffix(ending)
    return bare


def _data_files(text: str) -> Sequence[Path]:
    path = expanded(text)
    if not path.is_dir():
        check_not_a_pipe(path)
        if not without_compression(path).endswith(DATA_ENDINGS):
            raise UsageError(
                f"{shown_target(text)!r} is not a data file",
                f"several TARGETs must all be data files, which end in {', '.join(DATA_ENDINGS)}",
            )
        if not path.exists():
            raise UsageError(f"no such file: {shown_target(text)}")
        return [path]
    try:
        files = sorted(item for item in path.iterdir() if item.is_file() and not item.name.startswith("."))
    except OSError as error:
        raise UsageError(f"cannot read the directory {path}: {error.strerror or error}") from None
    found = [item for item in files if without_compression(item).endswith(DATA_ENDINGS)]
    if not found:
        raise UsageError(f"the directory {path} contains no data file", _WHICH)
    return found
