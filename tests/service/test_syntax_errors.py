"""Where the local service says that a syntax error is."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.service.engines.files.failures import moved_to_end
from tests.conftest import Program


@pytest.mark.parametrize(
    ("sql", "place", "message"),
    [
        ("select (1", "1:10", "syntax error at end of input"),
        ("select count(", "1:14", "syntax error at end of input"),
        ("select [1,\n 2 -- x\n", "2:3", "syntax error at end of input"),
        ("select date_format(now(), 'y' ", "1:30", "syntax error at end of input"),
        # The last word of these is wrong where it is.
        ("select (1 2", "1:11", 'syntax error at or near "2"'),
        ("select 1 as a b", "1:15", 'syntax error at or near "b"'),
        ("select (1;", "1:10", 'syntax error at or near ";"'),
    ],
)
def test_a_statement_that_ends_too_early(program: Program, sql: str, place: str, message: str) -> None:
    done = program("-c", sql)
    assert done.err.splitlines()[0] == f"<command>:{place}: error[42601]: {message}"


def test_the_mark_goes_behind_the_last_word() -> None:
    with pytest.raises(duckdb.ParserException) as caught:
        duckdb.sql("select\n'a' from")
    *_, line, marks = moved_to_end(str(caught.value)).split("\n")
    assert line[marks.index("^") - 4 :] == "from"
    assert moved_to_end("Parser Error: no place") == ""
