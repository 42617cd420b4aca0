"""Completion of the arguments of commands, by the placeholder in the command's usage."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from sqlshell.client.resources import TYPES
from sqlshell.config.settings import BY_NAME, VARIABLES
from sqlshell.errors import ShellError
from sqlshell.output.writers.formats import FORMATS
from sqlshell.runtime.files import DATA_ENDINGS, DATABASE_ENDINGS, expanded, without_compression
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import OPTIONS, Command, quoted_word
from sqlshell.shell.options import DISPLAY
from sqlshell.shell.records.saved_queries import SavedQueries
from sqlshell.sql.completion.catalog import Names, is_near, shown_name
from sqlshell.sql.completion.suggestions import Suggestion
from sqlshell.sql.identifiers import literal, name_parts, quoted

SHOWN: Final = 200
"""Maximum number of suggestions in one list."""

Known = Callable[[CommandShell, Sequence[str]], Iterable[tuple[str, str]]]
"""Returns the possible words with their details, given the preceding arguments."""

_NAME: Final = re.compile(r'((?:(?:"(?:[^"]++|"")*+"|[^".]++)*+\.)*+)(.*)\Z', re.S)


def arguments(shell: CommandShell, name: str, typed: str, before: Sequence[str] = ()) -> list[Suggestion]:
    """Suggestions for the argument after `before`, best first. `typed` may begin with a quote."""
    command = shell.commands.get(name)
    word = "" if command is None else _word(command, before)
    if command is None or not word:
        return []
    kind = RELATIONS.get(f"{command.name}.{word}")
    if kind is not None:
        return _relations(shell, typed, kind)
    if word == "TARGET":
        found = [item for item in paths(typed) if item.kind == "directory" or _is_target(item.text)]
        return [*_matched(_targets(shell, before), typed, name), *found]
    if word in {"FILE", "DIRECTORY"}:
        return paths(typed, folders=word == "DIRECTORY")
    if word == "COMMAND":
        return commands_named(shell.commands, typed.lstrip("\\"))
    known = KNOWN.get(f"{command.name}.{word}") or KNOWN.get(word)
    if known is not None:
        matched = _matched(known(shell, before), typed, name)
        if word != "STATEMENT":
            return [Suggestion(quoted_word(item.text), item.kind, item.detail) for item in matched]
        lower = f"{' '.join(before)} {typed}".islower()
        return [Suggestion(item.text.lower(), item.kind) for item in matched] if lower else matched
    choices = word.split("|") if "|" in word else [word] if word.startswith("--") else []
    return _matched([(choice, "") for choice in choices], typed, name)


def _is_target(name: str) -> bool:
    r"""Whether a file can be the target of \\c, by its ending."""
    return without_compression(Path(name.rstrip("'"))).endswith((*DATA_ENDINGS, *DATABASE_ENDINGS))


def commands_named(commands: Mapping[str, Command], typed: str) -> list[Suggestion]:
    """The commands that begin with `typed`; commands of other shells only after a typed `.` or `!`."""
    foreign = typed[:1] in {".", "!"} and len(typed) > 0
    names = {name: item for name, item in commands.items() if (name[0] in ".!" and len(name) > 1) == foreign}
    own = {item.name for item in commands.values()}
    # Propose an alias only after its first letters are typed, and never a variant with +.
    shown = [name for name in names if foreign or name in own] + [
        name
        for name in names
        if not (foreign or name in own or name.endswith("+")) and len(typed) > 1 and name.startswith(typed)
    ]
    return [Suggestion(name, "command", names[name].summary) for _, name in Names(shown).matching(typed)]


def _word(command: Command, before: Sequence[str]) -> str:
    """The placeholder in the usage for the argument after `before`; "" if no argument may follow."""
    words = [word for word in command.usage.split() if word != OPTIONS]
    if len(before) < len(words):
        return words[len(before)].strip("[]").removesuffix("...")
    last = words[-1].strip("[]") if words else ""
    return last.removesuffix("...") if last.endswith("...") and last != "FILE..." else ""


def _matched(known: Iterable[tuple[str, str]], typed: str, kind: str) -> list[Suggestion]:
    details = dict(known)
    return [Suggestion(word, kind, details[word]) for _, word in Names(details).matching(typed)]


def _relations(shell: CommandShell, typed: str, kind: str) -> list[Suggestion]:
    """Relations of a kind, written as a pattern: unqualified in the current schema, otherwise qualified."""
    catalog, context = shell.front_end.catalog, shell.session.context
    match = _NAME.match(typed)
    lead, last = (match[1], match[2].lstrip('"')) if match else ("", typed)
    if lead:
        parts = name_parts(lead)
        inside = dict(catalog.contents_of(parts))
        names = [name for name, what in inside.items() if what == "schema" or kind in what or kind == "relation"]
        return [
            Suggestion(f"{lead}{quoted(name)}", "schema" if inside[name] == "schema" else "relation", inside[name])
            for _, name in Names(names).matching(last)
        ]
    near: list[Suggestion] = []
    far: list[Suggestion] = []
    for _, name in catalog.names_of("relation" if kind == "relation" else f"relation:{kind}").matching(last):
        relation = catalog.relation((name,), context.database, context.schema)
        if relation is not None:
            shown = shown_name(relation, context.database, context.schema)
            place = near if is_near(relation, context.database, context.schema) else far
            place.append(Suggestion(shown, "relation", relation.kind))
    schemas = [Suggestion(f"{quoted(name)}.", "schema") for _, name in catalog.names_of("schema").matching(last)]
    return [*near, *far, *schemas][:SHOWN]


def _of(kind: str) -> Known:
    """The names of one kind in the catalog."""

    def known(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
        details = shell.front_end.catalog.signatures() if kind == "function" else {}
        return [(quoted(name) if kind != "query" else name, details.get(name, "")) for name in _names(shell, kind)]

    return known


def _names(shell: CommandShell, kind: str) -> Sequence[str]:
    return shell.front_end.catalog.names_of(kind).all


def _statements(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return [(entry.id, f"{entry.state} {entry.sql[:40]}") for entry in shell.journal.recent(50)]


def _targets(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The databases of the engine's server, and the profiles."""
    databases = _names(shell, "database") if shell.session.state.server else ()
    return [
        *((name, "database") for name in databases),
        *((name, "profile") for name in shell.environment.profiles()),
    ]


