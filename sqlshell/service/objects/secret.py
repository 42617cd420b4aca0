"""Secrets and schema registries, of which the service keeps an encrypted value that it never shows.

A registry is recorded; TEST SCHEMA_REGISTRY connects to it.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Object
from sqlshell.service.engines.engine import Rights
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import CREATE, IF_NOT_EXISTS, Execution, Kind, OfKind, Result
from sqlshell.service.objects.result_rows import OWNED, TIMES, Facts, columns
from sqlshell.service.objects.scope import Scope
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.secrets import outgoing
from sqlshell.text import any_of

MAX_URLS: Final = 8
"""The maximum number of URLs of one registry."""

_TYPE: Final = "generic_string"
_PUBLIC: Final = frozenset({"type", "description", "access_region"})
"""Options of a secret that are not secret. All others are treated as secret values."""

_USER, _PASSWORD = "confluent.username", "confluent.password"
_OTHER_NAMES: Final = {
    **{"url": "uris", "username": _USER, "password": _PASSWORD},
    **{"confluent_cloud.key": _USER, "confluent_cloud.secret": _PASSWORD},
}
_KNOWN: Final = frozenset({"type", "auth.type", "uris", "access_region", "secret", _USER, _PASSWORD})
_SCHEMES: Final = {"CONFLUENT": "http", "CONFLUENT_CLOUD": "https"}
"""The types of registries, and the scheme of a URL HOST:PORT."""


class _Sealed(Kind):
    is_services = True

    def create(self, asked: OfKind, execution: Execution) -> None:
        # Prevents a secret from being dropped while a registry that uses it is created.
        with execution.organization.changing:
            detail = self.detail(asked.name, asked.options, execution.organization)
            execution.add(self.name, asked.name, detail, replace=asked.replace)

    def update(self, asked: OfKind, execution: Execution) -> None:
        before = execution.get(self.name, asked.name)
        execution.change(self.name, asked.name, self.changed(before, asked.options, execution.organization))

    def detail(self, name: str, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        """Return what is kept of an object with these options, secret values as `sealed`. Raises Failure."""
        raise NotImplementedError

    def changed(self, before: Object, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        """Return what is kept after UPDATE; options that are not given keep their values. Raises Failure."""
        raise NotImplementedError

    def facts(self, scope: Scope) -> list[Facts]:
        rows: list[Facts] = []
        for item in scope.kept(self.name):
            state, reason = "ready", ""
            try:
                _opened(item, scope.organization)
            except Failure as failure:
                state, reason = "broken", failure.message
            rows.append(scope.facts(item) | {"state": state, "message": reason, "url": item.detail.get("uris", "")})
        return rows


class Secret(_Sealed):
    name, plural = "secret", "secrets"
    verbs = ("create", "update", "drop", "describe")
    # DuckDB has CREATE SECRET too: only WITH makes it a statement of the dialect.
    syntax = (("create", f"{CREATE} KIND {IF_NOT_EXISTS} <names:one> WITH ! <options:options>"),)
    listing = columns("Name", "Type", "Description", "State", "Owner", *TIMES, "Message")
    relation = columns("name", "type", "description", "region", "status=state", "status_message=message", *OWNED)

    def run(self, asked: OfKind, execution: Execution) -> Result:
        """Leave the DROP of a secret of an embedded engine to it."""
        embedded = execution.organizations.is_embedded
        if asked.verb == "drop" and embedded and execution.find(self.name, asked.name) is None:
            return execution.run_engine(execution.sql)
        return super().run(asked, execution)

    def detail(self, name: str, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        _check_type(options.get("type", ""))
        values = {key: value for key, value in options.items() if key not in _PUBLIC}
        if not values:
            raise Failure("22023", "a secret requires a value: 'secret_string' = '…'")
        sealed = organization.vault.seal(organization.id, self.name, name, values)
        return {"type": _TYPE, "description": options.get("description", ""), "sealed": sealed}

    def changed(self, before: Object, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        """Replace either all values or none."""
        merged = {"type": _TYPE, "description": str(before.detail["description"]), **options}
        if options.keys() - _PUBLIC:
            return self.detail(before.name, merged, organization)
        _check_type(merged["type"])
        return {**before.detail, "description": merged["description"]}

    def drop(self, asked: OfKind, execution: Execution) -> None:
        with execution.organization.changing:
            for item in execution.scope.kept(SchemaRegistry.name):
                if item.detail.get("secret") == asked.name:
                    message = f'secret "{asked.name}" is in use by schema registry "{item.name}"'
                    raise Failure(sqlstate.DEPENDENTS, message)
            execution.forget(self.name, asked.name)


class SchemaRegistry(_Sealed):
    """A registry's detail: `type`, `uris`, `secret` (a secret's name or ""); user and password are sealed."""

    name, plural = "schema_registry", "schema_registries"
    verbs = ("create", "update", "test", "drop", "describe")
    listing = columns("Name", "Type", "State", "Url", "Owner", *TIMES, "Message")
    relation = columns("name", "type", "status=state", "status_message=message", "url", *OWNED)

    def detail(self, name: str, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        options = _with_one_name(options)
        kind = options.get("type", "CONFLUENT").upper()
        if kind not in _SCHEMES:
            message = f"schema registries of type {kind[:40]!r} are not supported; expected {' or '.join(_SCHEMES)}"
            raise Failure(sqlstate.UNSUPPORTED, message)
        if unknown := options.keys() - _KNOWN:
            expected = any_of(sorted(_KNOWN | _OTHER_NAMES.keys()))
            message = f"unknown option {min(unknown)[:80]!r} of a schema registry; expected {expected}"
            raise Failure(sqlstate.INVALID_PARAMETER, message)
        urls = _urls(options.get("uris", ""), kind)
        if len(urls) > MAX_URLS:
            raise Failure("22023", f"'uris' has {len(urls)} URLs; the maximum is {MAX_URLS}")
        user, password, secret = (options.get(item, "") for item in (_USER, _PASSWORD, "secret"))
        if secret:
            organization.catalog.get(organization.id, Secret.name, secret)
        if secret and password:
            raise Failure("22023", "a password and 'secret' cannot be used together")
        detail: dict[str, Any] = {"type": kind, "uris": ",".join(urls), "secret": secret}
        if user or password:
            values = {"user": user, "password": password}
            detail["sealed"] = organization.vault.seal(organization.id, self.name, name, values)
        return detail

    def changed(self, before: Object, options: Mapping[str, str], organization: Organization) -> dict[str, Any]:
        """Remove user, password and secret if `uris` change, because they were meant for the old URLs."""
        kind, uris, secret = (str(before.detail[key]) for key in ("type", "uris", "secret"))
        given = _with_one_name(options)
        merged = {"type": kind, "uris": uris, **given}
        if ",".join(_urls(merged["uris"], kind)) == uris:
            kept = _opened(before, organization)
            merged = {_USER: kept.get("user", "")} | merged
            if not given.keys() & {"secret", _PASSWORD}:
                merged |= {"secret": secret, _PASSWORD: kept.get("password", "")}
        return self.detail(before.name, merged, organization)

    def test(self, name: str, execution: Execution) -> str:
        """Request the subjects of a registry. Raises Failure, whose message contains no part of the response."""
        # The test sends the registry's password.
        execution.require(Rights.OBJECTS, "TEST SCHEMA_REGISTRY")
        organization, hosts = execution.organization, execution.organizations.registry_hosts
        item = execution.get(self.name, name)
        headers = _authorization(item, organization)
        until = time.monotonic() + outgoing.SECONDS
        for text in str(item.detail["uris"]).split(","):
            target = outgoing.read_target(text)
            status, body = outgoing.get(replace(target, path=f"{target.path}/subjects"), headers, hosts, until)
            if status in {401, 403}:
                why = f"rejected the credentials (status {status})"
            elif status != 200:
                why = f"returned status {status}"
            elif not _lists_subjects(body):
                why = "did not return a list of subjects"
            else:
                continue
            raise Failure(sqlstate.SCHEMA_REGISTRY_NOT_READY, f'schema registry "{name}": {target.place} {why}')
        return f'schema registry "{name}" is reachable'


def _opened(item: Object, organization: Organization) -> dict[str, str]:
    """The decrypted values of an object, none if it has none. Raises Failure."""
    sealed = item.detail.get("sealed")
    return organization.vault.opened(organization.id, item.kind, item.name, sealed) if sealed else {}


def _check_type(kind: str) -> None:
    if kind.lower() != _TYPE:
        raise Failure(sqlstate.UNSUPPORTED, f"a secret requires 'type' = {_TYPE}")


def _with_one_name(options: Mapping[str, str]) -> dict[str, str]:
    return {_OTHER_NAMES.get(item, item): value for item, value in options.items()}


def _urls(text: str, kind: str) -> list[str]:
    """The URLs in a list, as they are kept. Raises Failure."""
    given = (item.strip() for item in text.split(","))
    urls = (item if "://" in item else f"{_SCHEMES[kind]}://{item}" for item in given)
    return [outgoing.read_target(item).url for item in urls]


def _authorization(item: Object, organization: Organization) -> dict[str, str]:
    """The header with the credentials of a registry. Raises Failure."""
    given, secret = _opened(item, organization), str(item.detail.get("secret", ""))
    user, password = given.get("user", ""), given.get("password", "")
    if secret:
        values = _opened(organization.catalog.get(organization.id, Secret.name, secret), organization)
        if "secret_string" not in values:
            raise Failure("22023", f"secret \"{secret}\" has no 'secret_string'")
        password = values["secret_string"]
        if not user:
            if not password.isascii() or not password.isprintable():
                why = "it contains characters other than printable ASCII"
                raise Failure("22023", f"cannot send the secret as a bearer token: {why}")
            return {"Authorization": f"Bearer {password}"}
    if not user and not password:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _lists_subjects(body: bytes) -> bool:
    if len(body) >= outgoing.MOST:
        return body.lstrip().startswith(b"[")
    try:
        msgspec.json.decode(body, type=list[str])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True
