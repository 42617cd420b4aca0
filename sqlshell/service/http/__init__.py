"""The endpoints: authorization, request bodies, answers, the data plane, the legacy interface."""
