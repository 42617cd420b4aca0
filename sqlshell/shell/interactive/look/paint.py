"""A theme's styles as escape sequences, for output outside of prompt_toolkit: tables and previews."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

if TYPE_CHECKING:
    from prompt_toolkit.output import ColorDepth

from sqlshell.output.writer import Role
from sqlshell.runtime.streams import forces_colors
from sqlshell.shell.interactive.look.themes import ANSI, TOKENS, Theme, load, names

SAMPLE = "select name, count(*) as n from \"Orders\" where total > 12.5 and note = 'paid' -- each customer"
PROMPT = "> "
RESET = "\x1b[0m"
_ATTRIBUTES = {"bold": "1", "italic": "3", "underline": "4"}
_INSTEAD = {"dim": "continuation", "border": "continuation", "digits": "continuation", "warning": "search"}
"""The part whose color is used if a theme has none for a part."""
LEAST_WHITE = 200
"""The least component of a gray that is white in 16 colors."""
_LEVELS = (0, 95, 135, 175, 215, 255)


def depth(environ: Mapping[str, str]) -> int:
    """The number of colors of the terminal: 0, 16, 256 or 1 << 24. With NO_COLOR or a dumb terminal it is 0, unless
    colors are forced.
    """
    term = environ.get("TERM", "dumb")
    if (environ.get("NO_COLOR") or term == "dumb") and not forces_colors(environ):
        return 0
    if environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"} or "direct" in term:
        return 1 << 24
    return 256 if "256" in term else 16


def sgr(style: str, colors: int) -> str:
    """The escape sequence of a style such as `#ffcc00 bg:#003355 bold`; "" without colors."""
    codes = []
    for part in style.split():
        if part in _ATTRIBUTES:
            codes.append(_ATTRIBUTES[part])
        elif colors:
            ground, color = (48, part[3:]) if part.startswith("bg:") else (38, part)
            codes.append(_color(color, ground, colors))
    return f"\x1b[{';'.join(codes)}m" if codes and colors else ""


def painter(theme: Theme, colors: int) -> Callable[[str, Role], str] | None:
    """A function that colors tables and messages; None without colors."""
    looks = {
        name: sgr(theme.ui.get(name) or theme.ui.get(_INSTEAD.get(name, ""), ""), colors) for name in get_args(Role)
    }
    if not any(looks.values()):
        return None
    looks["changed"] = "\x1b[7m"
    if colors == 16:
        # Groups of digits would be as dim as what surrounds the data.
        looks["digits"] = ""

    def paint(text: str, role: Role) -> str:
        if role == "sql":
            return "".join(_colored(text, theme, colors))
        look = looks[role]
        return f"{look}{text}{RESET}" if look else text

    return paint


def part_painter(theme: Theme, colors: int) -> Callable[[str, str], str]:
    """A function that colors a text like a part of the screen, a key of [ui]; without colors it changes nothing."""

    def paint(text: str, part: str) -> str:
        look = sgr(theme.ui.get(part) or theme.ui.get(_INSTEAD.get(part, ""), ""), colors)
        return f"{look}{text}{RESET}" if look else text

    return paint


def preview(theme: Theme, colors: int, width: int = 0) -> str:
    """A sample statement in the colors of a theme, on its background; whole words of it in `width` cells, unless that
    is 0.
    """
    left = max(0, width - len(PROMPT)) if width else len(SAMPLE)
    cut = SAMPLE if left >= len(SAMPLE) else SAMPLE[: left + 1].rpartition(" ")[0]
    canvas = sgr(f"bg:{theme.canvas}", colors)
    prompt = sgr(theme.ui.get("prompt", ""), colors)
    return f"{canvas}{prompt}{PROMPT}{RESET if colors else ''}{''.join(_colored(cut, theme, colors, canvas))}"


def _colored(sql: str, theme: Theme, colors: int, canvas: str = "") -> Iterator[str]:
    """The words of a text in SQL, colored."""
    from sqlshell.sql.lexer import SqlshellLexer

    by_kind = {kind: look for name, look in theme.tokens.items() for kind in TOKENS[name]}
    for _, kind, text in SqlshellLexer().get_tokens_unprocessed(sql):
        name = str(kind).removeprefix("Token.")
        while name and name not in by_kind:
            name = name.rpartition(".")[0]
        look = f"{canvas}{sgr(by_kind.get(name, theme.tokens.get('name', '')), colors)}"
        yield f"{look}{text}{RESET if look else ''}"


def previews(own: Path | None, colors: int, width: int = 0) -> Iterator[str]:
    """A line for each theme, of at most `width` cells unless that is 0. Raises UsageError for a broken theme file."""
    for name in names(own):
        theme = load(name, own)
        title = f"{name.ljust(12)} {theme.background.ljust(6)} "
        yield f"{title}{preview(theme, colors, max(len(PROMPT), width - len(title)) if width else 0)}"


def color_depth() -> int:
    return depth(os.environ)


def screen_depth() -> ColorDepth | None:
    """The color depth for prompt_toolkit; None to let it detect the depth."""
    from prompt_toolkit.output import ColorDepth

    return ColorDepth.from_env() or (ColorDepth.TRUE_COLOR if color_depth() > 256 else None)


def _color(text: str, ground: int, colors: int) -> str:
    if text in ANSI:
        return str(ANSI[text] + ground - 38)
    red, green, blue = (int(text[at : at + 2], 16) for at in (1, 3, 5))
    if colors > 256:
        return f"{ground};2;{red};{green};{blue}"
    if colors == 256:
        steps = [_nearest(part) for part in (red, green, blue)]
        return f"{ground};5;{16 + 36 * steps[0] + 6 * steps[1] + steps[2]}"
    bright = max(red, green, blue) > 160
    bits = sum(
        1 << at for at, part in enumerate((red, green, blue)) if part > max(red, green, blue) * 0.6 and part > 60
    )
    if bits == 7 and max(red, green, blue) < LEAST_WHITE:
        # Bright black: white would be brighter than the data that it stands beside.
        return str(ground - 8 + 60)
    return str(bits + (ground - 8) + (60 if bright else 0))


def _nearest(part: int) -> int:
    """The component of the 6 × 6 × 6 color cube that is nearest to a component of a color."""
    distances = [abs(level - part) for level in _LEVELS]
    return distances.index(min(distances))
