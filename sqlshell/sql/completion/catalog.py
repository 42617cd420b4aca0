"""The names of a service for completion: stored by kind, found by prefix or by letters in order."""

from __future__ import annotations

import bisect
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field

from sqlshell.sql import keywords
from sqlshell.sql.identifiers import quoted
from sqlshell.sql.keywords import IN_GRAMMAR, UNLISTED

MOST = 200
"""Maximum suggestions of one kind."""

BLOCK = 1_000


class Relation(msgspec.Struct, frozen=True, array_like=True):
    """A table, view, stream or changelog; `kind` is what the service calls it."""

    database: str
    schema: str
    name: str
    kind: str = ""


class Column(msgspec.Struct, frozen=True, array_like=True):
    name: str
    type: str = ""


class Function(msgspec.Struct, frozen=True, array_like=True):
    """A function; `signature` shows its parameters and result. One that returns `rows` stands in FROM."""

    name: str
    signature: str = ""
    rows: bool = False


class ForeignKey(msgspec.Struct, frozen=True, array_like=True):
    """A foreign key: `relation` and `target` are keys of relations, their columns are in the same order."""

    relation: str
    columns: list[str]
    target: str
    target_columns: list[str]


class CachedCatalog(msgspec.Struct):
    """The content of the cache on disk. `columns` are by `database.schema.name`; `names` are of the other kinds: store,
    pool, role… `system` are the relations that describe the database itself, such as pg_class; `has_interface` is
    whether the functions of the interface exist beside those that are listed.
    """

    relations: list[Relation] = []
    columns: dict[str, list[Column]] = {}
    functions: list[Function] = []
    names: dict[str, list[str]] = {}
    keys: list[ForeignKey] = []
    system: list[Relation] = []
    has_interface: bool = True


class Names:
    """Names that can be searched quickly, however many they are."""

    def __init__(self, names: Iterable[str]) -> None:
        self.all = list(dict.fromkeys(names))
        self._blocks = [_Block(number, self.all[number : number + BLOCK]) for number in range(0, len(self.all), BLOCK)]

    def matching(self, typed: str) -> Iterator[tuple[int, str]]:
        """Matching names with a rank, 0 is the best: same prefix, prefix of a word, substring, letters in order."""
        if not typed:
            for name in self.all[:MOST]:
                yield 0, name
            return
        ranks: dict[int, int] = {}
        for number, rank in self._found(typed):
            ranks.setdefault(number, rank)
            if len(ranks) == MOST:
                break
        for number, rank in ranks.items():
            yield rank, self.all[number]

    def _found(self, typed: str) -> Iterator[tuple[int, int]]:
        """The numbers of matching names with their ranks, the best first; a name may be repeated with a worse one."""
        plain = re.escape(typed)
        apart = r"[^\n]*?".join(re.escape(char) for char in typed)
        for rank, pattern in enumerate((f"^{plain}", rf"(?<=[_.\- ]){plain}", plain, f"^{apart}", apart)):
            compiled = re.compile(pattern, re.I | re.M)
            for block in self._blocks:
                for number in block.lines(compiled):
                    yield number, rank
                # Give other tasks, such as the prompt, a turn.
                time.sleep(0)


class _Block:
    """Some names, one per line, so that one regular expression finds all that match."""

    def __init__(self, first: int, names: Sequence[str]) -> None:
        self._first = first
        self._joined = "\n".join(name.replace("\n", " ") for name in names)
        self._starts: list[int] = []

    def lines(self, pattern: re.Pattern[str]) -> Iterator[int]:
        for match in pattern.finditer(self._joined):
            if not self._starts:
                self._starts = [0, *(match.end() for match in re.finditer("\n", self._joined))]
            yield self._first + bisect.bisect_right(self._starts, match.start()) - 1


