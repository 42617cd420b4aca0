"""Suggestions for the cursor: ranked, quoted, and in the letter case that the user types."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from sqlshell.sql import keywords
from sqlshell.sql.completion.catalog import Catalog, Column, Names, is_near, shown_name
from sqlshell.sql.completion.expected import Expected, expected
from sqlshell.sql.completion.scopes import TableReference
from sqlshell.sql.identifiers import always_quoted, quoted
from sqlshell.sql.object_kinds import SYSTEM_TABLES

WITH_KEYS: Final = {
    "API_TOKEN": ("role", "roles"),
    "STORE": (
        *("type", "uri", "writable", "uris", "access_region", "schema_registry.name", "tls.ca_cert_file"),
        *("kafka.sasl.hash_function", "kafka.sasl.username", "kafka.sasl.password"),
    ),
    "COMPUTE_POOL": ("concurrency", "queue", "timeout", "compute_pool.size", "compute_pool.timeout_min"),
    "FUNCTION_SOURCE": ("file", "description"),
    "DESCRIPTOR_SOURCE": ("file", "description"),
    "STREAM": ("store", "topic", "value.format", "key.format", "key.type", "timestamp", "topic.partitions"),
    "CHANGELOG": ("store", "topic", "value.format", "key.format", "key.type", "timestamp"),
    "FUNCTION": ("source.name", "class.name", "egress.allow.uris"),
    "ENTITY": ("store", "kafka.partitions", "kafka.replicas"),
    "SCHEMA_REGISTRY": ("type", "uris", "access_region"),
    "SECRET": ("type", "description", "secret_string"),
}
SETTINGS: Final = keywords.words("timezone schema search_path threads memory_limit temp_directory enable_progress_bar")
FOUND_ALONE: Final = frozenset({"main", "pg_catalog"})
"""The schemas of system relations that are found without their schema."""
MOST_NESTED: Final = 8
"""Queries within queries through which the columns of `*` are followed."""
ORDER: Final = {
    "join": -1,
    "column": 0,
    "alias": 1,
    "qualified": 2,
    "relation": 2,
    "function": 4,
    "keyword": 5,
    "guess": 6,
}
"""The order of kinds whose names match equally well."""


class Suggestion(Struct, frozen=True):
    """One suggestion: `text` replaces the typed part; `kind` and `detail` are shown next to it."""

    text: str
    kind: str
    detail: str = ""


class Place(Struct, frozen=True):
    """The position of the completion: the context, and other names that the shell knows, by kind."""

    catalog: Catalog
    database: str = ""
    schema: str = ""
    other: Callable[[Expected], Iterable[Suggestion]] | None = None
    """Suggestions for commands, their arguments, and paths."""


def suggestions(text: str, cursor: int, place: Place) -> tuple[int, list[Suggestion]]:
    """The start of the typed part, and its possible replacements, the best first. Raises nothing."""
    wanted = expected(text, cursor)
    if not wanted.kinds and not wanted.keywords:
        return cursor, []
    if place.other is not None and {"command", "argument", "path", "variable"} & set(wanted.kinds):
        return wanted.start, list(place.other(wanted))
    upper = _upper(text, wanted)
    entries: dict[str, tuple[tuple[int, ...], Suggestion]] = {}
    for number, (rank, item) in enumerate(_candidates(wanted, place, _mostly_upper(text))):
        shown = _written(item, wanted, upper)
        whole = item.text.lower() != wanted.prefix.lower()
        used = -place.catalog.used.get(item.text.lower(), 0)
        order = (rank, whole, ORDER.get(item.kind, 3), used, number)
        known = entries.get(shown.text)
        if known is None or order < known[0]:
            entries[shown.text] = (order, shown)
    ranked = sorted(entries.values(), key=lambda entry: entry[0])
    return wanted.start, [item for _, item in ranked]


def _candidates(wanted: Expected, place: Place, upper: bool) -> Iterator[tuple[int, Suggestion]]:
    typed = wanted.prefix
    if wanted.qualifier:
        yield from _qualified(wanted, place, upper)
        return
    for kind in wanted.kinds:
        match kind:
            case "join":
                yield from _joining(wanted, place, upper)
            case "joined":
                yield from _joins(wanted, place, upper)
            case "counterpart":
                yield from _counterparts(wanted, place)
            case "column":
                yield from _columns(wanted, place)
            case "common":
                yield from _common(wanted, place)
            case "columnof":
                columns = place.catalog.columns(wanted.within.split("\n"), place.database, place.schema)
                yield from _typed_columns(columns, typed)
            case "table function":
                for rank, name in place.catalog.names_of(kind).matching(typed) if typed else ():
                    if not rank:
                        yield 1, Suggestion(name, "function", place.catalog.signature(name))
            case _ if kind.startswith("relation"):
                yield from _relations(kind, wanted, place)
            case "function":
                if typed and not wanted.quoted:
                    yield from _functions(typed, place)
            case "type":
                yield from _matched(Names(place.catalog.contents.names.get("type") or keywords.TYPES), typed, "type")
                yield from _matched(place.catalog.names_of("user type"), typed, "user-defined type")
            case "withkey":
                keys = WITH_KEYS.get(wanted.within, tuple(dict.fromkeys(sum(WITH_KEYS.values(), ()))))
                yield from _matched(Names(keys), typed, "key")
            case "setting":
                yield from _matched(Names(SETTINGS), typed, "setting")
            case _:
                shown = {"macro": "own function"}.get(kind, kind)
                yield from _matched(place.catalog.names_of(kind), typed, shown)
    if wanted.keywords and not wanted.quoted:
        for number, word in enumerate(wanted.keywords):
            if _starts(word, typed) and word.lower() != typed.lower():
                yield (0, Suggestion(word, "keyword")) if typed else (number // 100 + 1, Suggestion(word, "keyword"))
    if len(typed) >= 2 and "function" in wanted.kinds and not wanted.quoted:
        yield from (
            (1, Suggestion(word, "keyword"))
            for word in keywords.CLAUSES
            if _starts(word, typed) and len(word) > len(typed)
        )


def _matched(names: Names, typed: str, kind: str) -> Iterator[tuple[int, Suggestion]]:
    for rank, name in names.matching(typed):
        yield rank, Suggestion(name, kind)


def _columns(wanted: Expected, place: Place) -> Iterator[tuple[int, Suggestion]]:
    sources = wanted.scope.sources
    listed: list[tuple[Column, str]] = []
    for source in sources:
        listed += [(column, source.alias) for column in _columns_of(source, wanted, place)]
    # The names of fields of a nested type keep their case.
    types = (column.type if "<" in column.type else column.type.lower() for column, _ in reversed(listed))
    details = {
        column.name: f"{named} {alias}".strip() for (column, alias), named in zip(reversed(listed), types, strict=True)
    }
    for rank, name in Names(column.name for column, _ in listed).matching(wanted.prefix):
        yield rank, Suggestion(name, "column", details[name])
    several = len(sources) > 1
    for rank, name in Names(source.alias for source in sources if source.alias).matching(wanted.prefix):
        if several or wanted.prefix:
            yield rank, Suggestion(name, "alias")
    if not listed and wanted.prefix and not wanted.scope.ctes:
        for rank, name in place.catalog.names_of("seen").matching(wanted.prefix):
            yield rank + 1, Suggestion(name, "guess", "column seen in a result")


class Condition(Struct, frozen=True):
    """A condition that joins two relations by pairs of columns; `why` says what suggests it."""

    left: TableReference
    right: TableReference
    pairs: tuple[tuple[str, str], ...]
    why: str

    def text(self, upper: bool, qualifier: str = "") -> str:
        """The condition as SQL; after `qualifier.` the rest of it, "" if it does not begin so."""
        left, right, pairs = self.left, self.right, self.pairs
        if qualifier and qualifier.lower() == right.alias.lower():
            left, right, pairs = right, left, tuple((its, mine) for mine, its in pairs)
        if qualifier and qualifier.lower() != left.alias.lower():
            return ""
        begin = f"{quoted(left.alias)}."
        equal = (f"{begin}{quoted(mine)} = {quoted(right.alias)}.{quoted(its)}" for mine, its in pairs)
        whole = (" AND " if upper else " and ").join(equal)
        return whole.removeprefix(begin) if qualifier else whole


def _conditions(side: str, wanted: Expected, place: Place) -> list[Condition]:
    """What may join the relation with this alias with the previous ones: by foreign keys, by `x_id` and `x.id`, by
    equal names."""
    sources = wanted.scope.sources
    at = next((number for number, item in enumerate(sources) if item.alias == side), 0)
    before = sources[:at][::-1]
    conditions = [item for left in before for item in _by_keys(left, sources[at], place)]
    return conditions + [item for left in before for item in _by_names(left, sources[at], wanted, place)]


def _joining(wanted: Expected, place: Place, upper: bool) -> Iterator[tuple[int, Suggestion]]:
    qualifier = wanted.qualifier[-1] if wanted.qualifier else ""
    conditions = _conditions(wanted.within, wanted, place)
    texts = {text: item.why for item in reversed(conditions) if (text := item.text(upper, qualifier))}
    for rank, text in Names(reversed(texts)).matching(wanted.prefix):
        yield rank, Suggestion(text, "join", texts[text])


def _counterparts(wanted: Expected, place: Place) -> Iterator[tuple[int, Suggestion]]:
    """The columns that a column before `=` is usually joined with."""
    side, column = wanted.within.split("\n")
    for item in _conditions(side, wanted, place):
        for mine, its in item.pairs:
            ends = [(item.left.alias, mine), (item.right.alias, its)]
            for (alias, name), other in zip(ends, reversed(ends), strict=True):
                text = ".".join(map(quoted, other))
                if column.lower() in {name.lower(), f"{alias}.{name}".lower()} and _starts(text, wanted.prefix):
                    yield 0, Suggestion(text, "join", item.why)


def _joins(wanted: Expected, place: Place, upper: bool) -> Iterator[tuple[int, Suggestion]]:
    """Relations that foreign keys connect with those of the statement, each with its condition."""
    catalog, sources = place.catalog, [source for source in wanted.scope.sources if source.alias]
    taken = {source.alias.lower() for source in sources}
    aliased = any(source.name and source.alias != source.name[-1] for source in sources)
    joins: dict[str, str] = {}
    for left in reversed(sources):
        for other, pairs in catalog.neighbors(left.name, place.database, place.schema):
            alias = _alias(other.name, taken) if aliased or other.name.lower() in taken else other.name
            named = shown_name(other, place.database, place.schema)
            begin = named if alias == other.name else f"{named} {quoted(alias)}"
            joined = Condition(TableReference(alias), left, tuple((its, mine) for mine, its in pairs), "")
            joins.setdefault(f"{begin}{' ON ' if upper else ' on '}{joined.text(upper)}", other.name)
    by_name = Names(joins.values()).matching(wanted.prefix)
    ranks = {name: rank for rank, name in by_name if rank <= 2}
    for text, name in joins.items():
        if name in ranks:
            yield ranks[name], Suggestion(text, "join", "foreign key")


def _alias(name: str, taken: Collection[str]) -> str:
    """The initials of a relation's name, with a number if they are taken; its name if they are a word of SQL."""
    initials = "".join(word[0] for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)).lower()
    tried = (f"{initials}{number or ''}" for number in (0, *range(2, len(taken) + 3)))
    return next((alias for alias in tried if alias not in taken and quoted(alias) == alias), name)


