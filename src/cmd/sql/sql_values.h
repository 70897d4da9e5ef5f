/* Values of a result, as they come over the wire, in words. */
#ifndef TRESTLE_CMD_SQL_SQL_VALUES_H
#define TRESTLE_CMD_SQL_SQL_VALUES_H

#include "base/status.h"
#include "google/bigtable/v2/data.pb-c.h"

/* INTERNAL unless the value, NULL included, and all in it are of the type, and dates and times are
 * of the years 1 to 9999. The functions below are for values that are. */
status shell_value_check(const Bt__Type *type, const Bt__Value *value);

static inline bool shell_value_is_null(const Bt__Value *value)
{
    return value->kind_case == BT__VALUE__KIND__NOT_SET;
}

bool shell_type_is_number(const Bt__Type *type);

/* "ARRAY<STRUCT<a INT64, b STRING>>" */
void shell_type_append(struct buffer *out, const Bt__Type *type);

/* Text without what would upset a terminal: signs that are not to be seen become escapes, and then
 * backslashes are doubled. */
void shell_text_append(struct buffer *out, bytes text);

/* For a column of a table or of CSV: texts as they are, dates and times as CAST writes them, what
 * has parts as one would write it in a query. BYTES are text if they can be, else they have \x
 * escapes. `for_terminal`: as shell_text_append. The value is not NULL. */
void shell_value_append_text(struct buffer *out, const Bt__Type *type, const Bt__Value *value,
                             bool for_terminal);

/* Appends the value as JSON: INT64 beyond 2^53 as strings, and NaN and infinities; BYTES as strings
 * if they are UTF-8, else {"base64": "…"}, or as a key of a map "base64:…"; structs and maps as
 * objects. */
void shell_value_append_json(struct buffer *out, const Bt__Type *type, const Bt__Value *value);

#endif
