"""The endpoints: authorization, request bodies, responses, the data plane, the legacy interface."""
