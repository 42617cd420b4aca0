"""The curl command of a submission, as a shell splits it into arguments."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from sqlshell.client.http.curl import curl
from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext

CONTEXT = SessionContext(database="d", schema="a b", timezone="UTC", session_id="s")


def arguments(url: str, submission: Submission, *, legacy: bool = False, options: list[str] | None = None) -> list[str]:
    text = curl(parse(url), submission, CONTEXT, legacy=legacy, options=options or [])
    return shlex.split(text.replace("\\\n", " "))


def values(given: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(given) if name == option]


def unquoted(text: str) -> str:
    """A quoted value of -F as curl reads it."""
    return text.replace('\\"', '"').replace("\\\\", "\\")


@pytest.mark.parametrize("sql", ["select 1;", "select 'it''s', \"a b\", '\\\\ü\n;'"])
def test_the_request_is_the_part_that_would_be_sent(sql: str) -> None:
    given = arguments("https://host/v2", Submission(sql, row_limit=5))
    (part,) = values(given, "-F")
    assert part.startswith('request="')
    assert part.endswith('";type=application/json')
    request = json.loads(unquoted(part.removeprefix('request="').removesuffix('";type=application/json')))
    assert request == {
        "statement": sql,
        "database": "d",
        "schema": "a b",
        "parameters": {"timezone": "UTC", "sessionID": "s", "rowLimit": 5},
    }
    assert given[:2] == ["curl", "-sS"]
    assert values(given, "-H") == ["Authorization: Bearer $SQLSHELL_TOKEN"]
    assert given[-1] == "https://host/v2/statements"


def test_files_are_named_as_the_service_knows_them() -> None:
    file = Attachment(Path('/tmp/a "b"\\c.jar'), "c.jar", 3)
    given = arguments("http://host:8080", Submission("create function", (file,)))
    _, part = values(given, "-F")
    path, _, name = part.removeprefix('attachments=@"').rpartition('";filename=')
    assert (unquoted(path), name) == (str(file.path), '"c.jar"')


def test_the_legacy_interface_has_a_form() -> None:
    file = Attachment(Path("/tmp/c.jar"), "c.jar", 3)
    given = arguments("http://host", Submission("select '@x' = ';'", (file,)), legacy=True)
    # Unlike -F, --form-string reads no file where a value begins with @.
    assert values(given, "--form-string") == ["databaseName=d", "schemaName=a b", "statement=select '@x' = ';'"]
    assert values(given, "-F") == ['attachment=@"/tmp/c.jar";filename="c.jar"']
    assert given[-1] == "http://host/run-statement"


def test_how_the_service_is_reached() -> None:
    given = arguments("unix:///run/a b.sock", Submission("select 1"), options=["--cacert", "my ca.pem"])
    assert values(given, "--unix-socket") == ["/run/a b.sock"]
    assert values(given, "--cacert") == ["my ca.pem"]
    assert given[-1] == "http://localhost/v2/statements"
    assert "--unix-socket" not in arguments("http://host", Submission("select 1"))
