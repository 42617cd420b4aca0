{{ config(materialized='stream', parameters={'topic': 'clicks', 'value.format': 'json', 'topic.partitions': 1}) }}
