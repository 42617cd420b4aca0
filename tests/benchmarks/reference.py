"""The references as programs of their own: bare httpx, msgspec and csv.writer, one after another.

reference.py export URL SQL FILE     fetch every partition, decode it, write it
reference.py loop DATABASE SCRIPT    DuckDB runs the statements of a script, one of them in each line
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from pathlib import Path

import httpx
import msgspec


class Info(msgspec.Struct):
    rowCount: int


class Metadata(msgspec.Struct):
    partitionInfo: list[Info] = []


class Answer(msgspec.Struct):
    sqlState: str
    statementID: str
    metadata: Metadata | None = None
    data: list[list[str | None]] | None = None


def post(client: httpx.Client, sql: str) -> httpx.Response:
    request = json.dumps({"statement": sql, "parameters": {"sessionID": "reference"}})
    return client.post("/v2/statements", files={"request": (None, request, "application/json")})


def export(client: httpx.Client, sql: str, path: str) -> None:
    decoder = msgspec.json.Decoder(Answer)
    answer = decoder.decode(post(client, sql).content)
    while answer.sqlState == "03000":
        time.sleep(0.01)
        answer = decoder.decode(client.get(f"/v2/statements/{answer.statementID}").content)
    assert answer.sqlState == "00000"
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(answer.data or [])
        for number in range(1, len(answer.metadata.partitionInfo if answer.metadata else [])):
            body = client.get(f"/v2/statements/{answer.statementID}", params={"partitionID": number}).content
            writer.writerows(decoder.decode(body).data or [])


def loop(database: str, script: str) -> None:
    import duckdb

    with duckdb.connect(database) as connection, Path(script).open() as lines:
        for line in lines:
            connection.execute(line).fetchall()


def main() -> None:
    job, url, *rest = sys.argv[1:]
    if job == "loop":
        loop(url, *rest)
        return
    headers = {"Authorization": f"Bearer {os.environ['SQLSHELL_TOKEN']}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False) as client:
        export(client, *rest)


if __name__ == "__main__":
    main()
