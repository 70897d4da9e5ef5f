/* Functions that make a new text of others. */
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/work.h"

static status too_long(const char *function)
{
    return status_make(STATUS_OUT_OF_RANGE, "Output of %s exceeds max allowed output size of 1MB",
                       function);
}

static status concat(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += args[i].text.size;
    uint8_t *text = arena_alloc(call->arena, size);
    if (text == NULL)
        return status_out_of_memory();
    *out = sql_of_text(bytes_make(text, size));
    for (size_t i = 0; i < count; text += args[i++].text.size)
        if (args[i].text.size > 0)
            memcpy(text, args[i].text.data, args[i].text.size);
    return status_ok();
}

/* --- repeating --- */

/* The text so many times, not none: each step doubles what there is. */
static void append_times(struct buffer *out, bytes text, uint64_t times)
{
    size_t size = text.size * times;
    if (buffer_reserve(out, size) == NULL)
        return;
    buffer_append_bytes(out, text);
    while (out->size < size)
        buffer_append(out, out->data, out->size < size - out->size ? out->size : size - out->size);
}

static status repeat(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text;
    int64_t times = text.size == 0 && args[1].int64 > 0 ? 0 : args[1].int64;
    if (times < 0)
        return status_make(STATUS_OUT_OF_RANGE, "Second argument in REPEAT cannot be negative");
    if (text.size > 0 && (uint64_t)times > TEXT_LIMIT / text.size)
        return too_long("REPEAT");
    struct buffer result = {.budget = call->session->budget};
    if (times > 0)
        append_times(&result, text, (uint64_t)times);
    return text_result(call, &result, out);
}

/* Appends `length` parts made of the pattern again and again; it is not empty. */
static void append_padding(struct buffer *out, bytes pattern, uint64_t length, bool by_character)
{
    size_t at = 0;
    for (; length > 0 && out->size <= TEXT_LIMIT; length--) {
        size_t size = text_part_size(pattern, at, by_character);
        buffer_append(out, pattern.data + at, size);
        at = at + size == pattern.size ? 0 : at + size;
    }
}

static status pad(const struct sql_call *call, const struct sql_value *args, size_t count,
                  bool on_left, struct sql_value *out)
{
    bool by_character = text_has_characters(call);
    bytes text = args[0].text, pattern = count > 2 ? args[2].text : bytes_of(" ");
    if (args[1].int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Second argument (output size) for LPAD/RPAD cannot be negative");
    if (pattern.size == 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "Third argument (pad pattern) for LPAD/RPAD cannot be empty");
    uint64_t wanted = (uint64_t)args[1].int64, length = text_length(text, by_character);
    struct buffer result = {.budget = call->session->budget};
    if (!on_left || wanted <= length)
        buffer_append_bytes(&result, text_slice(text, 0, text_skip(text, 0, wanted, by_character)));
    if (wanted > length) {
        append_padding(&result, pattern, wanted - length, by_character);
        if (on_left)
            buffer_append_bytes(&result, text);
    }
    status s = text_result(call, &result, out);
    return status_is_ok(s) && out->text.size > TEXT_LIMIT ? too_long("LPAD/RPAD") : s;
}

static status lpad(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    return pad(call, args, count, true, out);
}

static status rpad(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    return pad(call, args, count, false, out);
}

/* --- trimming --- */

/* White_Space of Unicode: what is trimmed if nothing is said. */
static const char white_space[] =
    "\t\n\v\f\r \xc2\x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000";

/* Whether the set has the part of `text` from `at` to `end`. */
static bool has_part(bytes set, bytes text, size_t at, size_t end, bool by_character)
{
    bytes part = text_slice(text, at, end);
    for (size_t i = 0; i < set.size; i += text_part_size(set, i, by_character))
        if (bytes_start_with(bytes_from(set, i), part))
            return true;
    return false;
}

static status trim_sides(const struct sql_call *call, const struct sql_value *args, size_t count,
                         bool on_left, bool on_right, struct sql_value *out)
{
    bool by_character = text_has_characters(call);
    bytes text = args[0].text, set = count > 1 ? args[1].text : bytes_of(white_space);
    size_t from = 0, to = text.size;
    while (on_left && from < to) {
        size_t next = from + text_part_size(text, from, by_character);
        TRY(sql_count(call->session, sql_steps_of_bytes(set.size)));
        if (!has_part(set, text, from, next, by_character))
            break;
        from = next;
    }
    while (on_right && from < to) {
        size_t last = text_back(text, to, by_character);
        TRY(sql_count(call->session, sql_steps_of_bytes(set.size)));
        if (!has_part(set, text, last, to, by_character))
            break;
        to = last;
    }
    *out = sql_of_text(text_slice(text, from, to));
    return status_ok();
}

static status trim(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    return trim_sides(call, args, count, true, true, out);
}

static status ltrim(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    return trim_sides(call, args, count, true, false, out);
}

static status rtrim(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    return trim_sides(call, args, count, false, true, out);
}

/* --- replacing --- */

static status replace(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text, from = args[1].text;
    struct buffer result = {.budget = call->session->budget};
    size_t at = 0;
    while (from.size > 0 && result.size <= TEXT_LIMIT) {
        size_t found = text_find(text, at, from);
        if (found == SIZE_MAX)
            break;
        buffer_append_bytes(&result, text_slice(text, at, found));
        buffer_append_bytes(&result, args[2].text);
        at = found + from.size;
    }
    buffer_append_bytes(&result, bytes_from(text, at));
    status s = text_result(call, &result, out);
    return status_is_ok(s) && out->text.size > TEXT_LIMIT ? too_long("REPLACE") : s;
}

static status reverse(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text;
    uint8_t *result = arena_alloc(call->arena, text.size);
    if (result == NULL)
        return status_out_of_memory();
    for (size_t at = 0, size; at < text.size; at += size) {
        size = text_part_size(text, at, text_has_characters(call));
        memcpy(result + text.size - at - size, text.data + at, size);
    }
    *out = sql_of_text(bytes_make(result, text.size));
    return status_ok();
}

static status check_sources(struct sql_session *session, bytes source, bool by_character)
{
    for (size_t at = 0, next; at < source.size; at = next) {
        next = at + text_part_size(source, at, by_character);
        TRY(sql_count(session, sql_steps_of_bytes(at)));
        if (has_part(text_slice(source, 0, at), source, at, next, by_character))
            return status_make(STATUS_OUT_OF_RANGE,
                               "Duplicate character \"%.*s\" in TRANSLATE source characters",
                               (int)(next - at), (const char *)source.data + at);
    }
    return status_ok();
}

/* What becomes of a part: what stands in `target` where it stands in `source`; nothing if `target`
 * is shorter; itself if `source` does not have it. */
static bytes translation(bytes part, bytes source, bytes target, bool by_character)
{
    size_t to = 0;
    for (size_t at = 0; at < source.size; at += text_part_size(source, at, by_character)) {
        size_t next = text_skip(target, to, 1, by_character);
        if (bytes_start_with(bytes_from(source, at), part))
            return text_slice(target, to, next);
        to = next;
    }
    return part;
}

static status translate(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)count;
    bool by_character = text_has_characters(call);
    bytes text = args[0].text;
    TRY(check_sources(call->session, args[1].text, by_character));
    struct buffer result = {.budget = call->session->budget};
    status s = status_ok();
    for (size_t at = 0, next; at < text.size && result.size <= TEXT_LIMIT && status_is_ok(s);
         at = next) {
        next = at + text_part_size(text, at, by_character);
        buffer_append_bytes(&result, translation(text_slice(text, at, next), args[1].text,
                                                 args[2].text, by_character));
        s = sql_count(call->session, sql_steps_of_bytes(args[1].text.size));
    }
    if (status_is_ok(s))
        s = text_result(call, &result, out);
    else
        buffer_free(&result);
    return status_is_ok(s) && out->text.size > TEXT_LIMIT ? too_long("TRANSLATE") : s;
}

