"""Suggestions for names that are mistyped."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def nearest(word: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `most` of the known names, the most similar first; upper and lower case count as equal.

    `cutoff` is the least similarity, from 0 to 1.
    """
    import difflib

    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.lower(), name)
    return [names[low] for low in difflib.get_close_matches(word.lower(), names, most, cutoff)]


def did_you_mean(
    word: str,
    known: Iterable[str],
    otherwise: str = "",
    *,
    most: int = 1,
    cutoff: float = 0.6,
    shown: Callable[[str], str] = str,
) -> str:
    """A hint such as `did you mean orders or order_items?`; `otherwise` if no known name is similar."""
    names = nearest(word, known, most, cutoff)
    return f"did you mean {' or '.join(map(shown, names))}?" if names else otherwise
