/* Functions that measure texts, look into them and take parts of them. What they return is a number
 * or lies within the argument: none needs memory but SPLIT. */
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/work.h"

/* --- sizes --- */

static status byte_length(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64((int64_t)args[0].text.size);
    return status_ok();
}

static status length(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    *out = sql_of_int64((int64_t)text_length(args[0].text, text_has_characters(call)));
    return status_ok();
}

static status ascii(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].text.size == 0 ? 0 : args[0].text.data[0]);
    return out->int64 < 0x80
               ? status_ok()
               : status_make(STATUS_OUT_OF_RANGE,
                             "Non-ASCII character at the beginning of the argument to ASCII()");
}

/* --- searching --- */

static status starts_with(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_bool(bytes_start_with(args[0].text, args[1].text));
    return status_ok();
}

static status ends_with(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    bytes text = args[0].text, end = args[1].text;
    *out = sql_of_bool(text.size >= end.size &&
                       bytes_equal(bytes_from(text, text.size - end.size), end));
    return status_ok();
}

/* The place of a part, counted from 1. */
static struct sql_value position_at(bytes text, size_t at, bool by_character)
{
    return sql_of_int64((int64_t)text_length(text_slice(text, 0, at), by_character) + 1);
}

static status strpos(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    size_t found = text_find(args[0].text, 0, args[1].text);
    *out = found == SIZE_MAX ? sql_of_int64(0)
                             : position_at(args[0].text, found, text_has_characters(call));
    return status_ok();
}

/* An occurrence of a part, for INSTR. */
struct occurrence {
    bytes text;
    bytes part;
    bool by_character;
    struct sql_session *session;
    size_t found; /* SIZE_MAX: there are not so many */
};

/* Occurrences may overlap: the next begins one part further. */
static status find_forward(struct occurrence *find, size_t from, int64_t occurrence)
{
    for (;;) {
        TRY(sql_count(find->session, sql_steps_of_bytes(find->part.size))); /* to begin a search */
        find->found = text_find(find->text, from, find->part);
        if (find->found == SIZE_MAX || --occurrence == 0)
            return status_ok();
        if (find->found >= find->text.size) {
            find->found = SIZE_MAX;
            return status_ok();
        }
        from = find->found + text_part_size(find->text, find->found, find->by_character);
    }
}

static status find_backward(struct occurrence *find, size_t from, int64_t occurrence)
{
    for (;; from = text_back(find->text, from, find->by_character)) {
        TRY(sql_count(find->session, sql_steps_of_bytes(find->part.size)));
        find->found = from;
        if (bytes_start_with(bytes_from(find->text, from), find->part) && --occurrence == 0)
            return status_ok();
        find->found = SIZE_MAX;
        if (from == 0)
            return status_ok();
    }
}

static status find_occurrence(struct occurrence *find, int64_t position, int64_t occurrence)
{
    uint64_t length = text_length(find->text, find->by_character);
    uint64_t distance = position < 0 ? -(uint64_t)position : (uint64_t)position;
    find->found = SIZE_MAX;
    if (distance > length)
        return status_ok();
    size_t from = text_skip(find->text, 0, position > 0 ? distance - 1 : length - distance,
                            find->by_character);
    return position > 0 ? find_forward(find, from, occurrence)
                        : find_backward(find, from, occurrence);
}

