{{ config(materialized='database') }}
