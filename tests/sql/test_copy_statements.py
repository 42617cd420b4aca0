"""COPY and \\copy are parsed as psql and DuckDB spell them; what is neither is refused where it begins."""

from __future__ import annotations

import pytest

from sqlshell.errors import UsageError
from sqlshell.sql.analysis.copy_statements import CopyStatement, loads_rows, read_copy, returns_rows
from sqlshell.sql.analysis.lexed import lexed


def read(text: str) -> CopyStatement:
    return read_copy(text, command=True)


@pytest.mark.parametrize(
    ("text", "source", "columns", "query", "loads", "place", "stream", "program"),
    [
        ("copy t from 'a.csv'", "t", (), False, True, "a.csv", False, False),
        ("copy t to 'a''b';", "t", (), False, False, "a'b", False, False),
        ("copy t to 'a';;", "t", (), False, False, "a", False, False),
        ('copy a."B c" . d (x, "Y") from stdin', 'a."B c" . d', ("x", '"Y"'), False, True, "STDIN", True, False),
        ("copy (select (1)) to stdout", "select (1)", (), True, False, "STDOUT", True, False),
        ("copy ( select ')' ) to pstdout", "select ')'", (), True, False, "PSTDOUT", True, False),
        ("copy t from pstdin", "t", (), False, True, "PSTDIN", True, False),
        ("copy t from stdin.csv", "t", (), False, True, "stdin.csv", False, False),
        ("copy t from stdin(format csv)", "t", (), False, True, "STDIN", True, False),
        ("copy t from stdin with csv", "t", (), False, True, "STDIN", True, False),
        ("copy t from /a/b-1.csv csv", "t", (), False, True, "/a/b-1.csv", False, False),
        ("copy t from a.csv; ", "t", (), False, True, "a.csv", False, False),
        ("copy t from program 'x | y'", "t", (), False, True, "x | y", False, True),
    ],
)
def test_what_is_copied(
    text: str, source: str, columns: tuple[str, ...], query: bool, loads: bool, place: str, stream: bool, program: bool
) -> None:
    found = read(text)
    assert (found.source, found.columns, found.query) == (source, columns, query)
    assert (found.loads, found.place, found.stream, found.program) == (loads, place, stream, program)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("with (format CSV)", {"format": "csv"}),
        ("(format text, null 'NULL', delimiter E'\\t')", {"format": "text", "null": "NULL", "delimiter": "\t"}),
        ("(delim '|', nullstr '', quote '''')", {"delimiter": "|", "null": "", "quote": "'"}),
        ("(sep ';', null_string 'x', escape e'\\\\')", {"delimiter": ";", "null": "x", "escape": "\\"}),
        ("(nulls 'x', delimiter e'\\n\\r\\b\\f\\q''')", {"null": "x", "delimiter": "\n\r\b\fq'"}),
        ("(header, create, freeze true)", {"header": "true", "create": "true", "freeze": "true"}),
        ("(header off, dry_run ON, resume 0)", {"header": "false", "dry_run": "true", "resume": "false"}),
        ("(header match, sniff no, create 1)", {"header": "true", "sniff": "false", "create": "true"}),
        ("(header yes, sniff false)", {"header": "true", "sniff": "false"}),
        ("(format = csv, header = true)", {"format": "csv", "header": "true"}),
        (
            "(max_errors 10, rejects 'r.csv', if_unknown skip)",
            {"max_errors": "10", "rejects": "r.csv", "if_unknown": "skip"},
        ),
        ("(force_quote *, encoding 'UTF8')", {"force_quote": "*", "encoding": "UTF8"}),
        ("(encoding latin-1, header)", {"encoding": "latin-1", "header": "true"}),
        ("(encoding=ISO-8859-1)", {"encoding": "ISO-8859-1"}),
        ('(force_quote (a, "B"))', {"force_quote": "a\nB"}),
        ("(allow_quoted_nulls true)", {"allow_quoted_nulls": "true"}),
        ("csv header", {"format": "csv", "header": "true"}),
        ("with text delimiter as '|' null ''", {"format": "text", "delimiter": "|", "null": ""}),
        ("csv delimiters ';' quote as '\"' escape '\\' encoding 'x'",
         {"format": "csv", "delimiter": ";", "quote": '"', "escape": "\\", "encoding": "x"}),
        ("csv force quote *", {"format": "csv", "force_quote": "*"}),
        ("csv force quote a, b header", {"format": "csv", "force_quote": "a\nb", "header": "true"}),
    ],
)  # fmt: skip
def test_options(text: str, options: dict[str, str]) -> None:
    found = read(f"copy t to 'f' {text}")
    assert found.options == options
    assert found.end == len("copy t to 'f'")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("copy", "COPY: expected a table or a query in parentheses at the end", "example:"),
        ("copi t to 'f'", "COPY: expected COPY, found 'copi'", "example:"),
        ("copy t", "COPY: expected FROM or TO at the end", "example:"),
        ("copy t into 'f'", "COPY: expected FROM or TO, found 'into'", "example:"),
        ("copy (select 1) from 'f'", "COPY: expected TO, found 'from'", "example:"),
        ("copy (select 1 to 'f'", "COPY: expected a closing parenthesis at the end", "example:"),
        ("copy binary t to 'f'", "COPY BINARY is not supported", "use the format csv, text or parquet"),
        ("copy t to 'f' binary", "COPY BINARY is not supported", "use the format csv, text or parquet"),
        ("copy 't' to 'f'", "COPY: \"'t'\" is not the name of a table", "example:"),
        ("copy 't'.u to 'f'", "COPY: 'u' is not the name of a table", "example:"),
        ("copy t.'u' to 'f'", "COPY: \"'u'\" is not the name of a table", "example:"),
        ("copy t.", "COPY: expected a name at the end", "example:"),
        ("copy t (a", 'COPY: expected "," or ")" at the end', "example:"),
        ("copy t (a b) to 'f'", "COPY: expected \",\" or \")\", found 'b'", "example:"),
        ("copy t (1) to 'f'", "COPY: '1' is not the name of a column", "example:"),
        ("copy t to", "COPY: expected a file at the end", "example:"),
        ("copy t to program cat", "COPY: expected a command in single quotes, found 'cat'", "example:"),
        ("copy t to program", "COPY: expected a command in single quotes at the end", "example:"),
        ("copy t to 'f' (format csv", 'COPY: expected "," or ")" at the end', "example:"),
        ("copy t to 'f' (format csv header)", "COPY: expected \",\" or \")\", found 'header'", "example:"),
        ("copy t to 'f' (format)", "COPY: FORMAT requires a value", "example:"),
        ("copy t to 'f' (format csv) x", "COPY: unexpected 'x'", "example:"),
        ("copy t to 'f' (Colour red)", "COPY: unknown option 'Colour'", "options: ALLOW_QUOTED_NULLS, CREATE,"),
        ("copy t to 'f' colour", "COPY: unknown option 'colour'", "example:"),
        ("copy t to 'f' (header maybe)", "COPY: HEADER must be true or false, not 'maybe'", "example:"),
        ("copy t to 'f' null x", "COPY: null takes a string in quotes, found 'x'", "example:"),
        ("copy t to 'f' null", "COPY: expected a string at the end", "example:"),
        ("copy t to 'f' csv force x", "COPY: expected QUOTE, NULL or NOT NULL, found 'x'", "example:"),
        ("copy t to 'f' csv force quote 1", "COPY: '1' is not the name of a column", "example:"),
        ("copy t to 'f' (force_quote (a; b))", "COPY: expected \",\" or \")\", found ';'", "example:"),
        ("copy t to 'f' (force_quote (a, 1))", "COPY: '1' is not the name of a column", "example:"),
        ("copy t to 'f' (force_quote (a", 'COPY: expected "," or ")" at the end', "example:"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(text).check()
    assert refused.value.message == message
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("copy t to program 'cat'", "COPY … PROGRAM is not supported"),
        ("copy t to f.csv", "COPY: expected a file in single quotes, found 'f'"),
    ],
)
def test_what_only_the_command_takes(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_copy(text)
    assert refused.value.message == message
    read(text)


def test_a_value_in_parentheses_is_skipped_as_a_whole() -> None:
    with pytest.raises(UsageError, match="unknown option"):
        read("copy t to 'f' (partition_by (a, (b)), format csv)").check()


@pytest.mark.parametrize(
    ("text", "tail", "options"),
    [
        ("copy t from stdin where a > 1;", "where a > 1", {}),
        (
            "copy t from stdin (format csv, bogus 1) where a = ';' -- x",
            "(format csv, bogus 1) where a = ';'",
            {"format": "csv"},
        ),
        ("copy t from 'f' csv header; -- x", "csv header", {"format": "csv", "header": "true"}),
        ("copy t from stdin", "", {}),
    ],
)
def test_what_follows_the_place_is_kept(text: str, tail: str, options: dict[str, str]) -> None:
    found = read(text)
    assert (found.tail, found.options) == (tail, options)


@pytest.mark.parametrize(
    ("text", "loads", "returns"),
    [
        ("copy t from stdin", True, False),
        ("copy t from '@f.csv'", True, False),
        ("copy t from 'f.csv'", False, False),
        ("copy t to '@f.csv'", False, False),
        ("copy t to stdout", False, True),
        ("COPY (select 1) TO STDOUT (format csv)", False, True),
        ("copy t to pstdout", False, False),
        ("copy t to 'stdout'", False, False),
        ("copy stdout from stdin", True, False),
        ("copy t to stdout (colour red)", False, True),
        ("copy t from stdin (colour red)", False, False),
        ("select 'copy t to stdout'", False, False),
        ("-- x\ncopy t from stdin", True, False),
    ],
)
def test_statements_with_rows_of_their_own(text: str, loads: bool, returns: bool) -> None:
    assert loads_rows(lexed(text)) is loads
    assert (returns_rows(lexed(text)) is not None) is returns
