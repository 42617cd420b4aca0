"""A service that supports only given statements, by patterns with their results; all others fail with 42601."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

from tests.http_servers import QuietHandler, listening

Answers = Mapping[str, tuple[Sequence[str], Sequence[Sequence[str | None]]]]
"""Patterns of whole statements (in any case) with columns and rows."""

_SQL = re.compile(rb'"statement":("(?:[^"\\]|\\.)*")')
ID = "0f6b3f7e-0000-4000-8000-000000000003"
CONTEXT = {"organizationID": "acme", "databaseName": "db", "schemaName": "public", "storeName": "", "roleName": "r"}


class FewWords:
    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []


@contextmanager
def few_words(answers: Answers) -> Iterator[FewWords]:
    state = FewWords()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = _SQL.search(body)
            sql = json.loads(found[1]) if found else ""
            state.asked.append(sql)
            known = next((given for text, given in answers.items() if re.fullmatch(text, sql, re.I | re.S)), None)
            message: dict[str, object] = {"statementID": ID, "createdOn": 1}
            if known is None:
                message |= {"sqlState": "42601", "message": f"syntax error in {sql[:20]}"}
            else:
                columns, rows = known
                told = [{"name": name, "type": "VARCHAR", "nullable": True} for name in columns]
                parts = [{"rowCount": len(rows)}]
                metadata = {"encoding": "json", "columns": told, "partitionInfo": parts, "context": CONTEXT}
                message |= {"sqlState": "00000", "metadata": metadata, "data": rows}
            content = json.dumps(message).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    with listening(server):
        yield state