static status instr(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    bool by_character = text_has_characters(call);
    int64_t position = count > 2 ? args[2].int64 : 1;
    int64_t occurrence = count > 3 ? args[3].int64 : 1;
    if (position == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Position must be non-zero");
    if (occurrence <= 0)
        return status_make(STATUS_OUT_OF_RANGE, "Occurrence must be positive");
    struct occurrence find = {args[0].text, args[1].text, by_character, call->session, SIZE_MAX};
    TRY(find_occurrence(&find, position, occurrence));
    *out = find.found == SIZE_MAX ? sql_of_int64(0)
                                  : position_at(args[0].text, find.found, by_character);
    return status_ok();
}

/* --- parts --- */

static status left(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)count;
    if (args[1].int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Second argument in LEFT() cannot be negative");
    bytes text = args[0].text;
    size_t end = text_skip(text, 0, (uint64_t)args[1].int64, text_has_characters(call));
    *out = sql_of_text(text_slice(text, 0, end));
    return status_ok();
}

static status right(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)count;
    if (args[1].int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Second argument in RIGHT() cannot be negative");
    bytes text = args[0].text;
    bool by_character = text_has_characters(call);
    uint64_t all = text_length(text, by_character), wanted = (uint64_t)args[1].int64;
    size_t from = wanted >= all ? 0 : text_skip(text, 0, all - wanted, by_character);
    *out = sql_of_text(bytes_from(text, from));
    return status_ok();
}

/* From 1; 0, and what lies before the text, is 1 too; negative: from the end. */
static size_t offset_of_position(bytes text, int64_t position, bool by_character)
{
    if (position >= 0)
        return text_skip(text, 0, position == 0 ? 0 : (uint64_t)position - 1, by_character);
    uint64_t length = text_length(text, by_character), distance = -(uint64_t)position;
    return distance >= length ? 0 : text_skip(text, 0, length - distance, by_character);
}

static status substr(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    if (count > 2 && args[2].int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Third argument in SUBSTR() cannot be negative");
    bytes text = args[0].text;
    bool by_character = text_has_characters(call);
    size_t from = offset_of_position(text, args[1].int64, by_character);
    size_t to =
        count > 2 ? text_skip(text, from, (uint64_t)args[2].int64, by_character) : text.size;
    *out = sql_of_text(text_slice(text, from, to));
    return status_ok();
}

/* --- SPLIT --- */

/* Where the piece that begins at `from` ends: at a delimiter, or after one part if that is empty.
 */
static size_t piece_end(bytes text, size_t from, bytes delimiter, bool by_character)
{
    if (delimiter.size == 0)
        return text_skip(text, from, 1, by_character);
    size_t found = text_find(text, from, delimiter);
    return found == SIZE_MAX ? text.size : found;
}

static size_t count_pieces(bytes text, bytes delimiter, bool by_character)
{
    size_t count = 1;
    for (size_t at = 0; (at = piece_end(text, at, delimiter, by_character)) < text.size; count++)
        at += delimiter.size;
    return count;
}

static status split(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    bool by_character = text_has_characters(call);
    bytes text = args[0].text, delimiter = count > 1 ? args[1].text : bytes_of(",");
    size_t pieces = count_pieces(text, delimiter, by_character), at = 0;
    struct sql_value *items = arena_alloc(call->arena, pieces * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < pieces; i++) {
        size_t end = piece_end(text, at, delimiter, by_character);
        items[i] = sql_of_text(text_slice(text, at, end));
        at = end + delimiter.size;
    }
    *out = sql_of_items(items, pieces);
    return status_ok();
}

const struct sql_function sql_string_functions[] = {
    {"ASCII", "INT64(STRING)", ascii},
    {"ASCII", "INT64(BYTES)", ascii},
    {"BYTE_LENGTH", "INT64(STRING)", byte_length},
    {"BYTE_LENGTH", "INT64(BYTES)", byte_length},
    {"OCTET_LENGTH", "INT64(STRING)", byte_length},
    {"OCTET_LENGTH", "INT64(BYTES)", byte_length},
    {"CHAR_LENGTH", "INT64(STRING)", length},
    {"CHARACTER_LENGTH", "INT64(STRING)", length},
    {"LENGTH", "INT64(STRING)", length},
    {"LENGTH", "INT64(BYTES)", length},
    {"STARTS_WITH", "BOOL(STRING, STRING)", starts_with},
    {"STARTS_WITH", "BOOL(BYTES, BYTES)", starts_with},
    {"ENDS_WITH", "BOOL(STRING, STRING)", ends_with},
    {"ENDS_WITH", "BOOL(BYTES, BYTES)", ends_with},
    {"STRPOS", "INT64(STRING, STRING)", strpos},
    {"STRPOS", "INT64(BYTES, BYTES)", strpos},
    {"INSTR", "INT64(STRING, STRING, [INT64], [INT64])", instr},
    {"INSTR", "INT64(BYTES, BYTES, [INT64], [INT64])", instr},
    {"LEFT", "STRING(STRING, INT64)", left},
    {"LEFT", "BYTES(BYTES, INT64)", left},
    {"RIGHT", "STRING(STRING, INT64)", right},
    {"RIGHT", "BYTES(BYTES, INT64)", right},
    {"SUBSTR", "STRING(STRING, INT64, [INT64])", substr},
    {"SUBSTR", "BYTES(BYTES, INT64, [INT64])", substr},
    {"SUBSTRING", "STRING(STRING, INT64, [INT64])", substr},
    {"SUBSTRING", "BYTES(BYTES, INT64, [INT64])", substr},
    {"SPLIT", "ARRAY<STRING>(STRING, [STRING])", split},
    {"SPLIT", "ARRAY<BYTES>(BYTES, BYTES)", split},
    {0},
};
