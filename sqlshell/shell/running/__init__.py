"""Running a statement: attachments, waiting, background statements, repetition, error reports."""
