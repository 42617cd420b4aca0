"""The colors of values: by their type, with every other group of three digits dimmed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sqlshell.interface.types import Kind
from sqlshell.output.text.nesting import is_nested
from sqlshell.output.writer import Role
from sqlshell.output.writers.styles import BAR
from sqlshell.result import Column

RESET = "\x0e"
"""A control character that stands for the end of a color until the text is encoded, as BAR does for a bar."""
_CODE = re.compile("([\x0e-\x1f])")
_ROLES: tuple[Role, ...] = ("header", "null", "changed", "border", "dim", "digits", "negative", "boolean", "date", "id")
UNGROUPED = 4
"""Numbers of up to this many digits are not grouped: years, small ids."""

QUIET = "quiet"
"""The display hint of a column that is dim: the types in a description."""

_IDENTIFIER = re.compile(
    r"(?:.*[\W_])?(?:id|ids|pid|oid|key|pk|fk|no|nr|year|zip|plz|phone|fax|isbn|ean|sku|port|version|hash|seed)"
    r"|\w*(?:code|uuid)|.*[a-z](?:Id|ID|Key|No|Nr|Year|Zip|Code)"
)
"""Names of columns whose numbers are not quantities: nobody reads them by thousands."""

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_WHOLE = re.compile(r"( *[+-]?)(\d+)(.*)", re.DOTALL)
_STRING = re.compile(r'("(?:[^"\\]|\\.)*+")(:)?|\bnull\b')
"""A string of a nested value, and the colon that makes it a name; or a null."""
_SPECIAL_NUMBER = re.compile("[eEay]")
"""A number in a form of its own: 1e+20, NaN, Infinity."""
_SAMPLED = 20
"""Values that are looked at to find out whether a column has ids."""


class ValueColors:
    """Colors printable texts with `paint`; without it, texts are not changed.

    Until encoded(), one control character stands for each escape sequence and for the `bar` between cells: printable
    texts have none, and short texts of ASCII characters are put together several times faster.
    """

    def __init__(self, paint: Callable[[str, Role], str] | None, bar: str = "|") -> None:
        self._paint = paint
        self._codes: dict[Role, str] = {}
        self._sequences: list[tuple[bytes, bytes]] = []
        if paint is not None:
            chars = (chr(code) for code in range(0x0F, 0x20) if code != 0x1B)
            ends = {RESET: "\x1b[0m"}
            for role in _ROLES:
                begin = paint("\0", role).partition("\0")[0]
                if begin:
                    self._codes[role] = char = next(chars)
                    ends[char] = begin
            self._sequences = [(char.encode(), sequence.encode()) for char, sequence in ends.items()]
            bar = paint(bar, "border")
        self._sequences.append((BAR.encode(), bar.encode()))

    def encoded(self, text: str) -> bytes:
        """The bytes of a text with its escape sequences."""
        data = text.encode("utf-8", "replace")
        for char, sequence in self._sequences:
            data = data.replace(char, sequence)
        return data

    def parts(self, text: str) -> Iterator[tuple[Role | None, str]]:
        """The parts of a colored text, each with its role, where a screen is not drawn by escape sequences."""
        roles = {code: role for role, code in self._codes.items()}
        role: Role | None = None
        for part in _CODE.split(text):
            if _CODE.fullmatch(part):
                role = roles.get(part)
            elif part:
                yield role, part

    def code(self, role: Role) -> str:
        """The escape sequence that begins a role; "" if the role has no color."""
        return self._codes.get(role, "")

    def painted(self, text: str, role: Role) -> str:
        code = self.code(role)
        return f"{code}{text}{RESET}" if code else text

    def numbers(self, texts: Sequence[str], fraction: int, digits: int) -> list[str]:
        """Numbers of one width, each with its decimal point `fraction` cells before the end. `digits` is the number of
        digits of the largest one before the point."""
        if self._paint is None:
            return list(texts)
        grouped, dim = digits > UNGROUPED, self.code("digits")
        joined = "".join(texts)
        if grouped and dim and digits <= 9 and not _SPECIAL_NUMBER.search(joined):
            # Every number has its groups at the same distance from its end. The leading one of the largest is bright.
            end = len(texts[0]) - fraction - (0 if digits <= 6 else 3)
            begin = end - 3
            done = [
                text if text[begin - 1] in " -+" else f"{text[:begin]}{dim}{text[begin:end]}{RESET}{text[end:]}"
                for text in texts
            ]
        elif grouped and dim:
            done = [self.number(text, grouped=True, digits=digits) for text in texts]
        else:
            done = list(texts)
        if "-" in joined:
            for number, text in enumerate(texts):
                if "-" in text:
                    done[number] = self.number(text, grouped=grouped, digits=digits)
        return done

    def number(self, text: str, *, grouped: bool = True, digits: int = 0) -> str:
        """One number, possibly with spaces around it. `digits` are those of the largest number of its column."""
        match = _WHOLE.fullmatch(text)
        if self._paint is None or match is None:
            return text
        lead, whole, rest = match.groups()
        color = self.code("negative") if "-" in lead else ""
        dim = self.code("digits")
        if grouped and dim and len(whole) > 3:
            first = len(whole) % 3 or 3
            groups = [whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))]
            back = f"{RESET}{color}"
            before = -(-digits // 3) - len(groups) if digits else 0
            whole = "".join(
                f"{dim}{group}{back}" if number and (before + number) % 2 else group
                for number, group in enumerate(groups)
            )
        end = RESET if color else ""
        return f"{color}{lead}{whole}{rest}{end}"

    def names(self, text: str) -> str:
        """Part of a nested value, with the names and nulls in it colored."""

        def colored(match: re.Match[str]) -> str:
            if match[1] is None:
                return self.painted(match[0], "null")
            return f"{self.painted(match[1], 'id')}:" if match[2] else match[0]

        return _STRING.sub(colored, text) if self._codes else text

    def value(self, text: str, value: str | None, column: Column, role: Role | None) -> str:
        """One line of a value, possibly with spaces around it; `role` is that of its column."""
        if value is None:
            return self.painted(text, "null")
        if column.kind.numeric:
            return self.number(text, grouped=whole_digits(text) > UNGROUPED and is_quantity(column))
        if role is None and is_nested(column):
            return self.names(text)
        return self.painted(text, role) if role is not None else text


def role_of(column: Column, values: Sequence[str | None]) -> Role | None:
    """The color that all values of a column share; `values` are the first ones. None if they have none in common."""
    if column.display_hint == QUIET:
        return "dim"
    match column.kind:
        case Kind.BOOLEAN:
            return "boolean"
        case Kind.DATE | Kind.TIME | Kind.TIMESTAMP:
            return "date"
        case Kind.TEXT:
            known = [value for value in values[:_SAMPLED] if value is not None]
            return "id" if known and all(len(value) == 36 and _UUID.fullmatch(value) for value in known) else None
    return None


def is_quantity(column: Column) -> bool:
    """Whether the digits of its numbers are read in groups."""
    name = column.name
    return not (_IDENTIFIER.fullmatch(name.lower()) or _IDENTIFIER.fullmatch(name))


def whole_digits(text: str) -> int:
    """The number of digits before the decimal point."""
    match = _WHOLE.fullmatch(text)
    return len(match[2]) if match is not None else 0
