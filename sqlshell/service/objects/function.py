"""Functions: macros of the engine, and functions in other languages, which are recorded but cannot be called.

Function sources and descriptor sources are files that were attached to a statement.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import field

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import duplicate, missing
from sqlshell.service.dialect.forms import Form
from sqlshell.service.dialect.lexer import Names, Tokens
from sqlshell.service.engines.engine import CatalogQuery, Outcome, Rights
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
from sqlshell.service.objects.names import check_name
from sqlshell.service.objects.relation import pieces
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.sql.analysis.secrets import shown_options

ARGUMENTS: Final = 4096
"""The maximum length of a function's arguments with their types, in characters."""

_LANGUAGES: Final = ("JAVA",)
_SOURCE, _CLASS, _EGRESS = "source.name", "class.name", "egress.allow.uris"
_ARGUMENT: Final = re.compile(r"\s*(?:([A-Za-z_]\w*)\s+)?([A-Za-z].*?)\s*", re.S)


class CreateFunction(DialectStatement, frozen=True):
    """CREATE FUNCTION; `arguments` are pairs of name and type; types have the form of normal_type()."""

    name: str
    arguments: tuple[tuple[str, str], ...]
    returns: str
    language: str
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False

    def run(self, execution: Execution) -> Outcome:
        execution.begin_change(Rights.OBJECTS, "CREATE FUNCTION")
        execution.check_options(self.options)
        execution.check_number(Function())
        check_name(self.name)
        key = _key(self.name, tuple(kind for _, kind in self.arguments))
        most = execution.services.settings.name_length
        if len(key) > most:
            raise Failure("42622", f"the name is longer than {most} characters")
        try:
            self._record(key, execution)
        except Failure as failure:
            if not (self.if_not_exists and failure.sql_state == sqlstate.DUPLICATE_FUNCTION):
                raise
        return Outcome(message="CREATE FUNCTION")

    def _record(self, key: str, execution: Execution) -> None:
        if self.language not in _LANGUAGES:
            message = f"functions in language {self.language[:40]} are not supported; expected JAVA"
            raise Failure(sqlstate.UNSUPPORTED, message)
        for option in (_SOURCE, _CLASS):
            if not self.options.get(option):
                raise Failure("22023", f"CREATE FUNCTION … LANGUAGE JAVA requires option {option!r}")
        with execution.organization.changing:
            execution.get("function_source", self.options[_SOURCE])
            if execution.organization.engine.catalog(CatalogQuery("function", name=self.name)):
                raise duplicate("function", self.name)
            execution.add("function", key, self._detail(), replace=self.replace)

    def _detail(self) -> dict[str, Any]:
        """What is kept: `signature` as written, `source` is a function source, `properties` are further options."""
        arguments = ", ".join(f"{name} {kind}".strip() for name, kind in self.arguments)
        options = shown_options(self.options)
        return {
            "name": self.name,
            "signature": f"{self.name}({arguments}) {self.returns}",
            "returns": self.returns,
            "language": self.language,
            "source": self.options[_SOURCE],
            "class": self.options[_CLASS],
            "egress": options.get(_EGRESS, ""),
            "properties": {name: value for name, value in options.items() if name not in {_SOURCE, _CLASS, _EGRESS}},
        }


class DropFunction(DialectStatement, frozen=True):
    """DROP FUNCTION; `types` are the argument types, or None if the statement does not list them."""

    name: str
    types: tuple[str, ...] | None
    if_exists: bool = False

    def run(self, execution: Execution) -> Result:
        named = [item.name for item in execution.scope.kept("function") if item.detail["name"] == self.name]
        if self.types is None and not named:
            # It is a macro of the engine.
            return execution.run_engine(execution.sql)
        execution.begin_change(Rights.OBJECTS, "DROP FUNCTION")
        keys = named if self.types is None else [_key(self.name, self.types)]
        if len(keys) > 1:
            choice = f"specify the types: DROP FUNCTION {' or '.join(keys)}"
            raise Failure("42725", f"function name {self.name!r} is not unique; {choice}")
        key = keys[0]
        if execution.find("function", key) is not None:
            execution.forget("function", key)
        elif not self.if_exists:
            raise missing("function", key)
        return Outcome(message="DROP FUNCTION")


