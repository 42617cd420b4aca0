{{ config(materialized='schema_registry', parameters={
  'type': 'CONFLUENT', 'uris': env_var('CONFORMANCE_REGISTRY'), 'confluent.username': 'reader'}) }}
