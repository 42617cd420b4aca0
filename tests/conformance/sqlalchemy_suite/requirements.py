"""What the dialect supports of what SQLAlchemy's tests ask for; the rest has SQLAlchemy's own defaults."""

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

NAMES = "DuckDB does not keep the names of constraints"
UNORDERED = "the test expects an order of rows without asking for it, which DuckDB does not give"

OPEN = """
    autocommit isolation_level schemas views temp_table_names temporary_views comment_reflection ctes
    update_returning delete_returning window_functions array_type json_type regexp_match regexp_replace unicode_ddl
    datetime_timezone timestamp_microseconds datetime_historic date_historic
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits infinity_floats
    bound_limit_offset sql_expression_limit_offset tuple_in empty_inserts duplicate_key_raises_integrity_error
    uuid_data_type unique_constraint_reflection check_constraint_reflection table_reflection index_reflection
    standalone_null_binds_whereclause intersect except_
    ctes_with_values ctes_with_update_delete window_range_non_numeric nullsordering
    boolean_col_expressions reflect_indexes_with_expressions
    datetime_interval datetime_literals update_from delete_from supports_distinct_on
    supports_bitwise_or supports_bitwise_and supports_bitwise_not supports_bitwise_xor supports_bitwise_shift
    server_defaults expression_server_defaults aggregate_order_by order_by_label_with_expression
    create_table_as create_temp_table_as create_or_replace_view inline_check_constraint_reflection
    computed_columns computed_columns_virtual table_value_constructor has_temp_table schema_create_delete
    temp_table_comment_reflection comment_reflection_full_unicode table_ddl_if_exists index_ddl_if_exists
    default_schema_name_switch mod_operator_as_percent_sign percent_schema_names
    indexes_with_expressions nvarchar_types datetime_timezone_historic unicode_data
"""

CLOSED = {
    "implements_get_lastrowid": "RETURNING gives the keys",
    "cross_schema_fk_reflection": "DuckDB has no foreign keys between schemas",
    "on_update_cascade": "DuckDB has no actions of foreign keys",
    "self_referential_foreign_keys": "DuckDB refuses to delete rows that such a key refers to",
    "ctes_on_dml": "DuckDB has WITH behind INSERT only",
    "time_timezone": "the interface has no TIME with a zone",
    "precision_numerics_enotation_small": "a DECIMAL has 38 digits",
    "precision_numerics_enotation_large": "a DECIMAL has 38 digits",
    "window_range": UNORDERED,
    "window_range_numeric": UNORDERED,
    "fetch_first": "DuckDB has LIMIT",
    "foreign_key_constraint_name_reflection": NAMES,
    "reflects_pk_names": NAMES,
    "named_constraints": NAMES,
    "implicitly_named_constraints": "constraints are listed in the order of their definition, not of their names",
}

_opened: Any = exclusions.open
_closed: Any = exclusions.closed
# SQLAlchemy's decorators extend the exclusion that they are given, so each use of an open one gets its own.
Requirements = type(
    "Requirements",
    (SuiteRequirements,),
    {name: property(lambda _: _opened()) for name in OPEN.split()}
    | {name: _closed(reason) for name, reason in CLOSED.items()},
)
