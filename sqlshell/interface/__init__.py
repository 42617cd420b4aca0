"""The Statement Execution Service interface as data, shared by client and service."""
