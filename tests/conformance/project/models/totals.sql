{{ config(materialized='materialized_view') }}
select count(*) as n, sum(amount) as amount from {{ ref('orders') }}
