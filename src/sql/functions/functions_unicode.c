/* Functions on code points: their numbers, their case, normal forms, and bytes made into text. */
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/work.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { FIRST_SURROGATE = 0xd800, LAST_SURROGATE = 0xdfff, REPLACEMENT = 0xfffd };

/* --- numbers --- */

static bool is_code_point(int64_t code)
{
    return code >= 0 && code <= UTF8_LAST && (code < FIRST_SURROGATE || code > LAST_SURROGATE);
}

static status unicode(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    size_t at = 0;
    *out = sql_of_int64(args[0].text.size == 0 ? 0 : utf8_next(args[0].text, &at));
    return status_ok();
}

static status append_code_point(struct buffer *out, int64_t code)
{
    if (!is_code_point(code))
        return status_make(STATUS_OUT_OF_RANGE, "Invalid codepoint %lld", (long long)code);
    utf8_append(out, (uint32_t)code);
    return status_ok();
}

static status chr(const struct sql_call *call, const struct sql_value *args, size_t count,
                  struct sql_value *out)
{
    (void)count;
    struct buffer text = {.budget = call->session->budget};
    if (args[0].int64 != 0) /* no character */
        TRY(append_code_point(&text, args[0].int64));
    return text_result(call, &text, out);
}

static bool has_null(const struct sql_value *array)
{
    for (size_t i = 0; i < array->count; i++)
        if (array->items[i].is_null)
            return true;
    return false;
}

static status code_points_to_bytes(const struct sql_call *call, const struct sql_value *args,
                                   size_t count, struct sql_value *out)
{
    (void)count;
    const struct sql_value *codes = &args[0];
    uint8_t *result = arena_alloc(call->arena, codes->count);
    if (result == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < codes->count; i++) {
        int64_t code = codes->items[i].is_null ? 0 : codes->items[i].int64;
        if (code < 0 || code > UINT8_MAX)
            return status_make(STATUS_OUT_OF_RANGE, "Invalid extended ASCII code point %lld",
                               (long long)code);
        result[i] = (uint8_t)code;
    }
    *out = has_null(codes) ? sql_null() : sql_of_text(bytes_make(result, codes->count));
    return status_ok();
}

static status code_points_to_string(const struct sql_call *call, const struct sql_value *args,
                                    size_t count, struct sql_value *out)
{
    (void)count;
    struct buffer text = {.budget = call->session->budget};
    status result = status_ok();
    for (size_t i = 0; i < args[0].count && status_is_ok(result); i++)
        if (!args[0].items[i].is_null)
            result = append_code_point(&text, args[0].items[i].int64);
    if (status_is_ok(result))
        result = text_result(call, &text, out);
    buffer_free(&text);
    if (status_is_ok(result) && has_null(&args[0]))
        *out = sql_null();
    return result;
}

static status to_code_points(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text;
    bool by_character = text_has_characters(call);
    size_t length = text_length(text, by_character), at = 0;
    struct sql_value *items = arena_alloc(call->arena, length * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < length; i++)
        items[i] = sql_of_int64(by_character ? utf8_next(text, &at) : text.data[at++]);
    *out = sql_of_items(items, length);
    return status_ok();
}

/* --- case: of BYTES, that of ASCII --- */

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(uint8_t c)
{
    return c >= 'A' && c <= 'Z';
}

enum { MOST_OF_ONE = 4 }; /* code points that one becomes */

/* What the case folding of one code point is, which is its small form in full ("ß" is "ss"). */
static size_t fold(uint32_t code, utf8proc_int32_t folded[MOST_OF_ONE])
{
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)code, folded, MOST_OF_ONE,
                                                     UTF8PROC_CASEFOLD, &boundary);
    return count < 0 || count > MOST_OF_ONE ? 0 : (size_t)count;
}

/* A letter without a single capital has that of its folding: "ß" becomes "SS". */
static void append_upper(struct buffer *out, uint32_t code)
{
    utf8proc_int32_t folded[MOST_OF_ONE];
    size_t count =
        utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_LU ? 1 : fold(code, folded);
    if (count < 2) {
        utf8_append(out, (uint32_t)utf8proc_toupper((utf8proc_int32_t)code));
        return;
    }
    for (size_t i = 0; i < count; i++)
        utf8_append(out, (uint32_t)utf8proc_toupper(folded[i]));
}

enum { CAPITAL_DOTTED_I = 0x130, DOT_ABOVE = 0x307, CAPITAL_SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2 };

