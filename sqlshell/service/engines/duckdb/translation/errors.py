"""Errors about a translated statement, with positions in the statement as it was typed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb

from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.translation.statement import Translation
from sqlshell.service.failure import Failure


@contextlib.contextmanager
def explained(translation: Translation | None) -> Iterator[None]:
    """Errors inside the block are raised as Failure with the position in the typed statement."""
    try:
        yield
    except (duckdb.Error, Failure) as error:
        if translation is None:
            raise
        failed = error if isinstance(error, Failure) else failure(error)
        cause = error.__cause__ if isinstance(error, Failure) else error
        raise failed.with_message(translation.statement.explained(failed.message)) from cause
