"""The statements that are the interface's and not the engine's, read into small objects."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Failure
from sqlshell.sql.items import Statement
from sqlshell.sql.scripts import split

Names = tuple[str, ...]
"""The parts of a dotted name: unquoted ones folded to lower case."""

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$-]*)'
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME}){{0,2}}"
_KINDS = (
    "DATABASE|STORE|COMPUTE_POOL|FUNCTION_SOURCE|DESCRIPTOR_SOURCE|ORGANIZATION|ROLE|API_TOKEN|STREAM|RELATION|"
    "CHANGELOG|ENTITY|SECRET|SCHEMA_REGISTRY|USER|METRICS INTEGRATION|SECURITY INTEGRATION"
)
WRITES = (
    r"insert\s+(?:or\s+\w+\s+)?into|replace\s+into|update(?:\s+or\s+\w+)?|delete\s+from|truncate(?:\s+table)?|"
    r"merge\s+into|(?:alter|drop|comment\s+on)\s+\w+(?:\s+if\s+exists)?|"
    r"create\s+(?:or\s+replace\s+)?(?:recursive\s+)?(?:table|view|schema|sequence|type|macro|function)"
    rf"(?:\s+if\s+not\s+exists)?|copy(?=\s+{_DOTTED}\s*(?:\([^()]*\)\s*)?from(?!\w))"
)
READS = r"from|join|using|table|describe|desc|summarize|pivot|unpivot"
"""Verbs for targets(): what is behind one is changed, or read. They explain what failed, and no right rests on them."""

_COMMENT = r"--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
_PARTS = re.compile(rf"""('[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z))|({_COMMENT}|\s++)|[^\s'"/-]{{1,4096}}+|[/-]""")
"""What a statement is made of: strings and quoted names, what is as good as a blank, and the rest in bounded pieces.

No pattern here goes back over text, and none looks at much of it at once: other threads wait for a match to end.
"""

_WINDOW = 64 << 10
_OVERLAP = 4096
"""Characters in which targets are looked for at once, and those of the next ones that are looked at too."""


@functools.cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(" ", r"\s+"), re.I | re.S)


def _whole(pattern: str, text: str) -> re.Match[str] | None:
    """A match of all of `text`. Patterns are compiled when they are first needed: all of them would slow each start."""
    return _compiled(pattern).fullmatch(text)


_USE = rf"USE (?P<kind>DATABASE|SCHEMA|ROLE|STORE|ORGANIZATION|COMPUTE_POOL) (?P<name>{_DOTTED})"
_LIST = rf"LIST (?P<what>\w+)(?: IN (?P<place>DATABASE|SCHEMA|STORE) (?P<name>{_DOTTED}))?"
_CREATE = (
    rf"CREATE(?P<replace> OR REPLACE)? (?P<kind>{_KINDS})(?P<exists> IF NOT EXISTS)? (?P<name>{_DOTTED})(?P<rest>.*)"
)
_DROP = rf"DROP (?P<kind>{_KINDS})(?P<exists> IF EXISTS)? (?P<name>{_DOTTED})(?: (?:CASCADE|RESTRICT))?"
_POOL = rf"(?P<what>START|STOP) COMPUTE_POOL (?P<name>{_NAME})"
_QUERY = r"""(?:'(?P<q1>[^']*)'|"(?P<q2>[^"]*)"|(?P<q3>[\w-]+))"""
_TERMINATE = rf"TERMINATE QUERY {_QUERY}"
_TERMINATE_SESSION = rf"TERMINATE SESSION {_QUERY}(?P<idle> WHEN IDLE)?"
_DESCRIBE_QUERY = rf"DESCRIBE QUERY(?: (?P<part>METRICS|EVENTS|STATE|HISTORY))? {_QUERY}"
_DESCRIBE = (
    rf"DESCRIBE (?P<kind>RELATION|TABLE|VIEW|SCHEMA|{_KINDS})(?: COLUMNS(?= [^ ]))? (?P<name>{_DOTTED})(?: COLUMNS)?"
    rf"(?: IN STORE (?P<store>{_NAME}))?"
)
_PRINT = rf"PRINT ENTITY (?P<name>{_DOTTED})(?: IN STORE (?P<store>{_NAME}))?(?P<begin> FROM BEGINNING)?"
_BEGIN = rf"BEGIN APPLICATION (?P<name>{_NAME})"
_END = r"(?<!\w)END APPLICATION\Z"
_BLANK = re.compile(rf"(?:\s++|{_COMMENT})*+")
_OPTION = re.compile(
    r"""\s*+(?:'((?:[^']++|'')*+)'|([\w.]++))\s*+=\s*+(?:'((?:[^']++|'')*+)'|([\w.-]++))\s*+(,|$)""", re.S
)
_FIRST = re.compile(r"(use|list|create|drop|start|stop|terminate|describe|print|begin)\b", re.I)
READ_LENGTH = 64 << 10
APPLICATION_LENGTH = 1 << 20
"""Characters; a longer statement is the engine's."""

