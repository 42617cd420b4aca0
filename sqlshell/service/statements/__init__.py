"""A statement from submission to its end: splitting, redaction, queueing, execution, cancellation, storage."""
