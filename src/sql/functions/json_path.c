/* JSONPath: see json_path.h. */
#include "sql/functions/json_path.h"

/* --- reading a path --- */

struct path_reader {
    bytes text;
    size_t at;
    enum json_path_form form;
    struct arena *arena;
};

static bool has_more(const struct path_reader *reader)
{
    return reader->at < reader->text.size;
}

static bool take(struct path_reader *reader, char c)
{
    bool is_there = has_more(reader) && reader->text.data[reader->at] == (uint8_t)c;
    reader->at += is_there;
    return is_there;
}

static status invalid_token(const struct path_reader *reader)
{
    bytes rest = bytes_from(reader->text, reader->at);
    return status_make(STATUS_OUT_OF_RANGE, "Invalid token in JSONPath at: %.*s", (int)rest.size,
                       (const char *)rest.data);
}

static status check_operator(const struct path_reader *reader)
{
    static const char *const operators[] = {"*", "@", "."};
    bytes rest = bytes_from(reader->text, reader->at);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (bytes_start_with(rest, bytes_of(operators[i])))
            return status_make(STATUS_OUT_OF_RANGE, "Unsupported operator in JSONPath: %s",
                               operators[i][0] == '.' ? ".." : operators[i]);
    return status_ok();
}

/* What is in quotes, of which the first was taken; a backslash takes what follows as it is. */
static status read_quoted(struct path_reader *reader, char quote, bytes *out)
{
    uint8_t *name = arena_alloc(reader->arena, reader->text.size);
    size_t size = 0, start = reader->at - 1;
    if (name == NULL)
        return status_out_of_memory();
    while (has_more(reader) && reader->text.data[reader->at] != (uint8_t)quote) {
        if (take(reader, '\\') && !has_more(reader))
            break;
        name[size++] = reader->text.data[reader->at++];
    }
    *out = bytes_make(name, size);
    if (take(reader, quote))
        return status_ok();
    reader->at = start;
    return invalid_token(reader);
}

/* After a dot. */
static status read_name(struct path_reader *reader, bytes *out)
{
    if (reader->form == JSON_PATH_STANDARD && take(reader, '"'))
        return read_quoted(reader, '"', out);
    size_t start = reader->at;
    TRY(check_operator(reader));
    while (has_more(reader) && reader->text.data[reader->at] != '.' &&
           reader->text.data[reader->at] != '[')
        reader->at++;
    if (reader->at == start)
        return invalid_token(reader);
    *out = bytes_make(reader->text.data + start, reader->at - start);
    return status_ok();
}

/* After a bracket. An index that is too great for a number is that of no element. */
static status read_subscript(struct path_reader *reader, struct json_step *step)
{
    size_t start = reader->at;
    if (reader->form == JSON_PATH_LEGACY && take(reader, '\'')) {
        TRY(read_quoted(reader, '\'', &step->name));
        return take(reader, ']') ? status_ok() : invalid_token(reader);
    }
    TRY(check_operator(reader));
    step->is_index = true;
    for (; has_more(reader) && reader->text.data[reader->at] != ']'; reader->at++) {
        uint8_t c = reader->text.data[reader->at];
        if (c < '0' || c > '9')
            return invalid_token(reader);
        if (__builtin_mul_overflow(step->index, 10, &step->index) ||
            __builtin_add_overflow(step->index, (uint64_t)(c - '0'), &step->index))
            step->index = UINT64_MAX / 10;
    }
    return reader->at > start && take(reader, ']') ? status_ok() : invalid_token(reader);
}

static status read_step(struct path_reader *reader, struct json_step *step)
{
    *step = (struct json_step){0};
    if (take(reader, '.'))
        return read_name(reader, &step->name);
    if (take(reader, '['))
        return read_subscript(reader, step);
    return invalid_token(reader);
}

status json_path_read(bytes text, enum json_path_form form, struct arena *arena,
                      struct json_path *out)
{
    struct path_reader reader = {.text = text, .form = form, .arena = arena};
    if (!take(&reader, '$'))
        return status_make(STATUS_OUT_OF_RANGE, "JSONPath must start with '$'");
    size_t most = text.size / 2; /* a step has two bytes at least */
    *out = (struct json_path){.steps = arena_alloc(arena, most * sizeof *out->steps)};
    if (out->steps == NULL)
        return status_out_of_memory();
    while (has_more(&reader))
        TRY(read_step(&reader, &out->steps[out->count++]));
    return status_ok();
}

/* --- following it --- */

static bool is_named(bytes escaped, bytes name)
{
    struct buffer unescaped = {0};
    bool is_same = json_unescape(escaped, &unescaped) && !unescaped.failed &&
                   bytes_equal(buffer_bytes(&unescaped), name);
    buffer_free(&unescaped);
    return is_same;
}

static bool enter_member(bytes name, struct json_reader *reader)
{
    bytes found;
    if (!json_take(reader, '{') || json_peek(reader) != JSON_STRING)
        return false;
    do {
        json_take_scalar(reader, &found);
        json_take(reader, ':');
        if (is_named(found, name))
            return true;
        json_skip(reader, JSON_DEPTH);
    } while (json_take(reader, ','));
    return false;
}

static bool enter_element(uint64_t index, struct json_reader *reader)
{
    if (!json_take(reader, '[') || json_take(reader, ']'))
        return false;
    for (; index > 0; index--)
        if (!json_skip(reader, JSON_DEPTH) || !json_take(reader, ','))
            return false;
    return true;
}

bool json_path_find(const struct json_path *path, struct json_reader *reader)
{
    for (size_t i = 0; i < path->count; i++) {
        const struct json_step *step = &path->steps[i];
        if (!(step->is_index ? enter_element(step->index, reader)
                             : enter_member(step->name, reader)))
            return false;
    }
    return true;
}
