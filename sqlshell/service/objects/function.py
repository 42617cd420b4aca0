"""Functions: macros of the engine, and functions in other languages, which are recorded but cannot be called.

Function sources and descriptor sources are files that were attached to a statement.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import uuid
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec.structs import replace

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate
from sqlshell.service.dialect.lexer import Tokens
from sqlshell.service.engines.engine import CatalogQuery
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import SOURCES, attachment_named
from sqlshell.service.objects.kind import (
    CREATE,
    IF_EXISTS,
    IF_NOT_EXISTS,
    OPTIONS,
    DialectStatement,
    Execution,
    Kind,
    OfKind,
    Result,
)
from sqlshell.service.objects.relation import pieces
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.sql.analysis.secrets import shown_options

ARGUMENTS: Final = 4096
"""The maximum length of a function's arguments with their types, in characters."""

_LANGUAGES: Final = ("JAVA",)
_SOURCE, _CLASS, _EGRESS = "source.name", "class.name", "egress.allow.uris"
_ARGUMENT: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)\s+)?([A-Za-z].*?)\s*", re.S)


class OfFunction(OfKind, frozen=True, kw_only=True):
    """CREATE and DROP of a function. Its name is followed by its key, if the statement lists the arguments.

    `arguments` are pairs of name and type; types have the form of normal_type().
    """

    arguments: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    language: str = ""

    def detail(self) -> dict[str, Any]:
        """What is kept: `signature` as written, `source` is a function source, `properties` are further options."""
        arguments = ", ".join(f"{name} {kind}".strip() for name, kind in self.arguments)
        options = shown_options(self.options)
        return {
            "name": self.names[0],
            "signature": f"{self.names[0]}({arguments}) {self.returns}",
            "returns": self.returns,
            "language": self.language,
            "source": self.options[_SOURCE],
            "class": self.options[_CLASS],
            "egress": options.get(_EGRESS, ""),
            "properties": {name: value for name, value in options.items() if name not in {_SOURCE, _CLASS, _EGRESS}},
        }


class Function(Kind):
    name, plural = "function", "functions"
    verbs = ("create", "drop", "describe")
    syntax = (
        (
            "create",
            f"{CREATE} KIND {IF_NOT_EXISTS} <names:names> <listed:parentheses> "
            f"RETURNS ! <returns:type> LANGUAGE <language:word> {OPTIONS}",
        ),
        ("drop", f"DROP KIND {IF_EXISTS} <names:names> [ <listed:parentheses> ]"),
    )
    left_to_servers = frozenset({"create", "drop", "show"})
    listing = columns(
        *("Name", "Signature", "Type", "Language", "SourceName=source_name", "ClassName=class_name"),
        *("EgressAllowURIs=uris", "Properties", "Owner", "State", *TIMES),
    )
    relation = columns("name", "signature", "type", "language", "source_name", "class_name", *OWNED)

    def made(self, **values: Any) -> DialectStatement:
        if values["verb"] == "describe":
            return super().made(**values)
        listed, values["names"] = values.pop("listed", ""), values["names"][-1:]
        if listed:
            values["arguments"] = _arguments(listed)
            types = ", ".join(kind for _, kind in values["arguments"])
            values["names"] = (*values["names"], f"{values['names'][0]}({types})")
        if "returns" in values:
            values |= {"returns": normal_type(values["returns"]), "language": values["language"].upper()}
        return OfFunction(of=self, **values)

    def run(self, asked: OfKind, execution: Execution) -> Result:
        """Find the function of a DROP without arguments, which may be a macro of the engine."""
        if asked.verb != "drop" or len(asked.names) > 1:
            return super().run(asked, execution)
        named = [item.name for item in execution.scope.kept(self.name) if item.detail["name"] == asked.name]
        if not named:
            return execution.run_engine(execution.sql)
        if len(named) > 1:
            choice = f"specify the types: DROP FUNCTION {' or '.join(named)}"
            raise Failure("42725", f'function name "{asked.name}" is not unique; {choice}')
        return super().run(replace(asked, names=(asked.name, *named)), execution)

    def create(self, asked: OfKind, execution: Execution) -> None:
        assert isinstance(asked, OfFunction)
        if asked.language not in _LANGUAGES:
            message = f"functions in language {asked.language[:40]} are not supported; expected JAVA"
            raise Failure(sqlstate.UNSUPPORTED, message)
        for option in (_SOURCE, _CLASS):
            if not asked.options.get(option):
                raise Failure("22023", f"CREATE FUNCTION … LANGUAGE JAVA requires option {option!r}")
        with execution.organization.changing:
            execution.get("function_source", asked.options[_SOURCE])
            if execution.organization.engine.catalog(CatalogQuery("function", name=asked.names[0])):
                raise duplicate(self.name, asked.names[0])
            execution.add(self.name, asked.name, asked.detail(), replace=asked.replace)

    def facts(self, scope: Scope) -> list[Facts]:
        noted = scope.noted()
        macros: list[Facts] = [
            noted(database, schema, name)
            | {
                **{"name": name, "signature": signature, "type": kind, "database": database, "schema": schema},
                **{"language": "SQL", "state": "ready", "uris": [], "properties": "{}"},
            }
            for name, signature, kind, database, schema in scope.catalog("functions")
        ]
        recorded: list[Facts] = [
            scope.facts(item)
            | {
                "name": item.detail["name"],
                "type": "function",
                "state": "ready",
                "source_name": item.detail["source"],
                "class_name": item.detail["class"],
                "uris": [text.strip() for text in str(item.detail["egress"]).split(",") if text.strip()],
            }
            for item in scope.kept("function")
        ]
        return macros + recorded


