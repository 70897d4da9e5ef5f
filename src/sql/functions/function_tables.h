/* The tables of functions, each beside the code that carries it out. Each ends with a row without a
 * name. Private to functions.c and the files that define them. */
#ifndef TRESTLE_SQL_FUNCTIONS_FUNCTION_TABLES_H
#define TRESTLE_SQL_FUNCTIONS_FUNCTION_TABLES_H

#include "sql/function.h"

extern const struct sql_function sql_arithmetic_functions[]; /* + - * / << & … */
extern const struct sql_function sql_array_functions[];      /* ARRAY_LENGTH, GENERATE_ARRAY … */
extern const struct sql_function sql_comparison_functions[]; /* = < IN LIKE IS … */
extern const struct sql_function sql_conversion_functions[]; /* TO_INT64, BIT_COUNT … */
extern const struct sql_function sql_hll_functions[];        /* HLL_COUNT.EXTRACT */
extern const struct sql_function sql_map_functions[];        /* MAP_KEYS … */
extern const struct sql_function sql_math_functions[];       /* ABS, DIV, SQRT … */
extern const struct sql_function sql_rounding_functions[];   /* ROUND, GREATEST, RAND … */
extern const struct sql_function sql_search_functions[];     /* ARRAY_INCLUDES, ARRAY_FILTER … */
extern const struct sql_function sql_subscript_functions[];  /* a[i], m[k] */
extern const struct sql_function sql_encoding_functions[];   /* TO_HEX, FROM_BASE64, MD5, … */
extern const struct sql_function sql_format_functions[];     /* FORMAT */
extern const struct sql_function sql_json_functions[];       /* JSON_QUERY, TO_JSON_STRING, … */
extern const struct sql_function sql_regexp_functions[];     /* REGEXP_… */
extern const struct sql_function sql_trigonometry_functions[]; /* COS, ATAN2 … */
extern const struct sql_function sql_vector_functions[];       /* COSINE_DISTANCE … */
extern const struct sql_function sql_string_functions[];  /* LENGTH, STRPOS, SUBSTR, SPLIT, … */
extern const struct sql_function sql_text_functions[];    /* CONCAT, TRIM, REPLACE, … */
extern const struct sql_function sql_unicode_functions[]; /* CHR, UPPER, NORMALIZE, … */

extern const struct sql_function sql_date_functions[];            /* DATE, DATE_ADD, … */
extern const struct sql_function sql_datetime_format_functions[]; /* FORMAT_DATE, … */
extern const struct sql_function sql_timestamp_functions[]; /* TIMESTAMP, TIMESTAMP_ADD, … */

extern const struct sql_aggregate sql_basic_aggregates[];  /* COUNT, SUM, MIN, … */
extern const struct sql_aggregate sql_list_aggregates[];   /* ARRAY_AGG, STRING_AGG … */
extern const struct sql_aggregate sql_approx_aggregates[]; /* APPROX_QUANTILES … */
extern const struct sql_aggregate sql_hll_aggregates[];    /* HLL_COUNT.INIT … */

#endif
