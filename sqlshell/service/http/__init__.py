"""The endpoints: authorization, request bodies, responses, partitions, the data plane, the legacy interface."""