_HEAD = 4000
"""Characters at the start and the end of a statement in which its first and last words are."""


class Use(Struct, frozen=True):
    kind: str
    names: Names


class List(Struct, frozen=True):
    what: str
    place: str = ""
    names: Names = ()


class Create(Struct, frozen=True):
    kind: str
    names: Names
    options: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    if_not_exists: bool = False
    columns: str = ""


class Drop(Struct, frozen=True):
    kind: str
    names: Names
    if_exists: bool = False


class Describe(Struct, frozen=True):
    kind: str
    names: Names
    store: str = ""


class DescribeQuery(Struct, frozen=True):
    statement_id: str
    part: str = ""


class Terminate(Struct, frozen=True):
    statement_id: str


class TerminateSession(Struct, frozen=True):
    name: str
    when_idle: bool = False


class StartPool(Struct, frozen=True):
    name: str
    start: bool


class Print(Struct, frozen=True):
    names: Names
    store: str = ""
    from_beginning: bool = False


class Application(Struct, frozen=True):
    name: str
    statements: tuple[str, ...]


Own = (
    Use
    | List
    | Create
    | Drop
    | Describe
    | DescribeQuery
    | Terminate
    | TerminateSession
    | StartPool
    | Print
    | Application
)


def read(sql: str) -> Own | None:
    """What a statement of the dialect asks for, None for the engine's own.

    Raises Failure for one of the dialect that says something impossible.
    """
    start = sql[:_HEAD].lstrip()
    if not start[:1].isalpha():
        start = _plain(start)
    first = _FIRST.match(start)
    if not first:
        return None
    word = first[1].lower()
    if word == "begin":
        return _application(sql) if len(sql) <= APPLICATION_LENGTH else None
    if len(sql) > READ_LENGTH:
        return None
    text = _plain(sql)
    for pattern, make in _READERS[word]:
        if found := _whole(pattern, text):
            return make(found)
    return None


def takes_long(sql: str) -> bool:
    """Whether read() may take longer than an event loop may be held."""
    return len(sql) > _HEAD and _FIRST.match(_plain(sql[:_HEAD])) is not None


def is_about_organizations(asked: Own | None) -> bool:
    """Whether a statement names organizations, makes, drops or lists them, or goes to one."""
    if isinstance(asked, List):
        return asked.what == "organizations"
    return isinstance(asked, Use | Create | Drop | Describe) and asked.kind == "organization"


def names_of(text: str) -> Names:
    """The parts of a dotted name."""
    found = re.findall(_NAME, text)
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part.lower() for part in found)


def written(names: Names) -> str:
    """A dotted name as names_of() reads it, in quotes where it needs them."""
    return ".".join(
        part if re.fullmatch(r"[a-z_][\w$-]*", part) and part.islower() else '"' + part.replace('"', '""') + '"'
        for part in names
    )


def bare(sql: str) -> str:
    """A statement with its strings empty, and one blank for all that stands between two words."""
    return "".join(
        "''" if (found[1] or "").startswith("'") else " " if found[2] else found[0] for found in _PARTS.finditer(sql)
    ).strip()


def _plain(sql: str) -> str:
    """A statement with a blank for each comment."""
    return "".join(
        " " if (found[2] or "").startswith(("--", "/*")) else found[0] for found in _PARTS.finditer(sql)
    ).strip()


def targets(sql: str, verbs: str) -> list[Names]:
    """The names behind any of `verbs`, a regular expression, in a statement."""
    text = bare(sql)
    wanted = re.compile(rf"(?<!\w)(?:{verbs})\s+({_DOTTED})", re.I)
    names = []
    for start in range(0, len(text), _WINDOW):
        end = start + _WINDOW + _OVERLAP
        for found in wanted.finditer(text, start, end):
            # What touches the end may be a part of a name, which the next window has whole.
            if found.end() < end or end >= len(text):
                names.append(names_of(found[1]))
    return names