/* --- SOUNDEX --- */

/* The digit of a letter; '0': a vowel, which parts two letters of one sound; '-': H and W, which do
 * not; 0: no letter. */
static char sound_of(uint8_t c)
{
    static const char sounds[] = "01230120022455012623010202";
    uint8_t letter = c | 0x20;
    if (letter < 'a' || letter > 'z')
        return '\0';
    return letter == 'h' || letter == 'w' ? '-' : sounds[letter - 'a'];
}

static status soundex(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)count;
    struct buffer code = {.budget = call->session->budget};
    char last = '\0';
    for (size_t i = 0; i < args[0].text.size && code.size < 4; i++) {
        uint8_t c = args[0].text.data[i];
        char sound = sound_of(c);
        if (sound == '\0' || (sound == '-' && code.size > 0))
            continue;
        if (code.size == 0)
            buffer_append_byte(&code, c & 0xdf);
        else if (sound != last && sound != '0')
            buffer_append_byte(&code, (uint8_t)sound);
        last = sound;
    }
    while (code.size > 0 && code.size < 4 && !code.failed)
        buffer_append_byte(&code, '0');
    return text_result(call, &code, out);
}

const struct sql_function sql_text_functions[] = {
    {"CONCAT", "STRING(STRING...)", concat},
    {"CONCAT", "BYTES(BYTES...)", concat},
    {"REPEAT", "STRING(STRING, INT64)", repeat},
    {"REPEAT", "BYTES(BYTES, INT64)", repeat},
    {"LPAD", "STRING(STRING, INT64, [STRING])", lpad},
    {"LPAD", "BYTES(BYTES, INT64, [BYTES])", lpad},
    {"RPAD", "STRING(STRING, INT64, [STRING])", rpad},
    {"RPAD", "BYTES(BYTES, INT64, [BYTES])", rpad},
    {"TRIM", "STRING(STRING, [STRING])", trim},
    {"TRIM", "BYTES(BYTES, BYTES)", trim},
    {"LTRIM", "STRING(STRING, [STRING])", ltrim},
    {"LTRIM", "BYTES(BYTES, BYTES)", ltrim},
    {"RTRIM", "STRING(STRING, [STRING])", rtrim},
    {"RTRIM", "BYTES(BYTES, BYTES)", rtrim},
    {"REPLACE", "STRING(STRING, STRING, STRING)", replace},
    {"REPLACE", "BYTES(BYTES, BYTES, BYTES)", replace},
    {"REVERSE", "STRING(STRING)", reverse},
    {"REVERSE", "BYTES(BYTES)", reverse},
    {"TRANSLATE", "STRING(STRING, STRING, STRING)", translate},
    {"TRANSLATE", "BYTES(BYTES, BYTES, BYTES)", translate},
    {"SOUNDEX", "STRING(STRING)", soundex},
    {0},
};
