"""The rights of roles."""

from __future__ import annotations

import enum


class Rights(enum.IntEnum):
    """The rights of a role; each value includes the smaller ones."""

    READ = 1
    DATA = 2
    OBJECTS = 3

    @property
    def role(self) -> str:
        """The name of the role with these rights."""
        return {Rights.READ: "reader", Rights.DATA: "writer", Rights.OBJECTS: "owner"}[self]
