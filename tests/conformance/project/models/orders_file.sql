-- depends_on: {{ ref('outside') }}
{{ config(materialized='entity', alias='orders.jsonl', parameters={'store': 'outside'}) }}
