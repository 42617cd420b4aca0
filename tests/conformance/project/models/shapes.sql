{{ config(materialized='descriptor_source', parameters={'file': 'files/shapes.desc'}) }}
