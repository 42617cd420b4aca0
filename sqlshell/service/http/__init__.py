"""Connections and their limits, and the endpoints: authorization, bodies, responses, data plane, legacy interface."""