def _kind(text: str) -> str:
    return re.sub(r"\s+", "_", text).lower()


def _query(found: re.Match[str]) -> str:
    return found["q1"] or found["q2"] or found["q3"] or ""


def _create(found: re.Match[str]) -> Create:
    kind, rest = _kind(found["kind"]), found["rest"]
    columns = ""
    if kind in {"stream", "changelog"}:
        if re.search(r"(?<!\w)AS\s+SELECT(?!\w)", rest, re.I):
            said = f"CREATE {kind.upper()} … AS SELECT would run forever: this is not a streaming engine"
            raise Failure(sqlstate.UNSUPPORTED, said)
        before, _, after = rest.partition(")") if not rest.strip().startswith("(") else _columns(rest)
        columns, rest = before + ")" if after or before else "", after
        if not columns.strip().startswith("("):
            raise Failure(sqlstate.SYNTAX, f"CREATE {kind.upper()} needs its columns: ({kind} (name type, …))")
    options: dict[str, str] = {}
    if rest.strip():
        inside = re.fullmatch(r"\s*WITH\s*\((.*)\)\s*", rest, re.I | re.S)
        if not inside:
            raise Failure(
                sqlstate.SYNTAX, f"syntax error at {rest.strip()[:60]!r}: WITH ('key' = 'value', …) is expected"
            )
        options = _options(inside[1])
    return Create(
        kind, names_of(found["name"]), options, bool(found["replace"]), bool(found["exists"]), columns.strip()
    )


def _columns(rest: str) -> tuple[str, str, str]:
    """What stands in the first parentheses, which may nest, and what follows them."""
    depth, quote = 0, ""
    for position, sign in enumerate(rest):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return rest[:position], ")", rest[position + 1 :]
    raise Failure(sqlstate.SYNTAX, "a parenthesis is not closed")


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    text = text.rstrip()
    position = 0
    while position < len(text):
        found = _OPTION.match(text, position)
        if not found:
            said = f"syntax error at {text[position : position + 200].strip()[:60]!r}: 'key' = 'value' is expected"
            raise Failure(sqlstate.SYNTAX, said)
        name = (found[1] if found[1] is not None else found[2]).replace("''", "'").lower()
        options[name] = found[3].replace("''", "'") if found[3] is not None else found[4]
        position = found.end()
    return options


def _application(sql: str) -> Application | None:
    blank = _BLANK.match(sql)
    text = sql[blank.end() if blank else 0 :].rstrip()
    head, tail = _compiled(_BEGIN).match(text), _compiled(_END).search(text, max(0, len(text) - _HEAD))
    if not head or not tail or head.end() > tail.start():
        return None
    items = split(text[head.end() : tail.start()])
    return Application(names_of(head["name"])[0], tuple(item.text for item in items if isinstance(item, Statement)))


def _describe(found: re.Match[str]) -> Describe:
    return Describe(_kind(found["kind"]), names_of(found["name"]), "".join(names_of(found["store"] or "")))


def _pool(found: re.Match[str]) -> StartPool:
    return StartPool(names_of(found["name"])[0], found["what"].lower() == "start")


def _print(found: re.Match[str]) -> Print:
    return Print(names_of(found["name"]), "".join(names_of(found["store"] or "")), bool(found["begin"]))


def _list(found: re.Match[str]) -> List:
    return List(found["what"].lower(), (found["place"] or "").lower(), names_of(found["name"] or ""))


Reader = tuple[str, Callable[[re.Match[str]], Own]]

_READERS: Mapping[str, Sequence[Reader]] = {
    "use": ((_USE, lambda found: Use(found["kind"].lower(), names_of(found["name"]))),),
    "list": ((_LIST, _list),),
    "create": ((_CREATE, _create),),
    "drop": ((_DROP, lambda found: Drop(_kind(found["kind"]), names_of(found["name"]), bool(found["exists"]))),),
    "start": ((_POOL, _pool),),
    "stop": ((_POOL, _pool),),
    "terminate": (
        (_TERMINATE, lambda found: Terminate(_query(found))),
        (_TERMINATE_SESSION, lambda found: TerminateSession(_query(found), bool(found["idle"]))),
    ),
    "describe": (
        (_DESCRIBE_QUERY, lambda found: DescribeQuery(_query(found), (found["part"] or "").lower())),
        (_DESCRIBE, _describe),
    ),
    "print": ((_PRINT, _print),),
}
"""How the statements that begin with a word are read: the first pattern that is all of one decides."""