def _options(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    from sqlshell.shell.commands.display import shown

    options = shell.session.options
    return [(name, shown(setting, getattr(options, name))) for name, setting in DISPLAY.items()]


def _values(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The values that an option accepts."""
    name = before[0].replace("-", "_") if before else ""
    match name:
        case "format":
            return _formats(shell, before)
        case "theme":
            return _themes(shell, before)
        case "table_style":
            from sqlshell.output.writers.styles import AUTO, style_names

            return [(style, "") for style in (AUTO, *style_names())]
    words = BY_NAME[name].kind.words if name in DISPLAY or name == "tuples_only" else ()
    return [(word, "") for word in words]


def _formats(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return [(item.name, item.summary) for item in FORMATS]


def _themes(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    try:
        return [(theme, "") for theme in shell.environment.themes()]
    except ShellError:
        return []


def _variables(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return [*_set(shell, before), *((name, "") for name in VARIABLES if name not in shell.variables)]


def _set(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return [(name, value.text) for name, value in sorted(shell.variables.items())]


def _variable_values(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return [(word, "") for word in VARIABLES.get(before[0], ("", ()))[1] if len(before) == 1]


def _parts(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    return shell.session.context.parts()


CONTEXT_KINDS: Final = {
    "organization": "organization",
    "role": "role",
    "database": "database",
    "schema": "schema",
    "store": "store",
    "compute_pool": "pool",
}


def _part_values(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    if tuple(before[:1]) != ("set",):
        return []
    if before[1] == "timezone":
        import zoneinfo

        return [(name, "") for name in sorted(zoneinfo.available_timezones())]
    kind = CONTEXT_KINDS.get(before[1], "")
    return [(name, "") for name in _names(shell, kind)] if kind else []


def _queries(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    if shell.environment.queries is None:
        return []
    try:
        return [(query, text[:60]) for query, text in SavedQueries(shell.environment.queries).all().items()]
    except ShellError:
        return []


def _syntax(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The rest of the names of statements that begin with the typed words."""
    from sqlshell.sql.syntax import SYNTAX

    lead = "".join(f"{word} " for word in before)
    return [(name[len(lead) :], "") for name in SYNTAX if name.startswith(lead.upper())]


def _charts(shell: CommandShell, before: Sequence[str]) -> Iterable[tuple[str, str]]:
    from sqlshell.shell.charts.charts import KINDS

    return [(kind, "") for kind in KINDS]


KNOWN: Final[Mapping[str, Known]] = {
    "ID": _statements,
    "FORMAT": _formats,
    "STATEMENT": _syntax,
    "PART": _parts,
    "TYPE": lambda shell, before: [(kind, "") for kind in TYPES],
    "format.NAME": _formats,
    "theme.NAME": _themes,
    "pset.NAME": _options,
    "pset.VALUE": _values,
    "set.NAME": _variables,
    "set.VALUE": _variable_values,
    "unset.NAME": _set,
    "own.NAME": _set,
    "getenv.VARIABLE": lambda shell, before: [(name, "") for name in sorted(os.environ)],
    "context.VALUE": _part_values,
    "n.NAME": _queries,
    "n+.NAME": _queries,
    "chart.KIND": _charts,
    "sf.PATTERN": _of("macro"),
    "di.PATTERN": _of("index"),
    "dT.PATTERN": _of("user type"),
    "df.PATTERN": _of("function"),
    "l.PATTERN": _of("database"),
    "dn.PATTERN": _of("schema"),
    "ds.PATTERN": _of("store"),
    "de.PATTERN": _of("entity"),
    "dp.PATTERN": _of("pool"),
    "dr.PATTERN": _of("role"),
    "dq.PATTERN": _of("query"),
}
"""The suggestions for each placeholder of a usage: by the placeholder, or by command name and placeholder."""

RELATIONS: Final = {
    "d.PATTERN": "relation",
    "schema.PATTERN": "relation",
    "dt.PATTERN": "table",
    "dv.PATTERN": "view",
    "dm.PATTERN": "stream",
}


def paths(typed: str, *, folders: bool = False) -> list[Suggestion]:
    """Files and directories that begin with `typed`, or only directories; quoted if a command would split the name."""
    if typed.startswith("|"):
        return []
    quote, typed = (typed[:1], typed[1:]) if typed[:1] == "'" else ("", typed)
    suggestions = []
    for name, inside in files(typed.replace("''", "'") if quote else typed):
        if folders and not inside:
            continue
        kind = "directory" if inside else "file"
        if quote or re.search(r"[\s'\"\\`:]", name):
            # Leave the quote of a folder open, so that the user can continue with a file.
            name = literal(name)[:-1] if inside else literal(name)
        suggestions.append(Suggestion(name, kind))
    return suggestions


def files(typed: str) -> list[tuple[str, bool]]:
    """Paths that begin with `typed`, sorted, and whether each is a folder."""
    folder, _, begun = typed.rpartition("/")
    base = expanded(f"{folder}/" if folder or typed.startswith("/") else ".")
    found = []
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if entry.name.startswith(begun) and (begun.startswith(".") or not entry.name.startswith(".")):
                    inside = entry.is_dir()
                    name = f"{entry.name}/" if inside else entry.name
                    lead = f"{folder}/" if folder or typed.startswith("/") else ""
                    found.append((f"{lead}{name}", inside))
                if len(found) >= SHOWN:
                    break
    except (OSError, RuntimeError, ValueError):
        return []
    return sorted(found)