def normal_type(text: str) -> str:
    """A type in upper case with single spaces, so that different spellings are equal."""
    return re.sub(r"\s*([<>(),])\s*", r"\1", " ".join(text.upper().split())).replace(",", ", ")


def _arguments(text: str) -> tuple[tuple[str, str], ...]:
    """The names and types in a parenthesized list."""
    if len(text) > ARGUMENTS + 2:
        raise Failure(sqlstate.LIMIT, f"the arguments of the function are longer than {ARGUMENTS} characters")
    arguments = []
    for piece in pieces(Tokens(text)):
        shown = text[piece[0].start : piece[-1].end]
        match = _ARGUMENT.fullmatch(shown)
        if not match:
            raise Failure(sqlstate.SYNTAX, f"syntax error at {shown[:60]!r}: expected name TYPE")
        arguments.append(((match[1] or "").lower(), normal_type(match[2])))
    return tuple(arguments)


class _Source(Kind):
    verbs = ("create", "drop", "describe")
    is_services = True

    def create(self, asked: OfKind, execution: Execution) -> None:
        organization, options = execution.organization, asked.options
        wanted = Path(options.get("file", "").removeprefix("@").replace("\\", "/")).name
        if not wanted:
            needs = "requires WITH ('file' = 'NAME') and an attachment of that name"
            raise Failure(sqlstate.SYNTAX, f"CREATE {self.title} {needs}")
        path = attachment_named(execution.files, wanted).path
        kept = sum(item.detail["size"] for kind in SOURCES for item in execution.scope.kept(kind))
        most = execution.settings.resources_size
        if kept + path.stat().st_size > most:
            message = f"the sources of the organization would exceed {most / (1 << 30):g} GiB"
            raise Failure(sqlstate.LIMIT, message)
        file = organization.folder("resources") / str(uuid.uuid4())
        shared = organization.owner.shared
        with contextlib.ExitStack() as undone:
            undone.callback(file.unlink, missing_ok=True)
            try:
                # Copied, because several statements may name an attachment.
                shutil.copyfile(path, file)
                with file.open("rb") as kept_file:
                    digest = hashlib.file_digest(kept_file, "sha256").hexdigest()
                detail = {"file": wanted, "stored": file.name, "size": file.stat().st_size, "sha256": digest}
                detail |= {key: value for key, value in shown_options(options).items() if key != "file"}
                execution.add(self.name, asked.name, detail)
                undone.callback(execution.forget, self.name, asked.name)
                if shared is not None:
                    # The catalog is first: it says that the file in the storage is needed.
                    shared.put(file, shared.place(organization.id, file.name))
            except OSError as error:
                raise Failure(sqlstate.LIMIT, f"cannot store the file: {reason(error)}") from error
            undone.pop_all()

    def drop(self, asked: OfKind, execution: Execution) -> None:
        organization = execution.organization
        with organization.changing:
            for item in execution.scope.kept("function") if self.name == "function_source" else ():
                if item.detail["source"] == asked.name:
                    message = f'function source "{asked.name}" is in use by function "{item.name}"'
                    raise Failure(sqlstate.DEPENDENTS, message)
            file = str(execution.get(self.name, asked.name).detail["stored"])
            execution.forget(self.name, asked.name)
            with contextlib.suppress(OSError):
                (organization.folder("resources") / file).unlink()
            if (shared := organization.owner.shared) is not None:
                shared.remove(shared.place(organization.id, file))

    def facts(self, scope: Scope) -> list[Facts]:
        return [
            scope.facts(item)
            | {
                "state": "ready",
                "language": "JAVA" if str(item.detail.get("file", "")).lower().endswith(".jar") else "",
                "type": self.name if self.name == "function_source" else "PROTOBUF",
                "url": f"/v2/download/{self.name}/{scope.organization.id}/{quote(item.name, safe='')}",
                "tags": [],
            }
            for item in scope.kept(self.name)
        ]


class FunctionSource(_Source):
    name, plural = "function_source", "function_sources"
    listing = columns("Name", "Language", "State", "Description", "Url", "Owner", *TIMES, "File", "Size", "Sha256")
    relation = columns("name", "file", "language", "description", "status=state", *OWNED)


class DescriptorSource(_Source):
    name, plural = "descriptor_source", "descriptor_sources"
    listing = columns(
        *("Name", "Type", "State", "Description", "Url", "Tags", "Owner", *TIMES, "File", "Size", "Sha256")
    )
    relation = columns("name", "file", "type", "description", "status=state", *OWNED)
