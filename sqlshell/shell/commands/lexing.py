"""Splits the arguments of a backslash command by psql's rules.

Blanks separate arguments; 'single quotes' quote text, with `''` and C's escapes; "double quotes" group words;
`:x`, `:'x'`, `:"x"` and `:{?x}` are replaced by values of variables and not split; `backticks` are replaced by the
output of a shell command, in which a value from a service is refused.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from sqlshell.errors import Interrupted, UsageError, reason
from sqlshell.origin import Text, Trusted, joined, trusted_text
from sqlshell.sql.variables import REFERENCE, reference_value

_PART: Final = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]++)|'(?P<single>(?:[^'\\]++|\\.|'')*+)'|"(?P<double>[^"]*+)"|`(?P<shell>[^`]*+)`"""
    r"""|(?P<bare>[^ \t\r\n\f\v'"`:]++|:)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"((?:\\(?:x[0-9A-Fa-f]{1,2}|[0-7]{1,3}))++)|\\(.)|''", re.DOTALL)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

Runner = Callable[[Trusted], str]


def words(
    text: Trusted, values: Mapping[str, Text], run: Runner | None = None, *, quotes: bool = False, strings: bool = False
) -> list[Text]:
    """Split a command's arguments into words.

    `quotes` keeps the double quotes, as part of a name or of SQL; `strings` keeps the single quotes too. Raises
    UsageError for an unterminated quote and for a command in backticks that fails.
    """
    texts: list[Text] = []
    current: list[Text] | None = None
    position = 0
    while position < len(text):
        reference = REFERENCE.match(text, position)
        value = reference_value(reference, values) if reference else None
        if reference:
            # Of a variable that is not set it stays as it is written, with its quotes.
            current = [*(current or []), value if value is not None else trusted_text(Trusted(reference[0]))]
            position = reference.end()
            continue
        part = _PART.match(text, position)
        if part is None:
            raise UsageError(f"unterminated quote: {text[position : position + 40]}")
        position = part.end()
        if part["blank"] is not None:
            if current is not None:
                texts.append(joined(current))
            current = None
            continue
        if strings and part["single"] is not None:
            word = trusted_text(Trusted(part[0]))
        else:
            word = _substituted(part, values, run or output_of, quotes=quotes)
        current = [*(current or []), word]
    return texts if current is None else [*texts, joined(current)]


def commands_in(text: str) -> list[str]:
    """The commands in backticks of a command's arguments, with their backticks."""
    return [part[0] for part in _PART.finditer(text) if part["shell"] is not None]


def quoted_commands(text: Trusted) -> Trusted:
    """A command's arguments, in which each command in backticks is a quoted word with the same text."""

    def quoted(part: re.Match[str]) -> str:
        if part["shell"] is None:
            return part[0]
        return "'" + part[0].replace("\\", "\\\\").replace("'", "''") + "'"

    return Trusted(_PART.sub(quoted, text))


def output_of(command: Trusted) -> str:
    """The output of a shell command without its final line break. Raises UsageError if the command fails, and
    Interrupted if Ctrl-C ends it."""
    try:
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot start the command {command!r}: {reason(error)}") from None
    if done.returncode == -signal.SIGINT:
        raise Interrupted("interrupted")
    if done.returncode:
        raise UsageError(
            f"the command {command!r} failed with exit code {done.returncode}",
            "to use its output anyway, append ; true to the command",
        )
    text = done.stdout.decode("utf-8", "replace")
    return text.removesuffix("\n").removesuffix("\r")


def _substituted(part: re.Match[str], values: Mapping[str, Text], run: Runner, *, quotes: bool) -> Text:
    if part["single"] is not None:
        return trusted_text(Trusted(_ESCAPE.sub(_unescaped, part["single"])))
    if part["double"] is not None:
        return trusted_text(Trusted(f'"{part["double"]}"' if quotes else part["double"]))
    if part["shell"] is not None:
        return trusted_text(Trusted(run(_for_shell(part["shell"], values))))
    return trusted_text(Trusted(part["bare"]))


def _unescaped(match: re.Match[str]) -> str:
    codes, char = match.groups()
    if codes is not None:
        # Each code is a byte, and several may be one character: '\xc3\xa9'.
        numbers = (int(code[1:], 16) if code[0] == "x" else int(code, 8) & 0xFF for code in codes[1:].split("\\"))
        return bytes(numbers).decode("utf-8", "replace")
    return "'" if char is None else _NAMED.get(char, char)


def _for_shell(text: str, values: Mapping[str, Text]) -> Trusted:
    """A shell command with its variables substituted; `:'x'` is quoted for the shell.

    Raises UsageError for a value from a service.
    """
    import shlex

    pieces: list[str] = []
    done = 0
    for match in REFERENCE.finditer(text):
        name = match[1] or match[2]
        if name is None or name not in values:
            continue
        value = values[name].trusted("part of a command in backticks")
        pieces += [text[done : match.start()], value if match[1] is not None else shlex.quote(value)]
        done = match.end()
    return Trusted("".join([*pieces, text[done:]]))
