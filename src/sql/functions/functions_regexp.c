/* Regular expressions: RE2's, of characters in a STRING, of bytes (Latin-1) in BYTES.
 *
 * An expression that is the same for all rows is compiled once (`prepare`). */
#include "base/vector.h"
#include "row/regex.h"
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/work.h"

/* --- compiling --- */

enum groups { GROUPS_ANY, GROUPS_ONE }; /* GROUPS_ONE: at most */

static status compile(const struct sql_call *call, bytes pattern, enum groups groups,
                      struct regex_search **out)
{
    status s = regex_search_compile(pattern, text_has_characters(call), out);
    if (s.code == STATUS_INVALID_ARGUMENT) {
        status words = status_make(STATUS_OUT_OF_RANGE, "Cannot parse regular expression: %s",
                                   status_message(s));
        status_free(s);
        return words;
    }
    TRY(s);
    if (groups == GROUPS_ANY || regex_search_groups(*out) <= 1)
        return status_ok();
    regex_search_destroy(*out);
    return status_make(STATUS_OUT_OF_RANGE,
                       "Regular expressions passed into extraction functions must not have more "
                       "than 1 capturing group");
}

static status prepare(struct sql_call *call, const struct sql_value *const *args,
                      enum groups groups)
{
    struct regex_search *regex = NULL;
    if (args[1] != NULL && !args[1]->is_null)
        TRY(compile(call, args[1]->text, groups, &regex));
    call->prepared = regex;
    return status_ok();
}

static status prepare_any(struct sql_call *call, const struct sql_value *const *args, size_t count)
{
    (void)count;
    return prepare(call, args, GROUPS_ANY);
}

static status prepare_extraction(struct sql_call *call, const struct sql_value *const *args,
                                 size_t count)
{
    (void)count;
    return prepare(call, args, GROUPS_ONE);
}

static void release(void *prepared)
{
    regex_search_destroy(prepared);
}

/* What RE2 takes at worst for a text is the product of its size and the expression's. */
static status check_size(const struct regex_search *regex, bytes text)
{
    enum { MOST_WORK = 1 << 29 };
    if (text.size <= MOST_WORK / (regex_search_size(regex) + 1))
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The regular expression is too large for a text of %zu bytes", text.size);
}

static void return_regex(const struct sql_call *call, struct regex_search *regex)
{
    if (regex != call->prepared)
        regex_search_destroy(regex);
}

/* The expression that was prepared, or one for this row alone. */
static status borrow_regex(const struct sql_call *call, const struct sql_value *args,
                           enum groups groups, struct regex_search **out)
{
    *out = call->prepared;
    if (*out == NULL)
        TRY(compile(call, args[1].text, groups, out));
    status s = check_size(*out, args[0].text);
    if (!status_is_ok(s))
        return_regex(call, *out);
    return s;
}

/* --- one match after the other --- */

struct matches {
    const struct regex_search *regex;
    bytes text;
    bool by_character;
    size_t from;                /* where the next is looked for */
    struct regex_span spans[2]; /* the match, and its group */
};

/* What it takes to look for the next match: it may mean to read all of the text. */
static status count_search(const struct sql_call *call, bytes text, size_t from)
{
    uint64_t size = from < text.size ? text.size - from : 0;
    call->session->is_searching = true;
    status s = sql_work(call->session, sql_steps_of_bytes(size));
    call->session->is_searching = false;
    return s;
}

/* After a match of nothing it goes on one part further. */
static bool next_match(struct matches *matches)
{
    if (matches->from > matches->text.size ||
        !regex_search_find(matches->regex, matches->text, matches->from, matches->spans, 2))
        return false;
    const struct regex_span *match = &matches->spans[0];
    matches->from = match->to;
    if (match->from == match->to)
        matches->from += match->to == matches->text.size
                             ? 1
                             : text_part_size(matches->text, match->to, matches->by_character);
    return true;
}

/* What is extracted: the group, if the expression has one. */
static const struct regex_span *extracted(const struct matches *matches)
{
    return &matches->spans[regex_search_groups(matches->regex) > 0];
}

/* `\C` may end within a character. */
static status check_characters(bytes text, bool by_character)
{
    return !by_character || utf8_is_valid(text)
               ? status_ok()
               : status_make(STATUS_OUT_OF_RANGE, "The regular expression divides a character");
}

/* NULL for a group that took no part. */
static status extracted_text(const struct matches *matches, struct sql_value *out)
{
    const struct regex_span *span = extracted(matches);
    *out = sql_null();
    if (span->from == SIZE_MAX)
        return status_ok();
    *out = sql_of_text(text_slice(matches->text, span->from, span->to));
    return check_characters(out->text, matches->by_character);
}

