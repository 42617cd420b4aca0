"""Reads the column list of a stream."""

from __future__ import annotations

from sqlshell.service.dialect.tokens import END, SIGN, Tokens, TooMany


def without_key(text: str) -> tuple[str, list[str]]:
    """A parenthesized column list without its PRIMARY KEY, and the columns of that key."""
    tokens = Tokens(text)
    kept: list[str] = []
    key: list[str] = []
    try:
        pieces = _pieces(tokens)
    except TooMany:
        return text, []
    for numbers in pieces:
        start, end = tokens[numbers[0]].start, tokens[numbers[-1]].end
        primary = next((at for at in numbers if tokens[at].upper == "PRIMARY" and tokens[at + 1].upper == "KEY"), None)
        if primary is None:
            kept.append(text[start:end])
        elif primary == numbers[0]:
            key += [part for at in numbers[2:] for part in tokens.dotted(at, 1)[0]]
        else:
            key += tokens.dotted(numbers[0], 1)[0]
            kept.append(text[start : tokens[primary].start] + text[tokens[primary + 1].end : end])
    return (f"({', '.join(kept)})", key) if key else (text, [])


def first_words(text: str) -> set[str]:
    """The first words, in lower case, of the columns in a parenthesized list: their names, unless they are quoted."""
    tokens = Tokens(text)
    try:
        return {tokens[numbers[0]].value.lower() for numbers in _pieces(tokens) if numbers}
    except TooMany:
        return set()


def _pieces(tokens: Tokens) -> list[list[int]]:
    """The numbers of the tokens of each column or constraint."""
    pieces: list[list[int]] = [[]]
    depth, at = 0, 1
    while (token := tokens[at]).kind != END:
        if token.kind == SIGN:
            depth += (token.value in "(<") - (token.value in ")>")
        if depth < 0:
            return [piece for piece in pieces if piece]
        if depth == 0 and token.kind == SIGN and token.value == ",":
            pieces.append([])
        else:
            pieces[-1].append(at)
        at += 1
    return []
