"""A statement from submission to its end: queueing, execution, cancellation, the ledger."""
