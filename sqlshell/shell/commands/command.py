"""A backslash command: a coroutine `(shell, args)`, whose docstring is its help, and usage its parser.

A usage consists of placeholders: `FILE` is required, `[FILE]` is optional, `[on|off]` is one of the listed words,
`WORD...` and `CONDITION...` are any number of words, `PATTERN` is a name with its quotes or a pattern for names,
`VALUE...` and `TEXT` are words that keep their double quotes, `SQL...` keeps all quotes unless it is a single string,
`[TEXT...]` is the rest of the line verbatim, and so is a `|command` in place of `FILE...`, and whatever a command that
is declared `verbatim` gets.

A value that came from a service is refused as an argument, except for the placeholders that a command lists as `data`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from sqlshell.config.peers import command_remedy
from sqlshell.config.settings import ON_OR_OFF
from sqlshell.errors import UsageError
from sqlshell.origin import Text, Trusted, trusted_text
from sqlshell.shell.components import ShellComponents
from sqlshell.text import any_of, did_you_mean

OPTIONS: Final = "[(NAME=VALUE...)]"
"""The placeholder for options in parentheses, which come first in a usage."""
_BRACKETS: Final = re.compile(r"""\(((?:[^()'"]++|'(?:[^'\\]++|\\.|'')*+'|"[^"]*+")*+)\)""", re.DOTALL)

_NAMED_TEXT: Final = re.compile(r"\S+\s+'(?:[^'\\]++|\\.|'')*+'", re.DOTALL)
"""A name, and SQL that is a single argument in single quotes: these quotes are removed."""

_COMBINED: Final = re.compile(r"d[tvms]{2,4}\+?")
"""Several kinds of relations in one command, such as `\\dtv`."""

KEEP_QUOTES: Final = frozenset({"PATTERN", "PATTERN...", "[PATTERN]", "[VALUE...]", "[TEXT]", "[SQL...]"})
"""Placeholders whose values keep their double quotes, as in psql."""


_PLAIN_WORD: Final = re.compile(r'(?:[^\s\'"`:;\\]+|"(?:[^"]|"")*")')
"""A word that needs no quotes."""

_FILES: Final = {"FILE": "file", "[FILE]": "file", "FILE...": "file", "[DIRECTORY]": "directory"}
"""Placeholders that must not be empty. An empty `[FILE...]` means no file, as in psql."""

MEANINGS: Final = {"CONDITION": f"a value: {ON_OR_OFF}"}
"""The words of messages for placeholders whose names do not say what to write."""


class Args(list[str]):
    """The arguments; `name` is the typed name or alias, `plus` says whether it ended in +."""

    name: str = ""
    texts: Sequence[Text] = ()
    """The same arguments with their origin."""
    options: Sequence[Trusted] = ()
    """The options in parentheses before the arguments, each `NAME=VALUE`."""

    def trusted(self, number: int) -> Trusted:
        """An argument that names a file, a command or a setting. Raises UsageError if it came from a service."""
        return self.texts[number].trusted(f"an argument of \\{self.name}")

    @property
    def plus(self) -> bool:
        return self.name.endswith("+")


Body = Callable[[Any, Args], Awaitable[None]]
"""What a command does; the first parameter is a CommandShell, whose module uses this one."""

Changes = Literal["", "text", "shell"]
"""The changes of a command to this shell: the "text" that the script sends, other state of the "shell", or neither.

Only the first are run by --dry-run, and both are run again by --resume.
"""


class Command(Struct, frozen=True):
    """A command as its declaration says it: dispatch, help, completion, --dry-run and --resume read this."""

    name: str
    usage: str
    help: str
    body: Body
    aliases: tuple[str, ...] = ()
    group: str = ""
    """The title of its group in `\\?`."""
    sends: bool = False
    """Whether it sends the query buffer."""
    changes: Changes = ""
    """The part of this shell that it changes."""
    verbatim: bool = False
    """Whether its argument is the rest of the line; its usage only describes the contents."""
    data: frozenset[str] = frozenset()
    """The placeholders that accept values from a service, because they do not open, run or set anything."""

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        return self.help.partition("\n")[0]

    def sends_with(self, text: str) -> bool:
        """Whether the command sends the query buffer if `text` is the rest of its line."""
        return self.sends and not (text.strip() and self.verbatim)

    async def run(self, shell: ShellComponents, text: Trusted, typed: str) -> None:
        """Run the command with the rest of its line. Raises UsageError for arguments that do not match the usage."""
        await self.body(shell, self.parsed(shell.variables, text, typed))

    def parsed(self, values: Mapping[str, Text], text: Trusted, typed: str = "") -> Args:
        """The arguments. Raises UsageError if they do not match the usage."""
        name = typed or self.name
        elsewhere = name[0] in ".!" and len(name) > 1
        usage = "[TEXT...]" if self.verbatim else self.usage
        args = parse(self.name, usage, text, values, elsewhere=elsewhere, data=self.data)
        args.name = name
        return args


def command(
    name: str,
    usage: str = "",
    aliases: tuple[str, ...] = (),
    *,
    sends: bool = False,
    changes: Changes = "",
    verbatim: bool = False,
    data: Iterable[str] = (),
) -> Callable[[Body], Command]:
    """Decorator that makes a Command of a coroutine; the caller registers it by listing it."""

    def make(body: Body) -> Command:
        return Command(
            name,
            usage,
            inspect.getdoc(body) or "",
            body,
            aliases,
            sends=sends,
            changes=changes,
            verbatim=verbatim,
            data=frozenset(data),
        )

    return make


def table(commands: Iterable[Command]) -> Mapping[str, Command]:
    """Commands by name and alias, in order. Raises ValueError if two commands have the same name."""
    by_name: dict[str, Command] = {}
    for item in commands:
        for name in (item.name, *item.aliases):
            if name in by_name:
                raise ValueError(f"two commands are named \\{name}")
            by_name[name] = item
    return by_name


def find(commands: Mapping[str, Command], name: str) -> Command:
    """The command with this name. Raises UsageError that suggests what psql's is called here, or similar names."""
    if name in commands:
        return commands[name]
    if _COMBINED.fullmatch(name) and len(set(name)) == len(name):
        return commands["dt"]
    if there := command_remedy(name):
        raise UsageError(f"unknown command {as_typed(name)}", there)
    # Names of other shells, such as .tables and !tables, are suggested to those who type one.
    alike = [known for known in commands if as_typed(known)[0] == as_typed(name)[0]]
    hint = did_you_mean(name, alike, "\\? all lists the commands", most=3, shown=as_typed)
    raise UsageError(f"unknown command {as_typed(name)}", hint)


def as_typed(name: str) -> str:
    """The name of a command as typed: commands of other shells have no backslash."""
    return name if name[:1] in {".", "!"} and len(name) > 1 else f"\\{name}"


def parse(
    name: str,
    usage: str,
    text: Trusted,
    values: Mapping[str, Text],
    *,
    elsewhere: bool = False,
    data: Collection[str] = (),
) -> Args:
    """Parse `text` by `usage` and substitute variables. Raises UsageError that shows the usage.

    The arguments of a command of another shell (`elsewhere`), such as `.print`, lose their double quotes. Only the
    placeholders in `data` accept values from a service.
    """
    hint = f"usage: \\{name} {usage}".rstrip()
    wanted = usage.split()
    last = wanted[-1].strip("[]") if wanted else ""
    text = Trusted(text.strip())
    options: list[Text] = []
    if wanted[:1] == [OPTIONS]:
        wanted = wanted[1:]
        if text.startswith("("):
            options, text = _options(text, values, hint)
    whole = last == "TEXT..." or (last == "FILE..." and text.startswith("|"))
    if whole and len(wanted) == 1:
        return _args(name, [trusted_text(text)] if text else [], options)
    try:
        quotes = not elsewhere and not KEEP_QUOTES.isdisjoint(usage.split())
        strings = last == "SQL..." and _NAMED_TEXT.fullmatch(text) is None
        words = _words(text, values, quotes=quotes, strings=strings)
    except UsageError as error:
        raise UsageError(f"\\{name}: {error.message}", error.hint or hint) from None
    texts = [word.text for word in words]
    if len(texts) > len(wanted) and not (last.endswith("...") and last != "FILE..."):
        extra = texts[len(wanted)]
        raise UsageError(f"\\{name}: unexpected argument {extra!r}", hint)
    for number, argument in enumerate(words):
        meant = wanted[min(number, len(wanted) - 1)].strip("[]").removesuffix("...")
        if meant not in data:
            argument.trusted(f"{meant} of \\{name}")
    is_value = texts[-1:] == [";"] and last.strip("[]") in {"TEXT", "VALUE"} and len(texts) == len(wanted)
    if texts and texts[-1].endswith(";") and text.endswith(";") and not last.endswith("...") and not is_value:
        # Ignore a ; typed out of habit.
        words[-1] = words[-1].part(0, len(texts[-1].rstrip(";")))
        words = words if words[-1].text else words[:-1]
        texts = [word.text for word in words]
    required = [word for word in wanted if not word.startswith("[")]
    if len(texts) < len(required):
        missing = required[len(texts)].removesuffix("...")
        raise UsageError(f"\\{name} requires {MEANINGS.get(missing, missing)}", hint)
    for usual, word in zip(wanted, texts, strict=False):
        if usual in _FILES and not word:
            raise UsageError(f"\\{name}: the {_FILES[usual]} name is empty", hint)
        choices = usual.strip("[]").split("|")
        if len(choices) > 1 and word not in choices:
            raise UsageError(f"\\{name}: invalid argument {word!r}; expected {any_of(choices)}", hint)
    return _args(name, words, options)


def _args(name: str, given: Sequence[Text], options: Sequence[Text]) -> Args:
    args = Args(word.text for word in given)
    args.name, args.texts = name, given
    args.options = [word.trusted(f"an option of \\{name}") for word in options]
    return args


def _options(text: Trusted, values: Mapping[str, Text], hint: str) -> tuple[list[Text], Trusted]:
    """The options in the parentheses at the start of a text, and the rest of the text."""
    match = _BRACKETS.match(text)
    if match is None:
        raise UsageError(f"missing closing parenthesis: {text[:40]}", hint)
    return _words(Trusted(match[1]), values, quotes=False), Trusted(text[match.end() :].strip())


def _words(text: Trusted, values: Mapping[str, Text], *, quotes: bool, strings: bool = False) -> list[Text]:
    if not any(char in text for char in "'\"`:"):
        return [trusted_text(Trusted(word)) for word in text.split()]
    from sqlshell.shell.commands.lexing import words

    return words(text, values, quotes=quotes, strings=strings)


def quoted_word(text: str) -> str:
    """A word as it is written on a line: names from a service may contain backticks, blanks and colons."""
    return text if _PLAIN_WORD.fullmatch(text) else quoted_text(text)


def quoted_text(text: str) -> str:
    """Return a word in quotes, on one line."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n") + "'"