def _by_keys(left: TableReference, right: TableReference, place: Place) -> Iterator[Condition]:
    end = place.catalog.relation(right.name, place.database, place.schema)
    for other, pairs in place.catalog.neighbors(left.name, place.database, place.schema):
        if other == end:
            yield Condition(left, right, pairs, "foreign key")


def _by_names(left: TableReference, right: TableReference, wanted: Expected, place: Place) -> Iterator[Condition]:
    sides = [[column.name for column in _columns_of(source, wanted, place)] for source in (left, right)]
    for mine, its in ((left, right), (right, left)):
        # customer_id is the id of customers, or of the alias customer.
        wholes = {name.lower() for name in (its.alias, its.name[-1] if its.name else "")}
        columns, theirs = sides if mine is left else sides[::-1]
        key_names = [name for name in theirs if name.lower() == "id"]
        for name in columns:
            stem = name.lower().removesuffix("_id")
            if key_names and stem != name.lower() and wholes & {stem, f"{stem}s", f"{stem}es"}:
                pair = (name, key_names[0]) if mine is left else (key_names[0], name)
                yield Condition(left, right, (pair,), "same name")
    low = {name.lower(): name for name in sides[1]}
    shared = [name for name in sides[0] if name.lower() in low]
    shared.sort(key=lambda name: (name.lower() == "id", not name.lower().endswith("id")))
    yield from (Condition(left, right, ((name, low[name.lower()]),), "same name") for name in shared)


