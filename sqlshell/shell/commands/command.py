"""A backslash command: a coroutine `(port, args) -> effect`, whose docstring is its help and whose usage is its parser.

A usage is words: `FILE` is required, `[FILE]` may be left out, `[on|off]` is one of those words, `WORD...` is any
number of words, `PATTERN` a name with its quotes or a pattern for names, `VALUE...` and `TEXT` are words with their
double quotes, `[TEXT...]` is the rest of the line as it stands, and so is a `|command` in the place of `FILE...`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.shell.port import Effect, Port

OPTIONS: Final = "[(NAME=VALUE...)]"
"""The word of a usage for options in brackets, which stand first."""
_BRACKETS: Final = re.compile(r"""\(((?:[^()'"]++|'(?:[^'\\]++|\\.|'')*+'|"[^"]*+")*+)\)""", re.DOTALL)

ABSENT: Final = {
    "copy": "\\g FILE writes a result to a file of this machine; to read one, use INSERT, or COPY t FROM 'FILE' where"
    " the service can open it",
}
"""Commands of psql that are not here, with what to use in their place."""
_COMBINED: Final = re.compile(r"d[tvms]{2,4}\+?")
"""Several kinds of relations in one command, such as `\\dtv`."""

KEEP_QUOTES: Final = frozenset({"PATTERN", "[PATTERN]", "[VALUE...]", "[TEXT]"})
"""Words of usages whose double quotes are part of the value, as psql keeps them."""


class Args(list[str]):
    """The arguments; `name` is the name or alias that was typed, `plus` whether it ended in +."""

    name: str = ""
    options: Sequence[str] = ()
    """What stood in brackets before them, `NAME=VALUE` each."""

    @property
    def plus(self) -> bool:
        return self.name.endswith("+")


Body = Callable[[Port, Args], Awaitable[Effect | None]]


class Command(Struct, frozen=True):
    name: str
    usage: str
    help: str
    body: Body
    aliases: tuple[str, ...] = ()
    group: str = ""
    """The title that `\\?` shows it under."""
    sends: bool = False
    """Whether it sends the statement that is being written."""

    @property
    def summary(self) -> str:
        return self.help.partition("\n")[0]

    def sends_with(self, text: str) -> bool:
        """Whether it sends the statement that is being written when that is the rest of its line."""
        return self.sends and not (text.strip() and self.usage == "[TEXT...]")

    async def run(self, port: Port, text: str, typed: str = "") -> Effect | None:
        """Run it with the rest of its line. Raises UsageError for arguments that the usage does not allow."""
        name = typed or self.name
        args = parse(self.name, self.usage, text, port.variables, foreign=name[0] in ".!" and len(name) > 1)
        args.name = name
        return await self.body(port, args)


def command(
    name: str, usage: str = "", aliases: tuple[str, ...] = (), *, sends: bool = False
) -> Callable[[Body], Command]:
    """Make a command of a coroutine; registering it is up to whoever lists it."""

    def make(body: Body) -> Command:
        return Command(name, usage, inspect.getdoc(body) or "", body, aliases, sends=sends)

    return make


def table(commands: Iterable[Command]) -> Mapping[str, Command]:
    """Commands by name and alias, in order. Two claims on a name are a ValueError."""
    by_name: dict[str, Command] = {}
    for item in commands:
        for name in (item.name, *item.aliases):
            if name in by_name:
                raise ValueError(f"two commands are named \\{name}")
            by_name[name] = item
    return by_name


def find(commands: Mapping[str, Command], name: str) -> Command:
    """The command of that name. Raises UsageError with the nearest names."""
    if name in commands:
        return commands[name]
    if _COMBINED.fullmatch(name) and len(set(name)) == len(name):
        return commands["dt"]
    if name in ABSENT:
        raise UsageError(f"there is no command {_shown(name)}", ABSENT[name])
    import difflib

    near = [_shown(word) for word in difflib.get_close_matches(name, commands, 3)]
    hint = f"did you mean {' or '.join(near)}?" if near else "\\? lists the commands"
    raise UsageError(f"there is no command {_shown(name)}", hint)


def _shown(name: str) -> str:
    """A command's name as it is typed: those of other shells have no backslash."""
    return name if name[:1] in {".", "!"} and len(name) > 1 else f"\\{name}"


def parse(name: str, usage: str, text: str, values: Mapping[str, str], *, foreign: bool = False) -> Args:
    """The arguments in `text` by `usage`, with the values of variables. Raises UsageError that shows the usage.

    Those of a `foreign` command, `.print` or `!print`, have no double quotes left.
    """
    hint = f"usage: \\{name} {usage}".rstrip()
    wanted = usage.split()
    last = wanted[-1].strip("[]") if wanted else ""
    text = text.strip()
    options: list[str] = []
    if wanted[:1] == [OPTIONS]:
        wanted = wanted[1:]
        if text.startswith("("):
            options, text = _options(text, values, hint)
    whole = last == "TEXT..." or (last == "FILE..." and text.startswith("|"))
    if whole and len(wanted) == 1:
        if not text and not wanted[-1].startswith("["):
            raise UsageError(f"\\{name} needs {wanted[-1]}", hint)
        return _args([text] if text else [], options)
    try:
        given = _words(text, values, quotes=not foreign and not KEEP_QUOTES.isdisjoint(usage.split()))
    except UsageError as error:
        raise UsageError(f"\\{name}: {error.message}", error.hint or hint) from None
    if len(given) > len(wanted) and not (last.endswith("...") and last != "FILE..."):
        extra = given[len(wanted)]
        raise UsageError(f"\\{name} does not take {extra!r}", hint)
    if given and given[-1].endswith(";") and not last.endswith("..."):
        # A ; that hands are used to type.
        given = [word for word in [*given[:-1], given[-1].rstrip(";")] if word]
    required = [word for word in wanted if not word.startswith("[")]
    if len(given) < len(required):
        raise UsageError(f"\\{name} needs {required[len(given)].removesuffix('...')}", hint)
    for word, said in zip(wanted, given, strict=False):
        choices = word.strip("[]").split("|")
        if len(choices) > 1 and said not in choices:
            raise UsageError(f"\\{name}: {said!r} is not one of {', '.join(choices)}", hint)
    return _args(given, options)


def _args(given: list[str], options: Sequence[str]) -> Args:
    args = Args(given)
    args.options = options
    return args


def _options(text: str, values: Mapping[str, str], hint: str) -> tuple[list[str], str]:
    """The words in the brackets that a text begins with, and what is behind them."""
    found = _BRACKETS.match(text)
    if found is None:
        raise UsageError(f"a bracket is not closed: {text[:40]}", hint)
    return _words(found[1], values, quotes=False), text[found.end() :].strip()


def _words(text: str, values: Mapping[str, str], *, quotes: bool) -> list[str]:
    if not any(char in text for char in "'\"`:"):
        return text.split()
    from sqlshell.shell.lexing import words

    return words(text, values, quotes=quotes)
