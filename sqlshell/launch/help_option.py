"""A command whose --help is described as the other options are."""

from __future__ import annotations

import click


class WithHelp(click.Command):
    """A command of click whose own text for --help is replaced."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this help and exit"
        return option
