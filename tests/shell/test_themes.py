"""Themes are legible and complete, and errors in a theme are clear."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles

from sqlshell.errors import UsageError
from sqlshell.shell.interactive.look.paint import PROMPT, SAMPLE, previews, sgr
from sqlshell.shell.interactive.look.themes import TOKENS, UI, load, names, read

MEASURED = [name for name in names() if load(name).canvas.startswith("#")]
"""The themes with colors of their own; those of `terminal` are the terminal's."""


def luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", MEASURED)
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


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_selected_in_a_menu_stands_out(name: str) -> None:
    theme = load(name)
    style = merge_styles([default_ui_style(), theme.style()])
    for part in ("completion", "meta.completion"):
        usual = style.get_attrs_for_style_str(f"class:completion-menu.{part}")
        current = style.get_attrs_for_style_str(f"class:completion-menu.{part}.current")
        assert not usual.reverse
        assert not current.reverse
        assert contrast(f"#{current.bgcolor}", f"#{usual.bgcolor}") >= 3
        assert contrast(f"#{current.bgcolor}", theme.canvas) >= 1.7
        assert contrast(f"#{current.color}", f"#{current.bgcolor}") >= 4.5


@pytest.mark.parametrize("name", MEASURED)
def test_statements_in_the_menu_of_the_history_are_legible(name: str) -> None:
    theme = load(name)
    style = merge_styles([default_ui_style(), theme.style()])
    selected = style.get_attrs_for_style_str("class:completion-menu.completion.current")
    for kind in ["", *(f"class:pygments.{kind.lower()} bold" for kinds in TOKENS.values() for kind in kinds)]:
        entry = style.get_attrs_for_style_str(f"class:completion-menu.completion class:entry {kind}")
        assert not entry.bgcolor
        assert not entry.color or contrast(f"#{entry.color}", theme.canvas) >= 4.5
        for row in ("class:completion-menu.completion class:hit", "class:completion-menu.completion.current class:hit"):
            hit = style.get_attrs_for_style_str(f"{row} {kind}")
            assert (hit.color, hit.bgcolor, hit.reverse) == (selected.color, selected.bgcolor, False)


@pytest.mark.parametrize(
    "part", ["selected", "search", "matching-bracket.cursor", "matching-bracket.other", "aborting", "exiting"]
)
@pytest.mark.parametrize("name", MEASURED)
def test_no_background_of_prompt_toolkit_is_left(name: str, part: str) -> None:
    theme = load(name)
    found = merge_styles([default_ui_style(), theme.style()]).get_attrs_for_style_str(f"class:{part}")
    assert not found.reverse
    ground = found.bgcolor not in {None, "", "default"}
    assert contrast(f"#{found.color}", f"#{found.bgcolor}" if ground else theme.canvas) >= 4.5
    assert (part == "selected") == ground


# Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency (2009),
# severity 1.0, for linear RGB.
VISIONS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def seen(color: str, vision: str) -> tuple[float, float, float]:
    """A color in OKLab, in which equal distances look equal, as it appears to a person."""
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in VISIONS[vision]
    )
    cones = (
        0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue,
        0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue,
        0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue,
    )
    long, middle, short = (cone ** (1 / 3) for cone in cones)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("vision", VISIONS)
def test_values_and_messages_are_told_apart_by_everyone(name: str, vision: str) -> None:
    """A distance of 0.02 is the least that a person notices in neighboring areas."""
    theme = load(name)
    values = [theme.tokens["name"], *(theme.ui[role] for role in ("dim", "negative", "boolean", "date", "id"))]
    messages = [theme.ui[role] for role in ("error", "warning", "help")]
    for looks, least in ((values, 0.07), (messages, 0.05)):
        for one, other in itertools.combinations([seen(look.split()[0], vision) for look in looks], 2):
            assert math.dist(one, other) >= least


@pytest.mark.parametrize("name", MEASURED)
def test_dim_digits_differ_from_others(name: str) -> None:
    theme = load(name)
    assert math.dist(seen(theme.tokens["name"], "full"), seen(theme.ui["digits"], "full")) >= 0.08


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


@pytest.mark.parametrize("width", [30, 78, 98])
def test_a_line_for_each_theme_fits_the_screen_and_has_whole_words(width: int) -> None:
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in previews(None, 256, width)]
    assert {len(line) <= width for line in lines} == {True}
    for line in lines:
        begun = line[20 + len(PROMPT) :]
        assert SAMPLE.startswith(begun)
        assert not re.search(r"[\w.'\"]\|[\w.'\"]", f"{begun}|{SAMPLE[len(begun) :]}"), line
    assert {len(line) for line in previews(None, 0)} == {len(lines[0][:20]) + len(PROMPT + SAMPLE)}


def test_a_theme_of_the_terminals_own_colors() -> None:
    theme = load("terminal")
    assert (set(theme.tokens), set(theme.ui)) == (set(TOKENS), set(UI))
    assert theme.style().style_rules
    for colors in (16, 256, 1 << 24):
        assert sgr(theme.ui["menu_current"], colors) == "\x1b[30;46m"
        assert sgr(theme.ui["dim"], colors) == "\x1b[90m"
        assert sgr(f"bg:{theme.canvas}", colors) == "\x1b[49m"
