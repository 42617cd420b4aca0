"""A statement from submission to its end: splitting, redaction, queueing, execution, cancellation, the ledger."""
