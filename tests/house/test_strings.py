"""The list of strings for people is complete."""

from __future__ import annotations

from tests.strings import comments, docstrings, strings

SOURCE = '''
"""What a module is for."""

LIMIT = 3
"""How many."""

@command("x", "NAME")
async def do(port, args):
    """Do it.

    Twice."""
    # Once is not enough.
    if not args:
        raise UsageError("nope", f"usage: {' or '.join(args)} is {'not ' if port else ''}{args!r} " + why + " here")
    items.update({"kind": "several words", "pattern": re.compile(r"^a b\\s+")})
    return Say("done") or option("--flag", help="short")
'''


def test_the_list_of_strings() -> None:
    found = [(item.line, item.where, item.text) for item in strings("a.py", SOURCE)]
    assert found == [
        (9, "help of do", "'Do it.\\n\\nTwice.'"),
        (14, "UsageError", "'nope'"),
        (14, "UsageError", "'usage: {…} is {…}{…} {…} here'"),
        (15, "update", "'several words'"),
        (16, "Say", "'done'"),
        (16, "option help=", "'short'"),
    ]


def test_docstrings_and_comments() -> None:
    assert [item.text for item in docstrings("a.py", SOURCE)] == ["What a module is for.", "How many.", "Do it."]
    assert [item.text for item in comments("a.py", SOURCE)] == ["Once is not enough."]
