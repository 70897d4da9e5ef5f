/* All functions there are: the tables of the files that have them. */
#include "sql/functions/function_tables.h"

const struct sql_function *const *sql_function_tables(size_t *count)
{
    static const struct sql_function *const tables[] = {
        sql_arithmetic_functions, sql_array_functions,        sql_comparison_functions,
        sql_conversion_functions, sql_date_functions,         sql_datetime_format_functions,
        sql_encoding_functions,   sql_format_functions,       sql_hll_functions,
        sql_json_functions,       sql_map_functions,          sql_math_functions,
        sql_regexp_functions,     sql_rounding_functions,     sql_search_functions,
        sql_string_functions,     sql_subscript_functions,    sql_text_functions,
        sql_timestamp_functions,  sql_trigonometry_functions, sql_unicode_functions,
        sql_vector_functions,
    };
    *count = sizeof tables / sizeof *tables;
    return tables;
}

const struct sql_aggregate *const *sql_aggregate_tables(size_t *count)
{
    static const struct sql_aggregate *const tables[] = {
        sql_approx_aggregates,
        sql_basic_aggregates,
        sql_hll_aggregates,
        sql_list_aggregates,
    };
    *count = sizeof tables / sizeof *tables;
    return tables;
}
