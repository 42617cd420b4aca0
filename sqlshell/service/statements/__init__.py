"""A statement from submission to its end: splitting, removal of secrets, queueing, execution, cancellation, the ledger."""
