{{ config(materialized='changelog', tags=['continuous']) }}
select what, count(*) as n from {{ ref('clicks') }} group by what