static void append_lower(struct buffer *out, uint32_t code)
{
    utf8_append(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
    if (code == CAPITAL_DOTTED_I)
        utf8_append(out, DOT_ABOVE);
}

static bool is_letter(uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

static bool is_before_letter(bytes text, size_t at)
{
    return at < text.size && is_letter(utf8_next(text, &at));
}

/* The one letter whose small form depends on its place: a sigma at the end of a word. */
static void append_all_lower(struct buffer *out, bytes text)
{
    bool is_within_word = false;
    for (size_t at = 0; at < text.size;) {
        uint32_t code = utf8_next(text, &at);
        if (code == CAPITAL_SIGMA && is_within_word && !is_before_letter(text, at))
            utf8_append(out, FINAL_SIGMA);
        else
            append_lower(out, code);
        is_within_word = is_letter(code);
    }
}

static status change_bytes(const struct sql_call *call, bytes text, bool changes(uint8_t c),
                           struct sql_value *out)
{
    uint8_t *changed = arena_alloc(call->arena, text.size);
    if (changed == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < text.size; i++)
        changed[i] = changes(text.data[i]) ? text.data[i] ^ ('a' ^ 'A') : text.data[i];
    *out = sql_of_text(bytes_make(changed, text.size));
    return status_ok();
}

static status lower(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)count;
    struct buffer text = {.budget = call->session->budget};
    if (!text_has_characters(call))
        return change_bytes(call, args[0].text, is_upper, out);
    append_all_lower(&text, args[0].text);
    return text_result(call, &text, out);
}

static status upper(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    (void)count;
    struct buffer text = {.budget = call->session->budget};
    if (!text_has_characters(call))
        return change_bytes(call, args[0].text, is_lower, out);
    for (size_t at = 0; at < args[0].text.size;)
        append_upper(&text, utf8_next(args[0].text, &at));
    return text_result(call, &text, out);
}

static bool is_among(uint32_t code, bytes set)
{
    for (size_t at = 0; at < set.size;)
        if (utf8_next(set, &at) == code)
            return true;
    return false;
}

static status initcap(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    bytes text = args[0].text;
    bytes delimiters =
        count > 1 ? args[1].text : bytes_of(" \t\n\v\f\r[](){}/|\\<>!?@\"^#$&~_,.:;*%+-");
    struct buffer result = {.budget = call->session->budget};
    bool is_first = true;
    for (size_t at = 0; at < text.size;) {
        uint32_t code = utf8_next(text, &at);
        if (is_first)
            utf8_append(&result, (uint32_t)utf8proc_totitle((utf8proc_int32_t)code));
        else
            append_lower(&result, code);
        is_first = is_among(code, delimiters);
    }
    return text_result(call, &result, out);
}

/* --- normal forms --- */

/* Marks that follow each other are put in order one by one: it takes the square of their number. */
static status count_marks(const struct sql_call *call, bytes text)
{
    enum { MOVES_A_STEP = 32 };
    uint64_t marks = 0;
    for (size_t at = 0; at < text.size;) {
        utf8proc_int32_t code = (utf8proc_int32_t)utf8_next(text, &at);
        marks = utf8proc_get_property(code)->combining_class == 0 ? 0 : marks + 1;
        TRY(sql_count(call->session, marks / MOVES_A_STEP));
    }
    return status_ok();
}

/* The code points in the form that the options ask for. */
static status normalize_text(const struct sql_call *call, bytes text, int64_t form, int options,
                             struct sql_value *out)
{
    utf8proc_uint8_t *result = NULL;
    bool composes = form == SQL_PART_NFC || form == SQL_PART_NFKC;
    bool is_compatible = form == SQL_PART_NFKC || form == SQL_PART_NFKD;
    options |= UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
               (is_compatible ? UTF8PROC_COMPAT : 0);
    *out = sql_of_text(text);
    if (text.size == 0)
        return status_ok();
    TRY(count_marks(call, text));
    utf8proc_ssize_t size =
        utf8proc_map(text.data, (utf8proc_ssize_t)text.size, &result, (utf8proc_option_t)options);
    if (size < 0)
        return status_out_of_memory(); /* the text is UTF-8 */
    *out = sql_of_text(arena_copy(call->arena, bytes_make(result, (size_t)size)));
    free(result);
    return out->text.data == NULL ? status_out_of_memory() : status_ok();
}

static status normalize(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    return normalize_text(call, args[0].text, count > 1 ? args[1].int64 : SQL_PART_NFC, 0, out);
}

static status normalize_and_casefold(const struct sql_call *call, const struct sql_value *args,
                                     size_t count, struct sql_value *out)
{
    return normalize_text(call, args[0].text, count > 1 ? args[1].int64 : SQL_PART_NFC,
                          UTF8PROC_CASEFOLD, out);
}

/* --- bytes as text --- */

/* The size of the valid code point at the start of `text`, which is not empty; 0: there is none. */
static size_t valid_size(bytes text)
{
    for (size_t size = 1; size <= 4 && size <= text.size; size++)
        if (utf8_is_valid(text_slice(text, 0, size)))
            return size;
    return 0;
}

static status safe_convert(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text;
    struct buffer result = {.budget = call->session->budget};
    for (size_t at = 0; at < text.size;) {
        size_t size = valid_size(bytes_from(text, at));
        if (size == 0)
            utf8_append(&result, REPLACEMENT);
        else
            buffer_append(&result, text.data + at, size);
        at += size == 0 ? 1 : size;
    }
    return text_result(call, &result, out);
}

const struct sql_function sql_unicode_functions[] = {
    {"UNICODE", "INT64(STRING)", unicode},
    {"CHR", "STRING(INT64)", chr},
    {"CODE_POINTS_TO_BYTES", "BYTES(ARRAY<INT64>)", code_points_to_bytes},
    {"CODE_POINTS_TO_STRING", "STRING(ARRAY<INT64>)", code_points_to_string},
    {"TO_CODE_POINTS", "ARRAY<INT64>(STRING)", to_code_points},
    {"TO_CODE_POINTS", "ARRAY<INT64>(BYTES)", to_code_points},
    {"LOWER", "STRING(STRING)", lower},
    {"LOWER", "BYTES(BYTES)", lower},
    {"UPPER", "STRING(STRING)", upper},
    {"UPPER", "BYTES(BYTES)", upper},
    {"INITCAP", "STRING(STRING, [STRING])", initcap},
    {"NORMALIZE", "STRING(STRING, [PART])", normalize},
    {"NORMALIZE_AND_CASEFOLD", "STRING(STRING, [PART])", normalize_and_casefold},
    {"SAFE_CONVERT_BYTES_TO_STRING", "STRING(BYTES)", safe_convert},
    {0},
};
