"""Commands that upload and download files, and show the service's version."""

from __future__ import annotations

from sqlshell.errors import UsageError
from sqlshell.origin import EMPTY
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.running.attachments import download_path
from sqlshell.text import format_count
from sqlshell.version import __version__


@command("attach", "[FILE]", changes="text")
async def attach(shell: CommandShell, args: Args) -> None:
    """Attach a file to the next statement that names it: 'file' = 'NAME'. Without an argument, list the files.

    \\attach - detaches all files. A statement can also name the path itself: 'file' = '@path/NAME'."""
    if args and args[0] == "-":
        shell.say(f"{format_count(shell.attachments.clear(), 'file')} detached")
    elif args:
        added = shell.attachments.add(args.trusted(0))
        size = format_count(added.size, "byte")
        shell.say(f"{added.path} ({size}) is attached to the next statement that names {added.name!r}")
    else:
        waiting = shell.attachments.waiting
        shell.say(
            "\n".join(f"  {file.path} ({format_count(file.size, 'byte')})" for file in waiting) or "no file is attached"
        )


@command("download", "TYPE NAME [FILE] [--force]")
async def download(shell: CommandShell, args: Args) -> None:
    """Download a resource of the service. TYPE is function_source or descriptor_source; FILE may be a directory.

    The file appears under its name when it is complete. An interrupted download is resumed.
    An existing file is overwritten only with --force."""
    more = [args.trusted(number) for number in range(2, len(args))]
    force = "--force" in more
    rest = [item for item in more if item != "--force"]
    if len(rest) > 1:
        raise UsageError(f"\\download: unexpected argument {rest[1]!r}", "usage: \\download TYPE NAME [FILE] [--force]")
    place = download_path(args.trusted(1), rest[0] if rest else EMPTY)
    done = await shell.service.download(
        args[0], args[1], place, shell.session.context, force=force, progress=shell.statement_runner.show_progress
    )
    checked = "verified" if done.checked else "not verified: the service sent no checksum"
    resumed = f", resumed after {format_count(done.resumed, 'byte')}" if done.resumed else ""
    shell.say(f"{done.path}: {format_count(done.size, 'byte')}{resumed}, SHA-256 {done.sha256} ({checked})")


@command("version")
async def version(shell: CommandShell, args: Args) -> None:
    """Show the versions of the shell and of the service."""
    shell.say(f"sqlshell {__version__}\n{shell.session.target}: service {await shell.service.version()}")