/* The arguments position and occurrence, which begin at args[2] and may be left out: finds that
 * match. */
static status find_match(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct regex_search *regex, struct matches *matches, bool *found)
{
    int64_t position = count > 2 ? args[2].int64 : 1;
    int64_t occurrence = count > 3 ? args[3].int64 : 1;
    if (position <= 0)
        return status_make(STATUS_OUT_OF_RANGE, "Position must be positive");
    if (occurrence <= 0)
        return status_make(STATUS_OUT_OF_RANGE, "Occurrence must be positive");
    bool by_character = text_has_characters(call);
    *matches = (struct matches){.regex = regex, .text = args[0].text, .by_character = by_character};
    *found = (uint64_t)position - 1 <= text_length(matches->text, by_character);
    if (*found)
        matches->from = text_skip(matches->text, 0, (uint64_t)position - 1, by_character);
    for (; *found && occurrence > 0; occurrence--) {
        TRY(count_search(call, matches->text, matches->from));
        *found = next_match(matches);
    }
    return status_ok();
}

/* --- the functions --- */

static status regexp_contains(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)count;
    struct regex_search *regex;
    TRY(borrow_regex(call, args, GROUPS_ANY, &regex));
    *out = sql_of_bool(regex_search_find(regex, args[0].text, 0, NULL, 0));
    return_regex(call, regex);
    return status_ok();
}

static status regexp_extract(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    struct regex_search *regex;
    struct matches matches;
    bool found;
    TRY(borrow_regex(call, args, GROUPS_ONE, &regex));
    status s = find_match(call, args, count, regex, &matches, &found);
    if (status_is_ok(s) && found)
        s = extracted_text(&matches, out);
    return_regex(call, regex);
    return s;
}

/* Where the match begins, or the part after it if args[4] is 1; 0: there is none. */
static status regexp_instr(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    bool after = count > 4 && args[4].int64 == 1;
    if (count > 4 && !after && args[4].int64 != 0)
        return status_make(STATUS_OUT_OF_RANGE, "Invalid return_position");
    struct regex_search *regex;
    struct matches matches;
    bool found;
    TRY(borrow_regex(call, args, GROUPS_ONE, &regex));
    status s = find_match(call, args, count, regex, &matches, &found);
    *out = sql_of_int64(0);
    if (status_is_ok(s) && found && extracted(&matches)->from != SIZE_MAX) {
        size_t at = after ? extracted(&matches)->to : extracted(&matches)->from;
        bytes before = text_slice(matches.text, 0, at);
        *out = sql_of_int64((int64_t)text_length(before, matches.by_character) + 1);
    }
    return_regex(call, regex);
    return s;
}

/* A group that took no part in a match is the empty text here. */
static status extract_all(const struct sql_call *call, struct matches *matches,
                          struct vector *items)
{
    while (next_match(matches)) {
        struct sql_value value;
        TRY(extracted_text(matches, &value));
        if (value.is_null)
            value = sql_of_text(bytes_make(NULL, 0));
        TRY(vector_add(items, call->arena, &value, sizeof value));
        TRY(count_search(call, matches->text, matches->from));
    }
    return status_ok();
}

static status regexp_extract_all(const struct sql_call *call, const struct sql_value *args,
                                 size_t count, struct sql_value *out)
{
    (void)count;
    struct regex_search *regex;
    struct vector items = {0}; /* of struct sql_value */
    TRY(borrow_regex(call, args, GROUPS_ONE, &regex));
    struct matches matches = {
        .regex = regex, .text = args[0].text, .by_character = text_has_characters(call)};
    status s = extract_all(call, &matches, &items);
    return_regex(call, regex);
    TRY(s);
    *out = sql_of_items(items.items, items.count);
    return status_ok();
}

/* --- REGEXP_REPLACE --- */

static status bad_replacement(const char *why)
{
    return status_make(STATUS_OUT_OF_RANGE, "Invalid REGEXP_REPLACE replacement: %s", why);
}

/* \0 to \9 are groups of the expression, \\ is a backslash. */
static status check_replacement(bytes replacement, size_t groups)
{
    for (size_t i = 0; i < replacement.size; i++) {
        if (replacement.data[i] != '\\')
            continue;
        if (++i == replacement.size)
            return bad_replacement("\\ not allowed at end");
        uint8_t c = replacement.data[i];
        if (c != '\\' && (c < '0' || c > '9'))
            return bad_replacement("\\ must be followed by a digit or \\");
        if (c != '\\' && c - '0' > (int)groups)
            return status_make(STATUS_OUT_OF_RANGE,
                               "Invalid REGEXP_REPLACE replacement: it requests group %d, but the "
                               "regular expression only has %zu",
                               c - '0', groups);
    }
    return status_ok();
}

