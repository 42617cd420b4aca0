"""Themes: TOML files in `themes/` of a checkout or a wheel, and in the user's config directory."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlshell.errors import UsageError, reason
from sqlshell.text import did_you_mean

if TYPE_CHECKING:
    from prompt_toolkit.styles import BaseStyle

DEFAULT = "default"
LIGHT = "paper"
"""The theme for a light terminal if none is selected."""
TOKENS = {
    "keyword": ("Keyword", "Keyword.Constant", "Operator.Word"),
    "type": ("Keyword.Type",),
    "function": ("Name.Function", "Name.Builtin"),
    "string": ("Literal.String", "Literal.String.Single", "Literal.String.Other"),
    "quoted": ("Literal.String.Symbol", "Literal.String.Name", "Name.Variable"),
    "number": ("Literal.Number", "Literal.Number.Integer", "Literal.Number.Float"),
    "comment": ("Comment", "Comment.Single", "Comment.Multiline"),
    "operator": ("Operator", "Punctuation"),
    "name": ("Name",),
    "command": ("Name.Decorator",),
}
UI = {
    "prompt": "prompt",
    "continuation": "continuation",
    "toolbar": "bottom-toolbar",
    "suggestion": "auto-suggestion",
    "selection": "selected",
    "search": "search",
    "spinner": "spinner",
    "null": "null",
    "header": "header",
    "error": "error",
    "menu": "completion-menu.completion",
    "menu_current": "completion-menu.completion.current",
    "menu_meta": "completion-menu.meta.completion",
    "match": "matching-bracket.cursor",
    "border": "border",
    "dim": "dim",
    "digits": "digits",
    "negative": "negative",
    "boolean": "boolean",
    "date": "date",
    "id": "id",
    "warning": "warning",
    "help": "help",
}
NAMED = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
"""The terminal's own colors in the order of their codes; prompt_toolkit has `ansi` before them, or `ansibright`."""
ANSI = {f"ansi{name}": 30 + at for at, name in enumerate(NAMED)} | {"ansidefault": 39, "ansiwhite": 97}
ANSI |= {f"ansibright{name}": 90 + at for at, name in enumerate(NAMED[:-1])}
_COLOR = rf"(?:#[0-9a-fA-F]{{6}}|{'|'.join(ANSI)})"
_LOOK = rf"(?:(?:bg:)?{_COLOR}|bold|italic|underline)"
_STYLE = re.compile(rf"{_LOOK}(?: {_LOOK})*")


class Theme(Struct, frozen=True):
    """One theme. `canvas` is the background that its colors are made for: `#rrggbb`, or `ansidefault` for any."""

    name: str
    background: str
    canvas: str
    tokens: Mapping[str, str]
    ui: Mapping[str, str]

    def style(self, *, colors: bool = True) -> BaseStyle:
        """The theme as a style of prompt_toolkit; without colors, what is selected is reversed."""
        from prompt_toolkit.styles import Style

        rules = {f"pygments.{kind.lower()}": look for name, look in self.tokens.items() for kind in TOKENS[name]} | {
            UI[name]: look for name, look in self.ui.items()
        }
        # prompt_toolkit has backgrounds for these, with which the colors of a theme would not be legible.
        rules |= {
            UI[name]: f"noinherit {self.ui[name]}" for name in ("selection", "search", "match") if name in self.ui
        }
        # Its own gray for input that was canceled is too pale on white.
        rules |= {name: self.ui["suggestion"] for name in ("aborting", "exiting") if "suggestion" in self.ui}
        if "toolbar" in self.ui:
            rules["bottom-toolbar"] = f"noreverse {self.ui['toolbar']}"
        if "match" in self.ui:
            rules["matching-bracket.other"] = rules["matching-bracket.cursor"]
        if "menu" in self.ui:
            rules["completion-menu"] = self.ui["menu"]
            # prompt_toolkit's own scrollbar is made for dark terminals.
            rules["scrollbar.background"] = f"bg:{self.ui['menu'].partition(' bg:')[2]}"
            rules["scrollbar.button"] = f"bg:{self.ui.get('border', self.ui['menu']).split()[0]}"
        if "menu_current" in self.ui:
            # The style of prompt_toolkit swaps its colors, and the background would be that of the terminal.
            current = f"noreverse {self.ui['menu_current']}" if colors else "reverse"
            rules["completion-menu.completion.current"] = rules["completion-menu.meta.completion.current"] = current
            # In the menu of the history, statements look as at the prompt, and the selected one as any selected item.
            rules["entry"] = "noinherit"
            rules["hit"] = current
            rules |= {f"hit {kind}": current for kind in rules if kind.startswith("pygments.")}
        return Style.from_dict(rules)


def folders(own: Path | None) -> Sequence[Path]:
    """The directories with themes: the user's own first, then the wheel's, then the checkout's."""
    package = Path(__file__).parents[3]
    shipped = package / "themes"
    checkout = package.parent / "themes"
    return [folder for folder in (own, shipped, checkout) if folder is not None and folder.is_dir()]


def names(own: Path | None = None) -> list[str]:
    """The names of the available themes."""
    return sorted({path.stem for folder in folders(own) for path in folder.glob("*.toml")})


def load(name: str, own: Path | None = None) -> Theme:
    """The theme with that name. Raises UsageError with similar names, or the file and key of an error."""
    for folder in folders(own):
        path = folder / f"{name}.toml"
        if path.parent == folder and path.is_file():
            return read(path)
    known = names(own)
    raise UsageError(f"unknown theme {name!r}", did_you_mean(name, known, f"themes: {', '.join(known)}", cutoff=0.7))


def read(path: Path) -> Theme:
    """Read a theme file. Raises UsageError that names the file and the line or key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {reason(error)}") from None
    lines = path.read_text(encoding="utf-8").splitlines()

    def at(key: str) -> str:
        number = next(
            (n for n, line in enumerate(lines, 1) if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line)), 0
        )
        return f"{path}:{number}" if number else str(path)

    background, canvas = table.pop("background", ""), table.pop("canvas", "")
    tokens, ui = table.pop("tokens", {}), table.pop("ui", {})
    if table:
        raise UsageError(
            f"{at(next(iter(table)))}: unexpected {', '.join(table)}",
            "a theme consists of background, canvas, [tokens] and [ui]",
        )
    if background not in {"dark", "light"}:
        raise UsageError(f"{at('background')}: background is {background!r}; expected dark or light")
    if not re.fullmatch(_COLOR, str(canvas)):
        raise UsageError(f"{at('canvas')}: canvas is {canvas!r}; expected a color such as #1c1f26")
    for title, given, known in (("tokens", tokens, TOKENS), ("ui", ui, UI)):
        for key, look in given.items():
            if key not in known:
                raise UsageError(f"{at(key)}: [{title}] unknown key {key!r}", f"keys: {', '.join(known)}")
            if not isinstance(look, str) or not _STYLE.fullmatch(look):
                hint = "write it like '#ffcc00', '#ffcc00 bold' or '#ffffff bg:#003355'"
                raise UsageError(f"{at(key)}: [{title}] {key} = {look!r} is not a style", hint)
    return Theme(path.stem, background, canvas, tokens, ui)