class Function(Kind):
    name, plural = "function", "functions"
    verbs = ("describe",)
    left_to_servers = frozenset({"create", "drop", "show"})
    listing = columns(
        *("Name", "Signature", "Type", "Language", "SourceName=source_name", "ClassName=class_name"),
        *("EgressAllowURIs=uris", "Properties", "Owner", "State", *TIMES),
    )
    relation = columns("name", "signature", "type", "language", "source_name", "class_name", *OWNED)

    def forms(self) -> Iterator[Form[DialectStatement]]:
        yield from super().forms()
        arguments = "<names:names> <arguments:parentheses> RETURNS ! <returns:type> LANGUAGE <language:word>"
        yield Form(f"{CREATE} FUNCTION {IF_NOT_EXISTS} {arguments} {OPTIONS}", _create)
        yield Form(f"DROP FUNCTION {IF_EXISTS} <names:names> [ <types:parentheses> ]", _drop)

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


def check_source_unused(source: str, scope: Scope) -> None:
    """Raises Failure if a function uses this function source."""
    for item in scope.kept("function"):
        if item.detail["source"] == source:
            raise Failure(sqlstate.DEPENDENTS, f"function source {source!r} is in use by function {item.name!r}")


def normal_type(text: str) -> str:
    """A type in upper case with single spaces, so that different spellings are equal."""
    return re.sub(r"\s*([<>(),])\s*", r"\1", " ".join(text.upper().split())).replace(",", ", ")


def _key(name: str, types: tuple[str, ...]) -> str:
    """The key of a function: its name and the types of its arguments."""
    return f"{name}({', '.join(types)})"


def _create(names: Names, arguments: str, returns: str, language: str, **values: Any) -> CreateFunction:
    return CreateFunction(names[-1], _arguments(arguments), normal_type(returns), language.upper(), **values)


def _drop(names: Names, types: str = "", **values: Any) -> DropFunction:
    return DropFunction(names[-1], tuple(kind for _, kind in _arguments(types)) if types else None, **values)


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
        most = execution.services.settings.resources_size
        if kept + path.stat().st_size > most:
            message = f"the sources of the organization would exceed {most / (1 << 30):g} GiB"
            raise Failure(sqlstate.LIMIT, message)
        file = organization.folder("resources") / str(uuid.uuid4())
        try:
            size, digest = _copy(path, file)
            detail = {"file": wanted, "stored": file.name, "size": size, "sha256": digest}
            detail |= {key: value for key, value in shown_options(options).items() if key != "file"}
            try:
                execution.add(self.name, asked.name, detail)
            except Failure:
                file.unlink()
                raise
            if (shared := organization.shared_file(file.name)) is not None:
                # The catalog is first: it says that the file in the storage is needed.
                try:
                    shared.put(file)
                except OSError:
                    organization.catalog.drop(organization.id, self.name, asked.name)
                    raise
        except OSError as error:
            raise Failure(sqlstate.LIMIT, f"cannot store the file: {error.strerror}") from error

    def drop(self, asked: OfKind, execution: Execution) -> None:
        organization = execution.organization
        with organization.changing:
            if self.name == "function_source":
                check_source_unused(asked.name, execution.scope)
            file = str(execution.get(self.name, asked.name).detail["stored"])
            execution.forget(self.name, asked.name)
            with contextlib.suppress(OSError):
                (organization.folder("resources") / file).unlink()
            if (shared := organization.shared_file(file)) is not None:
                shared.remove()

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


def _copy(source: Path, target: Path) -> tuple[int, str]:
    """Copy an attachment, which several statements may name; returns its size and SHA-256. Raises OSError."""
    part = target.with_suffix(".part")
    try:
        shutil.copyfile(source, part)
        with part.open("rb") as kept:
            digest = hashlib.file_digest(kept, "sha256")
        part.rename(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return target.stat().st_size, digest.hexdigest()