static void append_replacement(struct buffer *out, bytes replacement, bytes text,
                               const struct regex_span *spans)
{
    for (size_t i = 0; i < replacement.size; i++) {
        bool is_escape = replacement.data[i] == '\\';
        uint8_t c = replacement.data[is_escape ? ++i : i];
        if (!is_escape || c == '\\')
            buffer_append_byte(out, c);
        else if (spans[c - '0'].from != SIZE_MAX)
            buffer_append_bytes(out, text_slice(text, spans[c - '0'].from, spans[c - '0'].to));
    }
}

/* All matches; none that is empty right after another. */
static status replace_all(const struct sql_call *call, const struct regex_search *regex, bytes text,
                          bytes replacement, struct buffer *out)
{
    bool by_character = text_has_characters(call);
    struct regex_span spans[REGEX_MOST_SPANS];
    size_t groups = regex_search_groups(regex), copied = 0, from = 0, last = SIZE_MAX;
    size_t wanted = groups < REGEX_MOST_SPANS - 1 ? groups + 1 : REGEX_MOST_SPANS;
    while (from <= text.size && out->size <= TEXT_LIMIT &&
           regex_search_find(regex, text, from, spans, wanted)) {
        TRY(count_search(call, text, from));
        bool is_empty = spans[0].from == spans[0].to;
        if (!is_empty || spans[0].from != last) {
            buffer_append_bytes(out, text_slice(text, copied, spans[0].from));
            append_replacement(out, replacement, text, spans);
            copied = last = spans[0].to;
        }
        from = spans[0].to;
        if (is_empty)
            from += from == text.size ? 1 : text_part_size(text, from, by_character);
    }
    buffer_append_bytes(out, bytes_from(text, copied));
    return status_ok();
}

static status regexp_replace(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)count;
    bool by_character = text_has_characters(call);
    struct regex_search *regex;
    struct buffer result = {.budget = call->session->budget};
    TRY(borrow_regex(call, args, GROUPS_ANY, &regex));
    status s = check_replacement(args[2].text, regex_search_groups(regex));
    if (status_is_ok(s))
        s = replace_all(call, regex, args[0].text, args[2].text, &result);
    return_regex(call, regex);
    if (!status_is_ok(s)) {
        buffer_free(&result);
        return s;
    }
    TRY(text_result(call, &result, out));
    if (out->text.size > TEXT_LIMIT)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Output of REGEXP_REPLACE exceeds max allowed output size of 1MB");
    return check_characters(out->text, by_character);
}

const struct sql_function sql_regexp_functions[] = {
    {"REGEXP_CONTAINS", "BOOL(STRING, STRING)", regexp_contains, 0, prepare_any, release},
    {"REGEXP_CONTAINS", "BOOL(BYTES, BYTES)", regexp_contains, 0, prepare_any, release},
    {"REGEXP_EXTRACT", "STRING(STRING, STRING, [INT64], [INT64])", regexp_extract, 0,
     prepare_extraction, release},
    {"REGEXP_EXTRACT", "BYTES(BYTES, BYTES, [INT64], [INT64])", regexp_extract, 0,
     prepare_extraction, release},
    {"REGEXP_SUBSTR", "STRING(STRING, STRING, [INT64], [INT64])", regexp_extract, 0,
     prepare_extraction, release},
    {"REGEXP_SUBSTR", "BYTES(BYTES, BYTES, [INT64], [INT64])", regexp_extract, 0,
     prepare_extraction, release},
    {"REGEXP_EXTRACT_ALL", "ARRAY<STRING>(STRING, STRING)", regexp_extract_all, 0,
     prepare_extraction, release},
    {"REGEXP_EXTRACT_ALL", "ARRAY<BYTES>(BYTES, BYTES)", regexp_extract_all, 0, prepare_extraction,
     release},
    {"REGEXP_INSTR", "INT64(STRING, STRING, [INT64], [INT64], [INT64])", regexp_instr, 0,
     prepare_extraction, release},
    {"REGEXP_INSTR", "INT64(BYTES, BYTES, [INT64], [INT64], [INT64])", regexp_instr, 0,
     prepare_extraction, release},
    {"REGEXP_REPLACE", "STRING(STRING, STRING, STRING)", regexp_replace, 0, prepare_any, release},
    {"REGEXP_REPLACE", "BYTES(BYTES, BYTES, BYTES)", regexp_replace, 0, prepare_any, release},
    {0},
};
