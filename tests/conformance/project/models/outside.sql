{{ config(materialized='store', parameters={
  'type': 'files', 'uri': env_var('CONFORMANCE_FOLDER'), 'writable': true}) }}