class Catalog(Struct):
    """The names that are known of a service; `seen` are column names of results."""

    contents: CachedCatalog = field(default_factory=CachedCatalog)
    seen: dict[str, None] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    """How often a name occurred in a statement of this shell."""
    _names: dict[str, Names] = field(default_factory=dict)
    _by_name: dict[str, list[Relation]] = field(default_factory=dict)
    _by_key: dict[str, Relation] = field(default_factory=dict)
    _keys: dict[str, list[tuple[str, tuple[tuple[str, str], ...]]]] = field(default_factory=dict)
    _signatures: dict[str, str] = field(default_factory=dict)

    def replace(self, contents: CachedCatalog) -> None:
        self.contents = contents
        for made in (self._names, self._by_name, self._by_key, self._keys, self._signatures):
            made.clear()

    def names_of(self, kind: str) -> Names:
        """The names of a kind."""
        if kind not in self._names:
            self._names[kind] = Names(self._listed(kind))
        return self._names[kind]

    def contents_of(self, qualifier: Sequence[str]) -> list[tuple[str, str]]:
        """The content of a qualifier as (name, kind): relations of a schema, schemas of a database."""
        low = [part.lower() for part in qualifier]
        kinds: dict[str, str] = {}
        for item in (*self.contents.relations, *self.contents.system):
            place = [item.database.lower(), item.schema.lower()]
            if place == low or (len(low) == 1 and place[1] == low[0]):
                kinds.setdefault(item.name, item.kind or "relation")
            if len(low) == 1 and place[0] == low[0]:
                kinds.setdefault(item.schema, "schema")
        return list(kinds.items())

    def columns(self, name: Sequence[str], database: str, schema: str) -> list[Column]:
        """The columns of the relation with this name in this context."""
        relation = self.relation(name, database, schema)
        return [] if relation is None else self.contents.columns.get(key(relation), [])

    def relation(self, name: Sequence[str], database: str, schema: str) -> Relation | None:
        """The relation with this name; that of the current schema takes precedence."""
        if not name:
            return None
        if not self._by_name:
            for item in (*self.contents.relations, *self.contents.system):
                self._by_name.setdefault(item.name.lower(), []).append(item)
        places = [part.lower() for part in name[:-1]]
        found = [
            item
            for item in self._by_name.get(name[-1].lower(), ())
            if not places
            or [item.schema.lower()] == places
            or [item.database.lower(), item.schema.lower()] == places
            or [item.database.lower()] == places
        ]
        found.sort(key=lambda item: (item.schema != schema, item.database != database))
        return found[0] if found else None

    def neighbors(
        self, name: Sequence[str], database: str, schema: str
    ) -> Iterator[tuple[Relation, tuple[tuple[str, str], ...]]]:
        """The relations that a foreign key connects with this one, each with pairs of its columns and theirs."""
        if not self._keys:
            self._by_key.update((key(item), item) for item in self.contents.relations)
            for item in self.contents.keys:
                pairs = tuple(zip(item.columns, item.target_columns, strict=False))
                self._keys.setdefault(item.relation, []).append((item.target, pairs))
                self._keys.setdefault(item.target, []).append((item.relation, tuple((b, a) for a, b in pairs)))
        relation = self.relation(name, database, schema)
        for there, pairs in self._keys.get(key(relation), ()) if relation is not None else ():
            if there in self._by_key:
                yield self._by_key[there], pairs

    def add_result_columns(self, names: Iterable[str]) -> None:
        """Add the names of columns of a result."""
        for name in names:
            self.seen.setdefault(name, None)
        while len(self.seen) > 2_000:
            self.seen.pop(next(iter(self.seen)))
        self._names.pop("seen", None)

    def note_use(self, words: Iterable[str]) -> None:
        for word in words:
            self.used[word] = self.used.get(word, 0) + 1

    def _listed(self, kind: str) -> Iterable[str]:
        match kind:
            case "relation":
                return [item.name for item in self.contents.relations]
            case "schema":
                return [*self.contents.names.get("schema", ()), *(item.schema for item in self.contents.relations)]
            case "database":
                return [*self.contents.names.get("database", ()), *(item.database for item in self.contents.relations)]
            case "system":
                return [item.name for item in self.contents.system]
            case "system schema":
                return [item.schema for item in self.contents.system]
            case "function":
                return [item.name for item in self.contents.functions]
            case "callable":
                # A service that lists its functions has no others. The usual ones come first.
                known = self.signatures()
                usual = [name for name in keywords.FUNCTIONS if name in known or not self.contents.functions]
                return [*usual, *known]
            case "table function":
                return [item.name for item in self.contents.functions if item.rows]
            case "seen":
                return list(self.seen)
            case _ if kind.startswith("relation:"):
                wanted = kind.partition(":")[2]
                return [item.name for item in self.contents.relations if wanted in item.kind.lower() or not item.kind]
        return self.contents.names.get(kind, ())

    def all_names(self) -> list[str]:
        """The names of all relations, columns and objects."""
        columns = [column.name for listed in self.contents.columns.values() for column in listed]
        names = [name for listed in self.contents.names.values() for name in listed]
        return list(dict.fromkeys([*self.names_of("relation").all, *columns, *names, *self.seen]))

    def signatures(self) -> Mapping[str, str]:
        """The signatures of all known functions. A macro of the user precedes a function of the interface."""
        if not self._signatures:
            self._signatures.update(UNLISTED if self.contents.has_interface else IN_GRAMMAR)
            self._signatures.update((item.name, item.signature) for item in self.contents.functions)
        return self._signatures

    def signature(self, name: str) -> str:
        """The signature of a function; "" if it is not known."""
        return self.signatures().get(name.lower(), "")


def key(relation: Relation) -> str:
    return f"{relation.database}.{relation.schema}.{relation.name}"


def is_near(relation: Relation, database: str, schema: str) -> bool:
    """Whether a relation is in this schema of this database, and so found by its name alone."""
    return relation.schema == schema and relation.database in {database, ""}


def shown_name(relation: Relation, database: str, schema: str) -> str:
    """The name of a relation as SQL, with as many parts as it needs in this schema of this database."""
    parts = [relation.database, relation.schema, relation.name]
    if relation.database in {database, ""}:
        parts = parts[2:] if relation.schema == schema else parts[1:]
    return ".".join(map(quoted, parts))
