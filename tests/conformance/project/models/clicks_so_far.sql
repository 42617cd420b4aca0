{{ config(materialized='materialized_view', tags=['continuous']) }}
select what, count(*) as n from {{ ref('clicks') }} group by what
