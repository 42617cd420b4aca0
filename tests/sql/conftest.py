"""Scripts are split in two ways: token by token, and by the pattern of a whole statement if much text is left."""

from __future__ import annotations

import pytest

from sqlshell.sql.script import scanner


@pytest.fixture(scope="module", params=["by steps", "by the pattern"])
def both_ways(request: pytest.FixtureRequest) -> None:
    """Short texts are read in each of the two ways."""
    if request.param == "by the pattern":
        patch = pytest.MonkeyPatch()
        patch.setattr(scanner, "STEPPED", -1)
        request.addfinalizer(patch.undo)
