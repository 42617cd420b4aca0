{{ config(materialized='table', tags=['checked'], contract={'enforced': true}) }}
select id, amount from {{ ref('orders') }}
