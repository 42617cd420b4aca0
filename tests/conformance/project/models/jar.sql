{{ config(materialized='function_source', parameters={'file': 'files/lib.jar', 'description': 'functions'}) }}
