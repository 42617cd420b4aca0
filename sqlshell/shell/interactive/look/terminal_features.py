"""The capabilities of a terminal beyond the common escape sequences, decided by the variables that it sets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO

from sqlshell.output.text.cells import printable
from sqlshell.runtime.files import expanded

_TERMINALS_WITH_PROGRESS = frozenset({"WezTerm", "ghostty"})
_TERMINALS_WITH_LINKS = frozenset(
    {"WezTerm", "ghostty", "iTerm.app", "vscode", "Hyper", "terminology", "rio", "WarpTerminal"}
)
_TERMS_WITH_LINKS = frozenset({"xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"})
_VTE_WITH_LINKS = 5000


def draws(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether escape sequences can be written to a stream."""
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


def shows_progress(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal shows progress in its tab or task bar (OSC 9;4). Others would show a notification."""
    if _multiplexed(environ):
        return False
    return (
        "WT_SESSION" in environ
        or environ.get("ConEmuANSI") == "ON"
        or environ.get("TERM_PROGRAM") in _TERMINALS_WITH_PROGRESS
        # The feature P of iTerm2, which announces its features since before it had this one.
        or (environ.get("TERM_PROGRAM") == "iTerm.app" and _has_feature(environ.get("TERM_FEATURES", ""), "P"))
    )


def shows_links(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal shows links (OSC 8)."""
    if _multiplexed(environ):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        "WT_SESSION" in environ
        or "KONSOLE_VERSION" in environ
        or environ.get("TERM_PROGRAM") in _TERMINALS_WITH_LINKS
        or environ.get("TERM") in _TERMS_WITH_LINKS
        or (vte.isdecimal() and int(vte) >= _VTE_WITH_LINKS)
    )


def progress_report(state: str) -> str:
    """The sequence for a progress of the terminal: `4;1;PERCENT`, `4;3` if it is unknown, `4;0` to remove it."""
    return f"\x1b]9;{state}\x1b\\"


def with_file_link(text: str, file: str) -> str:
    """A text that is safe to print, in which the name of a file is a link to it (OSC 8)."""
    name, address = printable(file), expanded(file).absolute().as_uri()
    return text.replace(name, f"\x1b]8;;{address}\x1b\\{name}\x1b]8;;\x1b\\", 1)


def _multiplexed(environ: Mapping[str, str]) -> bool:
    """Whether a program between us and the terminal would have to pass sequences on."""
    return "TMUX" in environ or "STY" in environ or environ.get("TERM", "").startswith(("screen", "tmux"))


def _has_feature(features: str, code: str) -> bool:
    """Whether a code such as `P` or `Cw` is in iTerm2's list of features: a capital letter, small letters, a number."""
    return code in re.findall(r"[A-Z][a-z]*", features)
