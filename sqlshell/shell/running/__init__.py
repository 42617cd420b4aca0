"""Running a statement or a command: attachments, waiting, background statements, repetition, error reports."""
