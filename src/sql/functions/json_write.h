/* JSON, written: texts without what is not needed, and SQL's values. */
#ifndef TRESTLE_SQL_FUNCTIONS_JSON_WRITE_H
#define TRESTLE_SQL_FUNCTIONS_JSON_WRITE_H

#include "sql/value.h"
#include "wire/json_text.h"

/* Appends a string in quotes, escaped as far as it must be. */
void json_append_string(struct buffer *out, bytes text);

/* The value that comes next, without white space: numbers as they stand there, strings unescaped
 * and escaped again, members in their order. The text is valid JSON, except perhaps its escapes:
 * false if one stands for nothing. */
bool json_append_compact(struct buffer *out, struct json_reader *reader);

/* As TO_JSON_STRING has it. `is_pretty`: over several lines, indented by two blanks.
 * OUT_OF_RANGE for a proto. */
status json_append_value(struct buffer *out, const struct sql_type *type,
                         const struct sql_value *value, bool is_pretty);

#endif
