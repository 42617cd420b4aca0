"""Themes: legible, complete, and clear about what is wrong in one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlshell.errors import UsageError
from sqlshell.shell.interactive.look.themes import TOKENS, UI, load, names, read


def luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", names())
def test_each_theme_is_legible_and_complete(name: str) -> None:
    theme = load(name)
    assert set(theme.tokens) == set(TOKENS)
    assert set(theme.ui) == set(UI)
    for look in [*theme.tokens.values(), *theme.ui.values()]:
        background = re.search(r"bg:(#\w+)", look)
        text = re.search(r"(?<!bg:)#\w+", look)
        assert text is not None
        assert contrast(text[0], background[1] if background else theme.canvas) >= 4.5, look
    assert theme.style().style_rules


def test_there_are_light_and_dark_ones() -> None:
    backgrounds = [load(name).background for name in names()]
    assert len(backgrounds) >= 4
    assert backgrounds.count("light") >= 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("background = 'dark'\ncanvas = '#000000'\n[tokens]\nkeyword = 'reddish'", "keyword = 'reddish'"),
        ("background = 'dark'\ncanvas = '#000000'\n[tokens]\nkeywrd = '#ffffff'", "keywrd"),
        ("background = 'grey'\ncanvas = '#000000'", "dark or light"),
        ("background = 'dark'\ncanvas = 'black'", "canvas"),
        ("background = 'dark", "end of document"),
        ("more = 1", "more"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(path)
    assert "mine.toml" in caught.value.message
    assert words in caught.value.message


def test_a_persons_own_theme_comes_first(tmp_path: Path) -> None:
    tmp_path.joinpath("paper.toml").write_text("background = 'dark'\ncanvas = '#000000'")
    assert load("paper", tmp_path).background == "dark"
    with pytest.raises(UsageError) as caught:
        load("papr", tmp_path)
    assert "paper" in caught.value.hint
