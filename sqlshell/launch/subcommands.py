"""The names of the subcommands, and what each does."""

from __future__ import annotations

SUBCOMMANDS = {
    "serve": "run the local service for other programs",
    "fetch": "show the result of an earlier statement",
    "import": "load a file into a table",
    "export": "write the result of a statement to a file",
    "replay": "run a transcript again and print every difference",
    "download": "download a resource of the service to a file",
    "config": "list, show, check, create or edit profiles",
    "doctor": "check the installation and the connection",
    "completion": "print a script that completes the command line in bash, zsh or fish",
    "version": "print the version; with --server also the service's",
}