def _typed_columns(columns: Iterable[Column], typed: str) -> Iterator[tuple[int, Suggestion]]:
    """Columns, each with its type."""
    types = {column.name: column.type for column in columns}
    for rank, name in Names(types).matching(typed):
        yield rank, Suggestion(name, "column", types[name])


def _common(wanted: Expected, place: Place) -> Iterator[tuple[int, Suggestion]]:
    """The columns that both sides of a join have."""
    sides = [{column.name.lower() for column in _columns_of(source, wanted, place)} for source in wanted.scope.sources]
    shared = [name for name in (sides[0] if sides else ()) if sum(name in side for side in sides) > 1]
    for rank, name in Names(sorted(shared)).matching(wanted.prefix):
        yield rank, Suggestion(name, "column", "in both")


def _columns_of(source: TableReference, wanted: Expected, place: Place, deep: int = 0) -> list[Column]:
    if deep == MOST_NESTED:
        return []
    ctes = [cte for cte in wanted.scope.ctes if [cte.alias.lower()] == [part.lower() for part in source.name]]
    if source.columns is None and not ctes:
        return place.catalog.columns(source.name, place.database, place.schema)
    known = source if source.columns is not None else ctes[0]
    columns = [Column(name) for name in known.columns or ()]
    return columns + [column for star in known.stars for column in _columns_of(star, wanted, place, deep + 1)]


