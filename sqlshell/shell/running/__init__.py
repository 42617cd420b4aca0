"""Running a statement: policy, attachments, waiting, background statements, repetition, error reports."""
