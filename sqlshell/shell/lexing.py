"""The arguments of a backslash command, by psql's rules.

Blanks separate; what is in 'single quotes' stands as it is, with `''` and C's escapes; "double quotes" hold blanks
together; `:x`, `:'x'`, `:"x"` and `:{?x}` are values of variables, never split; in `backticks` stands a command of the
person's shell, whose output it is.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from sqlshell.errors import UsageError, reason
from sqlshell.sql.variables import REFERENCE, filled

_PART: Final = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]++)|'(?P<single>(?:[^'\\]++|\\.|'')*+)'|"(?P<double>[^"]*+)"|`(?P<shell>[^`]*+)`"""
    r"""|(?P<bare>[^ \t\r\n\f\v'"`:]++|:)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)|''", re.DOTALL)
_NAMED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

Runner = Callable[[str], str]


def words(text: str, values: Mapping[str, str], run: Runner | None = None, *, quotes: bool = False) -> list[str]:
    """The words of a command's line; with `quotes` the double quotes stay, as part of a name or of SQL.

    Raises UsageError for a quote that is not closed and a command that fails.
    """
    found: list[str] = []
    current: list[str] | None = None
    position = 0
    while position < len(text):
        reference = REFERENCE.match(text, position)
        value = filled(reference, values) if reference else None
        if reference and value is not None:
            current = [*(current or []), value]
            position = reference.end()
            continue
        part = _PART.match(text, position)
        if part is None:
            raise UsageError(f"a quote is not closed: {text[position : position + 40]}")
        position = part.end()
        if part["blank"] is not None:
            if current is not None:
                found.append("".join(current))
            current = None
            continue
        said = _said(part, values, run or output_of)
        current = [*(current or []), f'"{said}"' if quotes and part["double"] is not None else said]
    return found if current is None else [*found, "".join(current)]


def output_of(command: str) -> str:
    """What a command of the person's shell prints, without its last line end. Raises UsageError when it fails."""
    try:
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"the command {command!r} cannot be started: {reason(error)}") from None
    if done.returncode:
        raise UsageError(
            f"the command {command!r} ended with code {done.returncode}",
            "a command that ends in ; true succeeds, and what it wrote is taken",
        )
    text = done.stdout.decode("utf-8", "replace")
    return text.removesuffix("\n").removesuffix("\r")


def _said(part: re.Match[str], values: Mapping[str, str], run: Runner) -> str:
    if part["single"] is not None:
        return _ESCAPE.sub(_unescaped, part["single"])
    if part["double"] is not None:
        return part["double"]
    if part["shell"] is not None:
        return run(REFERENCE.sub(lambda found: _for_shell(found, values), part["shell"]))
    return part["bare"]


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code is None:
        return "'"
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8) & 0xFF) if code[0] in "01234567" else _NAMED.get(code, code)


def _for_shell(found: re.Match[str], values: Mapping[str, str]) -> str:
    """A variable inside of backticks; in quotes it is one word of the shell."""
    import shlex

    plain, string = found[1], found[2]
    if string is not None and string in values:
        return shlex.quote(values[string])
    return values.get(plain, found[0]) if plain is not None else found[0]
