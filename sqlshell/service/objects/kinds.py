"""The list of all kinds of objects. A new kind is a file in this directory, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from sqlshell.service.objects.compute_pool import ComputePool
from sqlshell.service.objects.database import Database, Schema
from sqlshell.service.objects.engine import Engine
from sqlshell.service.objects.entity import Entity
from sqlshell.service.objects.function import FUNCTION
from sqlshell.service.objects.kind import Kind
from sqlshell.service.objects.organization import Organization
from sqlshell.service.objects.query import Query, SessionKind
from sqlshell.service.objects.relation import RELATIONS, MaterializedView, Table, View
from sqlshell.service.objects.role import ApiToken, Invitation, Role, User
from sqlshell.service.objects.secret import SchemaRegistry, Secret
from sqlshell.service.objects.source import DescriptorSource, FunctionSource
from sqlshell.service.objects.store import Store
from sqlshell.service.objects.stream import Changelog, Stream

KINDS: tuple[Kind, ...] = (
    Database(),
    Schema(),
    RELATIONS,
    Table(),
    View(),
    MaterializedView(),
    Stream(),
    Changelog(),
    Store(),
    Entity(),
    ComputePool(),
    FUNCTION,
    FunctionSource(),
    DescriptorSource(),
    SchemaRegistry(),
    Secret(),
    Role(),
    ApiToken(),
    User(),
    Invitation(),
    Organization(),
    Engine(),
    Query(),
    SessionKind(),
)

BY_PLURAL: Mapping[str, Kind] = {kind.plural: kind for kind in KINDS if kind.plural}
"""By the word after LIST."""
