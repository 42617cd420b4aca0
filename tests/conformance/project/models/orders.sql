-- depends_on: {{ ref('orders_file') }}
{{ config(materialized='table') }}
select id, amount from "outside"."orders.jsonl" where amount > 0
