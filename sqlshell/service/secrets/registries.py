"""Schema registries: they are recorded, and TEST SCHEMA_REGISTRY connects to them."""

from __future__ import annotations

import base64
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Catalog
from sqlshell.service.failure import Failure
from sqlshell.service.secrets import outgoing, secrets
from sqlshell.service.secrets.vault import Vault

KIND: Final = "schema_registry"
MOST: Final = 8
"""The maximum number of URLs of one registry."""

_USERS: Final = ("confluent.username", "confluent_cloud.key")
_PASSWORDS: Final = ("confluent.password", "confluent_cloud.secret")
_OTHER_NAMES: Final = {"url": "uris", "username": _USERS[0], "password": _PASSWORDS[0]}
_KNOWN: Final = frozenset({"type", "auth.type", "uris", "access_region", "secret", *_USERS, *_PASSWORDS})
_TYPES: Final = ("CONFLUENT", "CONFLUENT_CLOUD")


def read_options(
    options: Mapping[str, str], organization: str, name: str, catalog: Catalog, vault: Vault
) -> dict[str, Any]:
    """The stored detail of a schema registry: `type`, `uris`, `secret` (a secret's name or ""), and its user and
    password, if given, as `sealed`. Raises Failure."""
    options = {_OTHER_NAMES.get(item, item): value for item, value in options.items()}
    kind = options.get("type", _TYPES[0]).upper()
    if kind not in _TYPES:
        message = f"schema registries of type {kind[:40]!r} are not supported; expected {' or '.join(_TYPES)}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    if unknown := set(options) - _KNOWN:
        message = f"unknown option {min(unknown)[:80]!r} of a schema registry; expected {', '.join(sorted(_KNOWN))}"
        raise Failure(sqlstate.INVALID_PARAMETER, message)
    targets = _targets(options.get("uris", ""), kind)
    if len(targets) > MOST:
        raise Failure("22023", f"'uris' has {len(targets)} URLs; the maximum is {MOST}")
    user = next((options[item] for item in _USERS if options.get(item)), "")
    password = next((options[item] for item in _PASSWORDS if options.get(item)), "")
    named = options.get("secret", "")
    if named:
        catalog.get(organization, secrets.KIND, named)
        if password:
            raise Failure("22023", "a password and 'secret' cannot be used together")
    detail: dict[str, Any] = {"type": kind, "uris": ",".join(item.url for item in targets), "secret": named}
    if user or password:
        detail["sealed"] = vault.seal(organization, KIND, name, {"user": user, "password": password})
    return detail


def change(options: Mapping[str, str], organization: str, name: str, catalog: Catalog, vault: Vault) -> dict[str, Any]:
    """The stored detail after UPDATE; options that are not given keep their values. Raises Failure.

    If `uris` change, user, password and secret are removed, because they were meant for the old URLs.
    """
    before = catalog.get(organization, KIND, name).detail
    given = {_OTHER_NAMES.get(item, item): value for item, value in options.items()}
    merged = {"type": str(before["type"]), "uris": str(before["uris"]), **given}
    if [item.url for item in _targets(merged["uris"], str(before["type"]))] == str(before["uris"]).split(","):
        sealed = before.get("sealed")
        kept = vault.opened(organization, KIND, name, sealed) if sealed else {}
        if not given.keys() & set(_USERS):
            merged[_USERS[0]] = kept.get("user", "")
        if not given.keys() & {"secret", *_PASSWORDS}:
            merged |= {"secret": str(before["secret"]), _PASSWORDS[0]: kept.get("password", "")}
    return read_options(merged, organization, name, catalog, vault)


def test(name: str, organization: str, catalog: Catalog, vault: Vault, hosts: Collection[str] | None) -> str:
    """Request the subjects of a schema registry; returns a message. `hosts` is as in outgoing.get().

    Raises Failure; its message contains no part of the response.
    """
    detail = catalog.get(organization, KIND, name).detail
    headers = _authorization(name, organization, detail, catalog, vault)
    until = time.monotonic() + outgoing.SECONDS
    for text in str(detail["uris"]).split(","):
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
        raise Failure(sqlstate.SCHEMA_REGISTRY_NOT_READY, f"schema registry {name!r}: {target.place} {why}")
    return f"schema registry {name!r} is reachable"


def check_unused(secret: str, organization: str, catalog: Catalog) -> None:
    """Raises Failure if a schema registry uses this secret."""
    for item in catalog.objects(organization, KIND):
        if item.detail.get("secret") == secret:
            raise Failure(sqlstate.DEPENDENTS, f"secret {secret!r} is in use by schema registry {item.name!r}")


def _authorization(
    name: str, organization: str, detail: Mapping[str, Any], catalog: Catalog, vault: Vault
) -> dict[str, str]:
    sealed = detail.get("sealed")
    given = vault.opened(organization, KIND, name, sealed) if sealed else {}
    user, password = given.get("user", ""), given.get("password", "")
    if detail.get("secret"):
        password = secrets.value(str(detail["secret"]), organization, catalog, vault)
        if not user:
            return {"Authorization": _header(f"Bearer {password}")}
    if not user and not password:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _targets(text: str, kind: str) -> list[outgoing.Target]:
    """Parse a list of URLs; HOST:PORT gets the default scheme of this type."""
    scheme = "http" if kind == _TYPES[0] else "https"
    given = (item.strip() for item in text.split(","))
    return [outgoing.read_target(item if "://" in item else f"{scheme}://{item}") for item in given]


def _header(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise Failure(
            "22023", "cannot send the secret as a bearer token: it contains characters other than printable ASCII"
        )
    return text


def _lists_subjects(body: bytes) -> bool:
    if len(body) >= outgoing.MOST:
        return body.lstrip().startswith(b"[")
    try:
        msgspec.json.decode(body, type=list[str])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True