def _relations(kind: str, wanted: Expected, place: Place) -> Iterator[tuple[int, Suggestion]]:
    typed, catalog = wanted.prefix, place.catalog
    if "column" in wanted.kinds and not typed:
        return
    for rank, name in Names(cte.alias for cte in wanted.scope.ctes).matching(typed):
        yield rank, Suggestion(name, "relation", "cte")
    for rank, name in catalog.names_of(kind).matching(typed):
        relation = catalog.relation((name,), place.database, place.schema)
        detail = relation.kind if relation is not None else ""
        if relation is None or not place.schema or is_near(relation, place.database, place.schema):
            yield rank, Suggestion(name, "relation", detail)
        else:
            yield rank + 1, Suggestion(shown_name(relation, place.database, place.schema), "qualified", detail)
    for listed in ("schema", "database"):
        for rank, name in catalog.names_of(listed).matching(typed):
            yield rank + 1, Suggestion(name, listed)
    if len(typed) > 1 and "column" not in wanted.kinds:
        yield from _system(wanted, catalog)


def _system(wanted: Expected, catalog: Catalog) -> Iterator[tuple[int, Suggestion]]:
    """The relations that describe the database or the service, by their first letters."""
    for relation in catalog.contents.system:
        if _starts(relation.name, wanted.prefix):
            schema = [] if relation.schema in FOUND_ALONE else [relation.schema]
            yield 1, Suggestion(".".join(map(quoted, [*schema, relation.name])), "qualified", "system")
    for rank, name in catalog.names_of("system schema").matching(wanted.prefix):
        if not rank:
            yield 1, Suggestion(name, "schema", "system")
    for rank, name in Names(f'deltastream.sys."{name}"' for name in SYSTEM_TABLES).matching(wanted.prefix):
        if rank <= 2 and len(wanted.prefix) > 3:
            yield rank, Suggestion(name, "qualified", "system")


