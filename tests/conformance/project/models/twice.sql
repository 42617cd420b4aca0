-- depends_on: {{ ref('jar') }}
{{ config(materialized='function', tags=['once'], parameters={
  'args': [{'name': 'x', 'type': 'BIGINT'}], 'returns': 'BIGINT', 'language': 'JAVA',
  'source.name': 'jar', 'class.name': 'org.example.Twice'}) }}
