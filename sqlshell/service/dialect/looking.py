"""Statements that look: LIST, DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlshell.service.dialect.names import DOTTED, KINDS, NAME, Names, Reader, kind_of, names_of

_LIST = rf"LIST (?P<what>\w+)(?: IN (?P<place>DATABASE|SCHEMA|STORE) (?P<name>{DOTTED}))?"
_DESCRIBE = (
    rf"DESCRIBE (?P<kind>RELATION|TABLE|VIEW|SCHEMA|{KINDS})(?: COLUMNS(?= [^ ]))? (?P<name>{DOTTED})(?: COLUMNS)?"
    rf"(?: IN STORE (?P<store>{NAME}))?"
)


class List(Struct, frozen=True):
    what: str
    place: str = ""
    names: Names = ()


class Describe(Struct, frozen=True):
    kind: str
    names: Names
    store: str = ""


def _describe(found: re.Match[str]) -> Describe:
    return Describe(kind_of(found["kind"]), names_of(found["name"]), "".join(names_of(found["store"] or "")))


def _list(found: re.Match[str]) -> List:
    return List(found["what"].lower(), (found["place"] or "").lower(), names_of(found["name"] or ""))


READERS: Mapping[str, Sequence[Reader[List | Describe]]] = {
    "list": ((_LIST, _list),),
    "describe": ((_DESCRIBE, _describe),),
}
