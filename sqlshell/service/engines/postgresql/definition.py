"""The SQL that creates a relation again, without its owner and privileges, as pg_dump writes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from msgspec import Struct

from sqlshell.service.engines.postgresql.description import ServerRelation
from sqlshell.service.engines.postgresql.link import Values
from sqlshell.sql.identifiers import literal, quoted

Ask = Callable[..., Awaitable[Values]]
"""Runs SQL with parameters in the database of the relation."""

FIRST, RELATION, AFTER_TABLES, PARTITION, KEYS, VIEW, LAST = range(1, 8)
"""The phases of a script, in which the statements of several relations can be run one after another: sequences; tables;
owners of sequences, and indexes; partitions, which take over indexes that they have; foreign keys; views; the rest."""

Statement = tuple[int, str]
"""A statement, with its phase."""

_OID: Final = "$1::pg_catalog.oid"
_COLUMNS: Final = (
    "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.quote_ident(m.nspname) || "
    "'.' || "
    "pg_catalog.quote_ident(l.collname) FROM pg_catalog.pg_collation l JOIN pg_catalog.pg_namespace m ON m.oid = "
    "l.collnamespace WHERE l.oid = a.attcollation AND a.attcollation <> t.typcollation), a.attnotnull::text, "
    "pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attgenerated::text, a.attidentity::text, a.attislocal::text, "
    "CASE WHEN a.attstorage <> t.typstorage THEN CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN "
    "'m' THEN 'MAIN' ELSE 'EXTENDED' END END, CASE pg_catalog.to_jsonb(a)->>'attcompression' WHEN 'p' THEN 'pglz' WHEN "
    "'l' THEN 'lz4' END, CASE WHEN a.attstattarget >= 0 THEN a.attstattarget::text END, "
    "pg_catalog.array_to_string(a.attoptions, ', '), pg_catalog.col_description(a.attrelid, a.attnum), "
    "(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(o.option_name) || ' ' || "
    "pg_catalog.quote_literal(o.option_value), ', ') FROM pg_catalog.pg_options_to_table(a.attfdwoptions) o) "
    "FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_attrdef d "
    f"ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = {_OID} AND a.attnum > 0 AND NOT "
    "a.attisdropped ORDER BY a.attnum"
)
_TABLE: Final = (
    "SELECT CASE WHEN c.reloftype <> 0 THEN c.reloftype::pg_catalog.regtype::text END, CASE WHEN c.relkind = 'p' THEN "
    "pg_catalog.pg_get_partkeydef(c.oid) END, CASE WHEN m.amname <> 'heap' THEN pg_catalog.quote_ident(m.amname) END, "
    "pg_catalog.array_to_string(c.reloptions || (SELECT pg_catalog.array_agg('toast.' || o) FROM pg_catalog.pg_class "
    "t, "
    "pg_catalog.unnest(t.reloptions) o WHERE t.oid = c.reltoastrelid), ', '), pg_catalog.quote_ident(s.spcname), "
    "c.relispartition::text, pg_catalog.pg_get_expr(c.relpartbound, c.oid), (SELECT "
    "pg_catalog.string_agg(h.inhparent::pg_catalog.regclass::text, ', ' ORDER BY h.inhseqno) FROM "
    "pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid), c.relrowsecurity::text, c.relforcerowsecurity::text, "
    "c.relreplident::text, pg_catalog.obj_description(c.oid, 'pg_class'), pg_catalog.quote_ident(f.srvname), "
    "(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(o.option_name) || ' ' || "
    "pg_catalog.quote_literal(o.option_value), ', ') FROM pg_catalog.pg_options_to_table(e.ftoptions) o), "
    "c.relispopulated::text FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam LEFT JOIN "
    "pg_catalog.pg_tablespace s ON s.oid = c.reltablespace LEFT JOIN pg_catalog.pg_foreign_table e ON e.ftrelid = "
    "c.oid "
    f"LEFT JOIN pg_catalog.pg_foreign_server f ON f.oid = e.ftserver WHERE c.oid = {_OID}"
)
_CONSTRAINTS: Final = (
    "SELECT k.conname, CASE WHEN k.contype <> 'c' OR k.convalidated THEN k.contype::text WHEN k.conislocal THEN "
    "'later' ELSE 'inherited' END, pg_catalog.pg_get_constraintdef(k.oid), pg_catalog.obj_description(k.oid, "
    "'pg_constraint') FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid "
    f"WHERE k.conrelid = {_OID} AND (k.contype IN ('p', 'u', 'x') OR k.contype = 'f' AND k.conparentid = 0 OR "
    "k.contype = "
    "'c' AND (k.conislocal OR c.relispartition)) ORDER BY k.contype <> 'p', k.contype, k.conname"
)
_INSIDE: Final = frozenset("puxc")
"""The kinds of constraints that CREATE TABLE contains."""

_INDEXES: Final = (
    "SELECT c.relname, CASE WHEN k.oid IS NULL THEN pg_catalog.pg_get_indexdef(i.indexrelid) END, "
    "i.indisclustered::text, "
    "i.indisreplident::text, pg_catalog.obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_index i JOIN "
    "pg_catalog.pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid "
    f"AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x') WHERE {_OID} IN (i.indrelid, i.indexrelid) "
    "ORDER BY c.relname"
)
_SEQUENCES: Final = (
    "SELECT n.nspname, c.relname, d.deptype::text, pg_catalog.format_type(s.seqtypid, NULL), s.seqstart::text, "
    "s.seqincrement::text, s.seqmin::text, s.seqmax::text, s.seqcache::text, s.seqcycle::text, "
    "d.refobjid::pg_catalog.regclass::text || '.' || pg_catalog.quote_ident(a.attname), a.attname, "
    "c.relpersistence::text, "
    "pg_catalog.obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = "
    "s.seqrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_catalog.pg_depend d ON d.classid "
    "= "
    "'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid = d.classid AND d.objid = c.oid AND d.deptype IN "
    "('a', 'i') LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
    f"WHERE {_OID} IN (c.oid, d.refobjid) ORDER BY c.relname"
)
_RULES: Final = (
    "SELECT pg_catalog.pg_get_ruledef(r.oid), pg_catalog.quote_ident(r.rulename), r.ev_enabled::text, "
    "pg_catalog.obj_description(r.oid, 'pg_rewrite'), 'RULE' FROM pg_catalog.pg_rewrite r "
    f"WHERE r.ev_class = {_OID} AND r.rulename <> '_RETURN' ORDER BY r.rulename"
)
_TRIGGERS: Final = (
    "SELECT pg_catalog.pg_get_triggerdef(t.oid), pg_catalog.quote_ident(t.tgname), t.tgenabled::text, "
    "pg_catalog.obj_description(t.oid, 'pg_trigger'), 'TRIGGER' FROM pg_catalog.pg_trigger t "
    f"WHERE t.tgrelid = {_OID} AND NOT t.tgisinternal AND coalesce(pg_catalog.to_jsonb(t)->>'tgparentid', '0') = '0' "
    "ORDER BY t.tgname"
)
_POLICIES: Final = (
    "SELECT pg_catalog.quote_ident(p.polname), pg_catalog.concat_ws(' ', CASE WHEN NOT p.polpermissive THEN "
    "'AS RESTRICTIVE' END, CASE p.polcmd WHEN 'r' THEN 'FOR SELECT' WHEN 'a' THEN 'FOR INSERT' WHEN 'w' THEN "
    "'FOR UPDATE' WHEN 'd' THEN 'FOR DELETE' END, CASE WHEN p.polroles <> '{0}' THEN 'TO ' || (SELECT "
    "pg_catalog.string_agg(pg_catalog.quote_ident(r.rolname), ', ' ORDER BY r.rolname) FROM pg_catalog.pg_roles r "
    "WHERE "
    "r.oid = ANY (p.polroles)) END, 'USING (' || pg_catalog.pg_get_expr(p.polqual, p.polrelid) || ')', "
    "'WITH CHECK (' || pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) || ')'), pg_catalog.obj_description(p.oid, "
    f"'pg_policy') FROM pg_catalog.pg_policy p WHERE p.polrelid = {_OID} ORDER BY p.polname"
)
_STATISTICS: Final = (
    "SELECT pg_catalog.pg_get_statisticsobjdef(s.oid) FROM pg_catalog.pg_statistic_ext s "
    f"WHERE s.stxrelid = {_OID} ORDER BY s.stxname"
)
_VIEW: Final = (
    "SELECT pg_catalog.pg_get_viewdef(c.oid), pg_catalog.array_to_string(c.reloptions, ', '), "
    "pg_catalog.obj_description(c.oid, 'pg_class'), c.relispopulated::text, (SELECT "
    "pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a "
    "WHERE "
    f"a.attrelid = c.oid AND a.attnum > 0) FROM pg_catalog.pg_class c WHERE c.oid = {_OID}"
)

_DEFINITION: Final = (
    "SELECT CASE WHEN p.prokind = 'a' THEN NULL ELSE pg_catalog.pg_get_functiondef(p.oid) END FROM pg_catalog.pg_proc p"
)
FUNCTION: Final = (
    f"{_DEFINITION} JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.proname = $2 AND "
    "CASE WHEN $1 = '' THEN pg_catalog.pg_function_is_visible(p.oid) ELSE n.nspname = $1 END ORDER BY p.oid"
)
"""The definitions of the functions of a schema ($1), "" for those on the search path, with a name ($2). NULL for an
aggregate, which PostgreSQL does not write."""

FUNCTION_WITH_ARGUMENTS: Final = f"{_DEFINITION} WHERE p.oid = pg_catalog.to_regprocedure($1)"
"""The same for a name with the types of arguments: $1 is SQL, such as "f(int, text)"."""


class _Column(Struct, frozen=True):
    name: str
    type: str
    collation: str
    required: bool
    default: str
    generated: str
    identity: str
    local: bool
    storage: str
    compression: str
    statistics: str
    options: str
    comment: str
    foreign: str


class _Sequence(Struct, frozen=True):
    schema: str
    name: str
    owned: str
    type: str
    start: str
    increment: str
    minimum: str
    maximum: str
    cache: str
    cycles: bool
    owner: str
    column: str
    persistence: str
    comment: str

    @property
    def parameters(self) -> str:
        return (
            f"START WITH {self.start} INCREMENT BY {self.increment} MINVALUE {self.minimum} MAXVALUE {self.maximum} "
            f"CACHE {self.cache}{' CYCLE' if self.cycles else ''}"
        )


async def statements(relation: ServerRelation, ask: Ask) -> list[Statement]:
    """The statements that create a relation; none for what is created with something else. Raises Failure."""
    match relation.kind:
        case "r" | "p" | "f":
            return await _table(relation, ask)
        case "v" | "m":
            return await _view(relation, ask)
        case "S":
            return [item for one in await _sequences(relation, ask) for item in _created(one)]
        case "i" | "I":
            rows = await ask(_INDEXES, relation.oid)
            indexes = [(AFTER_TABLES, text) for _, text, *_ in rows if text]
            return [*indexes, *(_comment("INDEX", _full(relation), rows[0][4] if rows else None) if indexes else ())]
        case "c":
            columns = await _columns(relation, ask)
            listed = ", ".join(f"{quoted(item.name)} {_typed(item)}" for item in columns)
            return [(FIRST, f"CREATE TYPE {_full(relation)} AS ({listed})")]
    return []


async def _table(relation: ServerRelation, ask: Ask) -> list[Statement]:
    [row] = await ask(_TABLE, relation.oid)
    (
        kind,
        key,
        method,
        options,
        space,
        partition,
        bound,
        parents,
        secured,
        forced,
        replica,
        comment,
        server,
        given,
        _,
    ) = row
    is_partition = partition == "true"
    columns = await _columns(relation, ask)
    sequences = await _sequences(relation, ask)
    constraints = await ask(_CONSTRAINTS, relation.oid)
    name = _full(relation)
    identities = {item.column: item for item in sequences if item.owned == "i"}
    own = [item for item in columns if item.local or is_partition]
    if kind:
        lines = [
            f"{quoted(item.name)} WITH OPTIONS{_rest(item, None)}" for item in own if item.required or item.default
        ]
    else:
        lines = [f"{quoted(item.name)} {_typed(item)}{_rest(item, identities.get(item.name))}" for item in own]
    lines += [f"CONSTRAINT {quoted(str(named))} {text}" for named, what, text, _ in constraints if what in _INSIDE]
    body = " (\n    " + ",\n    ".join(lines) + "\n)" if lines or not kind else ""
    persistence = {"t": "TEMPORARY ", "u": "UNLOGGED "}.get(relation.persistence, "")
    text = f"CREATE {persistence}{'FOREIGN ' if server else ''}TABLE {name}{f' OF {kind}' if kind else ''}{body}"
    text += f"\nINHERITS ({parents})" if parents and not is_partition else ""
    text += f"\nPARTITION BY {key}" if key else ""
    text += f"\nUSING {method}" if method else ""
    text += f"\nWITH ({options})" if options else ""
    text += f"\nTABLESPACE {space}" if space else ""
    text += f"\nSERVER {server}{f' OPTIONS ({given})' if given else ''}" if server else ""
    done: list[Statement] = [
        item for one in sequences if one.owned == "a" for item in _created(one) if item[0] == FIRST
    ]
    done.append((RELATION, text))
    table = "FOREIGN TABLE" if server else "TABLE"
    alter = f"ALTER {table} {name}" if server else f"ALTER TABLE ONLY {name}"
    for item in columns:
        done += [(RELATION, f"{alter} ALTER COLUMN {quoted(item.name)} {change}") for change in _changes(item, own)]
    done += [item for one in sequences if one.owned == "a" for item in _created(one) if item[0] == AFTER_TABLES]
    done += await _indexed(relation, ask)
    if is_partition:
        done.append((PARTITION, f"ALTER TABLE ONLY {parents} ATTACH PARTITION {name} {bound}"))
    # PostgreSQL refuses ONLY for a foreign key of a partitioned table, and CREATE TABLE ignores NOT VALID.
    for named, what, rule, _ in constraints:
        if what in {"f", "later"}:
            altered = alter if what == "f" and not key else f"ALTER {table} {name}"
            done.append((KEYS, f"{altered} ADD CONSTRAINT {quoted(str(named))} {rule}"))
    if replica in {"f", "n"}:
        done.append((LAST, f"{alter} REPLICA IDENTITY {'FULL' if replica == 'f' else 'NOTHING'}"))
    if secured == "true":
        done.append((LAST, f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"))
    if forced == "true":
        done.append((LAST, f"ALTER TABLE ONLY {name} FORCE ROW LEVEL SECURITY"))
    for policy, clauses, note in await ask(_POLICIES, relation.oid):
        done.append((LAST, f"CREATE POLICY {policy} ON {name} {clauses}"))
        done += _comment(f"POLICY {policy} ON", name, note)
    done += [(LAST, str(text)) for (text,) in await ask(_STATISTICS, relation.oid)]
    done += await _fired(relation, ask)
    done += _comment(table, name, comment)
    done += _column_comments(name, columns)
    for named, _, _, note in constraints:
        done += _comment(f"CONSTRAINT {quoted(str(named))} ON", name, note)
    return done


async def _view(relation: ServerRelation, ask: Ask) -> list[Statement]:
    [(query, options, comment, populated, listed)] = await ask(_VIEW, relation.oid)
    materialized = relation.kind == "m"
    what, name = "MATERIALIZED VIEW" if materialized else "VIEW", _full(relation)
    kind = f"TEMPORARY {what}" if relation.persistence == "t" else what
    columns = f" ({listed})" if listed else ""
    text = f"CREATE {kind} {name}{columns}{f' WITH ({options})' if options else ''} AS\n"
    text += (query or "").rstrip().rstrip(";")
    text += "\nWITH NO DATA" if materialized and populated == "false" else ""
    done: list[Statement] = [(VIEW, text)]
    shown = await _columns(relation, ask)
    done += [
        (VIEW, f"ALTER VIEW {name} ALTER COLUMN {quoted(item.name)} SET DEFAULT {item.default}")
        for item in shown
        if item.default
    ]
    done += [(LAST, each) for _, each in await _indexed(relation, ask)]
    done += await _fired(relation, ask)
    done += _comment(what, name, comment)
    return done + _column_comments(name, shown)


async def _indexed(relation: ServerRelation, ask: Ask) -> list[Statement]:
    """The statements for a table's indexes: CREATE INDEX for those without a constraint, other statements for all."""
    done: list[Statement] = []
    for index, text, clustered, replica, comment in await ask(_INDEXES, relation.oid):
        if text:
            done.append((AFTER_TABLES, text))
        if clustered == "true":
            done.append((AFTER_TABLES, f"ALTER TABLE {_full(relation)} CLUSTER ON {quoted(str(index))}"))
        if replica == "true":
            done.append(
                (AFTER_TABLES, f"ALTER TABLE ONLY {_full(relation)} REPLICA IDENTITY USING INDEX {quoted(str(index))}")
            )
        prefix = "" if relation.persistence == "t" else f"{quoted(relation.schema)}."
        done += _comment("INDEX", f"{prefix}{quoted(str(index))}", comment)
    return done


