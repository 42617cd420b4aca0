"""The mutation sampler finds the changes that it should, and the names in its configuration exist."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mutants.__main__ import AREAS, EXPLAINED, ROOT, explained
from tests.mutants.changes import changes, sample

SOURCE = b'''"""Words about it."""
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    never = 1
Kind = Literal["a", "b"]
LIMIT = 10
class Gate:
    """What it is."""
    async def check(self, given: "str", most: int = 3) -> int:
        assert given != "a"
        if given in "abc" and not self.open:
            raise ValueError("not a sentence that tests hold")
        for one in given:
            await self.tell(one)
            self.last = one
            if one == "\xc3\xa9":
                continue
        return len([x for x in given if x < "m"]) or 2.5
'''


def test_what_is_changed(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_bytes(SOURCE)
    found = changes(tmp_path, [tmp_path / "gate.py"])
    assert {(change.kind, change.after) for change in found} == {
        ("constant changed", "LIMIT = 11"),
        ("constant changed", 'async def check(self, given: "str", most: int = 4) -> int:'),
        ("condition turned", "if (not (given in 'abc' and (not self.open))):"),
        ("boolean operator changed", "if (given in 'abc' or not self.open):"),
        ("comparison changed", "if given not in 'abc' and not self.open:"),
        ("constant changed", "if given in 'abcX' and not self.open:"),
        ("not dropped", 'if given in "abc" and (self.open):'),
        ("raise deleted", "pass"),
        ("awaited call deleted", "pass"),
        ("assignment deleted", "pass"),
        ("condition turned", "if (not (one == 'é')):"),
        ("comparison changed", "if one != 'é':"),
        ("constant changed", "if one == 'éX':"),
        ("jump deleted", "pass"),
        ("return value dropped", "return None"),
        ("boolean operator changed", "return (len([x for x in given if x < 'm']) and 2.5)"),
        ("condition turned", "return len([x for x in given if (not (x < 'm'))]) or 2.5"),
        ("comparison changed", "return len([x for x in given if x <= 'm']) or 2.5"),
        ("constant changed", "return len([x for x in given if x < 'mX']) or 2.5"),
    }
    for change in found:
        assert ast.dump(ast.parse(change.made(SOURCE))) != ast.dump(ast.parse(SOURCE))
        assert change.scope == ("" if "LIMIT" in change.after else "Gate" if "def" in change.after else "Gate.check")


def test_a_sample_has_each_kind_and_comes_again(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_bytes(SOURCE)
    found = changes(tmp_path, [tmp_path / "gate.py"])
    kinds = {change.kind for change in found}
    first = sample(found, 1, len(kinds))
    assert {change.kind for change in first} == kinds
    assert first == sample(list(reversed(found)), 1, len(kinds)) == sample(found, 1, len(found))[: len(kinds)]
    assert first != sample(found, 2, len(kinds))
    assert len(sample(found, 1, 1000)) == len(found)


def test_every_area_is_there() -> None:
    for packages, folders in AREAS.values():
        assert all((ROOT / "sqlshell" / name).is_dir() for name in packages)
        assert all((ROOT / "tests" / name).is_dir() for name in folders)


def test_what_is_explained_has_a_reason() -> None:
    assert EXPLAINED.read_text().count("[[survivor]]") == len(explained())
    assert all(explained().values())
