"""Secrets: named values that are stored encrypted and never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import Catalog, Object
from sqlshell.service.failure import Failure
from sqlshell.service.secrets.vault import Vault

KIND: Final = "secret"
TYPE: Final = "generic_string"
_SHOWN: Final = frozenset({"type", "description", "access_region"})
"""Options that are not secret. All other options are treated as secret values."""


def read_options(options: Mapping[str, str], organization: str, name: str, vault: Vault) -> dict[str, Any]:
    """The stored detail of a secret: `type`, `description`, and all other options as `sealed`. Raises Failure."""
    kind = options.get("type", "").lower()
    if kind != TYPE:
        message = f"a secret requires 'type' = {TYPE}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    values = {key: value for key, value in options.items() if key not in _SHOWN}
    if not values:
        raise Failure("22023", "a secret requires a value: 'secret_string' = '…'")
    sealed = vault.seal(organization, KIND, name, values)
    return {"type": kind, "description": options.get("description", ""), "sealed": sealed}


def change(options: Mapping[str, str], organization: str, name: str, catalog: Catalog, vault: Vault) -> dict[str, Any]:
    """The stored detail after UPDATE: either all values are replaced or none. Raises Failure."""
    before = catalog.get(organization, KIND, name).detail
    merged = {"type": str(before["type"]), "description": str(before["description"]), **options}
    if options.keys() - _SHOWN:
        return read_options(merged, organization, name, vault)
    if merged["type"].lower() != TYPE:
        raise Failure(sqlstate.UNSUPPORTED, f"a secret requires 'type' = {TYPE}")
    return {**before, "description": merged["description"]}


def value(name: str, organization: str, catalog: Catalog, vault: Vault) -> str:
    """The decrypted value of a secret, for use in a connection. Raises Failure."""
    values = vault.opened(organization, KIND, name, catalog.get(organization, KIND, name).detail["sealed"])
    if "secret_string" not in values:
        raise Failure("22023", f"secret {name!r} has no 'secret_string'")
    return values["secret_string"]


def status(organization: str, item: Object, vault: Vault) -> tuple[str, str]:
    """The state of an object that may have a sealed value, `ready` or `broken`, and why it is broken."""
    try:
        if sealed := item.detail.get("sealed"):
            vault.opened(organization, item.kind, item.name, sealed)
    except Failure as failure:
        return "broken", failure.message
    return "ready", ""