async def _fired(relation: ServerRelation, ask: Ask) -> list[Statement]:
    """The rules and triggers of a relation."""
    done: list[Statement] = []
    enabled = {"D": "DISABLE", "A": "ENABLE ALWAYS", "R": "ENABLE REPLICA"}
    rows = [*await ask(_RULES, relation.oid), *await ask(_TRIGGERS, relation.oid)]
    for text, name, state, comment, what in rows:
        done.append((LAST, str(text).rstrip(";")))
        if state in enabled:
            done.append((LAST, f"ALTER TABLE {_full(relation)} {enabled[str(state)]} {what} {name}"))
        done += _comment(f"{what} {name} ON", _full(relation), comment)
    return done


async def _columns(relation: ServerRelation, ask: Ask) -> list[_Column]:
    return [
        _Column(*(value == "true" if at in {3, 7} else value or "" for at, value in enumerate(row)))  # type: ignore[arg-type]
        for row in await ask(_COLUMNS, relation.oid)
    ]


async def _sequences(relation: ServerRelation, ask: Ask) -> list[_Sequence]:
    """The sequence itself, or the sequences of a table's columns."""
    return [
        _Sequence(*(value == "true" if at == 9 else value or "" for at, value in enumerate(row)))  # type: ignore[arg-type]
        for row in await ask(_SEQUENCES, relation.oid)
    ]


