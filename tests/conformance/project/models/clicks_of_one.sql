{{ config(materialized='stream', tags=['continuous'], parameters={'value.format': 'json'}) }}
select id, what from {{ ref('clicks') }} where id = 1
