{{ config(materialized='compute_pool', parameters={'compute_pool.size': 'small', 'compute_pool.timeout_min': 5}) }}