def _created(one: _Sequence) -> Iterator[Statement]:
    if one.owned == "i":
        # The sequence of an identity column is created with the column.
        return
    name = f"{quoted(one.schema)}.{quoted(one.name)}" if one.persistence != "t" else quoted(one.name)
    kind = {"t": "TEMPORARY ", "u": "UNLOGGED "}.get(one.persistence, "")
    yield FIRST, f"CREATE {kind}SEQUENCE {name} AS {one.type} {one.parameters}"
    if one.owned:
        yield AFTER_TABLES, f"ALTER SEQUENCE {name} OWNED BY {one.owner}"
    yield from _comment("SEQUENCE", name, one.comment)


def _typed(item: _Column) -> str:
    text = f"{item.type}{f' OPTIONS ({item.foreign})' if item.foreign else ''}"
    return f"{text}{f' COLLATE {item.collation}' if item.collation else ''}"


def _rest(item: _Column, identity: _Sequence | None) -> str:
    """A column's definition behind its type."""
    clause = ""
    if identity is not None:
        how = "ALWAYS" if item.identity == "a" else "BY DEFAULT"
        name = (
            f"SEQUENCE NAME {quoted(identity.schema)}.{quoted(identity.name)} " if identity.persistence != "t" else ""
        )
        clause = f" GENERATED {how} AS IDENTITY ({name}{identity.parameters})"
    elif item.generated:
        clause = f" GENERATED ALWAYS AS ({item.default}) {'STORED' if item.generated == 's' else 'VIRTUAL'}"
    elif item.default:
        clause = f" DEFAULT {item.default}"
    return f"{clause}{' NOT NULL' if item.required else ''}"


def _changes(item: _Column, own: list[_Column]) -> Iterator[str]:
    """The statements that change a column after its table was created."""
    if item not in own:
        # The parent may have another default, and none for its children.
        if item.default and not item.generated:
            yield f"SET DEFAULT {item.default}"
        if item.required:
            yield "SET NOT NULL"
    if item.storage:
        yield f"SET STORAGE {item.storage}"
    if item.compression:
        yield f"SET COMPRESSION {item.compression}"
    if item.statistics:
        yield f"SET STATISTICS {item.statistics}"
    if item.options:
        yield f"SET ({item.options})"


def _column_comments(name: str, columns: list[_Column]) -> list[Statement]:
    return [
        statement for item in columns for statement in _comment("COLUMN", f"{name}.{quoted(item.name)}", item.comment)
    ]


def _comment(what: str, name: str, text: str | None) -> Iterator[Statement]:
    if text:
        yield LAST, f"COMMENT ON {what} {name} IS {literal(text)}"


def _full(relation: ServerRelation) -> str:
    return (
        quoted(relation.name) if relation.persistence == "t" else f"{quoted(relation.schema)}.{quoted(relation.name)}"
    )
