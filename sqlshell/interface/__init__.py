"""The Statement Execution Service interface as data: what client and service both know of it."""
