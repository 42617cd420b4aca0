{{ config(materialized='incremental', tags=['incremental']) }}
select 1 as id
