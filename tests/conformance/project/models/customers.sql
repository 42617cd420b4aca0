{{ config(materialized='changelog', primary_key='id', parameters={'topic': 'customers', 'value.format': 'json'}) }}
