"""A submission with the analyzed statement."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import Submission
from sqlshell.sql.analysis.lexed import Lexed


class LexedSubmission(Submission, frozen=True, kw_only=True):
    """A submission; `statement` is its text with what has been learned of it."""

    statement: Lexed


def submission_of(
    statement: Lexed,
    attachments: Sequence[Attachment] = (),
    row_limit: int | None = None,
    *,
    repeatable: bool = False,
    ending: str = "",
) -> LexedSubmission:
    return LexedSubmission(statement.text, attachments, row_limit, repeatable, ending, statement=statement)
