"""Named queries, stored in queries.toml of the config directory, which users may edit."""

from __future__ import annotations

import itertools
import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sqlshell.errors import UsageError, reason
from sqlshell.origin import Own, Text, joined, own_text
from sqlshell.spelling import did_you_mean
from sqlshell.sql.analysis.secrets import redacted
from sqlshell.sql.analysis.tokens import tokens

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class SavedQueries:
    """Texts by name. The file is read each time, because other shells may change it."""

    def __init__(self, path: Path, redact: Callable[[str], str] = redacted) -> None:
        self._path = path
        self._redact = redact

    def all(self) -> dict[str, str]:
        """All queries. Raises UsageError if the file cannot be read."""
        try:
            found = tomllib.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"cannot read {self._path}: {reason(error)}") from None
        return {name: text for name, text in found.items() if isinstance(text, str)}

    def save(self, name: str, text: str) -> None:
        """Save a query. Raises UsageError for an invalid name, a text with a secret, or an unwritable file."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid query name",
                "a name consists of letters, digits, _ . and -",
            )
        if self._redact(text) != text:
            raise UsageError(
                "the statement may contain a secret, which would be saved in a file",
                "use variables instead of its values, such as password = :'new_password'",
            )
        self._write(self.all() | {name: text})

    def delete(self, name: str) -> None:
        """Delete a query. Raises UsageError if there is none with this name."""
        self._write({known: text for known, text in self.all().items() if known != name} if self.text(name) else {})

    def text(self, name: str) -> Own:
        """The text of a query. Raises UsageError if there is none with this name."""
        known = self.all()
        if name not in known:
            raise UsageError(f"no named query {name!r}", did_you_mean(name, known, "\\n lists the queries"))
        return Own(known[name])

    def _write(self, queries: dict[str, str]) -> None:
        lines = [f"{json.dumps(name)} = {_quoted(text)}" for name, text in sorted(queries.items())]
        try:
            content = "\n".join([*lines, ""]).encode()
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
            part.write_bytes(content)
            part.replace(self._path)
        except (OSError, UnicodeEncodeError) as error:
            raise UsageError(f"cannot write {self._path}: {reason(error)}") from None


def with_arguments(text: Own, arguments: Sequence[Text]) -> Text:
    """The text with its arguments substituted for `$1` and so on, outside of strings. Raises UsageError for too few or
    too many.
    """
    made: list[Text] = []
    done, most = 0, 0
    found = list(tokens(text))
    for sign, number in itertools.pairwise(found):
        if sign.text != "$" or number.kind != "number" or number.start != sign.end or not number.text.isdecimal():
            continue
        at = int(number.text)
        if not 1 <= at <= len(arguments):
            raise UsageError(f"the query uses ${at}, but got {len(arguments)} arguments", text)
        most = max(most, at)
        made += [own_text(Own(text[done : sign.start])), arguments[at - 1]]
        done = number.end
    if most < len(arguments):
        raise UsageError(f"the query expects {most} arguments, but got {len(arguments)}", text)
    return joined([*made, own_text(Own(text[done:]))])


def _quoted(text: str) -> str:
    """A TOML string, with line breaks if possible."""
    plain = all(char.isprintable() or char in "\n\t" for char in text)
    if plain and "\n" in text and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    # TOML refuses one character more than JSON does.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
