"""`sqlshell` with a service that checks each of its responses against its OpenAPI document.

`python tests/checked.py serve …` is `sqlshell serve …` whose answers are checked inside the service, whoever asks. What
is wrong with one is appended to the file that the environment names in CHECKED_ANSWERS; install() does the same for
services that are made in this process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

WRONG = "CHECKED_ANSWERS"

LOOKED_AT = 64 << 10
"""Bytes of an answer that are looked at: of a larger one the rows are not."""

FRAMES = 50
"""Frames of a stream that are looked at."""

ROWS, STATEMENTS = b',"data":[', b',"statements":['
"""Stand in front of the rows of an answer, and of the answers of a batch, and in no string of JSON."""

Json = dict[str, Any]
Say = Callable[[str], None]


class Document:
    """The answers that an OpenAPI document has; `whole` is what it is."""

    def __init__(self, whole: Json) -> None:
        import jsonschema_rs

        self._validator = jsonschema_rs.Draft202012Validator
        # What the document does not name is wrong here, though clients are to ignore it.
        self._components = _closed(whole["components"])
        self._paths = [(_template(path), item) for path, item in whole["paths"].items()]
        self._validators: dict[str, Any] = {}

    def wrong(self, method: str, path: str, status: int, kind: str, body: bytes) -> str:
        """What is wrong with an answer, "" where nothing is."""
        known: Json = next((item for template, item in self._paths if template.fullmatch(path)), {})
        operation = known.get("get" if method == "HEAD" else method.lower())
        if operation is not None:
            answers = operation["responses"].get(str(status))
            if answers is None:
                return f"no status of {operation['operationId']}"
            if "$ref" in answers:
                answers = self._components["responses"][answers["$ref"].rpartition("/")[2]]
            contents = answers.get("content", {})
        elif status == 307 and not body:
            # A path that ends in a slash too many.
            return ""
        elif status >= 400:
            contents = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        else:
            return "an answer to what is not in the document"
        if kind not in contents and (contents or body):
            return f"{kind or 'no content type'} in the place of {', '.join(contents) or 'nothing'}"
        if not contents or method == "HEAD" or kind != "application/json":
            return ""
        return self.wrong_body(contents[kind]["schema"], body)

    def wrong_body(self, schema: Json, body: bytes) -> str:
        if len(body) > LOOKED_AT:
            # Of a batch the statements are not looked at.
            places = [at for part in (STATEMENTS, ROWS) if (at := body.find(part, 0, LOOKED_AT)) >= 0]
            if not places:
                return ""
            body = body[: min(places)] + b"}"
        try:
            content = json.loads(body)
        except ValueError as error:
            return f"no JSON: {error}"
        key = json.dumps(schema)
        if key not in self._validators:
            self._validators[key] = self._validator({**schema, "components": self._components})
        expected = [
            f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in self._errors(key, content)
        ]
        return "; ".join(expected)

    def _errors(self, key: str, content: Any) -> Sequence[Any]:
        return list(self._validators[key].iter_errors(content))


class Checked:
    """Lets requests through, and says what is wrong with their answers; `document` is called for the first of them."""

    def __init__(self, app: ASGIApp, document: Callable[[], Document], say: Say) -> None:
        self._app = app
        self._document = document
        self._say = say

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            send = self._frames(scope, send)
        started: list[Message] = []
        body, whole = bytearray(), False

        async def sending(message: Message) -> None:
            nonlocal whole
            if message["type"].endswith("http.response.start"):
                started.append(message)
            elif message["type"].endswith("http.response.body"):
                whole = not message.get("more_body", False)
                body.extend(message.get("body", b"") if len(body) <= LOOKED_AT else b"")
            await send(message)

        await self._app(scope, receive, sending)
        # An answer to a client that has left is cut off.
        if started and whole:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in started[0]["headers"]}
            kind = headers.get("content-type", "").partition(";")[0]
            method = scope.get("method", "GET")
            expected = self._document().wrong(method, scope["path"], started[0]["status"], kind, bytes(body))
            if expected:
                self._say(f"{method} {scope['path']}: {started[0]['status']}: {expected}\n  {bytes(body[:500])!r}")

    def _frames(self, scope: Scope, send: Send) -> Send:
        sent = 0

        async def sending(message: Message) -> None:
            nonlocal sent
            sent += 1
            if message["type"] == "websocket.send" and sent <= FRAMES:
                text = message["text"].encode()
                expected = self._document().wrong_body({"$ref": "#/components/schemas/StreamFrame"}, text)
                if expected and len(text) <= LOOKED_AT:
                    self._say(f"a frame of {scope['path']}: {expected}\n  {text[:500]!r}")
            await send(message)

        return sending


def _template(path: str) -> re.Pattern[str]:
    # The name of a resource may have slashes in it.
    inside = re.sub(r"\\{(\w+)\\}", lambda found: ".+" if "ame" in found[1] else "[^/]+", re.escape(path))
    return re.compile(inside)


def _closed(schema: Any) -> Any:
    """A schema in which objects have no members but those that it names."""
    if isinstance(schema, dict):
        closed = {name: _closed(item) for name, item in schema.items()}
        if "properties" in schema and "required" in schema:
            closed["additionalProperties"] = False
        return closed
    return [_closed(item) for item in schema] if isinstance(schema, list) else schema


@cache
def of_settings(settings: Any) -> Document:
    """The document of services with these settings."""
    from sqlshell.service.http.app import document

    return Document(document(settings))


def append(expected: str) -> None:
    if path := os.environ.get(WRONG):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{expected}\n")


def install(say: Say = append) -> None:
    """Have the applications that sqlshell.service.http.app makes from now on checked."""
    from sqlshell.service.http import app

    _check(app, say)


def _check(module: ModuleType, say: Say) -> None:
    made = module.make_app

    def make_app(statements: Any, token: str, options: Any, hosts: Any = ()) -> ASGIApp:
        return Checked(made(statements, token, options, hosts), partial(of_settings, options), say)

    vars(module)["make_app"] = make_app


class _WhenImported:
    """Checks what sqlshell.service.http.app makes once that is imported, and not before: a start takes no longer."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != "sqlshell.service.http.app":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _check(module, append)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if __name__ == "__main__":
    # This folder's modules are not to be found by their last names.
    del sys.path[0]
    sys.meta_path.insert(0, _WhenImported())
    from sqlshell.__main__ import main

    main()