def _functions(typed: str, place: Place) -> Iterator[tuple[int, Suggestion]]:
    for rank, name in place.catalog.names_of("callable").matching(typed):
        if rank <= 2 or len(typed) > 2:
            yield rank, Suggestion(name, "function", place.catalog.signature(name))


def _qualified(wanted: Expected, place: Place, upper: bool) -> Iterator[tuple[int, Suggestion]]:
    """What may follow `name.`: columns of an alias, relations of a schema, schemas of a database."""
    last = wanted.qualifier[-1].lower()
    if "join" in wanted.kinds:
        yield from _joining(wanted, place, upper)
    if "column" in wanted.kinds:
        for source in wanted.scope.sources:
            if source.alias.lower() == last or (source.name and source.name[-1].lower() == last):
                yield from _typed_columns(_columns_of(source, wanted, place), wanted.prefix)
                return
    if "columnof" in wanted.kinds:
        yield from _typed_columns(place.catalog.columns(wanted.qualifier, place.database, place.schema), wanted.prefix)
    if wanted.qualifier == ("deltastream",) and "sys".startswith(wanted.prefix):
        yield 0, Suggestion("sys", "schema")
    if wanted.qualifier == ("deltastream", "sys"):
        for rank, name in Names(SYSTEM_TABLES).matching(wanted.prefix):
            yield rank, Suggestion(always_quoted(name), "qualified", "system")
    if any(kind == "entity" or kind.startswith("relation") for kind in wanted.kinds):
        inside = dict(place.catalog.contents_of(wanted.qualifier))
        for rank, name in Names(inside).matching(wanted.prefix):
            kind = "schema" if inside[name] == "schema" else "relation"
            yield rank, Suggestion(name, kind, inside[name] if kind == "relation" else "")


def _starts(word: str, typed: str) -> bool:
    return word.lower().startswith(typed.lower())


def _upper(text: str, wanted: Expected) -> bool:
    """Whether keywords are in capitals: as in the typed part, otherwise as in most of the buffer."""
    letters = [char for char in wanted.prefix if char.isalpha()]
    if letters:
        return all(char.isupper() for char in letters)
    return _mostly_upper(text)


def _mostly_upper(text: str) -> bool:
    """Whether most keywords of a text are in capitals."""
    known = [word for word in re.findall(r"[A-Za-z]{2,}", text[-2_000:]) if word.upper() in keywords.KEYWORDS]
    return sum(word.isupper() for word in known) >= (len(known) + 1) // 2 if known else False


def _written(item: Suggestion, wanted: Expected, upper: bool) -> Suggestion:
    match item.kind:
        case "keyword" | "type":
            text = item.text.upper() if upper else item.text.lower()
        case "qualified" | "join":
            text = item.text
        case "key" if not wanted.quoted:
            text = f"'{item.text}'"
        case "key":
            text = f"{item.text}'"
        case "setting" | "query":
            text = item.text
        case "function":
            prefix = wanted.prefix
            named = item.text.upper() if prefix.isupper() and len(prefix) > 1 else item.text
            text = f"{named}("
        case _:
            text = _enclosed(item.text, wanted.quoted) if wanted.quoted else quoted(item.text)
    return Suggestion(text, {"qualified": "relation", "guess": ""}.get(item.kind, item.kind), item.detail)


def _enclosed(name: str, quote: str) -> str:
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"


def used_names(text: str) -> Sequence[str]:
    """The names in a statement, for ranking."""
    return [word.lower() for word in re.findall(r"[A-Za-z_]\w{2,60}", text[:5_000])]
